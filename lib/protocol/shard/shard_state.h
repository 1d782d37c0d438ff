/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a shard, shared by the files that are the shard: shard.c (step
 * and dispatch), shard_table.c and shard_job.c (commands of the registry),
 * shard_info.c (information for the operator), shard_disk.c and
 * shard_snapshot.c (to and from the disk).
 */
#ifndef PS_PROTOCOL_SHARD_STATE_H
#define PS_PROTOCOL_SHARD_STATE_H

#include "model/store/store_copy.h"
#include "protocol/facts/session_set.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/local_table.h"
#include "protocol/replica/replicas.h"
#include "protocol/shard/shard.h"

/* Snapshots of partitions, one after the other. */
typedef struct ps_snapshots {
    uint64_t round;  /* number of the current round, or the last */
    bool in_round;   /* partitions remain to be visited */
    bool is_walking; /* … and this one's pieces are being written: */
    uint32_t table;
    uint32_t partition;
    uint64_t life;
    uint64_t first_lsn; /* its state is that of this lsn */
    uint64_t last_lsn;  /* of the last piece */
    ps_store_cursor_t cursor;
    uint64_t after_bytes; /* of the log, when the last round ended */
    uint64_t log_bytes;   /* of the log, as far as known */
    bool wants_bases;     /* a partition may need the first snapshot of its life */
    bool bases_only;      /* the round is only for those */
    /* Offsets in all bytes ever given to the disk, in order: */
    uint64_t batch_end;   /* the end of the previous batch of pieces */
    uint64_t end;         /* the end of the last piece */
    uint64_t batch_bytes; /* of pieces given since the previous batch */
    uint64_t retry_ms;    /* one has failed: none begins before this; 0: none has failed */
} ps_snapshots_t;

struct ps_shard {
    ps_step_t step;         /* the step passed to its partitions */
    ps_shard_counts_t own;  /* counted, when its arguments name no other place */
    ps_shard_links_t links; /* to and from shards with copies */
    ps_session_set_t ended; /* sessions that have sent BYE here; the lowest are forgotten when there
                               are too many */
    uint64_t flushed_bytes; /* ever, records and pieces */
    ps_snapshots_t snapshots;
};

/* Calls the function for every partition here, until one call fails. */
PSD_MUST_CHECK psd_status_t ps_shard_visit(ps_shard_t *self,
                                           psd_status_t (*visit)(ps_shard_t *self,
                                                                 ps_partition_t *partition,
                                                                 const void *arg, psd_error_t *err),
                                           const void *arg, psd_error_t *err);
/* Applies a table's current map: partitions come, go, or get a new epoch. */
PSD_MUST_CHECK psd_status_t ps_shard_step_table(ps_shard_t *self, const ps_event_t *event,
                                                psd_error_t *err);
void ps_shard_step_drop(ps_shard_t *self, const ps_event_t *event);
/* shard_aside.c */
void ps_shard_step_aside(ps_shard_t *self, const ps_event_t *event);
/* A table that is kept aside is wanted again: it must be the same. Errors:
 * PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_shard_check_aside(const ps_local_table_t *table,
                                                 const ps_table_spec_t *spec, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_shard_step_job(ps_shard_t *self, const ps_job_t *job,
                                              psd_error_t *err);
/* Take NULL, null what they point at. */
void ps_shard_partition_destroy(ps_partition_t **self_p);
void ps_shard_table_destroy(ps_local_table_t **self_p);
void ps_shard_job_destroy(ps_job_t **self_p);

/* True when records of this table go to the disk. */
static inline bool ps_shard_has_log(const ps_shard_t *self, const ps_table_spec_t *spec)
{
    return self->step.args.disk && spec->ack == PS_ACK_DISK;
}
/* shard_disk.c: FLUSHED. */
void ps_shard_step_flushed(ps_shard_t *self, const ps_event_t *event);
/* shard_snapshot.c: sends pieces of snapshots to the disk, when they are due
 * and there is room. */
void ps_shard_pump_snapshots(ps_shard_t *self);
/* The disk failed to write one, it is unknown which: all count as not written,
 * and are retried a little later. */
void ps_shard_snapshot_failed(ps_shard_t *self);
/* Starts due snapshots, or wakes the shard when they are due. */
void ps_shard_tick_snapshots(ps_shard_t *self);
/* All rows of a copy have arrived: its snapshot begins when possible. */
void ps_shard_want_bases(ps_shard_t *self);
/* shard_peer.c: PEER, APPEND, APPENDED, and answers to PEER. */
void ps_shard_step_peer(ps_shard_t *self, const ps_event_t *event);
/* Whether the message is for ps_shard_step_peer. */
bool ps_shard_is_of_peer(const ps_event_t *event);
/* A connection is gone, perhaps one to another shard. */
void ps_shard_peer_gone(ps_shard_t *self, uint64_t conn);
/* Closes links on which no partition sends any more. */
void ps_shard_close_links(ps_shard_t *self);
void ps_shard_step_fence(ps_shard_t *self, const ps_event_t *event);

/* Passes a request of a known client to its partition. */
void ps_shard_request(ps_shard_t *self, const ps_request_t *request);

/* shard_filter.c */
/* Whether the message went through a filter. */
static inline bool ps_shard_is_filtered(const ps_message_t *message)
{
    if (message->kind == PS_KIND_PUSH) {
        return (message->flags & (PS_FLAG_CODED | PS_FLAG_KEEP)) != 0 ||
               message->push.rows == PS_ROWS_CACHED;
    }
    return message->kind == PS_KIND_PULL &&
           ((message->flags & (PS_FLAG_CODED | PS_FLAG_KEEP)) != 0 ||
            message->pull.rows == PS_ROWS_CACHED);
}
/* Decodes such a message into a plain request and passes it on; or refuses
 * it. */
void ps_shard_step_filtered(ps_shard_t *self, ps_peer_t *peer, const ps_event_t *event);
#endif
