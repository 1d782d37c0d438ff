/* SPDX-License-Identifier: Apache-2.0 */
/* The messages to the other nodes, and what they say. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overseer/overseer_state.h"
#include "protocol/placement/registry_decide.h"

/* ---- to a node ---- */

static ps_sent_t encode(const ps_node_message_t *message, ps_buffer_t *buffer)
{
    return ps_node_message_encode(message, buffer) ? PS_SENT : PS_SENT_NOT;
}

static ps_sent_t encode_known(const ps_registry_t *registry, ps_node_message_t *message,
                              ps_buffer_t *buffer)
{
    size_t n = ps_registry_n_tables(registry);
    ps_sent_t sent = PS_SENT_NOT;

    message->last_table = ps_registry_last_table(registry);
    message->last_job = ps_registry_last_job(registry);
    message->tables = ps_alloc(n, sizeof *message->tables);
    if (message->tables != NULL) {
        for (size_t i = 0; i < n; i++) {
            message->tables[message->n_tables++] = ps_registry_table_at(registry, i)->id;
        }
        sent = encode(message, buffer);
    }
    ps_free(message->tables);
    return sent;
}

/* What changed since the node acknowledged it; all of it, when it lacks it. */
static ps_sent_t encode_table(const ps_registry_t *registry, const ps_sending_round_t *round,
                              ps_node_message_t *message, ps_buffer_t *buffer)
{
    const ps_table_t *table = ps_registry_table_by_id(registry, round->id);
    ps_sent_t sent = PS_SENT_NOT;

    if (table == NULL || table->revision <= round->since) {
        return PS_SENT_GONE;
    }
    message->kind = round->since == 0 ? PS_NODE_TABLE : PS_NODE_PLACES;
    message->table = *table; /* borrowed */
    if (ps_places_gather(table, round->since, message)) {
        sent = encode(message, buffer);
    }
    ps_free(message->places);
    return sent;
}

/* What changed since the node acknowledged it; all of it, when it lacks it. */
static ps_sent_t encode_job(const ps_registry_t *registry, const ps_sending_round_t *round,
                            ps_node_message_t *message, ps_buffer_t *buffer)
{
    const ps_job_t *job = ps_registry_job_by_id(registry, round->id);
    ps_sent_t sent = PS_SENT_NOT;

    if (job == NULL || job->version <= round->since) {
        return PS_SENT_GONE;
    }
    if (!ps_registry_job_changes(registry, round->id, round->since, &message->job)) {
        return PS_SENT_NOT;
    }
    message->kind = round->since == 0 ? PS_NODE_JOB : PS_NODE_RANKS;
    message->since = round->since;
    sent = encode(message, buffer);
    ps_job_done(&message->job);
    return sent;
}

static ps_sent_t encode_question(const ps_overseer_t *self, uint64_t serial,
                                 ps_node_message_t *message, ps_buffer_t *buffer)
{
    const ps_question_t *question = ps_overseer_question(self, serial);

    if (question == NULL) {
        return PS_SENT_GONE;
    }
    message->question = (uint32_t)question->kind;
    message->job.id = question->job;
    message->words = question->words; /* borrowed */
    return encode(message, buffer);
}

static ps_node_message_t new_message(const ps_overseer_t *self, ps_node_message_kind_t kind,
                                     uint64_t serial, uint64_t incarnation)
{
    ps_node_message_t message = {.kind = kind, .serial = serial, .incarnation = incarnation};

    message.at = (ps_moment_t){.lineage = *ps_registry_lineage(self->is.registry),
                               .term = self->is.term,
                               .index = self->index};
    (void)ps_registry_cluster(self->is.registry, &message.cluster);
    return message;
}

ps_sent_t ps_overseer_encode(const ps_overseer_t *self, const ps_sending_round_t *round,
                             ps_buffer_t *buffer)
{
    static const ps_node_message_kind_t KINDS[] = {
#define TELL_KIND(NAME) PS_NODE_##NAME,
        PS_TELL_MAP(TELL_KIND)
#undef TELL_KIND
    };
    const ps_registry_t *registry = self->is.registry;
    ps_node_message_t message =
        new_message(self, KINDS[round->kind], round->serial, round->incarnation);

    switch (round->kind) {
    case PS_TELL_KNOWN:
        return encode_known(registry, &message, buffer);
    case PS_TELL_TABLE:
        return encode_table(registry, round, &message, buffer);
    case PS_TELL_JOB:
        return encode_job(registry, round, &message, buffer);
    case PS_TELL_ASK:
        return encode_question(self, round->question, &message, buffer);
    case PS_TELL_SESSIONS:
        message.session = self->sessions;
        message.settings =
            (ps_setting_t *)(uintptr_t)ps_registry_settings(registry, &message.n_settings);
        return encode(&message, buffer);
    case PS_TELL_DROP:
    case PS_TELL_COUNT:
    default:
        message.table.id = round->id;
        return encode(&message, buffer);
    }
}

bool ps_overseer_encode_fence(ps_overseer_t *self, uint64_t incarnation,
                              const ps_copy_fence_t *fence, ps_buffer_t *buffer)
{
    ps_node_message_t message = new_message(self, PS_NODE_FENCE, ++self->last_serial, incarnation);

    message.fence = *fence;
    return ps_node_message_encode(&message, buffer);
}

bool ps_overseer_encode_invite(ps_overseer_t *self, uint64_t incarnation,
                               const ps_node_message_t *invite, ps_buffer_t *buffer)
{
    const ps_node_message_t head =
        new_message(self, PS_NODE_INVITE, ++self->last_serial, incarnation);
    ps_node_message_t message = *invite;

    message.kind = head.kind;
    message.serial = head.serial;
    message.cluster = head.cluster;
    message.incarnation = head.incarnation;
    message.at = head.at;
    return ps_node_message_encode(&message, buffer);
}

void ps_overseer_set_seats(ps_overseer_t *self, const ps_seat_t *seats, size_t n,
                           const char *leader)
{
    self->n_seats = n < PS_SEATS_MAX ? n : PS_SEATS_MAX;
    memcpy(self->seats, seats, self->n_seats * sizeof *seats);
    (void)snprintf(self->leader, sizeof self->leader, "%s", leader);
}

bool ps_overseer_encode_heard(const ps_overseer_t *self, const ps_node_message_t *heard,
                              psd_status_t status, const char *text, ps_buffer_t *buffer)
{
    uint64_t serial = heard->kind == PS_NODE_ANSWER ? 0 : heard->serial; /* that is one of ours */
    ps_node_message_t message = new_message(self, PS_NODE_HEARD, serial, heard->incarnation);

    message.status = status;
    message.epoch = ps_registry_epoch(self->is.registry);
    message.seats = (ps_seat_t *)(uintptr_t)self->seats; /* borrowed */
    message.n_seats = self->n_seats;
    memcpy(message.node.name, self->leader, sizeof message.node.name);
    (void)snprintf(message.text, sizeof message.text, "%s", text);
    return ps_node_message_encode(&message, buffer);
}

/* ---- of a node ---- */

static psd_status_t take_beat(ps_overseer_t *self, const ps_node_message_t *message,
                              uint64_t now_ms, psd_error_t *err)
{
    psd_status_t rc = ps_overseer_beat(self, message->incarnation, message->epoch, now_ms, err);

    if (rc == PSD_OK) {
        ps_overseer_set_files_out(self, message->incarnation, message->files_out);
        ps_overseer_set_aside(self, message->incarnation, message->n_aside);
    }
    for (size_t i = 0; rc == PSD_OK && i < message->n_sizes; i++) {
        const ps_size_info_t *size = &message->sizes[i];

        /* false: its primary is elsewhere by now. */
        (void)ps_registry_set_bytes(self->is.registry, message->incarnation, size->table,
                                    size->partition, size->bytes);
    }
    return rc;
}

static void take_answer(ps_overseer_t *self, ps_node_message_t *message, uint64_t now_ms,
                        ps_tell_view_t *ret_refused)
{
    ps_tell_view_t tell;

    if (!ps_overseer_find_tell(self, message->incarnation, message->serial, &tell)) {
        return; /* a late answer; its question is gone */
    }
    if (tell.kind != PS_TELL_ASK) {
        if (ps_overseer_told(self, message->incarnation, message->serial, message->status,
                             message->text)) {
            *ret_refused = tell;
        }
        return;
    }
    ps_answers_turn(&message->answers, now_ms);
    for (size_t i = 0; i < message->answers.n; i++) {
        message->answers.at[i].incarnation = message->incarnation;
    }
    ps_overseer_answered(self, message->incarnation, tell.question, message->status,
                         &message->answers);
}

psd_status_t ps_overseer_take(ps_overseer_t *self, uint64_t conn, ps_node_message_t *message,
                              uint64_t now_ms, ps_tell_view_t *ret_refused, psd_error_t *err)
{
    psd_status_t rc = ps_overseer_hear(self, message->incarnation, conn, err);

    *ret_refused = (ps_tell_view_t){.kind = PS_TELL_COUNT};
    if (rc == PSD_OK && message->kind == PS_NODE_BEAT) {
        rc = take_beat(self, message, now_ms, err);
    } else if (rc == PSD_OK && message->kind == PS_NODE_ANSWER) {
        take_answer(self, message, now_ms, ret_refused);
    }
    return rc;
}
