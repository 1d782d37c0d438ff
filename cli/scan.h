/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_scan - pulls many rows piece by piece and hands them to a sink
 *
 * What     Memory stays bounded whatever the table's size: dense rows come in
 *          groups of a few MiB, wide ones in pieces of columns, rows whose
 *          length only the server knows in groups that grow and shrink.
 */
#ifndef PS_CLI_SCAN_H
#define PS_CLI_SCAN_H

#include "cli/rowset.h"
#include "cli/view.h"

/* Where rows go: row, then values as often as needed, then end. */
typedef struct ps_sink {
    void *self; /* given to each function */
    psd_status_t (*row)(void *self, uint64_t row, psd_error_t *err);
    /* cols NULL: n neighbouring columns of the selection (dense). Else the
     * row's columns that are not zero; then it is called once at most. */
    psd_status_t (*values)(void *self,
                           const uint32_t *cols,
                           const void *values,
                           size_t n,
                           psd_error_t *err);
    psd_status_t (*end)(void *self, psd_error_t *err);
} ps_sink_t;

typedef struct ps_scan_args {
    const ps_view_t *view;
    const ps_rowset_t *rows;
    const uint32_t *cols; /* NULL: all */
    size_t n_cols;        /* 0 when cols is NULL */
    bool sparse;          /* rows as their values that are not zero; all
                             columns only */
    const psd_call_t *call;
    const char *progress; /* words for a terminal; NULL: none */
} ps_scan_args_t;

/* Errors: as psd_fetch and psd_pull_start; what the sink returns. */
PSD_MUST_CHECK psd_status_t ps_scan(ps_cli_t *cli,
                                    const ps_scan_args_t *args,
                                    const ps_sink_t *sink,
                                    psd_error_t *err);
#endif
