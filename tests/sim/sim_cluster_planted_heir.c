/* SPDX-License-Identifier: Apache-2.0 */
/* Planted: a copy that still catches up may be promoted. While the registry
 * looks for a new primary, every copy counts as whole. */
#include "protocol/placement/registry_look.h"
#include "sim_cluster_planted.h"

static int looking;

bool __real_ps_copy_is_whole(const ps_copy_t *self);
bool __wrap_ps_copy_is_whole(const ps_copy_t *self);
bool __real_ps_copy_is_heir(const ps_copy_t *self);
bool __wrap_ps_copy_is_heir(const ps_copy_t *self);

bool __wrap_ps_copy_is_whole(const ps_copy_t *self)
{
    return looking > 0 || __real_ps_copy_is_whole(self);
}

bool __wrap_ps_copy_is_heir(const ps_copy_t *self)
{
    return looking > 0 || __real_ps_copy_is_heir(self);
}

#define LOOKING(step)                                                                     \
    psd_status_t __real_##step(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err); \
    psd_status_t __wrap_##step(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err); \
                                                                                          \
    psd_status_t __wrap_##step(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)  \
    {                                                                                     \
        psd_status_t rc;                                                                  \
                                                                                          \
        looking++;                                                                        \
        rc = __real_##step(look, spot, err);                                              \
        looking--;                                                                        \
        return rc;                                                                        \
    }

LOOKING(ps_step_fence)
LOOKING(ps_step_ask)
LOOKING(ps_step_promote)

bool __real_ps_registry_fenced(ps_registry_t *self, uint64_t from, const ps_report_t *report);
bool __wrap_ps_registry_fenced(ps_registry_t *self, uint64_t from, const ps_report_t *report);

bool __wrap_ps_registry_fenced(ps_registry_t *self, uint64_t from, const ps_report_t *report)
{
    bool taken = false;

    looking++;
    taken = __real_ps_registry_fenced(self, from, report);
    looking--;
    return taken;
}

void __real_ps_copies_promote(ps_copies_t *self, uint32_t at);
void __wrap_ps_copies_promote(ps_copies_t *self, uint32_t at);

void __wrap_ps_copies_promote(ps_copies_t *self, uint32_t at)
{
    uint64_t heir = self->at[at].incarnation;

    ps_copies_set_state(self, at, PS_COPY_IN_SYNC); /* it moves to the front */
    __real_ps_copies_promote(self, (uint32_t)(ps_copies_on(self, heir) - self->at));
}

int main(void)
{
    return cluster_planted_main("promotion of a catching-up copy");
}
