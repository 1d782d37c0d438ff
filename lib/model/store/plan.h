/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_plan - the memory that a table will need, before it is made
 *
 * What     Makes and fills a small store of the table's kind and scales up the
 *          bytes that it reports. The sample uses the store's own layout, so
 *          the two cannot disagree. The sample's number of rows is the table's,
 *          halved until it is small. An index grows by a quarter at a time, so
 *          the real one may be fuller or emptier than the sample's by 12 %.
 * Units    bytes
 */
#ifndef PS_MODEL_PLAN_H
#define PS_MODEL_PLAN_H

#include "model/store/store.h"

typedef struct ps_plan {
    uint32_t n_row_slices;    /* slices of rows, of the settled spec */
    uint64_t partition_rows;  /* of the largest row slice */
    ps_store_bytes_t table;   /* all partitions of one copy */
    ps_store_bytes_t largest; /* its largest partition */
} ps_plan_t;

/*
 * spec    in  checked and settled; its name does not matter
 * n_rows  in  rows that will be present, 1 .. 2^40; RANGE keys: at most
 *             spec->n_rows
 * fill    in  sparse and auto rows: the part of their columns that is not zero,
 *             above 0, at most 1
 *
 * Assumes equally large row slices. Sizes above 2^64 - 1 saturate.
 * Errors: PSD_NOMEM, PSD_LIMIT as ps_store_new for the sample.
 */
PSD_MUST_CHECK psd_status_t ps_plan_make(const ps_table_spec_t *spec, uint64_t n_rows, double fill,
                                         ps_plan_t *ret_plan, psd_error_t *err);
#endif
