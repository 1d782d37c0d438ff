/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_recover - a shard's partitions, read from its disk again
 *
 * What     Before the first event: tables, then what the snapshot and the log
 *          of each partition say, a piece or a record at a time. Of what was
 *          told here the map decides later whether it stays (PS_EVENT_TABLE).
 *          A snapshot is a state, then rows, each piece read at an lsn: records
 *          up to there are told before it, those behind it after it.
 * Owner    Borrows everything for the call.
 * Threads  Confined to the shard's one.
 */
#ifndef PS_PROTOCOL_SHARD_RECOVER_H
#define PS_PROTOCOL_SHARD_RECOVER_H

#include "protocol/shard/shard.h"
#include "wire/records/record.h"

/* A table whose records go to the disk. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_table(ps_shard_t *self, uint32_t table,
                                                   const ps_table_spec_t *spec, psd_error_t *err);
/* The first piece of a partition's snapshot: ps_partition_give_state. Errors:
 * PSD_DAMAGED it is none of such a table and partition, or not the first thing
 * told of it; PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_state(ps_shard_t *self, uint32_t table,
                                                   uint32_t partition, ps_bytes_t bytes,
                                                   psd_error_t *err);
/* A piece of rows (ps_partition_give_rows). Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_rows(ps_shard_t *self, uint32_t table,
                                                  uint32_t partition, ps_bytes_t bytes,
                                                  psd_error_t *err);
/* There were no more pieces. last_lsn: records up to here must follow, if they
 * were not told yet. Errors: PSD_DAMAGED there was no state. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_whole(ps_shard_t *self, uint32_t table,
                                                   uint32_t partition, uint64_t last_lsn,
                                                   psd_error_t *err);
/* A record, in the order of the log. What the snapshot has already is passed
 * over. Errors: PSD_DAMAGED a record is missing before it, or it does not fit
 * the partition; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_record(ps_shard_t *self, const ps_record_t *record,
                                                    const ps_body_t *body, psd_error_t *err);
/* The record is no part of what the partition is now: it has it, or it is of an
 * earlier life of the copy, which had records that its later primary has not.
 */
bool ps_shard_recover_has(const ps_shard_t *self, const ps_record_t *record);
/* What was told of the partition counts no more; it may be told anew. */
void ps_shard_recover_drop(ps_shard_t *self, uint32_t table, uint32_t partition);
/* The partition, if it is here, is in this life. */
void ps_shard_recover_life(ps_shard_t *self, uint32_t table, uint32_t partition, uint64_t life);
/* Lives that begin from now on have higher numbers. */
void ps_shard_recover_lives(ps_shard_t *self, uint64_t last);
/* All that was told of the partition leads to a whole state. */
bool ps_shard_recover_is_whole(const ps_shard_t *self, uint32_t table, uint32_t partition);
/* The record has the lsn of one that was told, and a later epoch: it is of a
 * life of which the beginning was not told. */
bool ps_shard_recover_is_strange(const ps_shard_t *self, const ps_record_t *record);
/* Partitions of a table that was told. */
uint32_t ps_shard_recover_n_partitions(const ps_shard_t *self, uint32_t table);
/* Such a table was told. */
bool ps_shard_recover_knows(const ps_shard_t *self, uint32_t table);
/* The tables that were told, for the caller to free. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_tables(const ps_shard_t *self, uint32_t **ret_tables,
                                                    size_t *ret_n, psd_error_t *err);
/* The lsn that the partition has come to; 0: nothing of it is here. */
uint64_t ps_shard_recover_lsn(const ps_shard_t *self, uint32_t table, uint32_t partition);
/* All was told. Errors: PSD_DAMAGED the log ends before the lsn that a snapshot
 * was read at. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_end(ps_shard_t *self, psd_error_t *err);
#endif
