/* SPDX-License-Identifier: Apache-2.0 */
/* Telling: what is noted for a node is sent, in order and under one number,
 * until the node has it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/nodes/fleet_inner.h"

#define WINDOW 64 /* sent to a node and not answered */
#define AGAIN_MS                                                    \
    1000 /* after what was sent and not answered, or refused; twice \
            as long each time */
#define AGAIN_MAX_MS 16000

const char *ps_tell_op(ps_tell_kind_t kind)
{
    static const char *const OPS[] = {
#define TELL_OP(NAME, op) op,
        PS_TELL_MAP(TELL_OP)
#undef TELL_OP
    };

    return OPS[kind];
}

static void forget(ps_fleet_node_t *node, size_t i)
{
    node->n_tells--;
    memmove(&node->tells[i], &node->tells[i + 1], (node->n_tells - i) * sizeof *node->tells);
}

/* ---- sending ---- */

static void refuse(ps_fleet_node_t *node, ps_tell_t *tell, psd_status_t status, const char *text)
{
    char quoted[512];

    if (tell->status == PSD_OK) {
        ps_log(PS_LOG_ERROR, "node_not_told",
               "node=%s what=%s id=%" PRIu32 " status=%s reason=%s hint=\"tried again\"",
               node->name, ps_tell_op(tell->kind), tell->id, psd_status_name(status),
               ps_log_quote(text, quoted, sizeof quoted));
    }
    tell->flying = false;
    tell->status = status;
    (void)snprintf(tell->text, sizeof tell->text, "%.*s", (int)sizeof tell->text - 1, text);
}

/* Its next sending, if the node says nothing. */
static void put_off(ps_tell_t *tell, uint64_t now_ms)
{
    tell->again_ms = tell->again_ms == 0 ? AGAIN_MS : 2 * tell->again_ms;
    if (tell->again_ms > AGAIN_MAX_MS) {
        tell->again_ms = AGAIN_MAX_MS;
    }
    tell->due_ms = now_ms + tell->again_ms;
}

/* true: the next one may go. */
static bool send_one(ps_fleet_t *self, ps_fleet_node_t *node, size_t *i)
{
    ps_tell_t *tell = &node->tells[*i];

    put_off(tell, ps_now_ms());
    switch (ps_fleet_send(self, node, tell)) {
    case PS_SENT:
        tell->flying = true;
        (*i)++;
        return true;
    case PS_SENT_REFUSED:
        refuse(node, tell, psd_error_status(self->err), psd_error_text(self->err));
        (*i)++;
        return true;
    case PS_SENT_GONE:
        forget(node, *i);
        return true;
    case PS_SENT_NOT:
    default:
        return false;
    }
}

static size_t count_flying(const ps_fleet_node_t *node)
{
    size_t n = 0;

    for (size_t i = 0; i < node->n_tells; i++) {
        n += node->tells[i].flying ? 1 : 0;
    }
    return n;
}

void ps_fleet_send_due(ps_fleet_t *self, ps_fleet_node_t *node)
{
    uint64_t now_ms = ps_now_ms();
    size_t n_flying = count_flying(node);
    size_t i = 0;

    if (node->state != PS_FLEET_UP) {
        return;
    }
    if (node->stale) {
        ps_fleet_note_all(self, node);
        return;
    }
    while (i < node->n_tells) {
        const ps_tell_t *tell = &node->tells[i];
        bool is_new = !tell->flying;

        if ((tell->serial != 0 && tell->due_ms > now_ms) || (node->here && tell->flying)) {
            i++; /* the shards that are here lose nothing */
            continue;
        }
        if ((is_new && n_flying >= WINDOW) || !send_one(self, node, &i)) {
            return; /* the order is kept: the rest goes with it, later */
        }
        n_flying += is_new ? 1 : 0;
    }
}

/* ---- noting ---- */

/* A node that has it among what it was not sent yet gets its newest state then;
 * what it has refused is tried anew. false: it is to be noted. */
static bool is_noted(ps_fleet_node_t *node, ps_tell_kind_t kind, uint32_t id)
{
    for (size_t i = 0; i < node->n_tells; i++) {
        const ps_tell_t *tell = &node->tells[i];

        if (tell->kind != kind || tell->id != id || tell->flying) {
            continue;
        }
        if (tell->serial == 0) {
            return true;
        }
        forget(node, i);
        return false;
    }
    return false;
}

static bool put(ps_fleet_node_t *node, const ps_tell_t *tell)
{
    if (!ps_grow(&node->tells, &node->tells_capacity, node->n_tells + 1, sizeof *node->tells)) {
        return false;
    }
    node->tells[node->n_tells++] = *tell;
    return true;
}

static bool note(ps_fleet_node_t *node, ps_tell_kind_t kind, uint32_t id)
{
    const ps_tell_t tell = {.kind = kind, .id = id};

    if (is_noted(node, kind, id) || put(node, &tell)) {
        return true;
    }
    node->stale = true;
    return false;
}

void ps_fleet_note(ps_fleet_t *self, ps_fleet_node_t *node, ps_tell_kind_t kind, uint32_t id)
{
    if (node->state == PS_FLEET_UP && note(node, kind, id)) {
        ps_fleet_send_due(self, node);
    }
}

bool ps_fleet_note_question(ps_fleet_node_t *node, const ps_question_t *question)
{
    const ps_tell_t tell = {.kind = PS_TELL_ASK, .question = question->serial};

    return put(node, &tell);
}

void ps_fleet_withdraw(ps_fleet_t *self, uint64_t question)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];

        for (size_t k = node->n_tells; k > 0; k--) {
            if (node->tells[k - 1].kind == PS_TELL_ASK && node->tells[k - 1].question == question) {
                forget(node, k - 1);
            }
        }
    }
}

/* What is on its way to another node is told again under a new number; to the
 * shards that are here nothing is lost, and nobody else knows of drops. */
void ps_fleet_note_all(ps_fleet_t *self, ps_fleet_node_t *node)
{
    const ps_registry_t *registry = self->is.registry;
    bool fits = true;

    node->stale = false;
    node->n_tells = node->here ? node->n_tells : 0;
    fits = note(node, PS_TELL_KNOWN, 0) && note(node, PS_TELL_SESSIONS, 0);
    for (size_t i = 0; fits && i < ps_registry_n_tables(registry); i++) {
        fits = note(node, PS_TELL_TABLE, ps_registry_table_at(registry, i)->id);
    }
    for (size_t i = 0; fits && i < ps_registry_n_jobs(registry); i++) {
        fits = note(node, PS_TELL_JOB, ps_registry_job_at(registry, i)->id);
    }
    if (fits) {
        ps_fleet_send_due(self, node);
    }
}

/* It was noted again behind this one. */
static bool is_newer(const ps_fleet_node_t *node, const ps_tell_t *than)
{
    for (size_t i = (size_t)(than - node->tells) + 1; i < node->n_tells; i++) {
        if (node->tells[i].kind == than->kind && node->tells[i].id == than->id) {
            return true;
        }
    }
    return false;
}

void ps_fleet_told(ps_fleet_node_t *node, ps_tell_t *tell, psd_status_t status, const char *text)
{
    if (status == PSD_OK || is_newer(node, tell)) {
        forget(node, (size_t)(tell - node->tells));
    } else {
        refuse(node, tell, status, text);
    }
}

/* ---- the face ---- */

static void note_everywhere(ps_fleet_t *self, ps_tell_kind_t kind, uint32_t id)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_fleet_note(self, &self->nodes[i], kind, id);
    }
}

void ps_fleet_tell_table(ps_fleet_t *self, uint32_t table)
{
    note_everywhere(self, PS_TELL_TABLE, table);
}

bool ps_fleet_reserve(ps_fleet_t *self)
{
    bool done = true;

    for (size_t i = 0; done && i < self->n_nodes; i++) {
        ps_fleet_node_t *node = &self->nodes[i];

        done = ps_grow(&node->tells, &node->tells_capacity, node->n_tells + 1, sizeof *node->tells);
    }
    return done;
}

void ps_fleet_tell_drop(ps_fleet_t *self, uint32_t table)
{
    note_everywhere(self, PS_TELL_DROP, table);
}

void ps_fleet_tell_job(ps_fleet_t *self, uint32_t job)
{
    note_everywhere(self, PS_TELL_JOB, job);
}

void ps_fleet_tell_sessions(ps_fleet_t *self, uint64_t session)
{
    if (session > self->sessions) {
        self->sessions = session;
        note_everywhere(self, PS_TELL_SESSIONS, 0);
    }
}

psd_status_t ps_fleet_refusal(const ps_fleet_t *self, uint32_t table, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_fleet_node_t *node = &self->nodes[i];

        for (size_t k = 0; k < node->n_tells; k++) {
            const ps_tell_t *tell = &node->tells[k];

            if (tell->kind == PS_TELL_TABLE && tell->id == table && tell->status != PSD_OK) {
                return node->here ? psd_error_set(err, tell->status, "%s", tell->text)
                                  : psd_error_set(err, tell->status, "node %s: %s", node->name,
                                                  tell->text);
            }
        }
    }
    return PSD_OK;
}
