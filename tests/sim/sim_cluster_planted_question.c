/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: the nodes' answers to one question count as their answers to the
 * next one, so that nothing waits for the real ones. */
#include "protocol/overseer/overseer_state.h"
#include "sim_cluster_planted.h"

psd_status_t __real_ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, const char *words,
                                    void *context, uint64_t now_ms, psd_error_t *err);
psd_status_t __wrap_ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, const char *words,
                                    void *context, uint64_t now_ms, psd_error_t *err);

psd_status_t __wrap_ps_overseer_ask(ps_overseer_t *self, int kind, uint32_t job, const char *words,
                                    void *context, uint64_t now_ms, psd_error_t *err)
{
    psd_status_t rc = __real_ps_overseer_ask(self, kind, job, words, context, now_ms, err);

    if (rc == PSD_OK) {
        self->questions[self->n_questions - 1]->n_waits = 0;
    }
    return rc;
}

int main(void)
{
    return cluster_planted_main("an answer is taken for another question");
}
