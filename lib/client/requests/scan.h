/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_scan - pulls many rows piece by piece and hands them to a sink
 *
 * What     It pulls dense rows in groups of a few MiB, wide rows in pieces of
 *          columns, and rows whose length only the server knows in groups that grow
 *          and shrink. Of hash keys it holds an answer of each partition at once, at
 *          most limits.slice_bytes of each.
 */
#ifndef PS_CLIENT_SCAN_H
#define PS_CLIENT_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/rows.h"
#include "psd/trace.h"

/* Rows from .. to. */
typedef struct ps_span {
    uint64_t first;
    uint64_t last;  /* inclusive */
    bool is_single; /* named by itself, not as a range */
} ps_span_t;

/* Where rows go: row, then values as often as needed, then end. */
typedef struct ps_scan_sink {
    void *self; /* given to each function */
    psd_status_t (*row)(void *self, uint64_t row, psd_error_t *err);
    /* cols NULL: n adjacent columns of the selection (dense). Else the row's
     * columns that are not zero; then it is called at most once. */
    psd_status_t (*values)(void *self, const uint32_t *cols, const void *values, size_t n,
                           psd_error_t *err);
    psd_status_t (*end)(void *self, psd_error_t *err);
} ps_scan_sink_t;

typedef struct ps_scan_args {
    psd_table_t *table;
    const ps_span_t *spans;                  /* of rows that the table can have, in the order
                                                that they come in; NULL: all rows */
    size_t n_spans;                          /* 0 when spans is NULL */
    const uint32_t *cols;                    /* NULL: all */
    size_t n_cols;                           /* 0 when cols is NULL */
    bool sparse;                             /* rows as their values that are not zero; all
                                                columns only */
    uint32_t timeout_ms;                     /* of each request */
    psd_trace_t *trace;                      /* records them; or NULL */
    void (*told)(void *arg, uint64_t bytes); /* of each that came; or NULL */
    void *arg;                               /* for told */
} ps_scan_args_t;

/* Errors: as psd_fetch and psd_pull_start; what the sink returns; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_scan(const ps_scan_args_t *args, const ps_scan_sink_t *sink,
                                    psd_error_t *err);
#endif
