/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_partition_replay - the one way in which a partition changes
 *
 * What     Rows, windows, gates and open clocks change by a record and by
 *          nothing else, so whoever replays the same records has the same bits.
 *          The primary makes a record of a request that it has checked, replays
 *          it, and answers; another copy replays what it is sent. Nothing is
 *          checked here and nobody is answered.
 * Threads  Confined to the shard's one.
 */
#ifndef PS_PROTOCOL_REPLAY_H
#define PS_PROTOCOL_REPLAY_H

#include "protocol/partition/partition.h"

/* record->lsn is the partition's next. payload is what the record carries, and
 * is kept by whoever needs it longer; NULL when it carries nothing. false: no
 * memory; nothing changed. */
PSD_MUST_CHECK bool ps_partition_replay(ps_step_t *step, ps_partition_t *self,
                                        const ps_record_t *record, ps_payload_t *payload);
/* The same, and hands the record on to who reads the log: the place for that is
 * held while effects of the record itself come. false: as above. */
PSD_MUST_CHECK bool ps_partition_replay_noted(ps_step_t *step, ps_partition_t *self,
                                              const ps_record_t *record, ps_payload_t *payload);
/* Applies the pushes of clocks that have closed since. false: no memory now;
 * to be called again. */
PSD_MUST_CHECK bool ps_partition_close_clocks(ps_step_t *step, ps_partition_t *self,
                                              ps_job_place_t *place);
/* The record can be replayed here; what a primary has checked is not taken on
 * trust. */
PSD_MUST_CHECK bool ps_partition_takes_record(ps_step_t *step, ps_partition_t *self,
                                              const ps_record_t *record, ps_payload_t *payload);
/* Pushes of the job are not kept until their clock closes. */
bool ps_partition_applies_at_once(const ps_partition_t *self, uint32_t job);

#endif
