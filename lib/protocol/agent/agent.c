/* SPDX-License-Identifier: Apache-2.0 */
/* The node's side: announcements and beats, tells, answers, reports. */
#include "protocol/agent/agent.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/agent/agent_state.h"
#include "wire/messages/doc.h"

#define TOLD_MS 20000       /* longer than the registry rests between two sendings of a tell */
#define ALONE_BEAT_MS 250   /* to a registry that does not answer */
#define GONE_AFTER_BEATS 10 /* of silence */
#define REFUSED_AGAIN_MS 3600000

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
        ps_agent_destroy_message(&self->deliveries[i].message);
    }
    for (size_t i = 0; i < self->n_messages; i++) {
        ps_buffer_done(&self->messages[i]);
    }
    ps_map_done(&self->places);
    ps_agent_forget_jobs(self);
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

psd_status_t ps_agent_no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for what the registry says");
}

void ps_agent_note(ps_agent_t *self, const ps_agent_note_t *note)
{
    if (self->n_notes < NOTES_MAX) {
        self->notes[self->n_notes++] = *note;
    }
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
void ps_agent_answer(ps_agent_t *self, uint64_t serial, psd_status_t status, const char *text,
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
        ps_agent_answer(self, serial, rc,
                        rc == PSD_LIMIT ? "the answer is longer than a message may be" : "", NULL);
    }
}

void ps_agent_note_not_obeyed(ps_agent_t *self, const char *what, uint64_t serial,
                              psd_status_t status, const char *text)
{
    ps_agent_note_t said = {
        .kind = PS_AGENT_NOT_OBEYED, .what = what, .serial = serial, .status = status};

    (void)snprintf(said.text, sizeof said.text, "%s", text);
    ps_agent_note(self, &said);
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

/* ---- what the registry says ---- */

static void hear(ps_agent_t *self, uint64_t now_ms)
{
    self->heard_ms = now_ms;
    if (!self->is_heard) {
        self->is_heard = true;
        self->beat_ms = now_ms;
        ps_agent_note(self, &(ps_agent_note_t){.kind = PS_AGENT_BACK});
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
    ps_agent_note(self, &said);
}

static bool is_own(const ps_agent_t *self, const ps_seat_t *seat)
{
    return strcmp(seat->node, self->is.node.name) == 0;
}

/* A message without seats is of a node that knows no member: those known so far stay. */
static void take_seats(ps_agent_t *self, const ps_node_message_t *message)
{
    self->is_elsewhere = message->status == PSD_NOT_LEADER;
    self->leader[0] = '\0';
    if (message->n_seats > 0) {
        self->n_seats = message->n_seats; /* checked: PS_SEATS_MAX at most */
    }
    for (size_t i = 0; i < message->n_seats; i++) {
        const ps_seat_t *seat = &message->seats[i];

        self->seats[i] = *seat;
        if (self->is_elsewhere && !is_own(self, seat) &&
            strcmp(seat->node, message->node.name) == 0) {
            memcpy(self->leader, seat->endpoint, sizeof self->leader);
        }
    }
}

static void take_heard(ps_agent_t *self, const ps_node_message_t *message, uint64_t now_ms)
{
    bool is_announcement = message->serial == self->announce_serial;

    if (message->n_seats > 0 || message->status == PSD_NOT_LEADER) {
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

/* Whether the registry's message counts: not one of a leader of before (also of a history that
 * this node does not follow yet), or of a history that it has left. */
static bool counts(ps_agent_t *self, const ps_node_message_t *message, uint64_t now_ms)
{
    ps_heard_word_t word = ps_heard_judge(&self->heard, &message->at);

    if (!ps_id_equal(&message->cluster, &self->is.cluster)) {
        return true; /* it is refused, or says that this node is */
    }
    if (word == PS_HEARD_NEWEST) {
        self->is_heard_new = self->is_heard_new || self->heard.at.term != message->at.term;
        ps_heard_follow(&self->heard, &message->at);
    } else if (word == PS_HEARD_OTHER) {
        if (ps_id_equal(&self->other.lineage, &message->at.lineage) &&
            ps_moment_is_before(&message->at, &self->other)) {
            return false;
        }
        self->other = message->at;
    } else if ((word == PS_HEARD_PAST || self->heard.at.term == message->at.term) &&
               (self->past_ms == 0 || now_ms >= self->past_ms + REFUSED_AGAIN_MS)) {
        self->past_ms = now_ms;
        ps_agent_note(self, &(ps_agent_note_t){.kind = PS_AGENT_PAST});
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
    if (rc == PSD_OK && message.status != PSD_NOT_LEADER) {
        self->led_ms = now_ms;
    }
    if (rc != PSD_OK) {
        take_refusal(self, "message of the registry", 0, rc, psd_error_text(self->err), now_ms);
    } else if (message.kind == PS_NODE_HEARD) {
        take_heard(self, &message, now_ms);
    } else if (message.incarnation == self->is.node.incarnation &&
               ps_id_equal(&message.cluster, &self->is.cluster)) {
        const char *what = ps_node_message_name(message.kind);
        uint64_t serial = message.serial;

        rc = ps_agent_obey(self, &message, self->err);
        if (rc != PSD_OK) {
            ps_agent_note_not_obeyed(self, what, serial, rc, psd_error_text(self->err));
            ps_agent_answer(self, serial, rc, psd_error_text(self->err), NULL);
        }
    }
    psd_error_clear(self->err);
}

/* ---- time ---- */

/* The registry resends what is missing for at most TOLD_MS after its list; by then it is here. */
static void see_told(ps_agent_t *self, uint64_t now_ms)
{
    if (self->is_listed) {
        self->is_listed = false;
        self->listed_ms = now_ms;
    } else if (self->listed_ms != 0 && now_ms >= self->listed_ms + TOLD_MS) {
        self->listed_ms = 0;
        self->told_job = self->heard.last_job;
        self->told_table = self->heard.last_table;
    }
}

uint32_t ps_agent_told_job(const ps_agent_t *self)
{
    return self->told_job;
}

uint32_t ps_agent_told_table(const ps_agent_t *self)
{
    return self->told_table;
}

void ps_agent_tick(ps_agent_t *self, uint64_t now_ms)
{
    see_told(self, now_ms);
    if (self->is_heard && self->is.heartbeat_ms != 0 &&
        now_ms > self->heard_ms + GONE_AFTER_BEATS * self->is.heartbeat_ms) {
        self->is_heard = false;
        ps_agent_note(
            self, &(ps_agent_note_t){.kind = PS_AGENT_GONE, .silent_ms = now_ms - self->heard_ms});
    }
    if (!self->looks && now_ms >= self->look_ms) {
        self->look_ms = now_ms + PS_SIZES_EVERY_MS;
        self->looks = ps_agent_put_task(self, PS_TASK_SIZES, 0, 0, NULL) == PSD_OK;
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

bool ps_agent_has_map(const ps_agent_t *self)
{
    return self->has_map;
}

static bool is_shown(const ps_agent_t *self, const ps_table_t *table)
{
    return table->routes != NULL && !table->restoring &&
           !ps_heard_is_aside(&self->heard, table->id);
}

const ps_table_t *ps_agent_table(const ps_agent_t *self, uint32_t id)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        if (self->tables[i].id == id && is_shown(self, &self->tables[i])) {
            return &self->tables[i];
        }
    }
    return NULL;
}

const ps_table_t *ps_agent_table_named(const ps_agent_t *self, const char *name)
{
    for (size_t i = 0; i < self->n_tables; i++) {
        const ps_table_t *table = &self->tables[i];

        if (is_shown(self, table) && strcmp(table->spec.name, name) == 0) {
            return table;
        }
    }
    return NULL;
}

size_t ps_agent_seats(const ps_agent_t *self, const ps_seat_t **ret_seats)
{
    *ret_seats = self->seats;
    return self->n_seats;
}

const ps_seat_t *ps_agent_next_seat(ps_agent_t *self)
{
    for (size_t i = 0; i < self->n_seats; i++) {
        self->seat = (self->seat + 1) % self->n_seats;
        if (!is_own(self, &self->seats[self->seat])) {
            return &self->seats[self->seat];
        }
    }
    return NULL;
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

uint64_t ps_agent_unled_ms(const ps_agent_t *self, uint64_t now_ms)
{
    return now_ms < self->led_ms ? 0 : now_ms - self->led_ms;
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
