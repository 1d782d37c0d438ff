/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a shard, shared by the files that are the shard: shard.c (step
 * and dispatch), shard_table.c and shard_job.c (what the registry says),
 * shard_info.c (looking), partition*.c (one partition's work), answer.c (what
 * goes back).
 */
#ifndef PS_PROTOCOL_SHARD_STATE_H
#define PS_PROTOCOL_SHARD_STATE_H

#include "model/store/store_copy.h"
#include "protocol/replica/shard_links.h"
#include "protocol/partition/partition.h"
#include "protocol/partition/peer.h"
#include "protocol/shard/shard.h"
#include "wire/filters/filter_code.h"

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

typedef struct ps_shard_table {
    uint32_t id;
    ps_table_spec_t spec;        /* owned copy */
    ps_table_use_t use;          /* what is kept of it here */
    bool was_found;              /* on the disk, by a start */
    uint64_t lost_sessions;      /* sessions up to this one used rows of it that
                                    are gone, here or elsewhere; never falls */
    ps_route_t *routes;          /* owned; spec.n_partitions, in order */
    ps_partition_t **partitions; /* owned; NULL where it lives elsewhere */
} ps_shard_table_t;

struct ps_shard {
    ps_shard_args_t args;
    ps_peers_t peers;
    ps_shard_links_t links;   /* to and from shards with copies */
    ps_map_t tables;          /* id -> ps_shard_table_t, owned */
    ps_map_t jobs;            /* id -> ps_job_t, owned */
    ps_session_set_t ended;   /* sessions that have said BYE here; the lowest
                                 are forgotten when there are too many */
    bool has_ended;           /* one of them may have nothing held any more */
    ps_coder_t *coder;        /* owned; NULL until a filter is used */
    uint64_t held_bytes;      /* bodies of held requests */
    uint64_t logged_bytes;    /* kept for open clocks */
    uint64_t unflushed_bytes; /* given to the disk: records and pieces */
    uint64_t flushed_bytes;   /* ever, likewise */
    ps_snapshots_t snapshots;
    char disk_trouble[PS_TEXT_MAX / 2]; /* "": there is none */
    uint64_t n_lives;                   /* number of the last life of a copy that began here */
    uint64_t n_held;
    uint64_t n_paired; /* of them, those that wait for two partitions */
    uint64_t refused;
    uint64_t row_bytes;    /* of all partitions: values, states and index */
    uint64_t tail_bytes;   /* of all partitions: records kept for copies */
    uint64_t deadline_ms;  /* no partition's is earlier */
    uint64_t n_transfers;  /* to new copies, ever */
    uint64_t give_free_us; /* the limits of rows to copies are used up until
                              then */
    uint64_t gave_ms;      /* rows went to a new copy; 0: never */
    uint64_t asked_ms;     /* a client has asked for something; 0: never */
    /* the step under way */
    uint64_t now_ms;
    uint64_t other_bytes;  /* of the node's other shards */
    uint32_t other_giving; /* of them, those that give rows to new copies */
    uint64_t given_bytes;  /* of state and rows, to new copies */
    ps_outbox_t *outbox;
};

/* The partition wants a tick at that time, if not before. */
static inline void ps_shard_wake(ps_shard_t *self, ps_partition_t *partition, uint64_t at_ms)
{
    if (at_ms < partition->deadline_ms) {
        partition->deadline_ms = at_ms;
    }
    if (at_ms < self->deadline_ms) {
        self->deadline_ms = at_ms;
    }
}

/* Counts what the partition's rows take now; gone: nothing any more. */
void ps_shard_count_rows(ps_shard_t *self, ps_partition_t *partition, bool gone);

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
void ps_shard_table_destroy(ps_shard_table_t **self_p);
void ps_shard_job_destroy(ps_job_t **self_p);

/* Records of such a table go to the disk. */
static inline bool ps_shard_has_log(const ps_shard_t *self, const ps_table_spec_t *spec)
{
    return self->args.disk && spec->ack == PS_ACK_DISK;
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
/* The disk is not too far behind for one more push of the partition. */
static inline bool ps_shard_log_has_room(const ps_shard_t *self, const ps_partition_t *partition)
{
    return !partition->has_log || self->unflushed_bytes < self->args.log_queue_bytes;
}
/* A copy that is made, or has begun anew and has its primary's state: its log
 * says so, and what it has of an earlier life counts no more at a start.
 * false: no memory. */
PSD_MUST_CHECK bool ps_shard_log_anew(ps_shard_t *self, ps_partition_t *partition);
/* A copy goes elsewhere: its log says so, and need not be kept for it. */
void ps_shard_log_leave(ps_shard_t *self, const ps_partition_t *partition);
/* All rows of such a copy have come: its snapshot begins when it can. */
void ps_shard_want_base(ps_shard_t *self, const ps_partition_t *partition);
/* Why it has no room. */
void ps_shard_log_reason(const ps_shard_t *self, char *ret_text, size_t size);

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
/* Puts an answer's body through the filter that its request came through. */
void ps_shard_filter_answer(ps_shard_t *self, const ps_request_t *request, ps_effect_t *effect);

/* answer.c: each appends to the step's outbox; when there is no memory for an
 * answer it is left out, and the client asks again. */
void ps_answer_refused(ps_shard_t *self, const ps_request_t *request, psd_status_t status,
                       uint64_t detail, const char *text);
/* Refuses a client of before the loss of a table's rows. */
void ps_answer_rows_lost(ps_shard_t *self, const ps_request_t *request, const char *table);
void ps_answer_ack(ps_shard_t *self, const ps_request_t *request);
void ps_answer_parked(ps_shard_t *self, const ps_request_t *request, const char *text);
/* PARKED, if the values that the request asks for are on their way already.
 * False: they are not. */
bool ps_answer_is_under_way(ps_shard_t *self, const ps_request_t *request);
/* Gathers what the request selects. Returns rows gathered. */
uint64_t ps_answer_values(ps_shard_t *self, ps_partition_t *partition, const ps_request_t *request);
/* was_taken: a PUSH or MARK is in the log here, and its answer waited. */
void ps_answer_moved(ps_shard_t *self, const ps_request_t *request, const ps_shard_table_t *table,
                     bool was_taken);
/* A refusal of something that is no request: HELLO, or bytes out of turn. */
void ps_answer_refused_conn(ps_shard_t *self, uint64_t conn, psd_status_t status, const char *text);
/* Refuses a request on a connection that has not said HELLO, by its number. */
void ps_answer_no_session(ps_shard_t *self, const ps_event_t *event);
void ps_answer_welcome(ps_shard_t *self, uint64_t conn, uint32_t filters);
void ps_note(ps_shard_t *self, const ps_note_t *note);
/* A note that only args.trace asks for. */
#define PS_NOTE_TRACE(self, note)    \
    do {                             \
        if ((self)->args.trace) {    \
            ps_note((self), (note)); \
        }                            \
    } while (0)
/* A record, when somebody reads it: all of them (args.log), or those of a
 * partition with a log. The outbox has room for it. */
void ps_note_record(ps_shard_t *self, const ps_partition_t *partition, const ps_record_t *record,
                    ps_payload_t *payload);
#endif
