/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_partition_replay - the only way in which a partition changes
 *
 * What     Only records change rows, windows, gates and open clocks, so a copy
 *          that replays the same records has the same bits. The primary makes a
 *          record of a checked request, replays it, and answers; the other
 *          copies replay the records that they receive. Nothing is checked or
 *          answered here.
 * Threads  Confined to the shard's thread.
 */
#ifndef PS_PROTOCOL_REPLAY_H
#define PS_PROTOCOL_REPLAY_H

#include "protocol/partition/partition.h"

/* record->lsn is the partition's next. payload is the record's payload, held
 * longer where needed; NULL when the record has none. false: no memory; nothing
 * changed. */
PSD_MUST_CHECK bool ps_partition_replay(ps_step_t *step, ps_partition_t *self,
                                        const ps_record_t *record, ps_payload_t *payload);
/* The same, and adds the record effect for the log: reserves its place while
 * the record's own effects come first. false: as above. */
PSD_MUST_CHECK bool ps_partition_replay_noted(ps_step_t *step, ps_partition_t *self,
                                              const ps_record_t *record, ps_payload_t *payload);
/* Into the rows, as a push of that worker. false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_partition_apply(ps_step_t *step, ps_partition_t *self, uint32_t worker,
                                       const ps_row_op_t *op, const ps_slice_t *slice,
                                       const ps_payload_t *payload);
/* Applies the pushes of clocks that have closed meanwhile. false: no memory
 * now; call again. */
PSD_MUST_CHECK bool ps_partition_close_clocks(ps_step_t *step, ps_partition_t *self,
                                              ps_job_place_t *place);
/* Checks that the record can be replayed here; does not trust the primary's
 * checks. */
PSD_MUST_CHECK bool ps_partition_takes_record(ps_step_t *step, ps_partition_t *self,
                                              const ps_record_t *record, ps_payload_t *payload);
/* The client's window, made when it is new. NULL: no memory. */
ps_window_t *ps_partition_window_of(const ps_step_t *step, ps_partition_t *self, uint64_t session);
/* That member of the worker has finished this number of clocks. */
void ps_partition_mark(ps_step_t *step, const ps_partition_t *self, const ps_job_place_t *place,
                       uint32_t worker, uint32_t member, uint64_t clock);
/* True when pushes of the job are applied at once, not kept until their clock
 * closes. */
bool ps_partition_applies_at_once(const ps_partition_t *self, uint32_t job);

/* ---- replay_bundle.c: BUNDLE ---- */

/* What ps_partition_replay and ps_partition_takes_record do with a bundle. All windows move, or
 * none. */
PSD_MUST_CHECK bool ps_partition_replay_bundle(ps_step_t *step, ps_partition_t *self,
                                               const ps_record_t *record, ps_payload_t *payload);
PSD_MUST_CHECK bool ps_partition_takes_bundle(const ps_partition_t *self, const ps_record_t *record,
                                              ps_payload_t *payload);
/* Deltas of several pushes may come as one sum where pushes are applied at once. */
bool ps_partition_sums_at_once(const ps_partition_t *self);
/* The entry of an open clock that a span becomes. It owns a list and holds a payload. false: no
 * memory. */
PSD_MUST_CHECK bool ps_partition_span_entry(const ps_record_t *record, const ps_bundle_t *bundle,
                                            uint16_t i, ps_payload_t *payload,
                                            ps_logged_t *ret_entry);

#endif
