/* SPDX-License-Identifier: Apache-2.0 */
/* The node's side: announcements and beats, tells, answers, reports. */
#include "protocol/agent/agent.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/map.h"
#include "protocol/agent/sizes.h"
#include "wire/messages/doc.h"

#define TOLD_MS 20000       /* longer than the registry rests between two sendings of a tell */
#define ALONE_BEAT_MS 250   /* to a registry that does not answer */
#define GONE_AFTER_BEATS 10 /* of silence */
#define REFUSED_AGAIN_MS 3600000
#define NOTES_MAX 16 /* that nobody has read */

/* A task from the registry that the shards have not done yet. */
typedef struct delivery {
    ps_agent_task_kind_t kind;
    bool begun;                 /* the shards have it */
    uint32_t id;                /* TABLE, DROP */
    uint64_t serial;            /* the registry's; several tasks may share one; 0: no answer */
    uint64_t local;             /* the shards', once begun */
    ps_node_message_t *message; /* owned; NULL: of none, or begun */
} delivery_t;

struct ps_agent {
    ps_agent_args_t is;
    uint64_t last_serial;
    uint64_t announce_serial; /* of the last announcement */
    uint64_t max_epoch;       /* the greatest that the registry sent */
    uint64_t heard_ms;
    uint64_t moved_ms; /* to the registry that it speaks to */
    uint64_t beat_ms;  /* when the next beat is due */
    bool is_announced; /* the registry has answered that */
    bool is_heard;
    bool was_announced;   /* once, in this life */
    bool joined;          /* since ps_agent_take_joined */
    bool files_out;       /* no descriptor is left */
    uint64_t refused_ms;  /* when a refusal was last noted; 0: none since it was announced … */
    psd_status_t refused; /* … and what that was */
    uint64_t past_ms;     /* when a registry of the past was last noted; 0: not yet */
    char refusal[PS_DAMAGE_TEXT_SIZE];
    ps_table_t *tables; /* owned; that the shards know: as the registry sent them, or by id alone:
                           read from disk */
    size_t n_tables;
    size_t tables_capacity;
    ps_map_t places; /* owned; of tables by id: the place in the array (as a pointer), from 1 */
    delivery_t *deliveries; /* owned; in order */
    size_t n_deliveries;
    size_t deliveries_capacity;
    psd_status_t worst; /* of the tasks of one serial that are done */
    ps_sizes_t sizes;   /* of the partitions whose primaries are here */
    bool looks;         /* a SIZES is under way */
    uint64_t look_ms;   /* when the next is due */
    ps_report_t *reports;
    size_t n_reports;
    size_t reports_capacity;
    ps_buffer_t *messages; /* owned, each too; in order */
    size_t n_messages;
    size_t messages_capacity;
    ps_buffer_t sent; /* the message that ps_agent_next_message returned */
    ps_agent_note_t notes[NOTES_MAX];
    size_t n_notes;
    ps_heard_t heard;              /* owned */
    bool is_heard_new;             /* since ps_agent_take_heard */
    bool is_listed;                /* the registry's list came since the last tick */
    uint64_t listed_ms;            /* … and when it last came; 0: never */
    uint32_t told_job;             /* jobs up to this one are known here, or gone */
    ps_seat_t seats[PS_SEATS_MAX]; /* that have the registry */
    size_t n_seats;
    bool is_elsewhere;                /* who was asked does not lead … */
    char leader[PS_ENDPOINT_MAX + 1]; /* … but this one; "": unknown */
    psd_error_t *err;                 /* owned; of the message at hand */
};

psd_status_t ps_agent_new(const ps_agent_args_t *args, uint64_t now_ms, ps_agent_t **ret_agent,
                          psd_error_t *err)
{
    PSD_AUTO(ps_agent_destroy) ps_agent_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->err = psd_error_new();
    }
    if (self == NULL || self->err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to speak with the registry");
    }
    self->is = *args;
    self->is_heard = true;
    self->heard_ms = now_ms;
    self->look_ms = args->looks_at_sizes ? 0 : UINT64_MAX;
    if (args->heard != NULL && !ps_heard_copy(args->heard, &self->heard)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to speak with the registry");
    }
    *ret_agent = self;
    self = NULL;
    return PSD_OK;
}

static void destroy_message(ps_node_message_t **message_p)
{
    if (*message_p != NULL) {
        ps_node_message_done(*message_p);
        ps_free(*message_p);
        *message_p = NULL;
    }
}

void ps_agent_destroy(ps_agent_t **self_p)
{
    ps_agent_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_table_done(&self->tables[i]);
    }
    for (size_t i = 0; i < self->n_deliveries; i++) {
        destroy_message(&self->deliveries[i].message);
    }
    for (size_t i = 0; i < self->n_messages; i++) {
        ps_buffer_done(&self->messages[i]);
    }
    ps_map_done(&self->places);
    ps_sizes_done(&self->sizes);
    ps_heard_done(&self->heard);
    ps_buffer_done(&self->sent);
    ps_free(self->tables);
    ps_free(self->deliveries);
    ps_free(self->messages);
    ps_free(self->reports);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for what the registry says");
}

static void note(ps_agent_t *self, const ps_agent_note_t *note)
{
    if (self->n_notes < NOTES_MAX) {
        self->notes[self->n_notes++] = *note;
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
    return get_table(self, table) != NULL ? PSD_OK : no_memory(err);
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

/* ---- messages to the registry ---- */

static ps_node_message_t new_message(ps_agent_t *self, ps_node_message_kind_t kind, uint64_t serial)
{
    return (ps_node_message_t){.kind = kind,
                               .serial = serial != 0 ? serial : ++self->last_serial,
                               .cluster = self->is.cluster,
                               .incarnation = self->is.node.incarnation,
                               .at = self->heard.at};
}

static psd_status_t put_message(ps_agent_t *self, const ps_node_message_t *message)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

    if (!ps_node_message_encode(message, &bytes) ||
        !ps_grow(&self->messages, &self->messages_capacity, self->n_messages + 1,
                 sizeof *self->messages)) {
        return PSD_NOMEM;
    }
    if (bytes.size > PS_DOC_BYTES_MAX) {
        return PSD_LIMIT;
    }
    self->messages[self->n_messages++] = bytes; /* ownership moves */
    bytes = (ps_buffer_t){0};
    return PSD_OK;
}

/* When the answer is lost, the registry asks again. */
static void answer(ps_agent_t *self, uint64_t serial, psd_status_t status, const char *text,
                   const ps_answers_t *answers)
{
    ps_node_message_t message = new_message(self, PS_NODE_ANSWER, serial);
    psd_status_t rc = PSD_OK;

    if (serial == 0) {
        return; /* to an earlier registry */
    }
    message.status = status;
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    if (status == PSD_OK && answers != NULL) {
        message.answers = *answers; /* borrowed */
    }
    rc = put_message(self, &message);
    if (rc != PSD_OK && status == PSD_OK && answers != NULL) {
        answer(self, serial, rc,
               rc == PSD_LIMIT ? "the answer is longer than a message may be" : "", NULL);
    }
}

static void note_not_obeyed(ps_agent_t *self, const char *what, uint64_t serial,
                            psd_status_t status, const char *text)
{
    ps_agent_note_t said = {
        .kind = PS_AGENT_NOT_OBEYED, .what = what, .serial = serial, .status = status};

    (void)snprintf(said.text, sizeof said.text, "%s", text);
    note(self, &said);
}

/* The registry sends everything again, under new numbers, and a registry that
 * was restarted counts from 1: no answer to an earlier tell may be taken for one
 * to a later. */
static void owe_no_answers(ps_agent_t *self)
{
    self->worst = PSD_OK;
    for (size_t i = 0; i < self->n_deliveries; i++) {
        self->deliveries[i].serial = 0;
    }
}

static psd_status_t announce(ps_agent_t *self)
{
    ps_node_message_t message = new_message(self, PS_NODE_ANNOUNCE, 0);
    psd_status_t rc = PSD_OK;

    owe_no_answers(self);
    message.node = self->is.node; /* borrowed, and what it lost */
    message.lost = (ps_lost_t *)(uintptr_t)self->is.node.lost;
    message.n_lost = self->is.node.n_lost;
    message.epoch = self->max_epoch;
    (void)snprintf(message.text, sizeof message.text, "%s", self->is.damage);
    rc = put_message(self, &message);
    if (rc == PSD_OK) {
        self->announce_serial = message.serial;
    }
    return rc;
}

static psd_status_t send_sizes(ps_agent_t *self, uint64_t now_ms)
{
    ps_node_message_t message = new_message(self, PS_NODE_BEAT, 0);
    ps_size_info_t due[PS_SIZES_MAX];

    message.epoch = self->max_epoch;
    message.files_out = self->files_out;
    message.n_aside = (uint32_t)self->heard.n_aside;
    message.sizes = due;
    message.n_sizes = ps_sizes_take_due(&self->sizes, now_ms, due);
    return put_message(self, &message);
}

static uint64_t next_beat(const ps_agent_t *self, uint64_t now_ms)
{
    if (self->is_heard && self->is.heartbeat_ms != 0) {
        return now_ms + self->is.heartbeat_ms;
    }
    return self->is_heard && self->is_announced ? UINT64_MAX : now_ms + ALONE_BEAT_MS;
}

/* A beat, or the announcement until it is answered. */
static void beat(ps_agent_t *self, uint64_t now_ms)
{
    if ((self->is_announced ? send_sizes(self, now_ms) : announce(self)) != PSD_OK) {
        ps_agent_unsent(self);
    }
    self->beat_ms = next_beat(self, now_ms);
}

void ps_agent_unsent(ps_agent_t *self)
{
    ps_sizes_forget(&self->sizes);
}

void ps_agent_move(ps_agent_t *self, uint64_t heartbeat_ms, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n_messages; i++) {
        ps_buffer_done(&self->messages[i]);
    }
    self->n_messages = 0;
    self->n_reports = 0; /* the shards repeat them */
    owe_no_answers(self);
    self->is.heartbeat_ms = heartbeat_ms;
    self->is_announced = false;
    self->is_heard = self->is_heard || heartbeat_ms == 0;
    self->is_elsewhere = false;
    self->moved_ms = now_ms;
    self->beat_ms = now_ms;
    ps_sizes_forget(&self->sizes);
}

void ps_agent_report(ps_agent_t *self, const ps_report_t *report)
{
    if (self->n_reports < PS_REPORTS_MAX && ps_grow(&self->reports, &self->reports_capacity,
                                                    self->n_reports + 1, sizeof *self->reports)) {
        self->reports[self->n_reports++] = *report;
    }
}

static void send_reports(ps_agent_t *self)
{
    ps_node_message_t message = new_message(self, PS_NODE_REPORT, 0);

    message.reports = self->reports;
    message.n_reports = self->n_reports;
    self->n_reports = 0;
    if (self->is_announced) {
        (void)put_message(self, &message); /* else shards repeat them */
    }
}

bool ps_agent_next_message(ps_agent_t *self, ps_bytes_t *ret_bytes)
{
    if (self->n_reports > 0) {
        send_reports(self);
    }
    ps_buffer_done(&self->sent);
    if (self->n_messages == 0) {
        return false;
    }
    self->sent = self->messages[0];
    self->n_messages--;
    memmove(&self->messages[0], &self->messages[1], self->n_messages * sizeof *self->messages);
    *ret_bytes = (ps_bytes_t){.data = self->sent.data, .size = self->sent.size};
    return true;
}

void ps_agent_end(ps_agent_t *self)
{
    const ps_node_message_t message = new_message(self, PS_NODE_END, 0);

    if (self->is_announced) {
        (void)put_message(self, &message); /* else the registry waits for beats */
    }
    self->is_announced = false;
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
               : no_memory(err);
}

static psd_status_t put_delivery(ps_agent_t *self, const delivery_t *delivery, psd_error_t *err)
{
    psd_status_t rc = reserve(self, 1, err);

    if (rc == PSD_OK) {
        self->deliveries[self->n_deliveries++] = *delivery;
    }
    return rc;
}

static psd_status_t put_task(ps_agent_t *self, ps_agent_task_kind_t kind, uint32_t id,
                             uint64_t serial, psd_error_t *err)
{
    const delivery_t delivery = {.kind = kind, .id = id, .serial = serial};

    return put_delivery(self, &delivery, err);
}

static void see_epoch(ps_agent_t *self, uint64_t epoch)
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
        return no_memory(err);
    }
    table = get_table(self, fresh.id);
    if (table == NULL) {
        return no_memory(err);
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
        see_epoch(self, message->places[i].copies.epoch);
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
    return rc == PSD_OK ? put_task(self, PS_TASK_TABLE, marks.id, message->serial, err) : rc;
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
        return no_memory(err);
    }
    if (!is_aside) {
        note(self, &(ps_agent_note_t){.kind = PS_AGENT_ASIDE, .serial = table});
    }
    return put_task(self, PS_TASK_ASIDE, table, serial, err);
}

/* From here on the node follows that registry. */
static void follow(ps_agent_t *self, const ps_node_message_t *known)
{
    const ps_heard_t before = self->heard;

    ps_heard_follow(&self->heard, &known->at);
    self->heard.last_table = known->last_table;
    self->heard.last_job = known->last_job;
    self->is_listed = true;
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
                 ? put_task(self, PS_TASK_DROP, id, message->serial, err)
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
        answer(self, message->serial, PSD_OK, "", NULL);
    }
    return PSD_OK;
}

/* A task that needs the message, which it takes. */
static psd_status_t keep_message(ps_agent_t *self, ps_agent_task_kind_t kind,
                                 ps_node_message_t *message, psd_error_t *err)
{
    delivery_t delivery = {
        .kind = kind, .serial = message->serial, .message = ps_alloc(1, sizeof *message)};
    psd_status_t rc = PSD_OK;

    if (delivery.message == NULL) {
        return no_memory(err);
    }
    *delivery.message = *message;
    *message = (ps_node_message_t){.kind = message->kind, .serial = message->serial};
    rc = put_delivery(self, &delivery, err);
    if (rc != PSD_OK) {
        destroy_message(&delivery.message);
    }
    return rc;
}

static psd_status_t obey(ps_agent_t *self, ps_node_message_t *message, psd_error_t *err)
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
        return put_task(self, PS_TASK_DROP, message->table.id, message->serial, err);
    case PS_NODE_JOB:
        return keep_message(self, PS_TASK_JOB, message, err);
    case PS_NODE_SESSIONS:
        self->heard.session = message->session;
        return keep_message(self, PS_TASK_SESSIONS, message, err);
    case PS_NODE_ASK:
        return keep_message(self, PS_TASK_ASK, message, err);
    case PS_NODE_FENCE:
        see_epoch(self, message->fence.epoch);
        return keep_message(self, PS_TASK_FENCE, message, err);
    case PS_NODE_INVITE:
        return keep_message(self, PS_TASK_INVITE, message, err);
    default:
        return psd_error_set(err, PSD_UNSUPPORTED, "it is a message of nodes");
    }
}

static ps_agent_task_t task_of(const ps_agent_t *self, const delivery_t *delivery)
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
    destroy_message(&self->deliveries[i].message);
    self->n_deliveries--;
    memmove(&self->deliveries[i], &self->deliveries[i + 1],
            (self->n_deliveries - i) * sizeof *self->deliveries);
}

/* Tasks of one serial are adjacent and get one answer. */
static void finish_tell(ps_agent_t *self, const delivery_t *delivery, psd_status_t status,
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
        answer(self, delivery->serial, self->worst, status == PSD_OK ? "" : text, NULL);
        self->worst = PSD_OK;
    }
}

/* The i-th task is done. */
static void finish(ps_agent_t *self, size_t i, psd_status_t status, const char *text,
                   ps_answers_t *answers, uint64_t now_ms)
{
    const delivery_t delivery = self->deliveries[i]; /* but its message */

    take_out(self, i);
    if (delivery.kind == PS_TASK_SIZES) {
        self->looks = false;
        ps_sizes_learn(&self->sizes, answers);
        self->beat_ms = self->is.heartbeat_ms == 0 ? 0 : self->beat_ms;
    } else if (delivery.kind == PS_TASK_ASK) {
        ps_answers_turn(answers, now_ms);
        answer(self, delivery.serial, status, text, answers);
    } else {
        finish_tell(self, &delivery, status, text);
    }
}

bool ps_agent_next_task(ps_agent_t *self, ps_agent_task_t *ret_task)
{
    size_t i = 0;

    while (i < self->n_deliveries) {
        const delivery_t *delivery = &self->deliveries[i];
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
    delivery_t *delivery = NULL;
    ps_answers_t none = {0};

    while (self->deliveries[i].begun) {
        i++; /* ps_agent_next_task returned the first that is not */
    }
    delivery = &self->deliveries[i];
    if (status != PSD_OK && delivery->kind == PS_TASK_SIZES) {
        self->looks = false; /* retried later */
        take_out(self, i);
    } else if (status != PSD_OK) {
        note_not_obeyed(self, word_of(delivery->kind), delivery->serial, status, text);
        finish(self, i, status, text, &none, 0);
    } else if (delivery->kind == PS_TASK_FENCE || delivery->kind == PS_TASK_INVITE) {
        take_out(self, i);
    } else if (local == 0) {
        finish(self, i, PSD_OK, "", &none, 0);
    } else {
        destroy_message(&delivery->message);
        delivery->begun = true;
        delivery->local = local;
    }
}

/* ---- what the registry says ---- */

static void hear(ps_agent_t *self, uint64_t now_ms)
{
    self->heard_ms = now_ms;
    if (!self->is_heard) {
        self->is_heard = true;
        self->beat_ms = now_ms;
        note(self, &(ps_agent_note_t){.kind = PS_AGENT_BACK});
    }
}

/* The registry does not know this incarnation (any more), or not on this
 * connection. Refusals of messages sent before the last announcement do not
 * count. */
static void announce_again(ps_agent_t *self, uint64_t serial)
{
    if (self->is_announced && serial > self->announce_serial) {
        self->is_announced = false;
        ps_sizes_forget(&self->sizes);
        self->beat_ms = 0;
    }
}

/* The registry refuses each beat while the reason lasts, for example because
 * another cluster's registry now has that address. */
static void take_refusal(ps_agent_t *self, const char *what, uint64_t serial, psd_status_t status,
                         const char *text, uint64_t now_ms)
{
    ps_agent_note_t said = {
        .kind = PS_AGENT_REFUSED, .what = what, .serial = serial, .status = status};

    if (self->refused_ms != 0 && self->refused == status &&
        now_ms < self->refused_ms + REFUSED_AGAIN_MS) {
        return;
    }
    self->refused_ms = now_ms;
    self->refused = status;
    (void)snprintf(said.text, sizeof said.text, "%s", text);
    note(self, &said);
}

static void take_seats(ps_agent_t *self, const ps_node_message_t *message)
{
    self->leader[0] = '\0';
    self->is_elsewhere = message->status == PSD_NOT_LEADER;
    self->n_seats = message->n_seats; /* checked: PS_SEATS_MAX at most */
    for (size_t i = 0; i < message->n_seats; i++) {
        self->seats[i] = message->seats[i];
        if (self->is_elsewhere && strcmp(message->seats[i].node, message->node.name) == 0) {
            memcpy(self->leader, message->seats[i].endpoint, sizeof self->leader);
        }
    }
}

static void take_heard(ps_agent_t *self, const ps_node_message_t *message, uint64_t now_ms)
{
    bool is_announcement = message->serial == self->announce_serial;

    if (message->n_seats > 0) {
        take_seats(self, message);
    }
    if (message->status == PSD_NOT_LEADER) {
        self->is_announced = false;
    } else if (message->status == PSD_NO_NODE) {
        announce_again(self, message->serial);
    } else if (message->status == PSD_DAMAGED && is_announcement) {
        memcpy(self->refusal, message->text, sizeof self->refusal);
    } else if (message->status != PSD_OK) {
        take_refusal(self, is_announcement ? "announcement" : "message", message->serial,
                     message->status, message->text, now_ms);
    } else if (is_announcement && !self->is_announced) {
        self->is_announced = true;
        self->was_announced = true;
        self->refused_ms = 0;
        self->joined = true;
    }
}

bool ps_agent_sign(const ps_agent_t *self, ps_buffer_t *buffer)
{
    const ps_node_message_t sign = {.kind = PS_NODE_BEAT,
                                    .cluster = self->is.cluster,
                                    .incarnation = self->is.node.incarnation,
                                    .at = self->heard.at,
                                    .epoch = self->max_epoch,
                                    .files_out = self->files_out};

    return self->was_announced && ps_node_message_encode(&sign, buffer);
}

void ps_agent_take_of_member(ps_agent_t *self, ps_bytes_t bytes)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};

    if (ps_node_message_decode(bytes, &message, NULL) != PSD_OK || message.kind != PS_NODE_HEARD ||
        !ps_id_equal(&message.cluster, &self->is.cluster) || message.status == PSD_NOT_LEADER ||
        !ps_id_equal(&message.at.lineage, &self->heard.at.lineage) ||
        message.at.term <= self->heard.at.term || message.n_seats == 0) {
        return;
    }
    message.status = PSD_NOT_LEADER; /* who was asked before does not lead */
    take_seats(self, &message);
    self->is_elsewhere = self->leader[0] != '\0';
}

bool ps_agent_take_joined(ps_agent_t *self)
{
    bool joined = self->joined;

    self->joined = false;
    return joined;
}

bool ps_agent_take_heard(ps_agent_t *self, const ps_heard_t **ret_heard)
{
    bool is_new = self->is_heard_new;

    self->is_heard_new = false;
    *ret_heard = &self->heard;
    return is_new;
}

/* Whether the registry's message counts: not one of a leader of before, or of a
 * history that this node has left. */
static bool counts(ps_agent_t *self, const ps_node_message_t *message, uint64_t now_ms)
{
    ps_heard_word_t word = ps_heard_judge(&self->heard, &message->at);

    if (!ps_id_equal(&message->cluster, &self->is.cluster)) {
        return true; /* it is refused, or says that this node is */
    }
    if (word == PS_HEARD_NEWEST) {
        self->is_heard_new = self->is_heard_new || self->heard.at.term != message->at.term;
        ps_heard_follow(&self->heard, &message->at);
    } else if ((word == PS_HEARD_PAST || self->heard.at.term == message->at.term) &&
               word != PS_HEARD_OTHER &&
               (self->past_ms == 0 || now_ms >= self->past_ms + REFUSED_AGAIN_MS)) {
        self->past_ms = now_ms;
        note(self, &(ps_agent_note_t){.kind = PS_AGENT_PAST});
    }
    return word == PS_HEARD_NEWEST || word == PS_HEARD_OTHER;
}

void ps_agent_take(ps_agent_t *self, ps_bytes_t bytes, uint64_t now_ms)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t message = {0};
    psd_status_t rc = ps_node_message_decode(bytes, &message, self->err);

    if (rc == PSD_OK && !counts(self, &message, now_ms)) {
        return;
    }
    hear(self, now_ms);
    if (rc != PSD_OK) {
        take_refusal(self, "message of the registry", 0, rc, psd_error_text(self->err), now_ms);
    } else if (message.kind == PS_NODE_HEARD) {
        take_heard(self, &message, now_ms);
    } else if (message.incarnation == self->is.node.incarnation &&
               ps_id_equal(&message.cluster, &self->is.cluster)) {
        const char *what = ps_node_message_name(message.kind);
        uint64_t serial = message.serial;

        rc = obey(self, &message, self->err);
        if (rc != PSD_OK) {
            note_not_obeyed(self, what, serial, rc, psd_error_text(self->err));
            answer(self, serial, rc, psd_error_text(self->err), NULL);
        }
    }
    psd_error_clear(self->err);
}

/* ---- time ---- */

/* The registry resends what is missing for at most TOLD_MS after its list; by then it is here. */
static void see_jobs(ps_agent_t *self, uint64_t now_ms)
{
    if (self->is_listed) {
        self->is_listed = false;
        self->listed_ms = now_ms;
    } else if (self->listed_ms != 0 && now_ms >= self->listed_ms + TOLD_MS) {
        self->listed_ms = 0;
        self->told_job = self->heard.last_job;
    }
}

uint32_t ps_agent_told_job(const ps_agent_t *self)
{
    return self->told_job;
}

void ps_agent_tick(ps_agent_t *self, uint64_t now_ms)
{
    see_jobs(self, now_ms);
    if (self->is_heard && self->is.heartbeat_ms != 0 &&
        now_ms > self->heard_ms + GONE_AFTER_BEATS * self->is.heartbeat_ms) {
        self->is_heard = false;
        note(self, &(ps_agent_note_t){.kind = PS_AGENT_GONE, .silent_ms = now_ms - self->heard_ms});
    }
    if (!self->looks && now_ms >= self->look_ms) {
        self->look_ms = now_ms + PS_SIZES_EVERY_MS;
        self->looks = put_task(self, PS_TASK_SIZES, 0, 0, NULL) == PSD_OK;
    }
    if (now_ms >= self->beat_ms) {
        beat(self, now_ms);
    }
}

uint64_t ps_agent_deadline(const ps_agent_t *self)
{
    return self->beat_ms;
}

void ps_agent_set_files_out(ps_agent_t *self, bool is_out)
{
    if (self->files_out != is_out && self->is.heartbeat_ms == 0) {
        self->beat_ms = 0;
    }
    self->files_out = is_out;
}

/* ---- queries ---- */

bool ps_agent_next_note(ps_agent_t *self, ps_agent_note_t *ret_note)
{
    if (self->n_notes == 0) {
        return false;
    }
    *ret_note = self->notes[0];
    self->n_notes--;
    memmove(&self->notes[0], &self->notes[1], self->n_notes * sizeof *self->notes);
    return true;
}

size_t ps_agent_seats(const ps_agent_t *self, const ps_seat_t **ret_seats)
{
    *ret_seats = self->seats;
    return self->n_seats;
}

const char *ps_agent_elsewhere(const ps_agent_t *self)
{
    return self->is_elsewhere ? self->leader : NULL;
}

uint64_t ps_agent_silent_ms(const ps_agent_t *self, uint64_t now_ms)
{
    uint64_t from_ms = self->heard_ms > self->moved_ms ? self->heard_ms : self->moved_ms;

    return now_ms < from_ms ? 0 : now_ms - from_ms;
}

bool ps_agent_is_announced(const ps_agent_t *self)
{
    return self->is_announced;
}

const ps_id_t *ps_agent_lineage(const ps_agent_t *self)
{
    return &self->heard.at.lineage;
}

bool ps_agent_is_heard(const ps_agent_t *self)
{
    return self->is_heard;
}

const char *ps_agent_refusal(const ps_agent_t *self)
{
    return self->refusal;
}
