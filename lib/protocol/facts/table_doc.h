/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_table_doc - a table's definition and placement in JSON
 *
 * What     The control messages carry a table's spec under the words that
 *          `pscli table inspect -o json` shows, and its routes.
 * Shape    spec: {"name":"w","rows":1000,"cols":1,"type":"f32",
 *          "row_format":"dense","keys":"range","updater":{"name":"add"},
 *          "init":{"name":"zero"},"seed":0,"n_partitions":4,"n_col_slices":1,
 *          "partition_by":"range","replicas":1,"ack":"memory",
 *          "allow_nonfinite":false}; "filter":"delta+f16" if the table has one
 *          updater has the parameters of its rule
 *          (model/updaters/updater_rule.h), or "plugin" and "parameters", two
 *          texts, for a plug-in; init has "value" (constant), "low" and "high"
 *          (uniform) or "mean" and
 *          "std" (normal); "boundaries":[row,…] is present with partition_by
 *          "list" only. routes:
 *          [{"partition":0,"epoch":1,"incarnation":7,"shard":0,
 *          "tcp":"tcp://…","ipc":"ipc://…"},…], one for each partition, in
 *          order
 */
#ifndef PS_PROTOCOL_TABLE_DOC_H
#define PS_PROTOCOL_TABLE_DOC_H

#include "model/tables/table.h"
#include "wire/messages/doc.h"
#include "wire/messages/route.h"

/* Sets the spec's keys in doc, which may have other keys. false: no memory;
 * some of the keys may be set then. */
PSD_MUST_CHECK bool ps_table_spec_to_doc(const ps_table_spec_t *spec, ps_doc_t *doc);
/*
 * Reads a spec and checks all of it. Only the name is required. Defaults are
 * those of ps_table_spec_init, except that partition_by comes from
 * ps_partition_by_default for the keys, and an updater's missing parameters
 * from ps_updater_spec_parse. n_partitions and n_col_slices may be 0: the
 * cluster then chooses them. The rest passes ps_table_spec_check.
 *
 * ret_spec  out  set on PSD_OK only; ps_table_spec_done by the caller
 *
 * Errors: PSD_PROTO a key is missing or of the wrong kind; PSD_INVALID naming
 * field, value and what is allowed; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_table_spec_from_doc(const ps_doc_t *doc, ps_table_spec_t *ret_spec,
                                                   psd_error_t *err);

/* Appends n routes to an array. false: no memory; some may be appended then. */
PSD_MUST_CHECK bool ps_routes_to_doc(const ps_route_t *routes, uint32_t n, ps_doc_t *array);
/*
 * Reads the routes of a whole table: 1 .. PS_TABLE_PARTITIONS_MAX of them, the
 * i-th for partition i.
 *
 * ret_routes  out  fresh array; the caller frees it with ps_free
 *
 * Errors: PSD_PROTO, PSD_INVALID, PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_routes_from_doc(const ps_doc_t *array, ps_route_t **ret_routes,
                                               uint32_t *ret_n, psd_error_t *err);
#endif
