/* SPDX-License-Identifier: Apache-2.0 */
/* A task to the shards, by its kind. */
#include "server/nodes/tasks.h"

#include <inttypes.h>

static psd_status_t run_table(ps_shards_t *shards, const ps_plugins_t *plugins,
                              const ps_table_t *table, uint64_t *ret_local, psd_error_t *err)
{
    ps_table_t bound = *table; /* its arrays stay borrowed */
    psd_status_t rc = ps_plugins_bind(plugins, &bound.spec, err);

    return rc == PSD_OK ? ps_shards_send_table(shards, &bound, ret_local, err) : rc;
}

static psd_status_t run_question(ps_shards_t *shards, const ps_agent_task_t *task,
                                 uint64_t *ret_local, psd_error_t *err)
{
    switch (task->question) {
    case PS_CALL_CHECKPOINT:
        return ps_shards_send_words(shards, task->words, ret_local, err);
    case PS_CALL_INSPECT:
    case PS_CALL_WAITING:
    case PS_CALL_CLOCKS:
    case PS_CALL_UNKNOWN:
    case PS_CALL_REACHED:
    case PS_CALL_SLOW:
        return ps_shards_send_ask(shards, (ps_call_kind_t)task->question, task->id, ret_local, err);
    default:
        return psd_error_set(err, PSD_PROTO, "kind of a question is %" PRIu32, task->question);
    }
}

psd_status_t ps_task_run(ps_shards_t *shards, const ps_plugins_t *plugins,
                         const ps_agent_task_t *task, uint64_t *ret_local, psd_error_t *err)
{
    *ret_local = 0;
    switch (task->kind) {
    case PS_TASK_TABLE:
        return run_table(shards, plugins, task->table, ret_local, err);
    case PS_TASK_DROP:
        return ps_shards_send_drop(shards, task->id, ret_local, err);
    case PS_TASK_ASIDE:
        return ps_shards_send_aside(shards, task->id, ret_local, err);
    case PS_TASK_JOB:
        return ps_shards_send_job(shards, task->job, ret_local, err);
    case PS_TASK_ASK:
        return run_question(shards, task, ret_local, err);
    case PS_TASK_FENCE:
        return ps_shards_send_fence(shards, &task->fence, ret_local, err);
    case PS_TASK_SIZES:
        return ps_shards_send_ask(shards, PS_CALL_SIZES, 0, ret_local, err);
    case PS_TASK_SESSIONS:
        ps_shards_set_settings(shards, task->message->settings, task->message->n_settings);
        ps_shards_set_last_session(shards, task->session);
        return PSD_OK;
    case PS_TASK_INVITE: /* not for the shards */
    default:
        return PSD_OK;
    }
}
