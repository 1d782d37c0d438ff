/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the values seen with the pushes. Every client has a column of its
 * own and pushes positive numbers into it, so the value of a cell shows exactly
 * how many of that client's pushes are in it: it must be the sum of its first
 * n, and n must lie within the promised bounds.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "sim.h"
#include "wire/records/bundle.h"

/* A gathered payload, for easy access. */
typedef struct seen {
    const sim_t *sim;
    ps_slice_t slice;
    const ps_payload_t *payload;
    ps_buffer_t values; /* owned; in one piece */
} seen_t;

static const uint8_t *value_at(const seen_t *seen, size_t i)
{
    return seen->values.data + i * ps_type_size(seen->slice.type);
}

/* The bytes of one cell; NULL where a sparse row has no entry. */
static const uint8_t *cell(const seen_t *seen, uint32_t row, uint32_t col)
{
    size_t entry = 0;
    uint32_t count = 0;

    if (seen->slice.layout == PS_LAYOUT_DENSE) {
        return value_at(seen, (size_t)row * seen->slice.n_cols + col);
    }
    for (uint32_t i = 0; i < row; i++) {
        entry += ps_load_u32(seen->payload->index.data + (size_t)4 * i);
    }
    count = ps_load_u32(seen->payload->index.data + (size_t)4 * row);
    for (size_t i = entry; i < entry + count; i++) {
        if (ps_load_u32(seen->payload->index.data + 4 * (seen->slice.n_rows + i)) == col) {
            return value_at(seen, i);
        }
    }
    return NULL;
}

static int64_t number_at(const seen_t *seen, uint32_t row, uint32_t col)
{
    const uint8_t *at = cell(seen, row, col);

    if (at == NULL) {
        return 0;
    }
    return seen->slice.type == PS_TYPE_I32 ? ps_load_i32(at) : ps_load_i64(at);
}

static bool is_delta(const sim_op_t *op)
{
    return sim_is_push(op->step.kind) && !op->step.bad;
}

/* Which of its rows a push changes; n_rows: it does not change this one. */
static uint32_t place_of(const sim_op_t *op, uint32_t row)
{
    uint32_t i = 0;

    while (i < op->step.n_rows && op->step.rows[i] != row) {
        i++;
    }
    return is_delta(op) ? i : op->step.n_rows;
}

/* The value of a cell of the pusher's own column after a push. */
static int64_t behind(const sim_op_t *op, uint32_t row, int64_t value)
{
    uint32_t i = place_of(op, row);

    if (i == op->step.n_rows) {
        return value;
    }
    return op->step.kind == SIM_SCALE ? value * 2 : value + op->step.deltas[i];
}

/* The value of a cell of the client's own column after its first n operations.
 * Where a clock's deltas are added up, what scales rows comes before them. */
static int64_t value_behind(const sim_t *sim, const sim_client_t *client, uint32_t row, size_t n)
{
    bool sums = sim->plan.spec.combine != PS_COMBINE_EACH && sim->plan.max_delay == 0;
    int64_t now = 0;

    for (size_t from = 0, to = 0; from < n; from = to) {
        while (to < n && client->ops[to].clock == client->ops[from].clock) {
            to++;
        }
        for (size_t i = from; sums && i < to; i++) {
            now = client->ops[i].step.kind == SIM_SCALE ? behind(&client->ops[i], row, now) : now;
        }
        for (size_t i = from; i < to; i++) {
            bool done = sums && client->ops[i].step.kind == SIM_SCALE;

            now = done ? now : behind(&client->ops[i], row, now);
        }
    }
    return now;
}

/* What a push adds to a row's shared column; 0: nothing. */
static int64_t shared_delta_of(const sim_op_t *op, uint32_t row)
{
    uint32_t i = place_of(op, row);

    return i == op->step.n_rows || op->step.kind == SIM_SCALE || op->step.layout == 3
               ? 0
               : op->step.deltas[i];
}

/* The pushes of a client that a reader must see, and those that it may see. */
typedef struct bound {
    const char *promise;
    size_t least; /* operations before this one: must */
    size_t most;  /* operations before this one: may */
} bound_t;

/* Operations of the clocks 1 … clock: those made when fewer were finished. */
static size_t ops_of_clocks(const sim_client_t *client, uint64_t clock)
{
    size_t n = 0;

    while (n < client->n_ops && client->ops[n].clock < clock) {
        n++;
    }
    return n;
}

/* Up to the last acknowledged push into that row. */
static size_t ops_acknowledged(const sim_client_t *client, uint32_t row)
{
    size_t n = 0;

    for (size_t i = 0; i < client->n_ops; i++) {
        const sim_op_t *op = &client->ops[i];

        if (op->done && place_of(op, row) < op->step.n_rows) {
            n = i + 1;
        }
    }
    return n;
}

static bound_t bound_of(const sim_t *sim, const sim_client_t *reader, size_t at,
                        const sim_client_t *writer, uint32_t row)
{
    const sim_op_t *op = &reader->ops[at];
    int32_t delay = sim->plan.max_delay;
    bound_t bound = {.promise = "C1", .most = writer->n_ops};

    if (reader->reader) {
        bound.promise = "W1";
        bound.least = writer->killed ? ops_acknowledged(writer, row) : writer->n_ops;
    } else if (delay == 0) {
        bound.promise = "C2";
        if (!writer->killed) {
            bound.least = ops_of_clocks(writer, op->clock);
            bound.most = bound.least;
        }
    } else if (writer == reader) {
        bound.promise = "C3";
        bound.least = op->step.kind == SIM_PUSHPULL ? at + 1 : at;
    } else if (delay > 0 && op->clock > (uint64_t)delay && !writer->killed) {
        bound.least = ops_of_clocks(writer, op->clock - (uint64_t)delay);
    }
    return bound;
}

static void check_cell(sim_t *sim, const sim_client_t *reader, size_t at,
                       const sim_client_t *writer, uint32_t row, int64_t value)
{
    bound_t bound = bound_of(sim, reader, at, writer, row);
    size_t last = SIZE_MAX; /* operations after which it is `value` */
    bool kept = false;

    for (size_t i = 0; i <= writer->n_ops; i++) {
        if (value_behind(sim, writer, row, i) == value) {
            last = i;
            kept = kept || (i >= bound.least && i <= bound.most);
        }
    }
    if (last == SIZE_MAX) {
        sim_fail(sim,
                 "W1: client %u op %zu sees %lld in row %u of client %u: not "
                 "what its first pushes make",
                 reader->number, at + 1, (long long)value, row, writer->number);
    } else if (!kept) {
        sim_fail(sim,
                 "%s: client %u op %zu (clock %llu, max_delay %d) sees %lld in "
                 "row %u of client %u: its operations up to %zu; "
                 "promised %zu .. %zu",
                 bound.promise, reader->number, at + 1, (unsigned long long)reader->ops[at].clock,
                 sim->plan.max_delay, (long long)value, row, writer->number, last, bound.least,
                 bound.most);
    }
}

/* The column that all push into: only its final value is known. */
static void check_shared(sim_t *sim, uint32_t row, int64_t value)
{
    int64_t least = 0;
    int64_t most = 0;

    for (uint32_t i = 0; i < sim->plan.n_clients; i++) {
        const sim_client_t *writer = &sim->clients[i];

        for (size_t j = 0; j < writer->n_ops; j++) {
            const sim_op_t *op = &writer->ops[j];
            int64_t delta = shared_delta_of(op, row);

            most += delta;
            least += op->done ? delta : 0;
        }
    }
    if (value < least || value > most) {
        sim_fail(sim,
                 "W1: row %u ends with %lld; acknowledged %lld, tried "
                 "%lld",
                 row, (long long)value, (long long)least, (long long)most);
    }
}

/* Takes the bits of a row into the client's digest, whatever the order in
 * which answers came. */
static void digest_row(sim_client_t *client, const seen_t *seen, const sim_op_t *op, uint32_t row)
{
    for (uint32_t col = 0; col <= seen->sim->plan.n_clients; col++) {
        const uint8_t *at = cell(seen, row, col);
        uint64_t about[4] = {client->number, op->line, op->step.rows[row], col};

        if (at != NULL) {
            client->digest += ps_hash_bytes(at, ps_type_size(seen->slice.type),
                                            ps_hash_bytes(about, sizeof about, 0));
        }
    }
}

static void check_row(sim_t *sim, sim_client_t *client, size_t at, const seen_t *seen, uint32_t row)
{
    const sim_op_t *op = &client->ops[at];

    digest_row(client, seen, op, row);
    if (seen->slice.type == PS_TYPE_F32) {
        return; /* another run must give the same bits */
    }
    for (uint32_t i = 0; i < sim->plan.n_clients; i++) {
        check_cell(sim, client, at, &sim->clients[i], op->step.rows[row], number_at(seen, row, i));
    }
    if (client->reader) {
        check_shared(sim, op->step.rows[row], number_at(seen, row, sim->plan.n_clients));
    }
}

void sim_check_values(sim_t *sim, sim_client_t *client, size_t at, const ps_message_t *message,
                      const ps_payload_t *payload)
{
    seen_t seen = {.sim = sim, .payload = payload};

    sim->n_pulls_checked++;
    ps_message_slice(message, &seen.slice);
    if (seen.slice.type != sim->plan.spec.type || payload == NULL ||
        seen.slice.n_rows != message->values.n_done) {
        sim_fail(sim, "VALUES that are not what was asked for");
        return;
    }
    for (size_t i = 0; i < payload->n_spans; i++) {
        sim_need(ps_buffer_append(&seen.values, payload->spans[i].data, payload->spans[i].size),
                 "memory for values");
    }
    if (seen.values.size != seen.slice.n_values * ps_type_size(seen.slice.type) ||
        (seen.slice.layout == PS_LAYOUT_DENSE && seen.slice.n_cols != sim->plan.n_clients + 1)) {
        sim_fail(sim, "VALUES of another shape than was asked for");
    }
    for (uint32_t i = 0; i < seen.slice.n_rows && !sim->failed; i++) {
        check_row(sim, client, at, &seen, i);
    }
    ps_buffer_done(&seen.values);
}

/* The sum of the client's own column over the rows of the operation, after
 * its first n operations. */
static int64_t sum_behind(const sim_t *sim, const sim_client_t *client, const sim_op_t *op,
                          size_t n)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < op->step.n_rows; i++) {
        sum += value_behind(sim, client, op->step.rows[i], n);
    }
    return sum;
}

void sim_check_sum(sim_t *sim, sim_client_t *client, size_t at, const ps_message_t *message,
                   const ps_payload_t *payload)
{
    const sim_op_t *op = &client->ops[at];
    bound_t bound = bound_of(sim, client, at, client, op->step.rows[0]);
    uint64_t about[2] = {client->number, op->line};
    double number = 0;

    sim->n_pulls_checked++;
    if (message->values.type != PS_TYPE_F64 || payload == NULL || payload->n_spans != 1 ||
        payload->spans[0].size != sizeof number) {
        sim_fail(sim, "a SUM that is not one number");
        return;
    }
    number = ps_load_f64(payload->spans[0].data);
    client->digest +=
        ps_hash_bytes(payload->spans[0].data, sizeof number, ps_hash_bytes(about, sizeof about, 1));
    if (sim->plan.spec.type == PS_TYPE_F32) {
        return;
    }
    for (size_t n = bound.least; n <= bound.most; n++) {
        if ((double)sum_behind(sim, client, op, n) == number) {
            return;
        }
    }
    sim_fail(sim,
             "%s: client %u op %zu is told a sum of %.0f; promised: behind its "
             "operations %zu .. %zu",
             bound.promise, client->number, at + 1, number, bound.least, bound.most);
}

/* The partition takes seqs first … last of a session. */
static void check_seqs(sim_t *sim, uint32_t partition, uint64_t session, uint64_t first,
                       uint64_t last)
{
    uint64_t *before = NULL;

    sim_need(session >= 1 && session <= SIM_CLIENTS_MAX, "a session that exists");
    before = &sim->seqs[partition][session - 1];
    if (first != *before + 1) {
        sim_fail(sim, "W3: partition %u takes seq %llu of session %llu after %llu", partition,
                 (unsigned long long)first, (unsigned long long)session,
                 (unsigned long long)*before);
    }
    *before = last;
}

static void check_bundle(sim_t *sim, const ps_record_t *record, const ps_payload_t *payload)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    bool is_sum = false;

    sim_need(payload != NULL && payload->n_spans == 1 &&
                 ps_bundle_read(payload->spans[0], (uint16_t)record->worker,
                                (uint16_t)record->member, &bundle, NULL) == PSD_OK,
             "a bundle that can be read");
    for (uint16_t i = 0; i < bundle.n_from; i++) {
        check_seqs(sim, record->partition, bundle.from[i].session, bundle.from[i].first_seq,
                   bundle.from[i].last_seq);
    }
    for (uint16_t i = 0; i < bundle.n_spans; i++) {
        is_sum = is_sum || bundle.spans[i].n > 1;
    }
    sim->n_bundles++;
    sim->n_sums += is_sum ? 1 : 0;
}

void sim_check_record(sim_t *sim, uint32_t shard, const ps_record_t *record,
                      const ps_payload_t *payload)
{
    uint64_t *lsn = &sim->lsn[record->partition];

    if (sim->routes[record->partition].shard != shard) {
        sim_fail(sim, "partition %u changes at shard %u, where it is not", record->partition,
                 shard);
    }
    if (record->lsn != *lsn + 1) {
        sim_fail(sim, "log: partition %u goes from %llu to %llu", record->partition,
                 (unsigned long long)*lsn, (unsigned long long)record->lsn);
    }
    *lsn = record->lsn;
    if (record->kind == PS_RECORD_BUNDLE) {
        check_bundle(sim, record, payload);
        return;
    }
    if (record->kind != PS_RECORD_PUSH && record->kind != PS_RECORD_MARK &&
        record->kind != PS_RECORD_REFUSAL) {
        return;
    }
    check_seqs(sim, record->partition, record->session, record->seq, record->seq);
}
