/* SPDX-License-Identifier: Apache-2.0 */
/* command_sample - one command of every kind, each field with a value of its
 * own; for golden bytes. */
#ifndef PS_TESTS_COMMAND_SAMPLE_H
#define PS_TESTS_COMMAND_SAMPLE_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/facts/table_filter.h"
#include "protocol/registry/command_code.h"

#define SAMPLE_KIND(NAME, number, word, event) PS_COMMAND_##NAME,
static const ps_command_kind_t SAMPLE_COMMANDS[] = {PS_COMMAND_MAP(SAMPLE_KIND)};
#undef SAMPLE_KIND
#define N_SAMPLE_COMMANDS (sizeof SAMPLE_COMMANDS / sizeof *SAMPLE_COMMANDS)

static inline void sample_text(char *to, size_t size, const char *text)
{
    cr_assert_lt((size_t)snprintf(to, size, "%s", text), size);
}

static inline ps_id_t sample_id(uint8_t first)
{
    ps_id_t id = {{0}};

    for (uint8_t i = 0; i < PS_ID_SIZE; i++) {
        id.bytes[i] = (uint8_t)(first + i);
    }
    return id;
}

static inline ps_copies_t sample_copies(void)
{
    ps_copies_t copies = {.epoch = 40, .fenced = true, .n = 2};

    copies.at[0] = (ps_copy_t){.incarnation = UINT64_C(0x8000000000000007),
                               .shard = 1,
                               .state = PS_COPY_IN_SYNC,
                               .leaving = true};
    copies.at[1] =
        (ps_copy_t){.incarnation = 8, .shard = 0, .state = PS_COPY_CATCHING_UP, .dropped = true};
    return copies;
}

static inline void sample_changes(ps_command_t *command)
{
    command->changes = ps_alloc(2, sizeof *command->changes);
    command->n_changes = 2;
    command->changes[0] =
        (ps_change_t){.table = 3, .partition = 1, .rows_lost = true, .copies = sample_copies()};
    command->changes[1] =
        (ps_change_t){.table = 4, .partition = 0, .prefer = 9, .copies = {.epoch = 41}};
}

static inline void sample_node(ps_command_t *command)
{
    ps_node_t *node = &command->node;

    *node = (ps_node_t){.id = 2,
                        .started_unix_ms = 11,
                        .incarnation = UINT64_C(0x8000000000000007),
                        .n_shards = 2,
                        .weight = 3,
                        .secret = sample_id(0x20),
                        .draining = true,
                        .shards = ps_alloc(2, sizeof *node->shards)};
    sample_text(node->name, sizeof node->name, "n1");
    sample_text(node->control, sizeof node->control, "tcp://h:7170");
    sample_text(node->shards[0].tcp, sizeof node->shards[0].tcp, "tcp://h:7171");
    sample_text(node->shards[1].ipc, sizeof node->shards[1].ipc, "ipc:///run/psd/1");
    sample_changes(command);
}

static inline void sample_table(ps_table_t *table)
{
    ps_table_spec_t *spec = &table->spec;

    *table = (ps_table_t){.id = 3,
                          .created_unix_ms = 12,
                          .rows_lost = true,
                          .loss_acked = true,
                          .lost_sessions = 13,
                          .lost_jobs = 14,
                          .restoring = true};
    ps_table_spec_init(spec);
    sample_text(spec->name, sizeof spec->name, "w");
    spec->n_rows = 100;
    spec->n_cols = 2;
    spec->row_format = PS_ROW_AUTO;
    spec->seed = UINT64_MAX;
    spec->n_partitions = 2;
    spec->n_col_slices = 1;
    spec->replicas = 2;
    spec->ack = PS_ACK_DISK;
    spec->allow_nonfinite = true;
    spec->versions = true;
    spec->combine = PS_COMBINE_CLOCK_SUM;
    cr_assert_eq(ps_updater_spec_parse("sgd:alpha=0.1,l2=0.5", &spec->updater, NULL), PSD_OK);
    cr_assert_eq(ps_init_spec_parse("uniform:-1,1", &spec->init, NULL), PSD_OK);
    cr_assert_eq(ps_partition_by_parse("list:50", spec, NULL), PSD_OK);
    cr_assert_eq(ps_table_filter_set(spec, "f16", NULL), PSD_OK);
    table->copies = ps_alloc(2, sizeof *table->copies);
    table->copies[0] = sample_copies();
    table->copies[1].epoch = 39;
}

static inline void sample_job(ps_command_t *command)
{
    ps_job_t *job = &command->job;

    *job = (ps_job_t){.id = 5,
                      .max_delay = -1,
                      .version = 15,
                      .stopped = true,
                      .lost_sessions = 16,
                      .workers = ps_alloc(2, sizeof *job->workers),
                      .n_workers = 2};
    sample_text(job->name, sizeof job->name, "lr");
    sample_text(job->lost_table, sizeof job->lost_table, "w");
    job->workers[0] = (ps_worker_t){1, PS_WORKER_RUNNING, 2, 3, 17};
    job->workers[1] = (ps_worker_t){4, PS_WORKER_LOST, 1, 1, 0};
    command->n_expected = 6;
    command->created_unix_ms = 18;
    command->ended = 19;
    command->resumed = ps_alloc(1, sizeof *command->resumed);
    command->n_resumed = 1;
    *command->resumed = (ps_work_resumed_t){.n_slices = 20,
                                            .n_epochs = 21,
                                            .epoch = 2,
                                            .done = ps_alloc(2, sizeof *command->resumed->done),
                                            .n_done = 2};
    sample_text(command->resumed->name, sizeof command->resumed->name, "input");
    command->resumed->done[0] = 7;
    command->resumed->done[1] = 9;
}

static inline void sample_holds(ps_work_t *work)
{
    work->turns = true;
    work->holds = ps_alloc(2, sizeof *work->holds);
    work->n_holds = 2;
    work->holds[0] = (ps_work_hold_t){PS_WORK_GIVEN, 22, 23, 2, 24, 1, 3};
    work->holds[1] = (ps_work_hold_t){PS_WORK_DONE, 25, 26, 2, 27, 4, 1};
}

static inline void sample_cluster(ps_cluster_t *cluster)
{
    sample_text(cluster->name, sizeof cluster->name, "psd");
    cluster->uuid = sample_id(1);
    cluster->sessions = 1000;
    cluster->last_table = 28;
    cluster->last_job = 29;
    cluster->lineage = sample_id(0x40);
    cluster->sm_version = 1;
}

static inline void sample_principal(ps_command_t *command)
{
    ps_principal_t *principal = ps_alloc(1, sizeof *principal);

    command->principals = principal;
    command->n_principals = 1;
    *principal = (ps_principal_t){.id = 3, .uid = 1000, .denied = true, .epoch = 34, .n_rules = 2};
    sample_text(principal->name, sizeof principal->name, "alice");
    sample_text(principal->key, sizeof principal->key, "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7");
    sample_text(principal->old_key, sizeof principal->old_key,
                "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID");
    principal->old_until_unix_ms = UINT64_C(1700000600000);
    principal->rules[0].role = PS_ROLE_JOB;
    sample_text(principal->rules[0].tables, sizeof principal->rules[0].tables, "alice.*");
    sample_text(principal->rules[0].jobs, sizeof principal->rules[0].jobs, "alice-?");
    principal->rules[1].role = PS_ROLE_READER;
    sample_text(principal->rules[1].tables, sizeof principal->rules[1].tables, "w");
    sample_text(principal->rules[1].jobs, sizeof principal->rules[1].jobs, "*");
}

/* The caller's (ps_command_done). */
static inline ps_command_t command_sample(ps_command_kind_t kind)
{
    ps_command_t command = {.kind = kind,
                            .unix_ms = 1700000000000,
                            .epoch = 42,
                            .session = 31,
                            .request = UINT64_C(0x8000000000000020),
                            .detail = 33};

    sample_text(command.text, sizeof command.text, "what happened");
    switch (kind) {
    case PS_COMMAND_CLUSTER:
        sample_cluster(&command.cluster);
        break;
    case PS_COMMAND_NODE:
        sample_node(&command);
        break;
    case PS_COMMAND_TABLE:
        sample_table(&command.table);
        break;
    case PS_COMMAND_JOB:
        sample_job(&command);
        break;
    case PS_COMMAND_JOB_TABLE:
        command.job.id = 5;
        command.job.version = 30;
        sample_text(command.job.name, sizeof command.job.name, "lr");
        command.number = 3;
        command.told = true;
        break;
    case PS_COMMAND_COPIES:
        sample_changes(&command);
        break;
    case PS_COMMAND_QUEUE:
        command.job.id = 5;
        command.work = (ps_work_t){.queue = 2, .n_slices = 31, .n_epochs = 32, .epoch = 1};
        sample_text(command.name, sizeof command.name, "input");
        break;
    case PS_COMMAND_WORK:
        command.job.id = 5;
        command.work = (ps_work_t){.queue = 2, .epoch = 2};
        sample_holds(&command.work);
        break;
    case PS_COMMAND_NODE_STATE:
        sample_text(command.name, sizeof command.name, "n1");
        command.number = PS_NODE_REMOVED;
        sample_changes(&command);
        break;
    case PS_COMMAND_SET:
        command.number = 3;
        command.combine = PS_COMBINE_CLOCK_MEAN;
        break;
    case PS_COMMAND_TERM:
        command.number = 3;
        command.member = UINT64_C(0x7000000000000009);
        break;
    case PS_COMMAND_SETTING:
        command.setting = (ps_setting_t){.id = PS_SETTING_LOST_AFTER, .value = 4711};
        command.is_set = true;
        break;
    case PS_COMMAND_PRINCIPAL:
        sample_principal(&command);
        break;
    case PS_COMMAND_HOLD:
        sample_text(command.name, sizeof command.name, "n1");
        command.number = PS_HOLD_OUT;
        break;
    case PS_COMMAND_MACHINE:
        command.number = 2;
        break;
    case PS_COMMAND_SESSIONS:
    case PS_COMMAND_DROP:
    case PS_COMMAND_NOTE:
    case PS_COMMAND_RESTORED:
    case PS_COMMAND_ACK:
        command.number = kind == PS_COMMAND_NOTE ? 0 : 3;
        break;
    }
    return command;
}
#endif
