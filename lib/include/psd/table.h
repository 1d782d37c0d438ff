/* SPDX-License-Identifier: Apache-2.0 */
/* psd_table - a table of rows on the cluster, and its specification */
#ifndef PSD_TABLE_H
#define PSD_TABLE_H

#include "psd/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psd_table psd_table_t;
typedef struct psd_spec psd_spec_t;

/* The specification of a new table, in the words of `pscli table create`. NULL
 * when there is no memory. */
PSD_EXPORT psd_spec_t *psd_spec_new(void);
PSD_EXPORT void psd_spec_destroy(psd_spec_t **self_p);
/*
 * key       value
 * rows      1 .. 2^40 (range keys only)
 * cols      1 .. 2^31, default 1
 * type      i32 | i64 | f32 | f64, default f32
 * row-format dense | sparse | auto, default dense
 * keys      range | hash, default range
 * updater   a rule of docs/updaters.md and its settings, such as add, min,
 *           adam:alpha=0.01,eps=1e-6 or plugin:NAME[:TEXT]; settings that are
 *           not named have their defaults
 * init      zero | constant:V | uniform:LOW,HIGH | normal:MEAN,STD
 * seed      u64, default 0
 * partitions, replicas
 * partition-by  range | hash | list:ROW,…; default hash for hash keys, range
 *           for range keys
 * ack       memory | replica | disk
 * allow-nonfinite  true | false, default false
 * versions  true | false, default false: each row stores the version of its
 *           last change, for psd_pull_changed
 * combine   each | clock-sum | clock-mean: in a job with max_delay 0 the pushes
 *           of one clock run the updater one by one, or their sum, or mean over
 *           the workers, runs it once (docs/guarantees.md). Default for
 *           updaters that add deltas or take gradients: $PSD_COMBINE; else
 *           clock-sum if the client is a worker whose deltas may go from worker
 *           to worker ($PSD_OVERLAY, docs/overlay.md); else each. For others:
 *           each
 * filter    for calls that set none: as psd_call_set_filter, default none
 * Errors: PSD_INVALID, naming key, value and what is allowed.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_spec_set(psd_spec_t *self, const char *key,
                                                    const char *value, psd_error_t *err);

/* Creates a table and opens it. spec NULL: defaults. Errors: PSD_TABLE_EXISTS;
 * PSD_INVALID; PSD_LIMIT; PSD_FEW_NODES, but not while a silent node may still
 * come back; PSD_DEADLINE. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_create(psd_client_t *client, const char *name,
                                                        const psd_spec_t *spec,
                                                        psd_table_t **ret_table, psd_error_t *err);
/* Opens a table that exists; a worker opens it for its job. Errors:
 * PSD_NO_TABLE; PSD_DEADLINE. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_open(psd_client_t *client, const char *name,
                                                      psd_table_t **ret_table, psd_error_t *err);
/* Opens the table, or creates it from spec when it does not exist (of several
 * clients the first one creates it). An existing table must agree with spec in
 * rows, cols, type, keys and updater, and in combine if spec sets it; else it keeps its own.
 * Errors: PSD_TABLE_EXISTS it
 * does not agree; those of psd_table_create. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_ensure(psd_client_t *client, const char *name,
                                                        const psd_spec_t *spec,
                                                        psd_table_t **ret_table, psd_error_t *err);
/* Closes the handle; its tickets go on. */
PSD_EXPORT void psd_table_close(psd_table_t **self_p);
/* Drops the table and its rows. Errors: PSD_NO_TABLE; PSD_DEADLINE. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_table_drop(psd_client_t *client, const char *name,
                                                      psd_error_t *err);

/* Borrowed until the table is closed. */
PSD_EXPORT const char *psd_table_name(const psd_table_t *self);
/* "f32" …; static. */
PSD_EXPORT const char *psd_table_type(const psd_table_t *self);
/* 4 or 8 bytes. */
PSD_EXPORT size_t psd_table_value_size(const psd_table_t *self);
/* Rows of a range table; 0 for hash keys. */
PSD_EXPORT uint64_t psd_table_rows(const psd_table_t *self);
PSD_EXPORT uint32_t psd_table_cols(const psd_table_t *self);

#ifdef __cplusplus
}
#endif
#endif
