/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_quorum_thread - the thread that agrees with the other members
 *
 * What     The shell around ps_quorum: writes the log, sends and receives, keeps
 *          time. Nothing slow runs in it but the flush of the log. The main
 *          thread proposes commands and waits for their outcome; it takes the
 *          committed entries in order, and applies them.
 *
 *          A member listens on a port of its own. It says where at the control
 *          ports of the others, in a message MEMBER of node_fields.def. On a
 *          connection both ends prove first that they know the secrets of their
 *          nodes (lib/protocol/quorum/proof.h).
 *
 *          When the log finds no room, the thread retries every second, and a
 *          leader asks another member to lead. Any other failure of the log ends
 *          the member: ps_quorum_view_t.status.
 * Owner    The main thread.
 * Threads  All functions from the main thread; the rest is inside.
 */
#ifndef PS_SERVER_QUORUM_THREAD_H
#define PS_SERVER_QUORUM_THREAD_H

#include "protocol/agent/node_message.h"
#include "protocol/quorum/guard.h"
#include "protocol/quorum/quorum.h"
#include "storage/registry/registry_log.h"
#include "transport/sockets/socket.h"
#include "transport/threads/turns.h"

/* A leader's state is the newest for so long after a majority agreed that it
 * leads. */
#define PS_QUORUM_FRESH_MS 100

typedef struct ps_quorum_thread ps_quorum_thread_t;

/* May who has connected speak as a member? From the thread's own. */
typedef bool ps_quorum_knows_fn(void *of, const ps_asker_t *asker);

/* All borrowed until ps_quorum_thread_start returns, but turns. */
typedef struct ps_quorum_thread_args {
    const char *dir;       /* of the log */
    const char *node;      /* this node's name */
    const char *advertise; /* the host that others connect to; "": the bound one */
    const char *host;      /* to bind a tcp port on; "": */
    const char *path;      /* … ipc alone, at this path */
    ps_id_t cluster;
    uint64_t incarnation;                 /* of this node … */
    ps_id_t secret;                       /* … and what only it and members know */
    const ps_quorum_snapshot_t *snapshot; /* what the database holds; NULL: nothing */
    ps_socket_args_t socket;
    ps_quorum_knows_fn *knows; /* NULL: all are heard, who then prove themselves */
    void *knows_of;            /* until ps_quorum_thread_stop */
    ps_turns_t *turns;         /* until ps_quorum_thread_stop; may be NULL */
} ps_quorum_thread_args_t;

/* Opens the log, which is there, and starts. Errors: those of
 * ps_registry_log_open, ps_quorum_new and ps_socket_bind. */
PSD_MUST_CHECK psd_status_t ps_quorum_thread_start(const ps_quorum_thread_args_t *args,
                                                   ps_quorum_thread_t **ret_thread,
                                                   psd_error_t *err);
/* Takes NULL. */
void ps_quorum_thread_stop(ps_quorum_thread_t **self_p);
/* Readable when there is news, until ps_quorum_thread_hush; look then. */
int ps_quorum_thread_fd(const ps_quorum_thread_t *self);
/* Where other members reach it. Borrowed. */
const char *ps_quorum_thread_endpoint(const ps_quorum_thread_t *self);

/* Nodes whose members may speak with this one, and no others from here on. A list
 * that has no memory is dropped: it is given again. */
void ps_quorum_thread_trust(ps_quorum_thread_t *self, const ps_trust_t *nodes, size_t n);
/* Another member, its node, the control port of that, and where it listens itself; ""
 * for what is not known. A port that is known already stays. */
void ps_quorum_thread_meet(ps_quorum_thread_t *self, uint64_t member, const char *node,
                           const char *control, const char *endpoint);
/* A message MEMBER came to this node's control port: of no effect without the proof
 * that it is of a node that is trusted. */
void ps_quorum_thread_hear(ps_quorum_thread_t *self, const ps_node_message_t *message);
/* The key of this node, for one that it invites. Borrowed. */
const ps_id_t *ps_quorum_thread_key(const ps_quorum_thread_t *self);

/* It was invited with that token, and repeats it. */
void ps_quorum_thread_repeat(ps_quorum_thread_t *self, const ps_id_t *token);

/* What the thread knows now. */
typedef struct ps_quorum_view {
    ps_quorum_state_t state;
    uint64_t term;
    uint64_t leader; /* member; 0: unknown */
    uint64_t committed;
    uint64_t last;
    ps_quorum_members_t members;        /* as ps_quorum_members_sure */
    bool is_changing;                   /* … of which the last change is not committed yet */
    uint64_t member;                    /* this one */
    ps_quorum_member_t stranger;        /* id 0: none. A member that nobody has added yet … */
    ps_id_t token;                      /* … and what it repeats of its invitation */
    char endpoint[PS_ENDPOINT_MAX + 1]; /* … and where it listens … */
    uint32_t stranger_machine;          /* … and the machine version that it knows */
    bool wants_database;                /* ps_quorum_thread_send_database */
    bool installs;                      /* ps_quorum_thread_installing */
    uint64_t n_refused;                 /* greetings and messages without the right proof */
    psd_status_t status;                /* why the log is not written; PSD_OK: it is */
    char text[300];
} ps_quorum_view_t;
void ps_quorum_thread_hush(const ps_quorum_thread_t *self);
void ps_quorum_thread_look(ps_quorum_thread_t *self, ps_quorum_view_t *ret_view);
/* Of one other member, which also greets those that do not lead. false: it is
 * none. */
PSD_MUST_CHECK bool ps_quorum_thread_peer(ps_quorum_thread_t *self, uint64_t member,
                                          ps_quorum_peer_info_t *ret_info, bool *ret_caught_up);
/* The registry's machine version that the member's psd knows (PS_SM_VERSION), as it said on a
 * connection on which it proved itself; 0: it has not yet. */
uint32_t ps_quorum_thread_machine(ps_quorum_thread_t *self, uint64_t member);
/* When a majority last agreed that this member leads (ps_quorum_heard_majority_ms). */
uint64_t ps_quorum_thread_majority_ms(ps_quorum_thread_t *self);

/* The next committed entry, which is flushed here, until it is applied; the bytes
 * are the caller's (ps_buffer_done). false: none, or no memory for it now. */
PSD_MUST_CHECK bool ps_quorum_thread_next(ps_quorum_thread_t *self, uint64_t *ret_index,
                                          ps_quorum_entry_t *ret_entry);
/* The database has it up to this index: the next entry is the one after it. Of
 * those that it has flushed the ones that no member needs may be forgotten. */
void ps_quorum_thread_applied(ps_quorum_thread_t *self, uint64_t index, uint64_t flushed);

/* The index of the last entry that it has, committed or not. */
uint64_t ps_quorum_thread_last(ps_quorum_thread_t *self);
/* Proposes n commands in that term, in one write of the log and one round of messages, and
 * waits until all are committed and flushed here. They are the entries from *ret_first on.
 *
 * Errors: PSD_NOT_LEADER it does not lead in that term, and nothing was proposed;
 * PSD_DEADLINE the outcome of all is unknown; PSD_NOMEM; those of ps_quorum_propose. */
PSD_MUST_CHECK psd_status_t ps_quorum_thread_propose(ps_quorum_thread_t *self, uint64_t term,
                                                     const ps_bytes_t *commands, size_t n,
                                                     uint64_t wait_ms, uint64_t *ret_first,
                                                     psd_error_t *err);
/* The same for a change of members, without waiting. Errors: those of
 * ps_quorum_propose_members. */
PSD_MUST_CHECK psd_status_t ps_quorum_thread_change(ps_quorum_thread_t *self,
                                                    ps_quorum_change_t change, uint64_t member,
                                                    const char *node, psd_error_t *err);
/* Errors: those of ps_quorum_transfer. */
PSD_MUST_CHECK psd_status_t ps_quorum_thread_transfer(ps_quorum_thread_t *self, uint64_t member,
                                                      psd_error_t *err);

/* Sends the member that needs it this backup of the database, which moves. */
void ps_quorum_thread_send_database(ps_quorum_thread_t *self, ps_buffer_t *backup,
                                    const ps_quorum_snapshot_t *snapshot);
/* The backup that is to be the database now, borrowed until
 * ps_quorum_thread_installed. */
ps_bytes_t ps_quorum_thread_installing(ps_quorum_thread_t *self,
                                       const ps_quorum_snapshot_t **ret_snapshot);
void ps_quorum_thread_installed(ps_quorum_thread_t *self);
#endif
