/* SPDX-License-Identifier: Apache-2.0 */
/* The overseer's shell: the clock, the control port, the shards of this node. */
#include "daemon/nodes/fleet.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/tasks.h"
#include "protocol/agent/sizes.h"
#include "protocol/placement/registry_decide.h"

struct ps_fleet {
    ps_fleet_args_t is;
    uint64_t look;    /* the shards' number of the question for sizes; 0: none */
    uint64_t look_ms; /* when they are asked next */
    psd_error_t *err; /* owned; of the present step */
};

psd_status_t ps_fleet_new(const ps_fleet_args_t *args, ps_fleet_t **ret_fleet, psd_error_t *err)
{
    PSD_AUTO(ps_fleet_destroy) ps_fleet_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->is = *args;
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the nodes");
    }
    *ret_fleet = self;
    self = NULL;
    return PSD_OK;
}

void ps_fleet_destroy(ps_fleet_t **self_p)
{
    if (*self_p != NULL) {
        psd_error_destroy(&(*self_p)->err);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

void ps_fleet_log_refusal(const ps_tell_view_t *tell, psd_status_t status, const char *text)
{
    char quoted[512];

    ps_log(PS_LOG_ERROR, "node_update_failed",
           "node=%s what=%s id=%" PRIu32 " status=%s reason=%s hint=\"retrying\"", tell->node,
           ps_tell_name(tell->kind), tell->id, psd_status_name(status),
           ps_log_quote(text, quoted, sizeof quoted));
}

/* ---- sending ---- */

static bool send_bytes(ps_fleet_t *self, uint64_t conn, const ps_buffer_t *bytes)
{
    return ps_socket_send_text(self->is.port, conn,
                               (ps_bytes_t){.data = bytes->data, .size = bytes->size},
                               NULL) == PSD_OK;
}

static ps_sent_t send_there(ps_fleet_t *self, const ps_sending_round_t *tell)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_sent_t sent = ps_overseer_encode(self->is.overseer, tell, &bytes);

    return sent != PS_SENT || send_bytes(self, tell->conn, &bytes) ? sent : PS_SENT_NOT;
}

/* The task that the tell is for the shards here. false: it is obsolete, or they
 * know it: they miss no drop and know every session. */
static bool task_of(const ps_fleet_t *self, const ps_sending_round_t *tell, ps_agent_task_t *task)
{
    const ps_question_t *question = NULL;

    task->id = tell->id;
    switch (tell->kind) {
    case PS_TELL_DROP:
        task->kind = PS_TASK_DROP;
        return true;
    case PS_TELL_TABLE:
        task->kind = PS_TASK_TABLE;
        task->table = ps_registry_table_by_id(self->is.registry, tell->id);
        return task->table != NULL;
    case PS_TELL_JOB:
        task->kind = PS_TASK_JOB;
        task->job = ps_registry_job_by_id(self->is.registry, tell->id);
        return task->job != NULL;
    case PS_TELL_ASK:
        question = ps_overseer_question(self->is.overseer, tell->question);
        if (question != NULL) {
            task->kind = PS_TASK_ASK;
            task->question = (uint32_t)question->kind;
            task->id = question->job;
            task->words = (ps_bytes_t){question->words.data, question->words.size};
        }
        return question != NULL;
    case PS_TELL_KNOWN:
    case PS_TELL_SESSIONS:
    case PS_TELL_COUNT:
    default:
        return false;
    }
}

static ps_sent_t send_here(ps_fleet_t *self, const ps_sending_round_t *tell, uint64_t *ret_local)
{
    ps_agent_task_t task = {.id = 0};
    psd_status_t rc = PSD_OK;

    if (!task_of(self, tell, &task)) {
        return PS_SENT_GONE;
    }
    rc = ps_task_run(self->is.shards, self->is.plugins, &task, ret_local, self->err);
    if (rc == PSD_OK) {
        return PS_SENT;
    }
    return rc == PSD_BUSY || rc == PSD_NOMEM ? PS_SENT_NOT : PS_SENT_REFUSED;
}

void ps_fleet_send_due(ps_fleet_t *self)
{
    ps_sending_round_t round = {0};
    uint64_t now_ms = ps_now_ms();

    while (ps_overseer_next(self->is.overseer, now_ms, &round)) {
        uint64_t local = 0;
        ps_sent_t sent = PS_SENT_NOT;
        const ps_tell_view_t tell = {.kind = round.kind, .id = round.id, .node = round.name};

        psd_error_clear(self->err);
        sent = round.here ? send_here(self, &round, &local) : send_there(self, &round);
        if (ps_overseer_sent(self->is.overseer, &round, sent, local, psd_error_status(self->err),
                             psd_error_text(self->err))) {
            ps_fleet_log_refusal(&tell, psd_error_status(self->err), psd_error_text(self->err));
        }
    }
}

void ps_fleet_fence(ps_fleet_t *self, const ps_copy_t *copy, uint32_t table, uint32_t partition,
                    uint64_t epoch)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_copy_fence_t fence = {copy->shard, table, partition, epoch};
    uint64_t conn = 0;
    uint64_t serial = 0;
    bool here = false;
    bool sent = false;

    if (!ps_overseer_find(self->is.overseer, copy->incarnation, &conn, &here)) {
        return;
    }
    if (here) {
        sent = ps_shards_send_fence(self->is.shards, &fence, &serial, NULL) == PSD_OK;
    } else {
        sent = ps_overseer_encode_fence(self->is.overseer, copy->incarnation, &fence, &bytes) &&
               send_bytes(self, conn, &bytes);
    }
    (void)sent; /* the registry asks again */
}

/* ---- the shards of this node, and time ---- */

static void learn_sizes(ps_fleet_t *self, const ps_answers_t *answers)
{
    for (size_t i = 0; i < answers->n; i++) {
        const ps_shard_answer_t *answer = &answers->at[i];

        for (size_t k = 0; k < answer->n_sizes; k++) {
            (void)ps_registry_set_bytes(self->is.registry, self->is.incarnation,
                                        answer->sizes[k].table, answer->sizes[k].partition,
                                        answer->sizes[k].bytes);
        }
    }
}

static void take_done(ps_fleet_t *self, ps_shards_done_t *done)
{
    ps_tell_view_t tell;

    if (done->serial == self->look) {
        self->look = 0;
        learn_sizes(self, &done->answers);
    } else if (!ps_overseer_find_local(self->is.overseer, done->serial, &tell)) {
        return; /* its question is gone */
    } else if (tell.kind == PS_TELL_ASK) {
        ps_overseer_answered(self->is.overseer, self->is.incarnation, tell.question, done->status,
                             &done->answers);
    } else if (ps_overseer_told(self->is.overseer, self->is.incarnation, tell.serial, done->status,
                                done->text)) {
        ps_fleet_log_refusal(&tell, done->status, done->text);
    }
}

void ps_fleet_take_shards(ps_fleet_t *self)
{
    ps_shards_done_t done;

    ps_shards_take(self->is.shards, ps_now_ms());
    while (ps_shards_next_done(self->is.shards, &done)) {
        take_done(self, &done);
        ps_shards_done_done(&done);
    }
}

void ps_fleet_tick(ps_fleet_t *self)
{
    uint64_t now_ms = ps_now_ms();
    ps_late_t late;
    bool hangs = ps_overseer_is_in_haste(self->is.overseer) && self->is.turns != NULL &&
                 ps_turns_late(ps_turns_page(self->is.turns), &late, 1) > 0;

    ps_overseer_tick(self->is.overseer, now_ms, hangs);
    if (ps_overseer_n_nodes(self->is.overseer) > 1 && self->look == 0 && now_ms >= self->look_ms) {
        self->look_ms = now_ms + PS_SIZES_EVERY_MS;
        if (ps_shards_send_ask(self->is.shards, PS_CALL_SIZES, 0, &self->look, NULL) != PSD_OK) {
            self->look = 0; /* retried at the next tick */
        }
    }
}
