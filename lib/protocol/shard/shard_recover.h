/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_recover - recovers a shard's partitions from its disk
 *
 * What     Call before the first event: tables, then the snapshot and the log
 *          of each partition, a piece or a record at a time. The map decides
 *          later what of it stays (PS_EVENT_TABLE). A snapshot is a state, then
 *          rows, each piece read at an lsn: pass records up to that lsn before
 *          the piece, later ones after it.
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
 * PSD_DAMAGED it does not match the table and partition, or is not the first
 * call for it; PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_state(ps_shard_t *self, uint32_t table,
                                                   uint32_t partition, ps_bytes_t bytes,
                                                   psd_error_t *err);
/* A piece of rows (ps_partition_give_rows). Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_rows(ps_shard_t *self, uint32_t table,
                                                  uint32_t partition, ps_bytes_t bytes,
                                                  psd_error_t *err);
/* The snapshot has no more pieces. last_lsn: records up to here must follow, if
 * they were not passed yet. Errors: PSD_DAMAGED there was no state. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_whole(ps_shard_t *self, uint32_t table,
                                                   uint32_t partition, uint64_t last_lsn,
                                                   psd_error_t *err);
/* A record, in the order of the log. Skips records that the snapshot contains
 * already. Errors: PSD_DAMAGED a record is missing before it, or it does not
 * fit the partition; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_record(ps_shard_t *self, const ps_record_t *record,
                                                    const ps_body_t *body, psd_error_t *err);
/* True when the record must be skipped: the partition has it, or it belongs to
 * an earlier life of the copy, with records that its later primary lacks.
 */
bool ps_shard_recover_has(const ps_shard_t *self, const ps_record_t *record);
/* Discards everything recovered of the partition; recovery may start again. */
void ps_shard_recover_drop(ps_shard_t *self, uint32_t table, uint32_t partition);
/* Sets the life of the partition, if it is here. */
void ps_shard_recover_life(ps_shard_t *self, uint32_t table, uint32_t partition, uint64_t life);
/* New lives get numbers above `last`. */
void ps_shard_recover_lives(ps_shard_t *self, uint64_t last);
/* True when the recovered data gives a complete partition. */
bool ps_shard_recover_is_whole(const ps_shard_t *self, uint32_t table, uint32_t partition);
/* True when the record has the lsn of an earlier one but a later epoch: it
 * belongs to a life whose beginning is missing. */
bool ps_shard_recover_is_strange(const ps_shard_t *self, const ps_record_t *record);
/* The number of partitions of a recovered table. */
uint32_t ps_shard_recover_n_partitions(const ps_shard_t *self, uint32_t table);
/* True when the table was recovered. */
bool ps_shard_recover_knows(const ps_shard_t *self, uint32_t table);
/* True when the file on the disk of a table with a log needs no change for a TABLE: the
 * core has the table with that `combine`, or will not take the event's word. */
bool ps_shard_has_table(const ps_shard_t *self, const ps_event_t *event);
/* The recovered tables; the caller frees the array. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_tables(const ps_shard_t *self, uint32_t **ret_tables,
                                                    size_t *ret_n, psd_error_t *err);
/* The last recovered lsn of the partition; 0: nothing of it is here. */
uint64_t ps_shard_recover_lsn(const ps_shard_t *self, uint32_t table, uint32_t partition);
/* Ends the recovery. Errors: PSD_DAMAGED the log ends before the lsn at which a
 * snapshot was read. */
PSD_MUST_CHECK psd_status_t ps_shard_recover_end(ps_shard_t *self, psd_error_t *err);
#endif
