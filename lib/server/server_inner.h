/* SPDX-License-Identifier: Apache-2.0 */
/* Private to the server: its state, and the steps of opening that a node with a
 * registry and one without share. */
#ifndef PS_SERVER_SERVER_INNER_H
#define PS_SERVER_SERVER_INNER_H

#include "server/nodes/member.h"
#include "server/quorum/replica.h"
#include "server/server.h"
#include "server/threads/thread_watch.h"

#define PS_ANNOUNCEMENT "endpoints.json"
#define PS_ADMIN_KEY_FILE "admin.key"
#define PS_IPC_DIR_MAX 85 /* so that DIR/shard-255.ipc.lane fits a path */

struct ps_server {
    const ps_config_t *config; /* borrowed */
    ps_server_host_t program;  /* that this node is in */
    ps_metrics_t *metrics;     /* borrowed; NULL: nothing is counted */
    char *dir;                 /* owned; absolute */
    char *run_dir;             /* owned; absolute; of the sockets; may be dir */
    char node[PS_NAME_MAX + 1];
    ps_id_t cluster;
    char cluster_name[PS_NAME_MAX + 1];
    uint64_t incarnation;
    ps_context_t *context;    /* owned, and all below */
    ps_turns_t *turns;        /* of all threads */
    ps_thread_watch_t *watch; /* of them */
    int lock;                 /* of the data directory, when there is no db */
    int run_lock;             /* of run_dir, when it is not dir; else -1 */
    uint64_t old_sessions;    /* may have been given out before this life */
    ps_member_t *member;      /* this node for the registry, here or elsewhere */
    ps_replica_t *replica;    /* this node's part of the registry; NULL: it has none */
    uint64_t led_term;        /* the term in which `control` leads; 0: alone */
    uint64_t lonely_ms;       /* since when its member knows no leader; 0: it does … */
    uint64_t unseated_ms;     /* … and the registry says that it is none; 0: it does not */
    uint64_t moved_ms;        /* when it last looked for the registry elsewhere … */
    size_t seat;              /* … at which of the members */
    psd_status_t failed;      /* why its part of the registry cannot go on … */
    psd_error_t *err;         /* … in words */
    ps_shards_t *shards;
    ps_socket_t *port;
    ps_control_t *control;
    ps_plugins_t plugins;
    ps_key_pair_t keys;              /* of this node; with rights */
    char admin_key[PS_KEY_SIZE + 1]; /* public; of the first admin */
    ps_rights_t *rights;             /* owned; NULL: nobody needs a key */
    ps_audit_log_t *audit;           /* owned; NULL: audit.files is 0 */
    bool rights_are_old;             /* of a time when it led: they may never have been */
    ps_node_damage_t damage;         /* what the shards found */
    char host[PS_ENDPOINT_MAX + 1];  /* that the shards bind; "" for ipc alone */
    char advertise[PS_ENDPOINT_MAX + 1];
    char endpoint[PS_ENDPOINT_MAX + 1]; /* of the control port, as advertised */
    char listens[PS_ENDPOINT_MAX + 1];  /* its tcp address here; "": it has none */
    char ipc[PS_ENDPOINT_MAX + 1];      /* control; "" for none */
};

/* ---- server_doors.c ---- */

/* Makes the directory of the sockets, and takes it. Errors: PSD_IO; PSD_HELD
 * another psd has it; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_open_run_dir(ps_server_t *self, psd_error_t *err);
/* The host that shards bind, and the one that clients are sent to. */
void ps_server_settle_hosts(ps_server_t *self);
/* Binds the control port, with psd.ipc. Errors: those of ps_socket_bind;
 * PSD_CONFIG there is ipc alone and no room for the shards' sockets. */
PSD_MUST_CHECK psd_status_t ps_server_open_port(ps_server_t *self, psd_error_t *err);
/* Closes what only a running node has. Its directories are still locked. */
void ps_server_remove_files(const ps_server_t *self);
/* server_announce.c: programs of its user find it no longer by its port. */
void ps_server_withdraw(const ps_server_t *self);

/* ---- server_keys.c: where security.level asks for keys; else nothing happens ---- */

/* The node's key pair, from its file, if that is there. Errors: PSD_CONFIG it was lost; those of
 * ps_key_file_read. */
PSD_MUST_CHECK psd_status_t ps_server_open_keys(ps_server_t *self, psd_error_t *err);
/* A first start: the directory is locked, and makes it. Errors: those of ps_key_file_write. */
PSD_MUST_CHECK psd_status_t ps_server_make_key(ps_server_t *self, psd_error_t *err);
/* The directory is locked, and the registry open, if it is here: the first admin's pair, and who
 * is known so far. Errors: as above; PSD_CONFIG other members of the registry do not know this
 * node's key. */
PSD_MUST_CHECK psd_status_t ps_server_settle_keys(ps_server_t *self, bool joins, psd_error_t *err);
/* A node whose part of the registry follows: the shards get its principals, if it has newer
 * ones. */
void ps_server_tell_rights(ps_server_t *self);
/* Whether who asks is a member's node; of: the server, borrowed. */
PSD_MUST_CHECK bool ps_server_knows_member(void *of, const ps_asker_t *asker);
/* Adds the node's public key to an endpoint of tcp. Errors: PSD_CONFIG it is too long. */
PSD_MUST_CHECK psd_status_t ps_server_name_key(const ps_server_t *self,
                                               char endpoint[PS_ENDPOINT_MAX + 1],
                                               psd_error_t *err);

/* server_turns.c: makes the page of its threads, beside its announcement. The
 * port is open, and the directory locked. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_open_turns(ps_server_t *self, psd_error_t *err);

/* ---- server_doors.c ---- */

/* The options of its sockets, which wait without spinning: only those of
 * shards gain by it. */
ps_socket_args_t ps_server_socket_args(const ps_server_t *self);
/* A fresh random incarnation. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_server_settle_life(ps_server_t *self, psd_error_t *err);
/* Locks the data directory, joins the cluster of cluster.join and settles
 * this node's identity; the shards are not started yet. Errors: those of
 * ps_member_join and ps_data_dir_lock; PSD_FOREIGN the directory is another
 * cluster's, or has a registry of its own. */
PSD_MUST_CHECK psd_status_t ps_server_join(ps_server_t *self, psd_error_t *err);
/* The shards run: announces them to the registry. Errors: those of
 * ps_member_start. */
PSD_MUST_CHECK psd_status_t ps_server_announce_member(ps_server_t *self, psd_error_t *err);
/* The same, where the registry is elsewhere. */
PSD_MUST_CHECK psd_status_t ps_server_start_member(ps_server_t *self, psd_error_t *err);
/* The registry's database of this directory, as self->replica. Errors: those of
 * ps_replica_open. */
PSD_MUST_CHECK psd_status_t ps_server_open_replica(ps_server_t *self, psd_error_t *err);
/* The audit of this directory. Errors: those of ps_audit_log_open. */
PSD_MUST_CHECK psd_status_t ps_server_open_audit(ps_server_t *self, psd_error_t *err);
/* From here on this node answers for the registry. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_start_control(ps_server_t *self, psd_error_t *err);

/* server_token.c: the token of the file: where to join, and its pair. Errors: PSD_CONFIG there is
 * no such file, others may read it, or it has no token. */
PSD_MUST_CHECK psd_status_t ps_server_read_token(const ps_server_t *self,
                                                 char ret_endpoint[PS_ENDPOINT_MAX + 1],
                                                 ps_key_pair_t *ret_pair, psd_error_t *err);

/* ---- server_belonging.c ---- */

/* What a node knows of itself: member.json. */
typedef struct ps_belonging {
    bool is_there;
    ps_id_t cluster;
    char name[PS_NAME_MAX + 1]; /* of the cluster */
    char node[PS_NAME_MAX + 1];
    ps_id_t secret;       /* zero: written before nodes had one */
    bool own_registry;    /* registry.db is no rest of another cluster: it was forced, or rebuilt */
    bool began_here;      /* the cluster did, and this node has joined no other */
    ps_members_t members; /* that have the registry, at the last join */
} ps_belonging_t;

/* Errors: PSD_IO, PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_read_membership(const ps_server_t *self, ps_belonging_t *ret,
                                                      psd_error_t *err);
/* The directory has a registry's database. */
bool ps_server_has_registry(const ps_server_t *self);
/* It has the log of a shard: a node has started with it. */
bool ps_server_has_log(const ps_server_t *self);
/* Notes that the directory's registry is its own from here on. cluster: of a rebuilt one; NULL:
 * it knows its cluster. Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_server_own_registry(const ps_server_t *self, const ps_id_t *cluster,
                                                   const char *cluster_name, psd_error_t *err);
/* Notes who this node is, when its cluster began here and nothing is noted yet. Errors: as above.
 */
PSD_MUST_CHECK psd_status_t ps_server_note_first(const ps_server_t *self, const ps_id_t *secret,
                                                 psd_error_t *err);
/* Whether that was noted: then the node does not join. Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_server_look_own(const ps_server_t *self, bool *ret_own,
                                               psd_error_t *err);
/* PSD_OK when the directory is not a joined node's. Errors: PSD_FOREIGN. */
PSD_MUST_CHECK psd_status_t ps_server_check_own(const ps_server_t *self, psd_error_t *err);
/* The name under which this directory's node joined, and its secret; unchanged
 * where it never did. Errors: PSD_IO, PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_read_name(const ps_server_t *self,
                                                char ret_name[PS_NAME_MAX + 1], ps_id_t *ret_secret,
                                                psd_error_t *err);

/* Writes what the next start of a joined node needs. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_write_membership(const ps_server_t *self,
                                                       const ps_joined_t *joined,
                                                       const ps_id_t *secret, psd_error_t *err);

/* ---- server_leave.c ---- */

/* Whether this directory's node was a member once, and left. */
PSD_MUST_CHECK bool ps_server_has_left(const ps_server_t *self);
/* Ends what a crash interrupted. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_end_leave(ps_server_t *self, psd_error_t *err);
/* A member that hears no leader looks for the registry; when that says for a while
 * that it is none, it gives up its part. Call it now and then. */
void ps_server_check_seat(ps_server_t *self);

/* ---- server_recover.c ---- */

/* Does what config->recover asks for. Errors: those of ps_force and ps_rebuild; PSD_DENIED others
 * answer; PSD_INVALID the directory is not fit for that. */
PSD_MUST_CHECK psd_status_t ps_server_recover(ps_server_t *self, psd_error_t *err);
/* The directory has no registry: PSD_OK when it never belonged to a cluster. Errors: PSD_FOREIGN;
 * PSD_IO, PSD_DAMAGED, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_check_lost(const ps_server_t *self, psd_error_t *err);

/* The registry that was opened, and is not replicated, is not an older one than this node heard
 * of last. Errors: PSD_DAMAGED it is; PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_check_age(const ps_server_t *self, psd_error_t *err);

/* ---- server_quorum.c ---- */

/* How its member of the registry speaks with others. */
ps_replica_net_t ps_server_net(ps_server_t *self);
/* Whether a node that is to join does: one that has the state of the registry is a
 * part of it, and finds the others by itself. Errors: those of ps_replica_open. */
PSD_MUST_CHECK psd_status_t ps_server_look(ps_server_t *self, bool *ret_joins, psd_error_t *err);
/* Becomes a member, as the registry asks; NULL: as it asked an earlier life that
 * never got the state. Errors: those of ps_replica_join. */
PSD_MUST_CHECK psd_status_t ps_server_accept(ps_server_t *self, const ps_node_message_t *invite,
                                             psd_error_t *err);
/* Accepts an invitation that the agent got. */
void ps_server_take_invite(ps_server_t *self);

/* server_work.c: carries messages between the control part and the agent of this
 * node until neither has one. */
void ps_server_exchange(ps_server_t *self);
#endif
