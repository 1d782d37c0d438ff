/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fleet_doc - what travels between the registry and the other nodes, in JSON
 *
 * What     Answers of a node's shards, tables with the copies of their
 *          partitions, jobs, and reports of copies.
 * Shape    shards: [{"shard":0,"info":[…],"partitions":[…],"waiting":[…],
 *          "clocks":[…],"words":"…"},…]; each list is flat, with a fixed count
 *          of numbers for one item. A time travels as an age, because clocks of
 *          hosts differ. job: {"bytes":"…"}, those of
 *          protocol/facts/job_bytes.h in hexadecimal table:
 *          {"table":…,"spec":{…},"routes":[…],"copies":[{…},…]}, the last two
 *          one item a partition (protocol/facts/table_doc.h, copies.h) reports:
 *          [kind,table,partition,epoch,incarnation,shard,lsn, lsn_epoch,…]
 */
#ifndef PS_DAEMON_FLEET_DOC_H
#define PS_DAEMON_FLEET_DOC_H

#include "daemon/shards/shards.h"
#include "wire/messages/doc.h"

/* Appends the answers of a node's shards. false: no memory. */
PSD_MUST_CHECK bool ps_answers_to_doc(const ps_answers_t *answers, uint64_t now_ms,
                                      ps_doc_t *array);
/* Appends a node's answer to `answers`, under that node. Errors: PSD_PROTO,
 * PSD_INVALID, PSD_NOMEM; on an error answers may have some of it. */
PSD_MUST_CHECK psd_status_t ps_answers_from_doc(const ps_doc_t *array, uint64_t incarnation,
                                                uint64_t now_ms, ps_answers_t *answers,
                                                psd_error_t *err);
/* false: no memory. */
PSD_MUST_CHECK bool ps_job_to_doc(const ps_job_t *job, ps_doc_t *doc);
/* Reads a job that the caller ends with ps_job_done. Errors: PSD_PROTO,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_job_from_doc(const ps_doc_t *doc, ps_job_t *ret_job,
                                            psd_error_t *err);
/* false: no memory. */
PSD_MUST_CHECK bool ps_told_table_to_doc(const ps_table_t *table, ps_doc_t *doc);
/* Reads a table that the caller ends with ps_told_table_done. Errors:
 * PSD_PROTO, PSD_INVALID, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_told_table_from_doc(const ps_doc_t *doc, ps_table_t *ret_table,
                                                   psd_error_t *err);
/* Fits PSD_AUTO. */
void ps_told_table_done(ps_table_t *self);

#define PS_REPORTS_MAX 1024 /* in one message */
/* Appends a report. false: no memory. */
PSD_MUST_CHECK bool ps_report_to_doc(const ps_report_t *report, ps_doc_t *array);
/* The number of reports in the array. Errors: PSD_PROTO. */
PSD_MUST_CHECK psd_status_t ps_reports_count(const ps_doc_t *array, size_t *ret_n,
                                             psd_error_t *err);
/* Errors: PSD_PROTO, PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_report_from_doc(const ps_doc_t *array, size_t i,
                                               ps_report_t *ret_report, psd_error_t *err);
#endif
