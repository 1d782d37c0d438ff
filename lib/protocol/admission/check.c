/* SPDX-License-Identifier: Apache-2.0 */
/* The checks before a request is taken: is it its turn, and is it valid? */
#include <inttypes.h>

#include "base/alloc.h"
#include "model/store/store_growth.h"
#include "model/store/store_image.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

#define OTHER_AGAIN_MS 50 /* between two looks at another table's lease */

bool ps_partition_reaches_level(const ps_partition_t *self, const ps_request_t *request)
{
    uint8_t level = request->ack == PS_ACK_DEFAULT ? (uint8_t)self->spec->ack : request->ack;

    return level <= PS_ACK_MEMORY ||
           (level == PS_ACK_REPLICA && self->replicas != NULL && self->replicas->n_in_sync > 0) ||
           (level == PS_ACK_DISK && self->has_log);
}

/* Its records must reach other copies, or survive on the disk. A table of one
 * copy has another one only while it moves. */
static bool needs_all_records(const ps_partition_t *self)
{
    return self->spec->replicas > 1 || self->has_log;
}

bool ps_partition_waits_for_move(const ps_step_t *step, const ps_partition_t *self,
                                 const ps_request_t *request)
{
    return request->kind == PS_KIND_PUSH && !needs_all_records(self) &&
           ps_replicas_any_counts(self->replicas) &&
           !ps_replicas_can_send(step, self, &request->op, request->payload);
}

/* The other copies' leases hold, and the records that they lack may grow. */
static bool copies_allow(const ps_step_t *step, const ps_partition_t *self,
                         const ps_request_t *request)
{
    return ps_partition_may_answer(step, self) &&
           (request->kind == PS_KIND_PULL || (ps_replicas_has_room(step, self) &&
                                              !ps_partition_waits_for_move(step, self, request)));
}

static bool is_in_turn(const ps_partition_t *self, const ps_request_t *request)
{
    const ps_window_t *window = NULL;

    if (request->after == 0) {
        return true;
    }
    window = ps_map_get(&self->windows, request->session);
    return window != NULL && window->next > request->after;
}

/* What the job's gate at this partition lets it wait for. Nothing, when its worker
 * may not work, because it will then be refused. A joining worker may learn that it
 * runs before this node does: the gate opens when the job's update arrives here. */
static ps_held_for_t ask_gate(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_job_place_t *place = NULL;
    bool is_open = false;

    if (ps_partition_place(step, self, request->job, &place, NULL) != PSD_OK || place == NULL) {
        return PS_HELD_NOT;
    }
    if (ps_gate_expects(place->gate, request->worker, request->joins)) {
        return PS_HELD_WORKER;
    }
    if (ps_gate_check(place->gate, request->worker, request->joins, request->member, NULL) !=
        PSD_OK) {
        return PS_HELD_NOT;
    }
    if (ps_gate_is_bsp(place->gate) && place->applied < ps_gate_closed(place->gate)) {
        return PS_HELD_CLOCK; /* a closed clock is not in the rows yet */
    }
    is_open = request->kind == PS_KIND_MARK ? ps_gate_takes_mark(place->gate, request->worker,
                                                                 request->member, request->clock)
                                            : ps_gate_is_open(place->gate, request->clock);
    return is_open ? PS_HELD_NOT : PS_HELD_CLOCK;
}

/* The other table that the request reads may be read. Otherwise the request
 * waits and is checked again soon, because nothing wakes this partition when
 * the other one changes. */
static bool other_allows(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_partition_t *other = NULL;

    if (!ps_request_names_other(request) ||
        ps_partition_other(step, self, request, &other, NULL) != PSD_OK ||
        (!ps_partition_is_restoring(other) &&
         (other->replicas == NULL || ps_partition_may_answer(step, other)))) {
        return true;
    }
    ps_partition_wake(step, self, step->now_ms + OTHER_AGAIN_MS);
    return false;
}

/* What the partition itself lets a push wait for. */
static ps_held_for_t ask_levels(const ps_step_t *step, const ps_partition_t *self,
                                const ps_request_t *request)
{
    if (!ps_request_has_rows(request)) {
        return PS_HELD_NOT;
    }
    if (!ps_partition_reaches_level(self, request)) {
        return PS_HELD_LEVEL;
    }
    return ps_partition_log_has_room(step, self) ? PS_HELD_NOT : PS_HELD_DISK;
}

ps_held_for_t ps_partition_why(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    ps_partition_t *other = NULL;
    ps_held_for_t why = PS_HELD_NOT;

    if (ps_partition_is_restoring(self)) {
        return PS_HELD_RESTORE;
    }
    if (ps_partition_image_holds(step, self, request)) {
        return PS_HELD_CHECKPOINT;
    }
    if (self->replicas != NULL && !copies_allow(step, self, request)) {
        return PS_HELD_COPIES;
    }
    why = ask_levels(step, self, request);
    if (why != PS_HELD_NOT) {
        return why;
    }
    if (request->kind == PS_KIND_PULL && !is_in_turn(self, request)) {
        return PS_HELD_ORDER;
    }
    if (!other_allows(step, self, request)) {
        return PS_HELD_OTHER;
    }
    if (request->job == 0) {
        return PS_HELD_NOT;
    }
    why = ask_gate(step, self, request);
    /* what is read of the other table is bound by the clocks as well */
    if (why != PS_HELD_NOT || !ps_request_is_paired(request) ||
        ps_partition_other(step, self, request, &other, NULL) != PSD_OK) {
        return why;
    }
    return ask_gate(step, other, request);
}

/* Its worker was lost with rows that it used: it gets that error. */
static bool has_lost_rows(const ps_step_t *step, const ps_request_t *request, psd_error_t *err)
{
    const ps_job_t *job = ps_map_get(&step->jobs, request->job);
    psd_status_t rc = PSD_OK;

    if (job == NULL || job->lost_table[0] == '\0' || request->session > job->lost_sessions) {
        return false;
    }
    psd_error_clear(err);
    rc = psd_error_set(err, PSD_ROWS_LOST, PS_ROWS_LOST_TEXT, job->lost_table);
    return rc != PSD_OK;
}

/* Jobs are numbered as they are made: it is newer than all of which this node was told, and
 * than those that it knows. */
static bool is_newer_than_all(const ps_step_t *step, uint32_t job)
{
    uint64_t id = 0;
    size_t at = 0;
    void *value = NULL;

    if (job <= step->told_job) {
        return false;
    }
    while (ps_map_next(&step->jobs, &at, &id, &value)) {
        if (id >= job) {
            return false;
        }
    }
    return true;
}

/* A node that was frozen, or cut off, when the job was made hears of it late: its
 * worker retries. One that is forgotten stays unknown. */
static psd_status_t refuse_job(const ps_step_t *step, uint32_t job, psd_error_t *err)
{
    return is_newer_than_all(step, job)
               ? psd_error_set(err, PSD_BUSY,
                               "job %" PRIu32
                               " is not known here yet; the registry has not announced it",
                               job)
               : psd_error_set(err, PSD_NO_JOB, "job %" PRIu32 " is not known here", job);
}

/* May this worker work? *ret_place is NULL for a request of no worker. */
static psd_status_t check_worker(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                                 ps_job_place_t **ret_place, psd_error_t *err)
{
    psd_status_t rc;

    *ret_place = NULL;
    if (request->job == 0) {
        return PSD_OK;
    }
    rc = ps_partition_place(step, self, request->job, ret_place, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (*ret_place == NULL) {
        return refuse_job(step, request->job, err);
    }
    rc = ps_gate_check((*ret_place)->gate, request->worker, request->joins, request->member, err);
    return rc == PSD_WORKER_LOST && has_lost_rows(step, request, err) ? PSD_ROWS_LOST : rc;
}

/* A clock that is open keeps its pushes; one that would keep too much is
 * refused for good, because waiting cannot help: the clock would never close.
 */
static psd_status_t check_open_clock(const ps_step_t *step, const ps_job_place_t *place,
                                     const ps_request_t *request, psd_error_t *err)
{
    uint64_t cost = ps_open_clock_cost(request->payload, request->n_from) + request->beside;

    if (place == NULL || !ps_gate_is_bsp(place->gate) ||
        (step->logged_bytes <= step->args.held_bytes &&
         cost <= step->args.held_bytes - step->logged_bytes)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_LIMIT,
                         "open clocks hold %" PRIu64 " bytes on this shard, %" PRIu64
                         " more would exceed limits.held_bytes %" PRIu64 "; push less per clock",
                         step->logged_bytes, cost, step->args.held_bytes);
}

/* A request that becomes a record must fit into one frame to the other
 * copies. */
static psd_status_t check_record(const ps_step_t *step, const ps_partition_t *self,
                                 const ps_request_t *request, psd_error_t *err)
{
    const ps_row_op_t plain = {.op = PS_CHANGE_UPDATE}; /* by size alone */

    if (self->replicas == NULL || !needs_all_records(self) ||
        ps_replicas_can_send(step, self, &plain, request->payload)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_LIMIT,
                         "a push of %" PRIu64 " bytes into a table with copies; allowed: %" PRIu64
                         ", because one frame of limits.frame_bytes replicates it",
                         ps_payload_size(request->payload),
                         step->args.record_bytes - PS_RECORD_BESIDE);
}

static bool is_plain_read(const ps_request_t *request)
{
    return request->op.op == PS_READ_VALUES && request->since == 0;
}

/* Memory in use and its limit, 0: none. */
typedef struct budget {
    uint64_t limit;
    uint64_t kept;
} budget_t;

/* A request that adds nothing always fits: a full table stays usable. */
static bool fits(budget_t budget, uint64_t more)
{
    return budget.limit == 0 || more == 0 ||
           (budget.kept <= budget.limit && more <= budget.limit - budget.kept);
}

static uint64_t added(uint64_t a, uint64_t b)
{
    uint64_t sum = 0;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static psd_status_t above_node(budget_t node, uint64_t more, psd_error_t *err)
{
    return psd_error_set(err, PSD_LIMIT,
                         "it takes %" PRIu64 " bytes and the node keeps %" PRIu64
                         "; limits.memory_bytes is %" PRIu64,
                         more, node.kept, node.limit);
}

static psd_status_t above_table(const ps_step_t *step, const ps_partition_t *self, budget_t table,
                                uint64_t more, psd_error_t *err)
{
    return psd_error_set(err, PSD_LIMIT,
                         "it takes %" PRIu64 " bytes and shard %" PRIu32 " keeps %" PRIu64
                         " of table %.*s; allowed: %" PRIu64 " for %" PRIu32 " of %" PRIu32
                         " partitions, as limits.table_bytes is %" PRIu64,
                         more, step->args.shard, table.kept, PS_NAME_MAX, self->spec->name,
                         table.limit, self->use->n_here, self->spec->n_partitions,
                         step->args.table_bytes);
}

/* A push or change creates rows, which must fit into the node's memory and the
 * table's limit; one that is kept until its clock closes also needs its own
 * bytes. Waiting would not help, because memory stays full. change is NULL for
 * a push. */
static psd_status_t check_memory(const ps_step_t *step, const ps_partition_t *self,
                                 const ps_request_t *request, const ps_row_change_t *change,
                                 bool bsp, psd_error_t *err)
{
    const ps_table_use_t *use = self->use;
    const budget_t node = {.limit = step->args.memory_bytes,
                           .kept = step->row_bytes + step->other_bytes +
                                   (bsp ? step->logged_bytes : 0)};
    const budget_t table = {.limit = use->limit_bytes,
                            .kept = use->row_bytes + (bsp ? use->logged_bytes : 0)};
    uint64_t log =
        bsp ? ps_open_clock_cost(request->payload, request->n_from) + request->beside : 0;
    uint64_t more = 0;

    if (node.limit == 0 && table.limit == 0) {
        return PSD_OK;
    }
    if (change != NULL) {
        more = added(
            log, ps_store_change_growth(self->store, &request->slice, request->payload, change));
    } else {
        more = added(log, ps_store_growth_bound(self->store, &request->slice));
        if (fits(node, more) && fits(table, more)) {
            return PSD_OK;
        }
        more = added(log, ps_store_growth(self->store, &request->slice, request->payload));
    }
    if (!fits(node, more)) {
        return above_node(node, more, err);
    }
    return fits(table, more) ? PSD_OK : above_table(step, self, table, more, err);
}

psd_status_t ps_partition_check(ps_step_t *step, ps_partition_t *self, const ps_request_t *request,
                                ps_job_place_t **ret_place, psd_error_t *err)
{
    psd_status_t rc = check_worker(step, self, request, ret_place, err);
    ps_row_change_t change;
    bool bsp = false;

    if (rc != PSD_OK) {
        return rc;
    }
    if (*ret_place == NULL && ps_request_marks(request)) {
        return psd_error_set(err, PSD_NOT_JOINED, "a mark of a client that is not a worker");
    }
    bsp = *ret_place != NULL && ps_gate_is_bsp((*ret_place)->gate);
    if (request->kind == PS_KIND_PULL) {
        return is_plain_read(request)
                   ? ps_store_check_pull(self->store, &request->slice, request->payload, err)
                   : ps_partition_check_read(step, self, request, err);
    }
    if (request->kind == PS_KIND_PUSH) {
        rc = check_record(step, self, request, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (request->kind == PS_KIND_PUSH && request->op.op != PS_CHANGE_UPDATE) {
        rc = ps_partition_check_change(step, self, request, bsp, &change, err);
        if (rc == PSD_OK) {
            rc = check_memory(step, self, request, &change, bsp, err);
        }
        return rc != PSD_OK ? rc : check_open_clock(step, *ret_place, request, err);
    }
    if (request->kind == PS_KIND_PUSH) {
        rc = ps_store_check_push(self->store, &request->slice, request->payload, err);
        if (rc == PSD_OK && request->job != 0) {
            rc = ps_store_check_worker(self->store, request->worker, err);
        }
        if (rc == PSD_OK) {
            rc = check_memory(step, self, request, NULL, bsp, err);
        }
        return rc != PSD_OK ? rc : check_open_clock(step, *ret_place, request, err);
    }
    return PSD_OK;
}

psd_error_t *ps_partition_words(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    psd_error_t *why = psd_error_new();
    ps_job_place_t *place = NULL;

    if (why != NULL && ps_partition_check(step, self, request, &place, why) == PSD_OK) {
        psd_error_clear(why); /* cannot be: nothing changed in between */
    }
    return why;
}
