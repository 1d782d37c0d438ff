/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_alike.h"

static bool has_same_windows(const ps_partition_t *one, const ps_partition_t *other)
{
    size_t at = 0;
    uint64_t session = 0;
    void *value = NULL;

    while (ps_map_next(&one->windows, &at, &session, &value)) {
        const ps_window_t *mine = value;
        const ps_window_t *theirs = ps_map_get(&other->windows, session);
        bool is_new = mine->next == 1; /* the log has nothing of it */

        if (!is_new && (theirs == NULL || mine->next != theirs->next ||
                        mine->n_refusals != theirs->n_refusals || mine->unsure != theirs->unsure)) {
            return false;
        }
    }
    return ps_session_set_equal(&one->retired, &other->retired);
}

static bool has_same_gates(const ps_partition_t *one, const ps_partition_t *other)
{
    if (one->n_jobs != other->n_jobs) {
        return false;
    }
    for (size_t i = 0; i < one->n_jobs; i++) {
        const ps_job_place_t *mine = &one->jobs[i];
        const ps_job_place_t *theirs = &other->jobs[i];
        size_t n = ps_gate_n_workers(mine->gate);
        uint32_t worker = 0;

        if (n != ps_gate_n_workers(theirs->gate) || mine->applied != theirs->applied ||
            mine->open.n_pushes != theirs->open.n_pushes ||
            ps_gate_closed(mine->gate) != ps_gate_closed(theirs->gate)) {
            return false;
        }
        for (size_t k = 0; k < n; k++) {
            if (ps_gate_finished(mine->gate, k, &worker) !=
                ps_gate_finished(theirs->gate, k, &worker)) {
                return false;
            }
        }
    }
    return true;
}

const char *sim_difference(const ps_partition_t *one, const ps_partition_t *other)
{
    if (one->lsn != other->lsn) {
        return "records";
    }
    if (one->version != other->version) {
        return "versions";
    }
    if (!has_same_windows(one, other)) {
        return "windows";
    }
    return has_same_gates(one, other) ? NULL : "gates";
}
