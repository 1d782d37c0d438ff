/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a shard, shared by the files that are the shard: shard.c (step
 * and dispatch), shard_table.c and shard_job.c (what the registry says),
 * shard_info.c (looking), shard_disk.c and shard_snapshot.c (what the disk is
 * given and says).
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
    uint64_t round;  /* number of the one under way, or the last */
    bool in_round;   /* partitions are still to be looked at */
    bool is_walking; /* … and this one's pieces go out: */
    uint32_t table;
    uint32_t partition;
    uint64_t life;
    uint64_t first_lsn; /* its state was that of this lsn */
    uint64_t last_lsn;  /* of the last piece */
    ps_store_cursor_t cursor;
    uint64_t after_bytes; /* of the log, when the last round ended */
    uint64_t log_bytes;   /* of the log, as far as known */
    bool wants_bases;     /* a partition may need one that is its life's first */
    bool bases_only;      /* the round is for those */
    /* Of all bytes ever given to the disk, in their order: */
    uint64_t batch_end;   /* behind the batch of pieces before */
    uint64_t end;         /* behind the last piece */
    uint64_t batch_bytes; /* of pieces given since the batch before */
    uint64_t retry_ms;    /* one has failed: nothing begins before; 0: none
                             has */
} ps_snapshots_t;

struct ps_shard {
    ps_step_t step;         /* what its partitions are given */
    ps_shard_links_t links; /* to and from shards with copies */
    ps_session_set_t ended; /* sessions that have said BYE here; the lowest
                               are forgotten when there are too many */
    uint64_t flushed_bytes; /* ever, records and pieces */
    ps_snapshots_t snapshots;
};

/* Calls every partition that is here, until one call fails. */
PSD_MUST_CHECK psd_status_t ps_shard_visit(ps_shard_t *self,
                                           psd_status_t (*visit)(ps_shard_t *self,
                                                                 ps_partition_t *partition,
                                                                 const void *arg, psd_error_t *err),
                                           const void *arg, psd_error_t *err);
/* The map of a table as it is now: partitions come, go, or get a new epoch. */
PSD_MUST_CHECK psd_status_t ps_shard_step_table(ps_shard_t *self, const ps_event_t *event,
                                                psd_error_t *err);
void ps_shard_step_drop(ps_shard_t *self, const ps_event_t *event);
PSD_MUST_CHECK psd_status_t ps_shard_step_job(ps_shard_t *self, const ps_job_t *job,
                                              psd_error_t *err);
/* Take NULL, null what they point at. */
void ps_shard_partition_destroy(ps_partition_t **self_p);
void ps_shard_table_destroy(ps_local_table_t **self_p);
void ps_shard_job_destroy(ps_job_t **self_p);

/* Records of such a table go to the disk. */
static inline bool ps_shard_has_log(const ps_shard_t *self, const ps_table_spec_t *spec)
{
    return self->step.args.disk && spec->ack == PS_ACK_DISK;
}
/* shard_disk.c: FLUSHED. */
void ps_shard_step_flushed(ps_shard_t *self, const ps_event_t *event);
/* shard_snapshot.c: pieces of snapshots go to the disk, when it is time for
 * them and there is room. */
void ps_shard_pump_snapshots(ps_shard_t *self);
/* The disk has given one up, whichever it was: all count as not written, and
 * are tried again a little later. */
void ps_shard_snapshot_failed(ps_shard_t *self);
/* It is time for that, or the shard is woken when it is. */
void ps_shard_tick_snapshots(ps_shard_t *self);
/* All rows of a copy have come: its snapshot begins when it can. */
void ps_shard_want_bases(ps_shard_t *self);
/* shard_peer.c: PEER, APPEND, APPENDED, and answers to PEER. */
void ps_shard_step_peer(ps_shard_t *self, const ps_event_t *event);
/* Whether the message is for ps_shard_step_peer. */
bool ps_shard_is_of_peer(const ps_event_t *event);
/* A connection is gone, which may be one of other shards. */
void ps_shard_peer_gone(ps_shard_t *self, uint64_t conn);
/* Closes links by which no partition sends any more. */
void ps_shard_close_links(ps_shard_t *self);
void ps_shard_step_fence(ps_shard_t *self, const ps_event_t *event);

/* A request of a client that is known: to its partition. */
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
/* Makes a plain request of such a message and hands it on; or refuses it. */
void ps_shard_step_filtered(ps_shard_t *self, ps_peer_t *peer, const ps_event_t *event);
#endif
