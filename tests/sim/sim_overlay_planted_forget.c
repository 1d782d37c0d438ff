/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: an origin drops its delta when the relay has it; nothing is left to send again. */
#include "sim_overlay_planted.h"

void __real_ps_session_lent(ps_session_t *self, uint64_t op, uint64_t until_ms);
void __wrap_ps_session_lent(ps_session_t *self, uint64_t op, uint64_t until_ms);
void __wrap_ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t op,
                                  ps_outbox_t *outbox);

void __wrap_ps_session_lent(ps_session_t *self, uint64_t op, uint64_t until_ms)
{
    (void)until_ms;
    __real_ps_session_lent(self, op, UINT64_MAX);
}

void __wrap_ps_session_given_back(ps_session_t *self, uint64_t now_ms, uint64_t op,
                                  ps_outbox_t *outbox)
{
    (void)self;
    (void)now_ms;
    (void)op;
    (void)outbox;
}

int main(void)
{
    return overlay_planted_main("an origin drops what it has lent");
}
