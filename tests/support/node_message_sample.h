/* SPDX-License-Identifier: Apache-2.0 */
/* node_message_sample - a message between nodes of every kind, each field with a
 * value of its own; for golden bytes. */
#ifndef PS_TESTS_NODE_MESSAGE_SAMPLE_H
#define PS_TESTS_NODE_MESSAGE_SAMPLE_H

#include "protocol/agent/node_message.h"
#include "support/command_sample.h"

#define SAMPLE_NODE_KIND(NAME, number, word) PS_NODE_##NAME,
static const ps_node_message_kind_t SAMPLE_MESSAGES[] = {PS_NODE_MESSAGE_MAP(SAMPLE_NODE_KIND)};
#undef SAMPLE_NODE_KIND
#define N_SAMPLE_MESSAGES (sizeof SAMPLE_MESSAGES / sizeof *SAMPLE_MESSAGES)

static inline void sample_answers(ps_answers_t *answers)
{
    ps_shard_answer_t *answer = NULL;

    *answers = (ps_answers_t){.at = ps_alloc(2, sizeof *answers->at), .n = 2};
    answer = &answers->at[1];
    *answer = (ps_shard_answer_t){.shard = 1,
                                  .memory_bytes = 50,
                                  .info = {.sessions = 51,
                                           .held_requests = 52,
                                           .held_bytes = 53,
                                           .refused = 54,
                                           .tail_bytes = 55},
                                  .partitions = ps_alloc(1, sizeof *answer->partitions),
                                  .n_partitions = 1,
                                  .lags = ps_alloc(1, sizeof *answer->lags),
                                  .n_lags = 1,
                                  .waiting = ps_alloc(1, sizeof *answer->waiting),
                                  .n_waiting = 1,
                                  .clocks = ps_alloc(1, sizeof *answer->clocks),
                                  .n_clocks = 1};
    sample_text(answer->info.disk_trouble, sizeof answer->info.disk_trouble, "disk full");
    answer->partitions[0] =
        (ps_partition_info_t){.table = 3,
                              .partition = 1,
                              .epoch = 56,
                              .lsn = 57,
                              .bytes = {.values = 58, .state = 59, .index = 60, .rows_present = 61},
                              .come_bytes = 62,
                              .held_bytes = 63,
                              .queue_bytes = 64,
                              .pushes = 65,
                              .pulls = 66,
                              .rows_pushed = 67,
                              .rows_pulled = 68};
    answer->lags[0] = (ps_lag_info_t){.table = 3,
                                      .partition = 1,
                                      .incarnation = 69,
                                      .shard = 70,
                                      .behind = true,
                                      .records = 71,
                                      .bytes = 72,
                                      .level_ms = 73};
    answer->waiting[0] = (ps_waiting_info_t){.job = 5,
                                             .worker = 74,
                                             .clock = 75,
                                             .since_ms = 76,
                                             .for_clock = 77,
                                             .table = 3,
                                             .partition = 78,
                                             .is_pull = true};
    sample_text(answer->waiting[0].reason, sizeof answer->waiting[0].reason, "its lease ended");
    answer->clocks[0] = (ps_clock_info_t){.job = 5, .worker = 79, .min = 80, .max = 81};
    cr_assert(ps_buffer_append(&answer->words, "{}", 2));
}

static inline void sample_places(ps_node_message_t *message)
{
    message->places = ps_alloc(2, sizeof *message->places);
    message->n_places = 2;
    message->places[0].copies = sample_copies();
    message->places[1] = (ps_place_t){.partition = 1, .copies = {.epoch = 82, .n = 1}};
    message->places[1].copies.at[0] =
        (ps_copy_t){.incarnation = 8, .shard = 1, .state = PS_COPY_PRIMARY};
    message->places[0].copies.at[1].dropped = false; /* it would be kept */
    sample_text(message->places[0].copies.at[0].tcp, PS_ENDPOINT_MAX, "tcp://h:7171");
    sample_text(message->places[1].copies.at[0].tcp, PS_ENDPOINT_MAX, "ipc:///run/psd/1");
    sample_text(message->places[1].ipc, PS_ENDPOINT_MAX, "ipc:///run/psd/1");
}

/* The caller's (ps_node_message_done). */
static inline ps_node_message_t node_message_sample(ps_node_message_kind_t kind)
{
    ps_command_t node = command_sample(PS_COMMAND_NODE);
    ps_command_t job = command_sample(PS_COMMAND_JOB);
    ps_command_t table = command_sample(PS_COMMAND_TABLE);
    ps_node_message_t message = {.kind = kind,
                                 .serial = 90,
                                 .cluster = sample_id(1),
                                 .incarnation = 7,
                                 .node = node.node,
                                 .lost = ps_alloc(1, sizeof *message.lost),
                                 .n_lost = 1,
                                 .epoch = 91,
                                 .files_out = true,
                                 .status = PSD_BUSY,
                                 .sizes = ps_alloc(1, sizeof *message.sizes),
                                 .n_sizes = 1,
                                 .reports = ps_alloc(1, sizeof *message.reports),
                                 .n_reports = 1,
                                 .tables = ps_alloc(2, sizeof *message.tables),
                                 .n_tables = 2,
                                 .session = 92,
                                 .table = table.table,
                                 .job = job.job,
                                 .since = 115,
                                 .question = 93,
                                 .fence = {.shard = 94, .table = 3, .partition = 95, .epoch = 96},
                                 .at = {.lineage = sample_id(2), .term = 107, .index = 111},
                                 .n_aside = 112,
                                 .last_table = 113,
                                 .last_job = 114,
                                 .seats = ps_alloc(2, sizeof *message.seats),
                                 .n_seats = 2,
                                 .settings = ps_alloc(2, sizeof *message.settings),
                                 .n_settings = 2,
                                 .member = 108,
                                 .token = sample_id(3),
                                 .proof = sample_id(4),
                                 .offset = 109,
                                 .total = 110};

    node.node = (ps_node_t){0}; /* ownership has moved, as of the others */
    job.job = (ps_job_t){0};
    table.table = (ps_table_t){0};
    ps_command_done(&node);
    ps_command_done(&job);
    ps_command_done(&table);
    message.table.spec.row_format = PS_ROW_DENSE; /* a command is checked later */
    message.node.kept = true;
    message.node.accepts_loss = true;
    message.lost[0] = (ps_lost_t){.shard = 97, .table = 3, .first = 98, .last = 99};
    message.sizes[0] = (ps_size_info_t){.table = 3, .partition = 1, .bytes = 100};
    message.reports[0] = (ps_report_t){.kind = PS_REPORT_SLOW,
                                       .table = 3,
                                       .partition = 1,
                                       .epoch = 101,
                                       .incarnation = 102,
                                       .shard = 103,
                                       .lsn = 104,
                                       .lsn_epoch = 105};
    message.tables[0] = 3;
    message.tables[1] = 106;
    sample_text(message.text, sizeof message.text, "why");
    message.settings[0] = (ps_setting_t){.id = 8, .value = 96};
    message.settings[1] = (ps_setting_t){.id = 9, .value = 97};
    sample_text(message.seats[0].node, sizeof message.seats[0].node, "n1");
    sample_text(message.seats[0].endpoint, sizeof message.seats[0].endpoint, "tcp://h:1");
    sample_text(message.seats[1].node, sizeof message.seats[1].node, "n2");
    sample_text(message.seats[1].endpoint, sizeof message.seats[1].endpoint, "tcp://h:2");
    sample_answers(&message.answers);
    sample_places(&message);
    cr_assert(ps_buffer_append(&message.words, "{}", 2));
    return message;
}
#endif
