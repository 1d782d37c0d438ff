/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/quorum: this node's part of the registry
 *
 * It is       The registry's state on this node, how a command gets into it, and
 *             the thread that agrees with the other members about the order.
 * It uses     config, threads; lib/protocol/quorum, lib/storage/registry,
 *             lib/transport.
 * It ignores  Requests, nodes, and what a command means.
 * Start at    replica.h, then quorum_thread.h.
 */
/*
 * ps_replica - the registry's state on this node
 *
 * What     A registry alone: a command is tried, stored, kept. A member of a
 *          replicated registry: a leader applies commands, and proposes those of
 *          one turn together; other members apply them once they are committed.
 *          So the state of all members is made of the same bytes in the same
 *          order. A leader that does not learn what became of them loads its
 *          state again.
 * Shape    alone -> member, by ps_replica_begin; nothing -> member, by an
 *          invitation (ps_replica_join)
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_SERVER_REPLICA_H
#define PS_SERVER_REPLICA_H

#include "base/log.h"
#include "server/quorum/quorum_thread.h"
#include "storage/registry/registry_db.h"

typedef struct ps_replica ps_replica_t;

/* Opens and loads the database of a data directory, which gets one if it has
 * none. Errors: those of ps_registry_db_open and _load. */
PSD_MUST_CHECK psd_status_t ps_replica_open(const char *dir, const ps_registry_args_t *args,
                                            ps_replica_t **ret_replica, psd_error_t *err);
/* Takes NULL. */
void ps_replica_close(ps_replica_t **self_p);
/* Borrowed until an install (ps_replica_take) or the close. */
ps_registry_t *ps_replica_registry(const ps_replica_t *self);
ps_registry_db_t *ps_replica_db(const ps_replica_t *self);

/* How this node speaks with other members; borrowed during the call, but turns. */
typedef struct ps_replica_net {
    const char *node;
    const char *host;      /* of the port for members; "": ipc alone, in run_dir */
    const char *advertise; /* the host that others connect to; "": that one */
    const char *run_dir;
    ps_id_t cluster;
    uint64_t incarnation;
    ps_id_t secret; /* of this node */
    ps_socket_args_t socket;
    ps_quorum_knows_fn *knows; /* NULL: whoever connects is heard */
    void *knows_of;            /* outlives the replica */
    ps_turns_t *turns;
} ps_replica_net_t;

#define PS_REGISTRY_LOG "registry-log" /* the directory of its log */

/* The data directory has a log. */
PSD_MUST_CHECK bool ps_replica_has_log(const char *dir);
/* Its state is that of a member. */
PSD_MUST_CHECK bool ps_replica_is_member(const ps_replica_t *self);
/* Starts the member whose log is there. Errors: those of
 * ps_quorum_thread_start. */
PSD_MUST_CHECK psd_status_t ps_replica_start(ps_replica_t *self, const ps_replica_net_t *net,
                                             psd_error_t *err);
/* A registry alone becomes the first member of a replicated one, with a log that
 * begins after its state. It leads at once. */
PSD_MUST_CHECK psd_status_t ps_replica_begin(ps_replica_t *self, const ps_replica_net_t *net,
                                             psd_error_t *err);
/* Makes an empty log for an invited member in a data directory without one, before
 * its database is. */
PSD_MUST_CHECK psd_status_t ps_replica_prepare(const char *dir, const ps_node_message_t *invite,
                                               psd_error_t *err);
/* A member without a state speaks to the one that invited it. */
void ps_replica_accept(ps_replica_t *self, const ps_node_message_t *invite);
/* ps_replica_begin made it a member, and has to be called again until it succeeds. */
PSD_MUST_CHECK bool ps_replica_has_begun(const ps_replica_t *self);
/* NULL: this registry is alone. */
ps_quorum_thread_t *ps_replica_thread(const ps_replica_t *self);

/* A message MEMBER came to this node's control port. */
void ps_replica_hear(ps_replica_t *self, ps_bytes_t bytes);

/*
 * Makes a planned command part of the state, and logs it at `level`; kind 0 does
 * nothing. Before others learn of it, ps_replica_flush is due: until then a member has it
 * in memory only, together with those before it (replica_inner.h: a group).
 *
 * Errors: PSD_IO, PSD_NOMEM, PSD_DAMAGED: neither stored nor applied;
 * PSD_NOT_LEADER another member leads, or it is unknown what became of the
 * command: the caller must not go on as if it led.
 */
PSD_MUST_CHECK psd_status_t ps_replica_commit(ps_replica_t *self, const ps_command_t *command,
                                              ps_log_level_t level, psd_error_t *err);

/* Logs a line about what was committed: a member does when the others have agreed, and
 * never when it does not learn that they have. event is a literal. */
void ps_replica_log(ps_replica_t *self, ps_log_level_t level, const char *event, const char *format,
                    ...) PSD_PRINTF(4, 5);

/* What was committed outlives a power failure: here, or in the logs of a majority. */
PSD_MUST_CHECK bool ps_replica_is_flushed(const ps_replica_t *self);
/* Flushes what is not: alone to disk, as a member by one proposal of all commands since the
 * last flush. Errors: PSD_IO: what is stored is unknown, and psd is to end; PSD_NOT_LEADER:
 * what became of these commands is unknown, and ps_replica_is_ahead. */
PSD_MUST_CHECK psd_status_t ps_replica_flush(ps_replica_t *self, psd_error_t *err);
/* The registry has commands that may never have been: nothing of it may be said, and who
 * borrows it must end before ps_replica_take, which loads it again. */
PSD_MUST_CHECK bool ps_replica_is_ahead(const ps_replica_t *self);

/* The nodes that have the registry, and the name of the one that leads ("":
 * unknown). Returns how many; 0: the registry is alone. */
size_t ps_replica_seats(const ps_replica_t *self, ps_seat_t ret_seats[PS_SEATS_MAX],
                        char ret_leader[PS_NAME_MAX + 1]);
/* "leader", "voter", "stand-by"; "": that node has no part of the registry, or the
 * registry is alone. */
const char *ps_replica_role(const ps_replica_t *self, const char *node);
/* Some node has the registry beside this one, as far as this member knows. */
bool ps_replica_has_members(const ps_replica_t *self);
/* From here on this node leads in that term, whose entries before are applied; 0:
 * it does not. */
void ps_replica_lead(ps_replica_t *self, uint64_t term);
/* The term in which it leads; 0: it does not, or it is unknown what became of a
 * command: it has to begin again. */
uint64_t ps_replica_led_term(const ps_replica_t *self);
/* A node says that it lives, to this member that does not lead. */
void ps_replica_hear_node(ps_replica_t *self, ps_bytes_t beat);
/* This member hears the nodes (ps_registry_listen): several times in suspect_after. */
void ps_replica_listen(ps_replica_t *self);
/* Greetings and messages of members without the right proof. */
uint64_t ps_replica_n_refused(const ps_replica_t *self);
/* Whether what this member has is the newest: it is alone, or a majority has just
 * agreed that it leads. */
bool ps_replica_may_answer(const ps_replica_t *self);

/* Takes in what the thread has: committed entries, a database to send or to
 * install. Errors: this node's part of the registry cannot go on. */
PSD_MUST_CHECK psd_status_t ps_replica_take(ps_replica_t *self, ps_quorum_view_t *ret_view,
                                            psd_error_t *err);
#endif
