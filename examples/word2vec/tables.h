/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wv_tables - the tables of a training
 *
 * What     NAME.in, the vectors; NAME.out and NAME.tree, those of words as
 *          targets and of inner nodes; with --adagrad NAME.….sums; with
 *          --senses NAME.senses, how often each sense was met; and NAME.count,
 *          how many words each worker has read.
 * Threads  as psd_train_t
 */
#ifndef WV_TABLES_H
#define WV_TABLES_H

#include "block.h"
#include "psd_train.h"

/* Tables of vectors; those that are not used are not made. */
typedef enum wv_table {
    WV_IN,
    WV_OUT,
    WV_TREE,
    WV_VECTORS, /* the number of tables */
} wv_table_t;

/* Numbers of psd_train_table. */
typedef struct wv_tables {
    uint32_t vectors[WV_VECTORS]; /* by wv_table */
    uint32_t sums[WV_VECTORS];    /* of squares, with --adagrad */
    uint32_t senses;              /* rows up to the last word that has several */
    uint32_t count;               /* int64, by worker */
} wv_tables_t;

/* Whether a table is there. */
bool wv_tables_has(const wv_options_t *options, wv_table_t table);
/* Rows of a table. */
uint32_t wv_tables_rows(const wv_task_t *task, wv_table_t table);
/* Drops what an earlier run has left. Errors: those of psd_table_drop,
 * except PSD_NO_TABLE. */
PSD_MUST_CHECK psd_status_t wv_tables_drop(psd_train_t *train, const wv_task_t *task,
                                           psd_error_t *err);
/* Before train starts: creates them, or takes the existing ones. Errors:
 * those of psd_train_table. */
PSD_MUST_CHECK psd_status_t wv_tables_make(wv_tables_t *self, psd_train_t *train,
                                           const wv_task_t *task, uint32_t n_workers,
                                           psd_error_t *err);
/* Pulls all rows of a table of floats, n x size, which the caller frees.
 * Errors: those of psd_pull; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t wv_tables_pull(psd_train_t *train, uint32_t table, uint32_t n,
                                           size_t size, float **ret, psd_error_t *err);
#endif
