/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fleet - all nodes of the cluster, as the registry's control part sees them
 *
 * What     The shell around ps_overseer, which decides what to send to which
 *          node and when. This sends it, as JSON through the control port or
 *          through the pipes of the local shards, and reads the answers. No
 *          call blocks.
 * Owner    The caller. Threads: confined to one.
 */
#ifndef PS_DAEMON_FLEET_H
#define PS_DAEMON_FLEET_H

#include "daemon/config/plugins.h"
#include "daemon/shards/shards.h"
#include "protocol/overseer/overseer.h"
#include "transport/sockets/socket.h"
#include "transport/threads/turns_look.h"
#include "wire/messages/doc.h"

typedef struct ps_fleet ps_fleet_t;

/* All borrowed until ps_fleet_destroy. */
typedef struct ps_fleet_args {
    ps_registry_t *registry;
    ps_shards_t *shards; /* of this node */
    ps_socket_t *port;   /* the control port: other nodes speak through it */
    const ps_plugins_t *plugins;
    const char *node;     /* this node */
    uint64_t incarnation; /* of this node */
    uint64_t suspect_after_ms;
    const ps_turns_t *turns; /* of this node's threads; NULL: not watched */
} ps_fleet_args_t;

/* Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet,
                                         psd_error_t *err);
/* Frees the questions too; their contexts are the caller's. Takes NULL. */
void ps_fleet_destroy(ps_fleet_t **self_p);

/* ---- membership: as ps_overseer's of these names ---- */

ps_sight_t ps_fleet_look(const ps_fleet_t *self, const ps_node_t *node);
/* A node's first announcement is not news. */
bool ps_fleet_next_news(ps_fleet_t *self, ps_sight_news_t *ret_news);
PSD_MUST_CHECK psd_status_t ps_fleet_add(ps_fleet_t *self, const ps_node_t *node, uint64_t conn,
                                         psd_error_t *err);
void ps_fleet_set_files_out(ps_fleet_t *self, uint64_t incarnation, bool is_out);
void ps_fleet_set_damage(ps_fleet_t *self, uint64_t incarnation, const char *text);
PSD_MUST_CHECK psd_status_t ps_fleet_hear(ps_fleet_t *self, uint64_t incarnation, uint64_t conn,
                                          psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_fleet_beat(ps_fleet_t *self, uint64_t incarnation,
                                          uint64_t max_epoch, psd_error_t *err);

/* ---- sending: likewise ---- */

void ps_fleet_tell_table(ps_fleet_t *self, uint32_t table);
void ps_fleet_tell_job(ps_fleet_t *self, uint32_t job);
void ps_fleet_tell_sessions(ps_fleet_t *self, uint64_t session);
PSD_MUST_CHECK bool ps_fleet_reserve(ps_fleet_t *self);
void ps_fleet_tell_drop(ps_fleet_t *self, uint32_t table);
/* Asks the node of that copy to take no more records of older epochs. Sent
 * once: the answer comes as a report, and the caller retries. */
void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch);
PSD_MUST_CHECK psd_status_t ps_fleet_refusal(const ps_fleet_t *self, uint32_t table,
                                             psd_error_t *err);

/* ---- asking ---- */

/* A question to all nodes, with their answers. */
typedef struct ps_inquiry {
    void *context;        /* the asker's */
    char *words;          /* owned; CHECKPOINT: the command; else NULL */
    ps_answers_t answers; /* owned; of the nodes that have answered */
    char missing[200];    /* "node n2 has not answered in time"; "": all have answered */
} ps_inquiry_t;
void ps_inquiry_destroy(ps_inquiry_t **self_p);

/* Asks (ps_overseer_ask); ps_fleet_next_done returns the finished question.
 * words: of CHECKPOINT, copied; else NULL. Errors: PSD_NOMEM, PSD_BUSY too
 * many questions. */
PSD_MUST_CHECK psd_status_t ps_fleet_ask(ps_fleet_t *self, ps_call_kind_t kind, uint32_t job,
                                         const char *words, void *context, psd_error_t *err);
/* The question of that context is brief (ps_overseer_be_brief). */
void ps_fleet_be_brief(ps_fleet_t *self, const void *context);
/* The next question that is done; the caller destroys it. NULL: none. */
ps_inquiry_t *ps_fleet_next_done(ps_fleet_t *self);
/* Takes a node's answer. Errors: PSD_PROTO, PSD_INVALID, PSD_NO_NODE,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_fleet_take_answer(ps_fleet_t *self, uint64_t incarnation,
                                                 const ps_doc_t *doc, psd_error_t *err);

/* Takes in the answers of this node's shards. The caller takes their
 * reports. */
void ps_fleet_take_shards(ps_fleet_t *self);
/* Finds silent nodes, resends, and ends overdue questions. */
void ps_fleet_tick(ps_fleet_t *self);
/* When to call ps_fleet_tick next; UINT64_MAX for never. */
uint64_t ps_fleet_deadline(const ps_fleet_t *self);
#endif
