/* SPDX-License-Identifier: Apache-2.0 */
/* A worker: a session of the core, and the script that it follows. In each clock it pulls all rows,
 * or not, pushes to each partition once or twice, or not, and marks; now and then it waits for
 * all of that. */
#include <string.h>

#include "base/cursor.h"
#include "base/hash.h"
#include "sim_overlay.h"

static uint64_t draw(overlay_life_t *life, uint64_t bound)
{
    return ps_rng_below(&life->script, bound);
}

void overlay_worker_plan_step(overlay_t *self, overlay_life_t *life)
{
    if (!life->is_planned && life->client.session != NULL && !life->is_through) {
        life->is_planned = true;
        overlay_at(self, self->now_ms + 1 + overlay_below(self, self->weather.think_ms),
                   OVERLAY_EVENT_STEP, life->number);
    }
}

static void plan_tick(overlay_t *self, overlay_life_t *life)
{
    uint64_t at_ms = ps_session_deadline(life->client.session);
    uint64_t rows_ms = overlay_rows_due(life);

    at_ms = rows_ms < at_ms ? rows_ms : at_ms;
    if (at_ms < life->client.wake_ms) {
        life->client.wake_ms = at_ms;
        overlay_at(self, at_ms, OVERLAY_EVENT_CLIENT, life->number);
    }
}

/* ---- what a push carries ---- */

static void write_value(const overlay_t *self, const overlay_life_t *life, const overlay_op_t *op,
                        uint64_t cell, uint8_t *to)
{
    uint64_t about =
        self->workload * 1000003 + life->number * 5003 + op->bit * 71 + cell * 7 + op->partition;
    ps_rng_t rng = {.state = ps_hash_u64(about)};
    float value = ((float)ps_rng_below(&rng, 2000) - 999.5F) * 0.37F;

    if (self->plan.spec.type == PS_TYPE_I64) {
        ps_store_i64(to, INT64_C(1) << op->bit);
        return;
    }
    value *= (float)(UINT64_C(1) << ps_rng_below(&rng, 14));
    if (self->plan.is_huge && ps_rng_below(&rng, 3) == 0) {
        value = ps_rng_below(&rng, 2) == 0 ? 3e38F : -3e38F;
    }
    ps_store_f32(to, value);
}

static ps_payload_t *make_payload(const overlay_t *self, const overlay_life_t *life,
                                  const overlay_op_t *op, ps_slice_t *ret_slice)
{
    const ps_table_spec_t *spec = &self->plan.spec;
    uint32_t n_rows = overlay_rows_of(&self->plan, op->partition);
    uint32_t first = self->plan.first_row[op->partition];
    uint32_t n = op->is_list ? (uint32_t)__builtin_popcount(op->rows) : n_rows;
    size_t width = ps_type_size(spec->type);
    uint8_t *bytes = NULL;
    ps_payload_t *payload = ps_payload_room(op->is_list ? n * sizeof(uint64_t) : 0, 0,
                                            n * spec->n_cols * width, &bytes);

    overlay_need(payload != NULL, "memory for a push");
    *ret_slice = (ps_slice_t){.rows = op->is_list ? PS_ROWS_LIST : PS_ROWS_RANGE,
                              .type = spec->type,
                              .n_rows = n,
                              .first_row = op->is_list ? 0 : first,
                              .n_cols = spec->n_cols,
                              .n_values = (uint64_t)n * spec->n_cols};
    for (uint32_t row = 0; op->is_list && row < n_rows; row++) {
        if ((op->rows >> row & 1) != 0) {
            ps_store_u64(bytes, first + row);
            bytes += sizeof(uint64_t);
        }
    }
    for (uint32_t row = 0; row < n_rows; row++) {
        for (uint32_t col = 0; (op->rows >> row & 1) != 0 && col < spec->n_cols; col++) {
            write_value(self, life, op, row * UINT64_C(8) + col, bytes);
            bytes += width;
        }
    }
    return payload;
}

/* ---- operations ---- */

static ps_op_start_t start_of(const overlay_t *self, const overlay_life_t *life,
                              const overlay_op_t *op)
{
    ps_op_start_t start = {.table = OVERLAY_TABLE, .partition = op->partition, .marks = op->marks};

    if (!life->is_reader) {
        start.worker = (ps_op_worker_t){
            .job = OVERLAY_JOB, .worker = life->rank, .joins = life->joins, .clock = op->clock};
    }
    if (op->kind == OVERLAY_MARK) {
        start.kind = PS_KIND_MARK;
        start.marks = false;
    } else if (op->kind == OVERLAY_PUSH) {
        start.kind = PS_KIND_PUSH;
        start.payload = make_payload(self, life, op, &start.slice);
    } else {
        start.kind = PS_KIND_PULL;
        start.op = op->kind == OVERLAY_DIGEST ? PS_READ_DIGEST : PS_READ_VALUES;
        start.slice = (ps_slice_t){.rows = PS_ROWS_RANGE,
                                   .type = self->plan.spec.type,
                                   .n_rows = overlay_rows_of(&self->plan, op->partition),
                                   .first_row = self->plan.first_row[op->partition],
                                   .n_cols = self->plan.spec.n_cols};
    }
    return start;
}

void overlay_worker_start_op(overlay_t *self, overlay_life_t *life, const overlay_op_t *op)
{
    static const char *const names[] = {"", "push", "mark", "pull", "digest"};
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};
    ps_op_start_t start = start_of(self, life, op);
    uint64_t number = 0;

    overlay_need(ps_grow(&life->ops, &life->ops_capacity, life->n_ops + 1, sizeof *life->ops),
                 "memory for an operation");
    life->ops[life->n_ops++] = *op;
    overlay_trace(self, "worker %u.%u (clock %" PRIu64 "): op %zu, %s%s to partition %u",
                  life->rank, life->joins, op->clock, life->n_ops, names[op->kind],
                  op->marks && op->kind == OVERLAY_PUSH ? " and mark" : "", op->partition);
    overlay_need(ps_session_start(life->client.session, self->now_ms, &start, &outbox, &number,
                                  NULL) == PSD_OK &&
                     number == life->n_ops,
                 "an operation that starts");
    ps_payload_destroy(&start.payload);
    overlay_worker_perform(self, life, &outbox);
}

void overlay_worker_run(overlay_t *self, overlay_life_t *life, uint32_t partition)
{
    overlay_queue_t *queue = &life->queues[partition];

    while (queue->n_waiting > 0) {
        overlay_op_t op = queue->waiting[0];

        if ((queue->is_asked && op.marks) || !overlay_lend_choose(self, life, &op)) {
            return;
        }
        queue->n_waiting--;
        memmove(queue->waiting, queue->waiting + 1, queue->n_waiting * sizeof *queue->waiting);
        if (op.kind == OVERLAY_PULL && overlay_rows_begin(self, life, op.partition)) {
            op.kind = OVERLAY_DIGEST;
        }
        overlay_worker_start_op(self, life, &op);
    }
}

static void submit(overlay_t *self, overlay_life_t *life, const overlay_op_t *op)
{
    overlay_queue_t *queue = &life->queues[op->partition];

    overlay_need(
        ps_grow(&queue->waiting, &queue->capacity, queue->n_waiting + 1, sizeof *queue->waiting),
        "memory for a request");
    queue->waiting[queue->n_waiting++] = *op;
    life->n_open++;
    overlay_worker_run(self, life, op->partition);
}

static void end_op(overlay_t *self, overlay_life_t *life, uint64_t number,
                   const ps_message_t *message, ps_payload_t *payload)
{
    overlay_op_t *op = &life->ops[number - 1];
    uint32_t partition = op->partition;

    overlay_trace(self, "  worker %u: op %" PRIu64 " ends as %s", life->rank, number,
                  ps_kind_name(message->kind));
    if (op->done) {
        overlay_fail(self, "worker %u: operation %" PRIu64 " ended twice", life->rank, number);
    }
    op->done = true;
    if (message->kind == PS_KIND_REFUSED) {
        overlay_fail(self, "worker %u: op %" PRIu64 " was refused: %s %s", life->rank, number,
                     psd_status_name((psd_status_t)message->refused.status), message->refused.text);
    } else if (op->kind == OVERLAY_DIGEST) {
        overlay_rows_digest(self, life, number - 1, message, payload);
    } else if (op->kind == OVERLAY_PULL) {
        overlay_check_values(self, life, op, payload);
        overlay_rows_pass_on(self, life, partition, op->clock, payload);
        life->n_open--;
    } else {
        overlay_lend_ended(life, op, true);
        life->n_open--;
    }
    overlay_worker_run(self, life, partition);
    overlay_worker_plan_step(self, life);
}

void overlay_worker_perform(overlay_t *self, overlay_life_t *life, const ps_outbox_t *outbox)
{
    const char *why = "";

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        if (effect->kind == PS_EFFECT_OPEN) {
            overlay_speaker_open(self, life, false, effect->to);
        } else if (effect->kind == PS_EFFECT_SEND && !overlay_lend(self, life, effect)) {
            overlay_send(self, life->client.links[effect->to].conn, false, &effect->message,
                         effect->payload);
        } else if (effect->kind == PS_EFFECT_DONE) {
            end_op(self, life, effect->to, &effect->message, effect->payload);
        }
    }
    if (ps_session_broken(life->client.session, &why) != PSD_OK) {
        overlay_fail(self, "worker %u is broken: %s", life->rank, why);
    }
    plan_tick(self, life);
}

/* ---- the script ---- */

static bool push(overlay_t *self, overlay_life_t *life, uint32_t partition, bool marks)
{
    overlay_queue_t *queue = &life->queues[partition];
    uint32_t all = (UINT32_C(1) << overlay_rows_of(&self->plan, partition)) - 1;
    uint64_t clocks_left = self->plan.n_clocks - life->clock;
    overlay_op_t op = {.kind = OVERLAY_PUSH,
                       .partition = partition,
                       .clock = life->clock,
                       .marks = marks,
                       .bit = life->number * self->plan.n_pushes + queue->n_pushed,
                       .rows = all,
                       .is_list = draw(life, 3) == 0};

    if (op.is_list) {
        op.rows = 1 + (uint32_t)draw(life, all);
    }
    /* two of a clock only while there are enough for one in each clock that is left */
    if (queue->n_pushed + (marks ? 0 : clocks_left) >= self->plan.n_pushes) {
        return false;
    }
    queue->n_pushed++;
    submit(self, life, &op);
    return true;
}

static void end_clock(overlay_t *self, overlay_life_t *life, uint32_t partition, bool by_push)
{
    const overlay_op_t mark = {
        .kind = OVERLAY_MARK, .partition = partition, .clock = life->clock + 1, .marks = true};

    if (!by_push || !push(self, life, partition, true)) {
        submit(self, life, &mark);
    }
}

/* All of a clock but its pulls. */
static void work(overlay_t *self, overlay_life_t *life)
{
    for (uint32_t p = 0; p < self->plan.spec.n_partitions; p++) {
        if (draw(life, 8) == 0) {
            (void)push(self, life, p, false);
        }
        end_clock(self, life, p, draw(life, 6) > 0);
    }
    life->clock++;
}

static void pull(overlay_t *self, overlay_life_t *life)
{
    for (uint32_t p = 0; p < self->plan.spec.n_partitions; p++) {
        const overlay_op_t op = {.kind = OVERLAY_PULL, .partition = p, .clock = life->clock};

        submit(self, life, &op);
    }
}

static void leave(overlay_t *self, overlay_life_t *life)
{
    life->is_through = true;
    overlay_trace(self, "worker %u.%u is through", life->rank, life->joins);
    if (life->relay.machine != NULL) {
        overlay_relay_leave(self, life);
    } else {
        overlay_worker_leave(self, life);
    }
}

/* One stage of a clock; the next one. */
static overlay_stage_t do_stage(overlay_t *self, overlay_life_t *life)
{
    bool waits = false;

    switch (life->stage) {
    case OVERLAY_BEGINS:
        waits = draw(life, 2) == 0 || self->plan.in_step || life->is_reader;
        if (draw(life, 3) > 0 || self->plan.in_step || life->is_reader) {
            pull(self, life);
        }
        return waits ? OVERLAY_WAITS : OVERLAY_WORKS;
    case OVERLAY_WORKS:
        work(self, life);
        return draw(life, 4) == 0 ? OVERLAY_ENDS : OVERLAY_BEGINS;
    case OVERLAY_WAITS: /* all has ended */
        return OVERLAY_WORKS;
    case OVERLAY_ENDS:
    default:
        return OVERLAY_BEGINS;
    }
}

void overlay_worker_step(overlay_t *self, overlay_life_t *life)
{
    bool is_last =
        life->is_reader ? life->stage == OVERLAY_WAITS : life->clock >= self->plan.n_clocks;

    life->is_planned = false;
    if (life->client.session == NULL || life->is_through) {
        return;
    }
    if (life->n_open > 0 &&
        (is_last || life->stage == OVERLAY_WAITS || life->stage == OVERLAY_ENDS)) {
        return; /* the end of each request comes here again */
    }
    if (is_last) {
        leave(self, life);
        return;
    }
    life->stage = do_stage(self, life);
    overlay_worker_plan_step(self, life);
}

/* ---- what comes ---- */

void overlay_worker_received(overlay_t *self, overlay_life_t *life, uint64_t link,
                             const ps_message_t *message, ps_payload_t *payload)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    ps_session_received(life->client.session, self->now_ms, link, message, payload, &outbox);
    overlay_worker_perform(self, life, &outbox);
}

void overlay_worker_tick(overlay_t *self, overlay_life_t *life)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    life->client.wake_ms = UINT64_MAX;
    if (life->client.session == NULL) {
        return;
    }
    ps_session_tick(life->client.session, self->now_ms, &outbox);
    overlay_worker_perform(self, life, &outbox);
    overlay_rows_look(self, life);
    plan_tick(self, life);
}

void overlay_worker_relinked(overlay_t *self, overlay_life_t *life, uint64_t link)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {0};

    if (life->client.session == NULL) {
        return;
    }
    ps_session_relinked(life->client.session, self->now_ms, link, &outbox);
    overlay_worker_perform(self, life, &outbox);
}

/* ---- life ---- */

void overlay_worker_start(overlay_t *self, overlay_life_t *life, uint64_t clock)
{
    ps_session_args_t args = {.cluster = {.bytes = {1, 2, 3}},
                              .session = life->number + 1,
                              .resend_ms = self->weather.resend_ms};

    args.client.bytes[0] = (uint8_t)(life->number + 1);
    overlay_need(ps_session_new(&args, &life->client.session, NULL) == PSD_OK &&
                     ps_session_routes(life->client.session, OVERLAY_TABLE, self->routes,
                                       self->plan.spec.n_partitions, NULL) == PSD_OK,
                 "memory for a session");
    life->runs = true;
    life->client.wake_ms = UINT64_MAX;
    life->clock = clock;
    life->script.state = ps_hash_u64(self->workload * 64 + life->number);
    overlay_trace(self, "worker %u.%u starts at clock %" PRIu64, life->rank, life->joins, clock);
    if (self->weather.has_relays && !life->is_reader) {
        overlay_relay_start(self, life);
    }
    overlay_worker_plan_step(self, life);
}

void overlay_worker_leave(overlay_t *self, overlay_life_t *life)
{
    const ps_message_t bye = {.kind = PS_KIND_BYE, .bye = {.session = life->number + 1}};
    ps_worker_t *worker = life->is_reader ? NULL : ps_job_worker(&self->job, life->rank);

    for (size_t i = 0; i < life->client.n_links; i++) {
        overlay_send(self, life->client.links[i].conn, false, &bye, NULL);
    }
    ps_session_destroy(&life->client.session);
    if (worker != NULL) {
        worker->state = PS_WORKER_FINISHED;
        overlay_node_tell(self);
        overlay_at(self, self->now_ms, OVERLAY_EVENT_TREE, 1);
    }
}

void overlay_worker_kill(overlay_t *self, overlay_life_t *life)
{
    overlay_trace(self, "worker %u.%u is killed", life->rank, life->joins);
    life->is_killed = true;
    overlay_relay_end(life);
    ps_session_destroy(&life->client.session);
    (void)self;
}

void overlay_worker_done(overlay_life_t *life)
{
    overlay_relay_end(life);
    ps_session_destroy(&life->client.session);
    for (uint32_t p = 0; p < OVERLAY_PARTITIONS_MAX; p++) {
        ps_payload_destroy(&life->queues[p].rows);
        ps_free(life->queues[p].waiting);
    }
    ps_free(life->ops);
}
