/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapped allocator and the sweep over its failures. */
#include "support/fail_alloc.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define NEVER SIZE_MAX
#define RUNS_MAX 100000 /* a sweep that never succeeds must end */

static atomic_size_t calls;
static atomic_size_t fail_at = NEVER;
static atomic_bool happened;

void *__real_ps_alloc_resize(void *old, size_t count, size_t size);
void *__wrap_ps_alloc_resize(void *old, size_t count, size_t size);

void *__wrap_ps_alloc_resize(void *old, size_t count, size_t size)
{
    if (atomic_fetch_add(&calls, 1) == atomic_load(&fail_at)) {
        atomic_store(&happened, true);
        return NULL;
    }
    return __real_ps_alloc_resize(old, count, size);
}

void fail_alloc_at(size_t at)
{
    atomic_store(&calls, 0);
    atomic_store(&happened, false);
    atomic_store(&fail_at, at);
}

void fail_alloc_off(void)
{
    fail_alloc_at(NEVER);
}

bool fail_alloc_happened(void)
{
    return atomic_load(&happened);
}

size_t fail_alloc_calls(void)
{
    return atomic_load(&calls);
}

const char *fail_alloc_sweep(fail_alloc_step_t *step, void *fixture)
{
    static char complaint[128];

    for (size_t at = 0; at < RUNS_MAX; at++) {
        psd_status_t rc = PSD_OK;
        psd_status_t wanted = PSD_OK;

        fail_alloc_at(at);
        rc = step(fixture);
        wanted = fail_alloc_happened() ? PSD_NOMEM : PSD_OK;
        if (rc != wanted) {
            (void)snprintf(complaint, sizeof complaint,
                           "allocation %zu %s, but the step returned %s", at,
                           fail_alloc_happened() ? "failed" : "was not made", psd_status_name(rc));
            fail_alloc_off();
            return complaint;
        }
        if (rc == PSD_OK) {
            fail_alloc_off();
            return at > 0 ? NULL : "the step allocates nothing";
        }
    }
    fail_alloc_off();
    return "the step never succeeds";
}
