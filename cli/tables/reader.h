/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_reader - rows from a text dump, a csv or a npy file
 *
 * What     Every row, column and value is checked against the table; an error
 *          names file and line. Memory is bounded: long rows come in pieces,
 *          whatever the length of a line.
 * Shape    text   row col:value col:value …   columns ascending; `#` comments
 *          csv    row,0,1,…  or  row,col,value  after a line of titles
 *          npy    as many rows and columns as the table
 */
#ifndef PS_CLI_READER_H
#define PS_CLI_READER_H

#include "cli/run/progress.h"
#include "cli/tables/file_format.h"
#include "data/streams/source.h"
#include "data/text/cells.h"

typedef struct ps_reader {
    FILE *file;          /* borrowed */
    ps_source_t *source; /* borrowed; the same file, perhaps compressed, from
                          * its start: source of text and csv; NULL: file is
                          * the source */
    const char *path;    /* for errors */
    const ps_view_t *view;
    ps_cells_take_t *take; /* called for every piece; may be NULL */
    void *arg;             /* for take */
    ps_progress_t *progress;
    uint64_t taken;   /* of the source, as progress knows it */
    ps_cells_t cells; /* owned; what is read, counts of it */
} ps_reader_t;

/* Reads the file from where it stands to its end. Errors: PSD_INVALID,
 * PSD_RANGE, PSD_SHAPE, PSD_TYPE, PSD_NOT_FINITE with file and line; PSD_IO;
 * what take returns. */
PSD_MUST_CHECK psd_status_t ps_reader_read(ps_reader_t *self, ps_file_format_t format,
                                           psd_error_t *err);
/* Frees what it owns; fits PSD_AUTO. */
void ps_reader_done(ps_reader_t *self);
#endif
