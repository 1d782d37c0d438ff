/* SPDX-License-Identifier: Apache-2.0 */
/* A clock has closed: its pushes go into the rows, each by itself or all as one
 * sum. */
#include "base/alloc.h"
#include "model/combine/combine.h"
#include "model/updaters/updater.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"

_Static_assert(PS_WORKERS_MAX == PS_COMBINE_POSITIONS, "a worker's position is its rank");

static bool apply_one(ps_step_t *step, ps_partition_t *self, const ps_logged_t *push)
{
    return ps_partition_apply(step, self, push->worker, &push->op, &push->slice, push->payload);
}

/* ---- each push by itself ---- */

/* Returns how many were applied; the next one found no memory. */
static size_t apply_each(ps_step_t *step, ps_partition_t *self, const ps_open_clock_t *open)
{
    size_t n = 0;

    while (n < open->n_pushes && apply_one(step, self, &open->pushes[n])) {
        n++;
    }
    return n;
}

/* ---- all as one sum ---- */

/* Pushes of one clock, by worker. */
typedef struct group {
    const ps_logged_t *pushes;
    size_t n;
} group_t;

static bool is_update(const ps_logged_t *push)
{
    return push->op.op == PS_CHANGE_UPDATE;
}

/* The updates from the first push on that are of its clock. */
static group_t group_of(const ps_logged_t *pushes, size_t n_pushes)
{
    group_t group = {.pushes = pushes};

    while (group.n < n_pushes && is_update(&pushes[group.n]) &&
           pushes[group.n].clock == pushes[0].clock) {
        group.n++;
    }
    return group;
}

/* The push is of that worker, or the span has something of it. */
static bool is_of(const ps_logged_t *push, uint32_t worker)
{
    for (uint16_t i = 0; i < push->n_from; i++) {
        if (push->from[i].worker == worker) {
            return true;
        }
    }
    return push->from == NULL && push->worker == worker;
}

static bool has_pushed(const group_t *group, uint32_t worker)
{
    for (size_t i = 0; i < group->n; i++) {
        if (is_of(&group->pushes[i], worker)) {
            return true;
        }
    }
    return false;
}

/* True when the push stands beside the one before it in the tree of positions. A span of several
 * positions meets another push only when a worker came into it later, by joining the running
 * clock; then that push is not inside of the span's sum, but added after it. */
static bool stands_beside(const ps_logged_t *before, const ps_logged_t *push)
{
    return push->worker >= before->worker + before->n ||
           (push->worker == before->worker && push->n == 1 && before->n == 1);
}

/* The first pushes of the group that can be one sum. */
static group_t first_sum(const group_t *group)
{
    group_t sum = {.pushes = group->pushes, .n = 1};

    while (sum.n < group->n && stands_beside(&group->pushes[sum.n - 1], &group->pushes[sum.n])) {
        sum.n++;
    }
    return sum;
}

/* The workers that did that clock: those that finished it here in the life that
 * they have now, and those whose pushes of it lie here. Not only those that have rows
 * here: while no worker is lost in a clock, its divisor does not depend on how rows
 * are cut into partitions. It may, for a worker that is lost before its marks of the
 * clock are everywhere, or that joins again before the clock closes: it counts where
 * it has a push, and elsewhere only where its mark came and its rank did not join
 * again (docs/guarantees.md). */
static uint32_t count_workers(const ps_gate_t *gate, const group_t *group)
{
    uint32_t n = 0;

    for (size_t i = 0; i < ps_gate_n_workers(gate); i++) {
        uint32_t worker = 0;

        (void)ps_gate_finished(gate, i, &worker);
        if (ps_gate_took_part(gate, i, group->pushes[0].clock) || has_pushed(group, worker)) {
            n++;
        }
    }
    return n > 0 ? n : 1;
}

/* Some pushes added up. */
typedef struct total {
    ps_slice_t slice;
    ps_payload_t *payload; /* owned; NULL: no rows */
} total_t;

static void total_done(total_t *self)
{
    ps_payload_destroy(&self->payload);
}

static bool add_parts(const ps_partition_t *self, uint32_t divisor, const ps_combine_part_t *parts,
                      size_t n, total_t *ret_total)
{
    const ps_extent_t *extent = ps_store_extent(self->store);
    const ps_combine_args_t args = {.type = self->spec->type,
                                    .first_col = extent->first_col,
                                    .width = extent->last_col - extent->first_col + 1,
                                    .divisor = divisor};

    return ps_combine(&args, parts, n, &ret_total->slice, &ret_total->payload, NULL) == PSD_OK;
}

static bool add_pushes(const ps_partition_t *self, uint32_t divisor, const group_t *sum,
                       total_t *ret_total)
{
    PSD_AUTO(ps_free_at) ps_combine_part_t *parts = ps_alloc_raw(sum->n, sizeof *parts);

    for (size_t i = 0; parts != NULL && i < sum->n; i++) {
        parts[i] = (ps_combine_part_t){.first = sum->pushes[i].worker,
                                       .n = sum->pushes[i].n,
                                       .slice = &sum->pushes[i].slice,
                                       .payload = sum->pushes[i].payload};
    }
    return parts != NULL && add_parts(self, divisor, parts, sum->n, ret_total);
}

/* Adds `more` to the total, cell by cell. */
static bool add_total(const ps_partition_t *self, uint32_t divisor, total_t *total,
                      const total_t *more)
{
    const ps_combine_part_t parts[] = {{.n = 1, .slice = &total->slice, .payload = total->payload},
                                       {.n = 1, .slice = &more->slice, .payload = more->payload}};
    total_t both = {.payload = NULL};

    if (!add_parts(self, divisor, parts, 2, &both)) {
        return false;
    }
    total_done(total);
    *total = both;
    return true;
}

/* The total of the group: its sums, one after the other. It is divided once, at its end. */
static bool add_group(const ps_partition_t *self, uint32_t divisor, const group_t *group,
                      total_t *total)
{
    group_t sum = first_sum(group);
    group_t rest = *group;

    if (!add_pushes(self, sum.n == group->n ? divisor : 1, &sum, total)) {
        return false;
    }
    while (rest.n > sum.n) {
        PSD_AUTO(total_done) total_t more = {.payload = NULL};

        rest.pushes += sum.n;
        rest.n -= sum.n;
        sum = first_sum(&rest);
        if (!add_pushes(self, 1, &sum, &more) ||
            !add_total(self, sum.n == rest.n ? divisor : 1, total, &more)) {
            return false;
        }
    }
    return true;
}

/* The updater runs once, for all of the group or for none of it: it takes a step each time. */
static bool apply_group(ps_step_t *step, ps_partition_t *self, const ps_gate_t *gate,
                        const group_t *group)
{
    const ps_row_op_t update = {.op = PS_CHANGE_UPDATE};
    uint32_t divisor = self->combine == PS_COMBINE_CLOCK_MEAN ? count_workers(gate, group) : 1;
    PSD_AUTO(total_done) total_t total = {.payload = NULL};

    return add_group(self, divisor, group, &total) &&
           ps_partition_apply(step, self, PS_UPDATER_NO_WORKER, &update, &total.slice,
                              total.payload);
}

/* Clock by clock: first the changes of rows where they lie, then the sum. As
 * apply_each. */
static size_t apply_sums(ps_step_t *step, ps_partition_t *self, const ps_job_place_t *place)
{
    const ps_open_clock_t *open = &place->open;
    size_t n = 0;

    while (n < open->n_pushes) {
        group_t group = group_of(&open->pushes[n], open->n_pushes - n);
        bool done = group.n == 0 ? apply_one(step, self, &open->pushes[n])
                                 : apply_group(step, self, place->gate, &group);

        if (!done) {
            break;
        }
        n += group.n == 0 ? 1 : group.n;
    }
    return n;
}

static size_t apply_open(ps_step_t *step, ps_partition_t *self, ps_job_place_t *place)
{
    if (self->combine == PS_COMBINE_EACH) {
        ps_open_clock_sort(&place->open);
        return apply_each(step, self, &place->open);
    }
    ps_open_clock_sort_by_clock(&place->open);
    return apply_sums(step, self, place);
}

bool ps_partition_close_clocks(ps_step_t *step, ps_partition_t *self, ps_job_place_t *place)
{
    uint64_t closed = ps_gate_closed(place->gate);
    bool over = place->applied < closed || ps_gate_is_deserted(place->gate);
    uint64_t bytes = place->open.bytes;
    size_t n = 0;

    if (!ps_gate_is_bsp(place->gate) || !over) {
        return true;
    }
    n = apply_open(step, self, place);
    ps_open_clock_drop(&place->open, n);
    step->logged_bytes -= bytes - place->open.bytes;
    self->use->logged_bytes -= bytes - place->open.bytes;
    if (place->open.n_pushes > 0) {
        return false;
    }
    if (place->applied < closed || n > 0) {
        ps_count_add(step->counts->clocks_closed, closed - place->applied);
        PS_NOTE_TRACE(step, (&(ps_note_t){.kind = PS_NOTE_CLOSED,
                                          .table = self->table,
                                          .partition = self->number,
                                          .a = ps_gate_job(place->gate),
                                          .b = closed,
                                          .c = n}));
    }
    place->applied = closed;
    return true;
}
