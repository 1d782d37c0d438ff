/* SPDX-License-Identifier: Apache-2.0 */
/* A message between members of every kind, with every field set. */
#ifndef PS_TESTS_QUORUM_MESSAGE_SAMPLE_H
#define PS_TESTS_QUORUM_MESSAGE_SAMPLE_H

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "protocol/quorum/quorum_message.h"

#define SAMPLE_QUORUM_MESSAGE(NAME, number, word) PS_QUORUM_##NAME,
static const ps_quorum_message_kind_t SAMPLE_QUORUM_MESSAGES[] = {
    PS_QUORUM_MESSAGE_MAP(SAMPLE_QUORUM_MESSAGE)};
#define N_SAMPLE_QUORUM_MESSAGES (sizeof SAMPLE_QUORUM_MESSAGES / sizeof *SAMPLE_QUORUM_MESSAGES)

static const ps_quorum_members_t SAMPLE_QUORUM_MEMBERS = {
    .n = 2, .at = {{71, PS_QUORUM_VOTER, "north"}, {72, PS_QUORUM_STANDBY, "south"}}};

static void quorum_message_sample_entries(ps_quorum_message_t *message)
{
    message->entries = ps_alloc(3, sizeof *message->entries);
    cr_assert_not_null(message->entries);
    message->n_entries = 3;
    message->entries[0] = (ps_quorum_entry_t){.term = 31, .kind = PS_QUORUM_COMMAND};
    message->entries[1] = (ps_quorum_entry_t){.term = 32, .kind = PS_QUORUM_BARRIER};
    message->entries[2] = (ps_quorum_entry_t){.term = 33, .kind = PS_QUORUM_CHANGE};
    cr_assert(ps_buffer_append(&message->entries[0].bytes, "command", 7));
    cr_assert(ps_quorum_members_encode(&SAMPLE_QUORUM_MEMBERS, &message->entries[2].bytes));
}

/* The caller frees it. */
static ps_quorum_message_t quorum_message_sample(ps_quorum_message_kind_t kind)
{
    ps_quorum_message_t message = {.kind = kind,
                                   .cluster = {{1, 2, 3}},
                                   .lineage = {{4, 5, 6}},
                                   .from = 11,
                                   .node = "north",
                                   .to = 12,
                                   .life = 13,
                                   .number = 14,
                                   .to_life = 15,
                                   .echo = 16,
                                   .term = 40};

    switch ((int)kind) {
    case PS_QUORUM_VOTE:
        message.trial = true;
        message.for_term = 41;
        break;
    case PS_QUORUM_VOTED:
        message.granted = true;
        message.for_term = 42;
        return message;
    case PS_QUORUM_APPEND:
        message.commit = 19;
        quorum_message_sample_entries(&message);
        break;
    case PS_QUORUM_APPENDED:
        message.rejected = 22;
        break;
    case PS_QUORUM_SNAPSHOT:
        message.snapshot = (ps_quorum_snapshot_t){
            .index = 51, .term = 39, .members_index = 50, .members = SAMPLE_QUORUM_MEMBERS};
        return message;
    default:
        break;
    }
    message.last_index = 21;
    message.last_term = kind == PS_QUORUM_APPENDED ? 0 : 30;
    return message;
}
#endif
