/* SPDX-License-Identifier: Apache-2.0 */
/* The node's side: the tables that the shards know, and what the registry tells as tasks for
 * them; tables that it does not know are kept aside. */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/agent/agent_state.h"

void ps_agent_destroy_message(ps_node_message_t **message_p)
{
    if (*message_p != NULL) {
        ps_node_message_done(*message_p);
        ps_free(*message_p);
        *message_p = NULL;
    }
}

/* ---- tables ---- */

static ps_table_t *find_table(const ps_agent_t *self, uint32_t id)
{
    size_t place = (uintptr_t)ps_map_get(&self->places, id);

    return place == 0 ? NULL : &self->tables[place - 1];
}

static bool set_place(ps_agent_t *self, uint32_t id, size_t place)
{
    return ps_map_put(&self->places, id, (void *)(uintptr_t)place); /* NOLINT */
}

/* The entry of that table, a new one if need be. NULL: no memory. */
static ps_table_t *get_table(ps_agent_t *self, uint32_t id)
{
    ps_table_t *table = find_table(self, id);

    if (table == NULL &&
        ps_grow(&self->tables, &self->tables_capacity, self->n_tables + 1, sizeof *self->tables) &&
        set_place(self, id, self->n_tables + 1)) {
        table = &self->tables[self->n_tables++];
        *table = (ps_table_t){.id = id};
    }
    return table;
}

psd_status_t ps_agent_know(ps_agent_t *self, uint32_t table, psd_error_t *err)
{
    return get_table(self, table) != NULL ? PSD_OK : ps_agent_no_memory(err);
}

/* Dropped: there is nothing left to drop when the registry names its tables. */
static void forget_table(ps_agent_t *self, uint32_t id)
{
    ps_table_t *table = find_table(self, id);
    bool known = true;

    if (table != NULL) {
        ps_table_done(table);
        (void)ps_map_remove(&self->places, id);
        *table = self->tables[--self->n_tables];
        if (table != &self->tables[self->n_tables]) {
            known = set_place(self, table->id, (size_t)(table - self->tables) + 1);
        }
    }
    assert(known); /* it has a slot already */
}

/* ---- tasks ---- */

static bool has_delivery(const ps_agent_t *self, uint64_t serial)
{
    for (size_t i = 0; i < self->n_deliveries; i++) {
        if (self->deliveries[i].serial == serial) {
            return true;
        }
    }
    return false;
}

/* Room for n more. */
static psd_status_t reserve(ps_agent_t *self, size_t n, psd_error_t *err)
{
    return ps_grow(&self->deliveries, &self->deliveries_capacity, self->n_deliveries + n,
                   sizeof *self->deliveries)
               ? PSD_OK
               : ps_agent_no_memory(err);
}

static psd_status_t put_delivery(ps_agent_t *self, const ps_delivery_t *delivery, psd_error_t *err)
{
    psd_status_t rc = reserve(self, 1, err);

    if (rc == PSD_OK) {
        self->deliveries[self->n_deliveries++] = *delivery;
    }
    return rc;
}

psd_status_t ps_agent_put_task(ps_agent_t *self, ps_agent_task_kind_t kind, uint32_t id,
                               uint64_t serial, psd_error_t *err)
{
    const ps_delivery_t delivery = {.kind = kind, .id = id, .serial = serial};

    return put_delivery(self, &delivery, err);
}

void ps_agent_see_epoch(ps_agent_t *self, uint64_t epoch)
{
    if (epoch > self->max_epoch) {
        self->max_epoch = epoch;
    }
}

/* Takes the definition, and makes room for the places. */
static psd_status_t begin_table(ps_agent_t *self, ps_node_message_t *message, psd_error_t *err)
{
    PSD_AUTO(ps_table_done) ps_table_t fresh = message->table;
    ps_table_t *table = NULL;
    size_t n = fresh.spec.n_partitions;

    message->table = (ps_table_t){.id = fresh.id};
    fresh.copies = ps_alloc(n, sizeof *fresh.copies);
    fresh.routes = ps_alloc(n, sizeof *fresh.routes);
    if (fresh.copies == NULL || fresh.routes == NULL) {
        return ps_agent_no_memory(err);
    }
    table = get_table(self, fresh.id);
    if (table == NULL) {
        return ps_agent_no_memory(err);
    }
    ps_table_done(table);
    *table = fresh; /* ownership moves */
    fresh = (ps_table_t){0};
    return PSD_OK;
}

static psd_status_t take_table(ps_agent_t *self, ps_node_message_t *message, psd_error_t *err)
{
    const ps_table_t marks = message->table;
    psd_status_t rc = message->kind == PS_NODE_TABLE ? begin_table(self, message, err) : PSD_OK;
    ps_table_t *table = find_table(self, marks.id);

    for (size_t i = 0; i < message->n_places; i++) {
        ps_agent_see_epoch(self, message->places[i].copies.epoch);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (table == NULL || table->copies == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "this node does not know table %u", marks.id);
    }
    table->rows_lost = marks.rows_lost;
    table->lost_sessions = marks.lost_sessions;
    table->restoring = marks.restoring;
    table->spec.combine = marks.spec.combine;
    rc = ps_places_put(message, table, err);
    return rc == PSD_OK ? ps_agent_put_task(self, PS_TASK_TABLE, marks.id, message->serial, err)
                        : rc;
}

static bool names(const ps_node_message_t *known, uint32_t table)
{
    for (size_t i = 0; i < known->n_tables; i++) {
        if (known->tables[i] == table) {
            return true;
        }
    }
    return false;
}

static psd_status_t put_aside(ps_agent_t *self, uint32_t table, uint64_t serial, psd_error_t *err)
{
    bool is_aside = ps_heard_is_aside(&self->heard, table);

    if (!ps_heard_put_aside(&self->heard, table)) {
        return ps_agent_no_memory(err);
    }
    if (!is_aside) {
        ps_agent_note(self, &(ps_agent_note_t){.kind = PS_AGENT_ASIDE, .serial = table});
    }
    return ps_agent_put_task(self, PS_TASK_ASIDE, table, serial, err);
}

/* From here on the node follows that registry. */
static void follow(ps_agent_t *self, const ps_node_message_t *known)
{
    const ps_heard_t before = self->heard;

    ps_heard_follow(&self->heard, &known->at);
    self->heard.last_table = known->last_table;
    self->heard.last_job = known->last_job;
    self->is_listed = true;
    self->has_map = true;
    self->is_heard_new = self->is_heard_new || before.last_table != known->last_table ||
                         before.last_job != known->last_job ||
                         !ps_id_equal(&before.at.lineage, &known->at.lineage);
}

/* Tables that the registry does not have were dropped while this node was away, or
 * are of another history: all of them become tasks, or none. */
static psd_status_t take_known(ps_agent_t *self, const ps_node_message_t *message, psd_error_t *err)
{
    ps_heard_word_t word = ps_heard_judge(&self->heard, &message->at);
    size_t n_aside = self->heard.n_aside;
    psd_status_t rc = reserve(self, self->n_tables, err);

    for (size_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
        uint32_t id = self->tables[i].id;

        if (names(message, id)) {
            continue;
        }
        rc = ps_heard_fate(&self->heard, word, message->last_table, id) == PS_FATE_DROPPED
                 ? ps_agent_put_task(self, PS_TASK_DROP, id, message->serial, err)
                 : put_aside(self, id, message->serial, err);
    }
    if (self->heard.n_aside != n_aside) {
        self->is_heard_new = true;
        self->beat_ms = 0; /* it reports them */
    }
    if (rc != PSD_OK) {
        return rc;
    }
    follow(self, message);
    if (!has_delivery(self, message->serial)) {
        ps_agent_answer(self, message->serial, PSD_OK, "", NULL);
    }
    return PSD_OK;
}

/* A task that needs the message, which it takes. */
static psd_status_t keep_message(ps_agent_t *self, ps_agent_task_kind_t kind,
                                 ps_node_message_t *message, psd_error_t *err)
{
    ps_delivery_t delivery = {
        .kind = kind, .serial = message->serial, .message = ps_alloc(1, sizeof *message)};
    psd_status_t rc = PSD_OK;

    if (delivery.message == NULL) {
        return ps_agent_no_memory(err);
    }
    *delivery.message = *message;
    *message = (ps_node_message_t){.kind = message->kind, .serial = message->serial};
    rc = put_delivery(self, &delivery, err);
    if (rc != PSD_OK) {
        ps_agent_destroy_message(&delivery.message);
    }
    return rc;
}

/* ---- jobs ---- */

static void destroy_job(ps_job_t **job_p)
{
    if (*job_p != NULL) {
        ps_job_done(*job_p);
        ps_free(*job_p);
        *job_p = NULL;
    }
}

static void forget_job(ps_agent_t *self, uint32_t id)
{
    ps_job_t *job = ps_map_remove(&self->jobs, id);

    destroy_job(&job);
}

void ps_agent_forget_jobs(ps_agent_t *self)
{
    size_t at = 0;
    uint64_t id = 0;
    void *value = NULL;

    while (ps_map_next(&self->jobs, &at, &id, &value)) {
        ps_job_t *job = value;

        destroy_job(&job);
    }
    ps_map_done(&self->jobs);
}

/* Keeps a job, of which the registry will send what changes. One that has ended stays as it
 * is, and is forgotten. */
static psd_status_t keep_job(ps_agent_t *self, const ps_job_t *job, psd_error_t *err)
{
    PSD_AUTO(destroy_job) ps_job_t *kept = NULL;
    psd_status_t rc = PSD_OK;

    forget_job(self, job->id);
    if (ps_job_has_ended(job)) {
        return PSD_OK;
    }
    kept = ps_alloc(1, sizeof *kept);
    if (kept == NULL) {
        return ps_agent_no_memory(err);
    }
    rc = ps_job_copy(job, kept, err);
    if (rc == PSD_OK && !ps_map_put(&self->jobs, job->id, kept)) {
        rc = ps_agent_no_memory(err);
    }
    if (rc == PSD_OK) {
        kept = NULL; /* the map has it */
    }
    return rc;
}

/* Completes what changed in a job since a version that this node has. */
static psd_status_t complete_job(const ps_agent_t *self, ps_node_message_t *message,
                                 psd_error_t *err)
{
    const ps_job_t *known = ps_map_get(&self->jobs, message->job.id);
    ps_job_t whole = {0};
    psd_status_t rc = PSD_OK;

    if (known == NULL || known->version < message->since) {
        return psd_error_set(err, PSD_NO_JOB, "this node does not know job %" PRIu32 " so far",
                             message->job.id);
    }
    rc = message->job.version < known->version ? ps_job_copy(known, &whole, err)
                                               : ps_job_merge(known, &message->job, &whole, err);
    if (rc == PSD_OK) {
        ps_job_done(&message->job);
        message->job = whole; /* ownership moves */
    }
    return rc;
}

/* All of a job, or what changed in it. The shards get all of it. */
static psd_status_t take_job(ps_agent_t *self, ps_node_message_t *message, psd_error_t *err)
{
    psd_status_t rc = message->kind == PS_NODE_RANKS ? complete_job(self, message, err) : PSD_OK;

    if (rc == PSD_OK) {
        rc = keep_job(self, &message->job, err);
    }
    return rc == PSD_OK ? keep_message(self, PS_TASK_JOB, message, err) : rc;
}

psd_status_t ps_agent_obey(ps_agent_t *self, ps_node_message_t *message, psd_error_t *err)
{
    if (has_delivery(self, message->serial)) {
        return PSD_OK; /* it was sent again: the answer will come */
    }
    if (message->kind != PS_NODE_KNOWN &&
        !ps_id_equal(&message->at.lineage, &self->heard.at.lineage)) {
        return PSD_OK; /* the list of its tables comes first; this will come again */
    }
    switch ((int)message->kind) {
    case PS_NODE_KNOWN:
        return take_known(self, message, err);
    case PS_NODE_TABLE:
    case PS_NODE_PLACES:
        return take_table(self, message, err);
    case PS_NODE_DROP:
        return ps_agent_put_task(self, PS_TASK_DROP, message->table.id, message->serial, err);
    case PS_NODE_JOB:
    case PS_NODE_RANKS:
        return take_job(self, message, err);
    case PS_NODE_SESSIONS:
        self->heard.session = message->session;
        return keep_message(self, PS_TASK_SESSIONS, message, err);
    case PS_NODE_ASK:
        return keep_message(self, PS_TASK_ASK, message, err);
    case PS_NODE_FENCE:
        ps_agent_see_epoch(self, message->fence.epoch);
        return keep_message(self, PS_TASK_FENCE, message, err);
    case PS_NODE_INVITE:
        return keep_message(self, PS_TASK_INVITE, message, err);
    default:
        return psd_error_set(err, PSD_UNSUPPORTED, "it is a message of nodes");
    }
}

static ps_agent_task_t task_of(const ps_agent_t *self, const ps_delivery_t *delivery)
{
    const ps_node_message_t *message = delivery->message;
    ps_agent_task_t task = {.kind = delivery->kind, .id = delivery->id};

    if (delivery->kind == PS_TASK_TABLE) {
        task.table = find_table(self, delivery->id);
    } else if (message != NULL) {
        task.job = &message->job;
        task.id = message->job.id;
        task.question = message->question;
        task.words = (ps_bytes_t){.data = message->words.data, .size = message->words.size};
        task.session = message->session;
        task.fence = message->fence;
        task.message = message;
    }
    return task;
}

static void take_out(ps_agent_t *self, size_t i)
{
    ps_agent_destroy_message(&self->deliveries[i].message);
    self->n_deliveries--;
    memmove(&self->deliveries[i], &self->deliveries[i + 1],
            (self->n_deliveries - i) * sizeof *self->deliveries);
}

/* Tasks of one serial are adjacent and get one answer. */
static void finish_tell(ps_agent_t *self, const ps_delivery_t *delivery, psd_status_t status,
                        const char *text)
{
    bool is_told = delivery->kind == PS_TASK_DROP || delivery->kind == PS_TASK_TABLE;

    if (status == PSD_OK && delivery->kind == PS_TASK_DROP) {
        forget_table(self, delivery->id);
    }
    if (status == PSD_OK && is_told && ps_heard_take_back(&self->heard, delivery->id)) {
        self->is_heard_new = true;
        self->beat_ms = 0;
    }
    if (delivery->serial == 0) {
        return; /* no answer: its status is nobody's */
    }
    if (status != PSD_OK) {
        self->worst = status;
    }
    if (!has_delivery(self, delivery->serial)) {
        ps_agent_answer(self, delivery->serial, self->worst, status == PSD_OK ? "" : text, NULL);
        self->worst = PSD_OK;
    }
}

/* The i-th task is done. */
static void finish(ps_agent_t *self, size_t i, psd_status_t status, const char *text,
                   ps_answers_t *answers, uint64_t now_ms)
{
    const ps_delivery_t delivery = self->deliveries[i]; /* but its message */

    take_out(self, i);
    if (delivery.kind == PS_TASK_SIZES) {
        self->looks = false;
        ps_sizes_learn(&self->sizes, answers);
        self->beat_ms = self->is.heartbeat_ms == 0 ? 0 : self->beat_ms;
    } else if (delivery.kind == PS_TASK_ASK) {
        ps_answers_turn(answers, now_ms);
        ps_agent_answer(self, delivery.serial, status, text, answers);
    } else {
        finish_tell(self, &delivery, status, text);
    }
}

bool ps_agent_next_task(ps_agent_t *self, ps_agent_task_t *ret_task)
{
    size_t i = 0;

    while (i < self->n_deliveries) {
        const ps_delivery_t *delivery = &self->deliveries[i];
        ps_answers_t none = {0};

        if (delivery->begun) {
            i++;
        } else if (delivery->kind == PS_TASK_TABLE && find_table(self, delivery->id) == NULL) {
            finish(self, i, PSD_NO_TABLE, "it was dropped meanwhile", &none, 0);
        } else {
            *ret_task = task_of(self, delivery);
            return true;
        }
    }
    return false;
}

void ps_agent_finished(ps_agent_t *self, uint64_t local, psd_status_t status, const char *text,
                       ps_answers_t *answers, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_deliveries; i++) {
        if (self->deliveries[i].begun && self->deliveries[i].local == local) {
            finish(self, i, status, text, answers, now_ms);
            break;
        }
    }
    ps_answers_done(answers);
}

static const char *word_of(ps_agent_task_kind_t kind)
{
    static const char *const WORDS[] = {"?",   "table", "drop",   "job",   "sessions",
                                        "ask", "fence", "invite", "sizes", "aside"};

    return WORDS[kind];
}

void ps_agent_began(ps_agent_t *self, uint64_t local, psd_status_t status, const char *text)
{
    size_t i = 0;
    ps_delivery_t *delivery = NULL;
    ps_answers_t none = {0};

    while (self->deliveries[i].begun) {
        i++; /* ps_agent_next_task returned the first that is not */
    }
    delivery = &self->deliveries[i];
    if (status != PSD_OK && delivery->kind == PS_TASK_SIZES) {
        self->looks = false; /* retried later */
        take_out(self, i);
    } else if (status != PSD_OK) {
        ps_agent_note_not_obeyed(self, word_of(delivery->kind), delivery->serial, status, text);
        finish(self, i, status, text, &none, 0);
    } else if (delivery->kind == PS_TASK_FENCE || delivery->kind == PS_TASK_INVITE) {
        take_out(self, i);
    } else if (local == 0) {
        finish(self, i, PSD_OK, "", &none, 0);
    } else {
        ps_agent_destroy_message(&delivery->message);
        delivery->begun = true;
        delivery->local = local;
    }
}
