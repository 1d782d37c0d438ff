/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fail_alloc - out of memory on demand
 *
 * What     Stands between our code and ps_alloc_resize (the linker's --wrap),
 *          counts its calls and fails the one that a test asks for.
 * Owner    A test names fail_alloc_dep in its unit_needs.
 * Threads  Counts calls of all threads of the process.
 */
#ifndef PS_TESTS_FAIL_ALLOC_H
#define PS_TESTS_FAIL_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

#include "psd/status.h"

/* From now on call number `at` (0: the next one) fails, once. */
void fail_alloc_at(size_t at);
/* From now on every call succeeds. */
void fail_alloc_off(void);
/* True when the planned failure has happened. */
bool fail_alloc_happened(void);
/* Calls since the last fail_alloc_at or fail_alloc_off. */
size_t fail_alloc_calls(void);

/* One run of what is tested, from nothing to cleaned up. It must return
 * PSD_NOMEM when an allocation failed, and check that everything it did not
 * get is unchanged; else PSD_OK. */
typedef psd_status_t fail_alloc_step_t(void *fixture);

/* Runs step with allocation 0, 1, 2 ... failing, until a run in which none did.
 * NULL when every run ended as it must and at least one allocation was made to
 * fail; else a line with the reason. Use:
 *
 *     cr_assert_null(fail_alloc_sweep(fill_map, &fixture)); */
const char *fail_alloc_sweep(fail_alloc_step_t *step, void *fixture);
#endif
