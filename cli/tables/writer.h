/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_writer - pushes rows in batches, as deltas or as new values
 *
 * What     Setting a value in a table with updater `add` pushes the difference
 *          to the stored value; floats are then read again, since a rounded
 *          difference may miss by a bit.
 * Owner    The caller (ps_writer_done).
 */
#ifndef PS_CLI_WRITER_H
#define PS_CLI_WRITER_H

#include "cli/run/view.h"

typedef struct ps_writer {
    ps_cli_t *cli;
    const ps_view_t *view;
    bool set;             /* set these values; else they are deltas */
    psd_call_t *call;     /* owned */
    psd_select_t *select; /* owned */
    bool dense;           /* of the batch: every row has the same columns */
    uint32_t first_col;   /* dense */
    size_t width;         /* dense: columns of each row */
    uint64_t *rows;       /* owned; strictly ascending */
    uint32_t *counts;     /* owned; values of each row */
    uint32_t *cols;       /* owned; sparse: of each value */
    char *values;         /* owned */
    char *current;        /* owned; the stored values, when set */
    char *deltas;         /* owned; when set */
    size_t rows_capacity, counts_capacity, cols_capacity, values_capacity;
    size_t n_rows, n_values; /* in the batch */
    uint64_t rows_done;      /* acknowledged */
} ps_writer_t;

/* Errors: PSD_NOMEM; PSD_UNSUPPORTED set of a table whose updater takes
 * gradients. */
PSD_MUST_CHECK psd_status_t ps_writer_init(ps_writer_t *ret_writer, ps_cli_t *cli,
                                           const ps_view_t *view, bool set, psd_error_t *err);
void ps_writer_done(ps_writer_t *self);
/* Adds values of a row (a ps_cells_take_t; arg is the writer). Errors: as
 * psd_push_start and psd_wait. */
PSD_MUST_CHECK psd_status_t ps_writer_cells(void *arg, uint64_t row, uint32_t first_col,
                                            const uint32_t *cols, const void *values, size_t n,
                                            psd_error_t *err);
/* Pushes the waiting batch. */
PSD_MUST_CHECK psd_status_t ps_writer_flush(ps_writer_t *self, psd_error_t *err);
#endif
