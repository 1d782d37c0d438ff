/* SPDX-License-Identifier: Apache-2.0 */
/* ps_view - an open table with what `table inspect` says about it */
#ifndef PS_CLI_VIEW_H
#define PS_CLI_VIEW_H

#include "base/slice.h"
#include "cli/run/cli.h"
#include "psd/trace.h"

typedef struct ps_view {
    psd_table_t *table;   /* owned */
    json_t *doc;          /* owned; {"table":…,"stats":…} */
    const char *name;     /* borrowed from table */
    ps_type_t type;       /* of every value */
    size_t value_size;    /* bytes */
    uint64_t rows;        /* range keys; 0: hash keys */
    uint32_t cols;        /* of every row */
    uint64_t last_row;    /* the greatest key that a row can have */
    bool is_hash;         /* rows are those that are present */
    bool is_sparse;       /* rows are shown as their values that are not 0 */
    bool allow_nonfinite; /* NaN and infinite deltas are accepted */
    const char *updater;  /* "add" …; borrowed from doc */
    const char *ack;      /* "memory" …; borrowed from doc */
    psd_trace_t *trace;   /* of its pushes and pulls; borrowed; NULL: none */
} ps_view_t;

/* Errors: as ps_cli_request and psd_table_open. */
PSD_MUST_CHECK psd_status_t ps_view_open(ps_cli_t *cli, const char *name, ps_view_t *ret_view,
                                         psd_error_t *err);
/* Closes, frees and zeroes; fits PSD_AUTO. */
void ps_view_done(ps_view_t *self);
#endif
