/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a message between nodes. What is accepted has one form in bytes,
 * and an agent takes it: its tasks end, and it says only what another node
 * understands.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/agent/agent.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void run_tasks(ps_agent_t *agent)
{
    ps_agent_task_t task;

    for (uint64_t local = 1; ps_agent_next_task(agent, &task); local++) {
        ps_answers_t none = {0};

        check(task.kind != PS_TASK_TABLE || task.table->routes != NULL);
        ps_agent_began(agent, local, PSD_OK, "");
        ps_agent_finished(agent, local, PSD_OK, "", &none, 2);
    }
}

/* The job as of the version that the message builds on. */
static void hear_job(ps_agent_t *agent, const ps_node_message_t *ranks)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    ps_worker_t workers[] = {{.worker = 0, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1},
                             {.worker = 7, .state = PS_WORKER_EXPECTED}};
    ps_node_message_t job = {.kind = PS_NODE_JOB,
                             .serial = ranks->serial == 1 ? 2 : 1,
                             .cluster = ranks->cluster,
                             .incarnation = ranks->incarnation,
                             .at = ranks->at,
                             .job = {.id = ranks->job.id,
                                     .name = "j",
                                     .version = ranks->since,
                                     .workers = workers,
                                     .n_workers = 2}};

    check(ps_node_message_encode(&job, &bytes));
    ps_agent_take(agent, (ps_bytes_t){bytes.data, bytes.size}, 1);
    run_tasks(agent);
}

/* The node that it is for, after a table that it knows. */
static void try_it(const ps_node_message_t *message, ps_bytes_t bytes, psd_error_t *err)
{
    PSD_AUTO(ps_agent_destroy) ps_agent_t *agent = NULL;
    bool is_of_any = message->kind == PS_NODE_HEARD; /* which may name none */
    const ps_agent_args_t args = {.node = {.incarnation = is_of_any ? 7 : message->incarnation},
                                  .damage = "",
                                  .cluster = message->cluster,
                                  .heartbeat_ms = 100};
    ps_bytes_t said;

    check(ps_agent_new(&args, 1, &agent, err) == PSD_OK && ps_agent_know(agent, 3, err) == PSD_OK);
    ps_agent_tick(agent, 1);
    if (message->kind == PS_NODE_RANKS) {
        hear_job(agent, message);
    }
    for (int i = 0; i < 2; i++) {
        ps_agent_take(agent, bytes, 2);
        run_tasks(agent);
    }
    while (ps_agent_next_message(agent, &said)) {
        PSD_AUTO(ps_node_message_done) ps_node_message_t got = {0};

        check(ps_node_message_decode(said, &got, err) == PSD_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t first = {0};
    PSD_AUTO(ps_node_message_done) ps_node_message_t second = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = ps_node_message_decode((ps_bytes_t){data, size}, &first, err);

    if (rc != PSD_OK) {
        check(psd_error_text(err)[0] != '\0');
        return 0;
    }
    check(ps_node_message_encode(&first, &bytes));
    check(ps_node_message_decode((ps_bytes_t){bytes.data, bytes.size}, &second, err) == PSD_OK);
    check(ps_node_message_encode(&second, &again));
    check(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0);
    try_it(&first, (ps_bytes_t){bytes.data, bytes.size}, err);
    return 0;
}
