/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_rows_out - writes rows: every output format, text dump and npy body
 *
 * What     The head (titles, or what stands in front of a JSON list) is written
 *          with the first row, so that an error before it stands alone.
 * Owner    The caller; nothing is freed.
 */
#ifndef PS_CLI_ROWS_OUT_H
#define PS_CLI_ROWS_OUT_H

#include <stdio.h>

#include "base/slice.h"
#include "client/requests/scan.h"

typedef enum ps_rows_format {
    PS_ROWS_TABLE = 0, /* in the order of ps_format_t */
    PS_ROWS_WIDE,
    PS_ROWS_JSON,
    PS_ROWS_JSONL,
    PS_ROWS_CSV,
    PS_ROWS_TSV,
    PS_ROWS_NAME,
    PS_ROWS_TEXT, /* row col:value … */
    PS_ROWS_RAW   /* only the values' bytes */
} ps_rows_format_t;

typedef struct ps_rows_out {
    FILE *file;
    ps_rows_format_t format;
    ps_type_t type;
    const char *table; /* name, for JSON */
    uint64_t n_table_cols;
    const uint32_t *cols; /* selection; NULL: all */
    size_t n_cols;        /* of the selection */
    bool sparse;          /* rows come with their columns */
    bool skip_empty;      /* no line for a row without values */
    bool any_key;         /* keys may be any 64-bit number: room for 20 digits */
    bool big_as_text;     /* JSON integers beyond 2^53 are strings */
    uint64_t n_rows;      /* written */
    uint64_t n_values;    /* written */
    uint64_t row;         /* that is being written */
    uint64_t n_in_row;    /* values of it so far */
    bool has_head;
} ps_rows_out_t;

/* The functions that ps_scan calls; self is borrowed. */
ps_scan_sink_t ps_rows_out_sink(ps_rows_out_t *self);
/* The head if there was no row, and what stands at the end. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_rows_out_finish(ps_rows_out_t *self, psd_error_t *err);
#endif
