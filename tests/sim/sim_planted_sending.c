/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: values once sent count as on their way for ever, even when they
 * are lost: a client that asks again gets PARKED for ever. */
#include "protocol/shard/shard_state.h"

#ifdef SIM_OF_A_CLUSTER
#include "sim_cluster_planted.h"
#define planted_main cluster_planted_main
#else
#include "sim_planted.h"
#define planted_main sim_planted_main
#endif

#define KEPT_MAX 4096

static struct {
    uint64_t session;
    uint64_t request;
} kept[KEPT_MAX];
static size_t n_kept;

psd_status_t __real_ps_shard_new(const ps_shard_args_t *args, ps_shard_t **ret_shard,
                                 psd_error_t *err);
psd_status_t __wrap_ps_shard_new(const ps_shard_args_t *args, ps_shard_t **ret_shard,
                                 psd_error_t *err);
bool __real_ps_answer_is_under_way(ps_step_t *step, const ps_request_t *request);
bool __wrap_ps_answer_is_under_way(ps_step_t *step, const ps_request_t *request);

/* Another world, or another life of a node: nothing is in flight there. */
psd_status_t __wrap_ps_shard_new(const ps_shard_args_t *args, ps_shard_t **ret_shard,
                                 psd_error_t *err)
{
    n_kept = 0;
    return __real_ps_shard_new(args, ret_shard, err);
}

bool __wrap_ps_answer_is_under_way(ps_step_t *step, const ps_request_t *request)
{
    ps_request_t asked = *request;

    if (asked.sending.bytes > 0 && n_kept < KEPT_MAX) {
        kept[n_kept].session = asked.session;
        kept[n_kept++].request = asked.request;
    }
    for (size_t i = 0; i < n_kept; i++) {
        if (kept[i].session == asked.session && kept[i].request == asked.request) {
            asked.sending.bytes = 1;
        }
    }
    return __real_ps_answer_is_under_way(step, &asked);
}

int main(void)
{
    return planted_main("answers stay on their way when they are lost");
}
