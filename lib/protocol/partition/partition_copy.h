/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_partition_give_state, ps_partition_give_rows - sends a partition to a new
 * copy
 *
 * What     A new copy takes the state, then rows in pieces, and after the state
 *          every record that the primary makes, in the same order. Records
 *          change only the rows that have arrived (model/store/store_copy.h).
 *          After the last piece both copies have the same bits and stay
 *          identical. Held requests are not part of it: they have had no effect
 *          yet.
 * Shape    the state: u32 format (6), u32 table, u32 partition, u64 epoch, u64
 *          lsn, u64 epoch of that record, u64 version of the rows, the sessions
 *          that are refused (session_set.h; format 4: u64, those below it), u32
 *          1 while rows of a checkpoint are missing (else 0); u32 what becomes of
 *          the pushes of a clock (ps_combine_t; formats 4 and 5: each); epochs
 *          of its records (epochs.h);
 *          u32 n windows, by session, each: u64 session, u64 next, u64 unsure,
 *          u32 n refusals, each: u64 seq, u16 status, u16 bytes of text (65535:
 *          there is none), text;
 *          u32 n jobs, each: u32 size and the bytes of ps_job_encode, without
 *          name and version; u64 closed, u64 applied, u64 marks of all members
 *          of all workers; u32 n pushes of clocks that are open, each a PUSH
 *          record (wire/records/record.h), or a BUNDLE record of one span
 *          Untrusted bytes: everything that is read is checked.
 * Threads  Confined to the shard's thread; the shard is in a step.
 */
#ifndef PS_PROTOCOL_PARTITION_COPY_H
#define PS_PROTOCOL_PARTITION_COPY_H

#include "model/store/store_copy.h"
#include "protocol/partition/partition.h"

#define PS_STATE_FORMAT UINT32_C(7)
#define PS_STATE_FORMAT_MIN UINT32_C(4) /* the oldest snapshot format that this build reads */
#define PS_STATE_NO_TEXT UINT16_MAX     /* there was no memory for the text */

/* Everything but the rows, for the caller to free. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_partition_give_state(const ps_partition_t *self);
/* Takes it into a new partition, whose rows are then partial. Errors: PSD_PROTO
 * the bytes are not a state of this partition, naming what is wrong; PSD_NOMEM.
 * The partition is then as new. */
PSD_MUST_CHECK psd_status_t ps_partition_take_state(ps_step_t *step, ps_partition_t *self,
                                                    ps_bytes_t state, psd_error_t *err);
/*
 * As ps_store_hand_out. First applies a closed clock that could not be applied
 * completely: rows with half of it would differ from the other copy's. Errors:
 * PSD_NOMEM; call again later.
 */
PSD_MUST_CHECK psd_status_t ps_partition_give_rows(ps_step_t *step, ps_partition_t *self,
                                                   ps_store_cursor_t *cursor, size_t max_bytes,
                                                   ps_payload_t **ret_piece, bool *ret_done,
                                                   psd_error_t *err);
/* As ps_store_take_in, also applies closed clocks first; is_last: the rows are
 * then complete. Errors: PSD_PROTO: discard the partition; PSD_NOMEM: it has
 * taken ps_store_n_taken rows. */
PSD_MUST_CHECK psd_status_t ps_partition_take_rows(ps_step_t *step, ps_partition_t *self,
                                                   ps_bytes_t piece, bool is_last,
                                                   psd_error_t *err);
#endif
