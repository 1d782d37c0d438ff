/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_session_set - a compact set of ended session numbers
 *
 * What     Session numbers grow, and most of those that end are neighbours, so
 *          the set keeps runs. Adjacent runs merge. When there are too many
 *          runs, the two with the fewest sessions between them merge, the
 *          lowest such pair first. The few sessions between then count as ended
 *          too, so that ended sessions are never forgotten.
 * Shape    runs ascend, and at least one session lies between two of them
 * Owner    The caller; embedded. Threads: confined to one.
 */
#ifndef PS_PROTOCOL_SESSION_SET_H
#define PS_PROTOCOL_SESSION_SET_H

#include "base/bytes.h"
#include "base/cursor.h"

#define PS_SESSION_RUNS_MAX 4096 /* all copies must agree on it */

typedef struct ps_session_run {
    uint64_t first;
    uint64_t last; /* >= first */
} ps_session_run_t;

typedef struct ps_session_set {
    ps_session_run_t *runs; /* owned */
    size_t n;
    size_t capacity;
} ps_session_set_t;

void ps_session_set_done(ps_session_set_t *self);
bool ps_session_set_has(const ps_session_set_t *self, uint64_t session);
bool ps_session_set_equal(const ps_session_set_t *a, const ps_session_set_t *b);
/* Adds first .. last. false: no memory; nothing changed. */
PSD_MUST_CHECK bool ps_session_set_add(ps_session_set_t *self, uint64_t first, uint64_t last);
/* Drops the lowest run. */
void ps_session_set_drop_lowest(ps_session_set_t *self);
/* u32 n; n times u64 first, u64 last. false: no memory. */
PSD_MUST_CHECK bool ps_session_set_put(const ps_session_set_t *self, ps_buffer_t *to);
/* The same, back, into an empty set. Errors: PSD_PROTO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_session_set_take(ps_cursor_t *cursor, ps_session_set_t *self,
                                                psd_error_t *err);
#endif
