/* SPDX-License-Identifier: Apache-2.0 */
/* Sends the tells noted for a node, in order and each under one number, until
 * the node acknowledges them. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overseer/overseer_state.h"

/* After what was sent and not answered, or refused; twice as long each time. */
#define AGAIN_MS 1000
#define AGAIN_MAX_MS 16000

const char *ps_tell_name(ps_tell_kind_t kind)
{
    static const char *const NAMES[] = {"known", "sessions", "table", "drop", "job", "ask", "?"};

    return NAMES[kind];
}

/* Of tables or jobs by id: the revision that the node has; 0: none. */
static uint64_t revision_of(const ps_map_t *known, uint32_t id)
{
    return (uintptr_t)ps_map_get(known, id);
}

static void set_revision(ps_map_t *known, uint32_t id, uint64_t revision)
{
    if (revision > revision_of(known, id) &&
        !ps_map_put(known, id, (void *)(uintptr_t)revision)) { /* NOLINT */
        (void)ps_map_remove(known, id);                        /* the next tell has all of it */
    }
}

static void forget(ps_overseen_t *node, size_t i)
{
    node->n_tells--;
    memmove(&node->tells[i], &node->tells[i + 1], (node->n_tells - i) * sizeof *node->tells);
}

/* ---- sending ---- */

/* true: that is new. */
static bool refuse(ps_tell_t *tell, psd_status_t status, const char *text)
{
    bool is_new = tell->status == PSD_OK;

    tell->flying = false;
    tell->serial = 0; /* another message */
    tell->status = status;
    (void)snprintf(tell->text, sizeof tell->text, "%.*s", (int)sizeof tell->text - 1, text);
    return is_new;
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

static size_t count_flying(const ps_overseen_t *node)
{
    size_t n = 0;

    for (size_t i = 0; i < node->n_tells; i++) {
        n += node->tells[i].flying ? 1 : 0;
    }
    return n;
}

/* It waits for an answer, or was refused, and is sent again later. */
static bool rests(const ps_tell_t *tell, uint64_t now_ms)
{
    return (tell->flying || tell->status != PSD_OK) && tell->due_ms > now_ms;
}

/* The round's place at the next tell of the node that is due; false: none. The
 * order is kept: what does not fit into the window goes with all after it,
 * later. */
static bool find_due(const ps_overseen_t *node, uint64_t now_ms, ps_sending_round_t *round)
{
    while (round->at < node->n_tells) {
        const ps_tell_t *tell = &node->tells[round->at];

        if (!rests(tell, now_ms)) {
            return tell->flying || round->n_flying < PS_OVERSEER_WINDOW;
        }
        round->at++;
    }
    return false;
}

static void leave_node(ps_sending_round_t *round)
{
    round->node++;
    round->entered = false;
}

/* A tell gets its number. One that is sent again has a newer state, but counts
 * as the revision of its first sending: the node may answer that one. */
static void begin(ps_overseer_t *self, const ps_overseen_t *node, ps_tell_t *tell)
{
    const ps_table_t *table =
        tell->kind == PS_TELL_TABLE ? ps_registry_table_by_id(self->is.registry, tell->id) : NULL;
    const ps_job_t *job =
        tell->kind == PS_TELL_JOB ? ps_registry_job_by_id(self->is.registry, tell->id) : NULL;

    tell->serial = ++self->last_serial;
    if (table != NULL) {
        tell->since = revision_of(&node->tables, tell->id);
        tell->revision = table->revision;
    } else if (job != NULL) {
        tell->since = revision_of(&node->jobs, tell->id);
        tell->revision = job->version;
    }
}

bool ps_overseer_next(ps_overseer_t *self, uint64_t now_ms, ps_sending_round_t *round)
{
    for (; round->node < self->n_nodes; leave_node(round)) {
        ps_overseen_t *node = &self->nodes[round->node];
        ps_tell_t *tell = NULL;

        if (!round->entered) {
            round->entered = true;
            if (node->state == PS_HEALTH_UP && node->stale) {
                ps_overseen_note_all(self, node);
            }
            round->at = 0;
            round->n_flying = count_flying(node);
        }
        if (node->state != PS_HEALTH_UP || !find_due(node, now_ms, round)) {
            continue;
        }
        tell = &node->tells[round->at];
        if (tell->serial == 0) {
            begin(self, node, tell);
        }
        round->now_ms = now_ms;
        round->conn = node->conn;
        round->incarnation = node->incarnation;
        round->kind = tell->kind;
        round->id = tell->id;
        round->question = tell->question;
        round->serial = tell->serial;
        round->since = tell->since;
        round->name = node->name;
        return true;
    }
    return false;
}

void ps_overseer_sent(ps_overseer_t *self, ps_sending_round_t *round, ps_sent_t sent)
{
    ps_overseen_t *node = &self->nodes[round->node];
    ps_tell_t *tell = &node->tells[round->at];

    switch (sent) {
    case PS_SENT:
        round->n_flying += tell->flying ? 0 : 1;
        put_off(tell, round->now_ms);
        tell->flying = true;
        round->at++;
        break;
    case PS_SENT_GONE:
        forget(node, round->at);
        break;
    case PS_SENT_NOT:
    default:
        leave_node(round); /* the rest goes with it, later */
        break;
    }
}

/* ---- noting ---- */

/* True when an unsent tell of the same object is noted already: it will carry
 * the newest state. A refused tell is retried at once, in its place, so that no
 * question overtakes it. false: note it. */
static bool is_noted(ps_overseen_t *node, ps_tell_kind_t kind, uint32_t id)
{
    for (size_t i = 0; i < node->n_tells; i++) {
        ps_tell_t *tell = &node->tells[i];

        if (tell->kind == kind && tell->id == id && !tell->flying) {
            *tell = (ps_tell_t){.kind = kind, .id = id};
            return true;
        }
    }
    return false;
}

static bool put(ps_overseen_t *node, const ps_tell_t *tell)
{
    if (!ps_grow(&node->tells, &node->tells_capacity, node->n_tells + 1, sizeof *node->tells)) {
        return false;
    }
    node->tells[node->n_tells++] = *tell;
    return true;
}

/* One of an object of which there is none yet. */
static bool note_new(ps_overseen_t *node, ps_tell_kind_t kind, uint32_t id)
{
    const ps_tell_t tell = {.kind = kind, .id = id};
    bool fits = put(node, &tell);

    node->stale = node->stale || !fits;
    return fits;
}

static bool note(ps_overseen_t *node, ps_tell_kind_t kind, uint32_t id)
{
    return is_noted(node, kind, id) || note_new(node, kind, id);
}

bool ps_overseen_note_question(ps_overseen_t *node, uint64_t question)
{
    const ps_tell_t tell = {.kind = PS_TELL_ASK, .question = question};

    return put(node, &tell);
}

void ps_overseen_withdraw(ps_overseer_t *self, uint64_t question)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        ps_overseen_t *node = &self->nodes[i];

        for (size_t k = node->n_tells; k > 0; k--) {
            if (node->tells[k - 1].kind == PS_TELL_ASK && node->tells[k - 1].question == question) {
                forget(node, k - 1);
            }
        }
    }
}

/* Tells in flight are sent again under new numbers. */
void ps_overseen_note_all(ps_overseer_t *self, ps_overseen_t *node)
{
    const ps_registry_t *registry = self->is.registry;
    bool fits = true;

    node->stale = false;
    node->n_tells = 0;
    fits = note_new(node, PS_TELL_KNOWN, 0) && note_new(node, PS_TELL_SESSIONS, 0);
    for (size_t i = 0; fits && i < ps_registry_n_tables(registry); i++) {
        fits = note_new(node, PS_TELL_TABLE, ps_registry_table_at(registry, i)->id);
    }
    for (size_t i = 0; fits && i < ps_registry_n_jobs(registry); i++) {
        fits = note_new(node, PS_TELL_JOB, ps_registry_job_at(registry, i)->id);
    }
}

static void note_everywhere(ps_overseer_t *self, ps_tell_kind_t kind, uint32_t id)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        if (self->nodes[i].state == PS_HEALTH_UP) {
            (void)note(&self->nodes[i], kind, id); /* else it is stale now */
        }
    }
}

void ps_overseer_tell_table(ps_overseer_t *self, uint32_t table)
{
    note_everywhere(self, PS_TELL_TABLE, table);
}

bool ps_overseer_reserve(ps_overseer_t *self)
{
    bool done = true;

    for (size_t i = 0; done && i < self->n_nodes; i++) {
        ps_overseen_t *node = &self->nodes[i];

        done = ps_grow(&node->tells, &node->tells_capacity, node->n_tells + 1, sizeof *node->tells);
    }
    return done;
}

void ps_overseer_tell_drop(ps_overseer_t *self, uint32_t table)
{
    note_everywhere(self, PS_TELL_DROP, table);
}

void ps_overseer_tell_job(ps_overseer_t *self, uint32_t job)
{
    note_everywhere(self, PS_TELL_JOB, job);
}

void ps_overseer_tell_sessions(ps_overseer_t *self, uint64_t session)
{
    if (session > self->sessions) {
        self->sessions = session;
        note_everywhere(self, PS_TELL_SESSIONS, 0);
    }
}

void ps_overseer_tell_settings(ps_overseer_t *self)
{
    note_everywhere(self, PS_TELL_SESSIONS, 0);
}

uint64_t ps_overseer_sessions(const ps_overseer_t *self)
{
    return self->sessions;
}

/* ---- what nodes say ---- */

psd_status_t ps_overseer_refusal(const ps_overseer_t *self, uint32_t table, psd_error_t *err)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_overseen_t *node = &self->nodes[i];

        for (size_t k = 0; k < node->n_tells; k++) {
            const ps_tell_t *tell = &node->tells[k];

            if (tell->kind == PS_TELL_TABLE && tell->id == table && tell->status != PSD_OK) {
                return node->incarnation == self->is.incarnation
                           ? psd_error_set(err, tell->status, "%s", tell->text)
                           : psd_error_set(err, tell->status, "node %s: %s", node->name,
                                           tell->text);
            }
        }
    }
    return PSD_OK;
}

bool ps_overseer_is_settled(const ps_overseer_t *self)
{
    for (size_t i = 0; i < self->n_nodes; i++) {
        const ps_overseen_t *node = &self->nodes[i];

        for (size_t k = 0; node->state == PS_HEALTH_UP && k < node->n_tells; k++) {
            if (node->tells[k].kind != PS_TELL_ASK) {
                return false;
            }
        }
        if (node->state == PS_HEALTH_UP && node->stale) {
            return false;
        }
    }
    return true;
}

bool ps_overseen_end_question(ps_overseen_t *node, uint64_t question)
{
    bool lacks = false;

    for (size_t i = 0; i < node->n_tells; i++) {
        const ps_tell_t *tell = &node->tells[i];

        if (tell->kind == PS_TELL_ASK && tell->question == question) {
            forget(node, i);
            return lacks;
        }
        lacks = lacks || tell->kind == PS_TELL_JOB;
    }
    return false;
}

static ps_tell_t *find_tell(const ps_overseen_t *node, uint64_t serial)
{
    for (size_t i = 0; node != NULL && serial != 0 && i < node->n_tells; i++) {
        if (node->tells[i].serial == serial) {
            return &node->tells[i];
        }
    }
    return NULL;
}

static bool view(const ps_overseen_t *node, const ps_tell_t *tell, ps_tell_view_t *ret_tell)
{
    if (tell == NULL) {
        return false;
    }
    *ret_tell = (ps_tell_view_t){.kind = tell->kind,
                                 .id = tell->id,
                                 .question = tell->question,
                                 .serial = tell->serial,
                                 .node = node->name};
    return true;
}

bool ps_overseer_find_tell(const ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                           ps_tell_view_t *ret_tell)
{
    const ps_overseen_t *node = ps_overseen_find(self, incarnation);

    return view(node, find_tell(node, serial), ret_tell);
}

/* It was noted again after this one. */
static bool is_newer(const ps_overseen_t *node, const ps_tell_t *than)
{
    for (size_t i = (size_t)(than - node->tells) + 1; i < node->n_tells; i++) {
        if (node->tells[i].kind == than->kind && node->tells[i].id == than->id) {
            return true;
        }
    }
    return false;
}

/* The node keeps a job while it runs, and so does this. */
static void note_job(const ps_overseer_t *self, ps_overseen_t *node, const ps_tell_t *tell)
{
    const ps_job_t *job = ps_registry_job_by_id(self->is.registry, tell->id);

    if (job == NULL || ps_job_has_ended(job)) {
        (void)ps_map_remove(&node->jobs, tell->id);
    } else {
        set_revision(&node->jobs, tell->id, tell->revision);
    }
}

bool ps_overseer_told(ps_overseer_t *self, uint64_t incarnation, uint64_t serial,
                      psd_status_t status, const char *text)
{
    ps_overseen_t *node = ps_overseen_find(self, incarnation);
    ps_tell_t *tell = find_tell(node, serial);

    if (tell == NULL) {
        return false;
    }
    if (tell->kind == PS_TELL_TABLE && status == PSD_OK) {
        set_revision(&node->tables, tell->id, tell->revision);
    } else if (tell->kind == PS_TELL_JOB && status == PSD_OK) {
        note_job(self, node, tell);
    } else if (tell->kind == PS_TELL_JOB) {
        (void)ps_map_remove(&node->jobs, tell->id); /* all of it, then */
    } else if (tell->kind == PS_TELL_TABLE || tell->kind == PS_TELL_DROP) {
        (void)ps_map_remove(&node->tables, tell->id); /* all of it, then */
    }
    if (status == PSD_OK || is_newer(node, tell)) {
        forget(node, (size_t)(tell - node->tells));
        return false;
    }
    return refuse(tell, status, text);
}
