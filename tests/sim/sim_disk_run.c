/* SPDX-License-Identifier: Apache-2.0 */
/* One seed: lives of a shard over one disk, and the check at the end. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/alloc.h"
#include "protocol/shard/shard_recover.h"
#include "sim_disk_shard.h"
#include "storage/log/journal.h"
#include "support/sim_disk.h"

#define TABLE 1
#define PARTITIONS 2
#define ROWS 8 /* the first half is partition 0's */
#define CLIENTS 3
#define PUSHES 40 /* of each client to each partition */
#define TURNS 900
#define QUIET_TURNS 4000 /* within which everything must be acknowledged */
#define BAD_ROW 1000

typedef struct push {
    uint64_t row;
    int64_t delta;
} push_t;

/* A client at a partition: seq i + 1 is pushes[i]. */
typedef struct line {
    push_t pushes[PUSHES];
    size_t n_made;
    size_t n_sent;  /* since the last restart, or GAP */
    size_t n_ended; /* acknowledged or refused: they stay so */
} line_t;

typedef struct item { /* queued for the disk */
    STAILQ_ENTRY(item) next;
    ps_effect_t effect;
    size_t size;
} item_t;

typedef struct sim {
    ps_rng_t rng;
    const char *failure; /* NULL: none */
    char text[512];
    sim_disk_t *disk;
    ps_journal_t *journal;
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_table_spec_t spec;
    uint64_t life; /* incarnation, and epoch of the map */
    uint64_t now_ms;
    uint64_t unflushed; /* bytes taken by the thread and not reported */
    bool snapshot_failed;
    int n_failing; /* starts that may fail for a fault that was planned */
    STAILQ_HEAD(, item) queue;
    line_t lines[CLIENTS][PARTITIONS];
} sim_t;

static void fail(sim_t *sim, const char *why, const char *what)
{
    if (sim->failure == NULL) {
        (void)snprintf(sim->text, sizeof sim->text, "%s: %.300s", why, what);
        sim->failure = sim->text;
    }
}

static uint64_t below(sim_t *sim, uint64_t bound)
{
    return ps_rng_below(&sim->rng, bound);
}

/* ---- answers ---- */

static void hear(sim_t *sim, uint64_t conn, const ps_message_t *message)
{
    uint32_t partition = 0;
    uint64_t seq = 0;
    line_t *line = NULL;

    if (message->kind == PS_KIND_ACK) {
        partition = message->ack.partition;
        seq = message->ack.seq;
        if (message->ack.level != PS_ACK_DISK) {
            fail(sim, "an ACK", "is not of level disk");
        }
    } else if (message->kind == PS_KIND_REFUSED && message->refused.request != 0) {
        partition = message->refused.partition;
        seq = message->refused.seq;
    } else {
        return;
    }
    line = &sim->lines[conn - 1][partition];
    if (message->kind == PS_KIND_REFUSED && message->refused.status == PSD_GAP) {
        if (message->refused.detail <= line->n_ended) {
            fail(sim, "lost", "what was acknowledged is expected again");
        }
        line->n_sent = message->refused.detail - 1;
    } else if (message->kind == PS_KIND_REFUSED &&
               (message->refused.status == PSD_BUSY || message->refused.status == PSD_NOMEM)) {
        line->n_sent = line->n_ended; /* asked again */
    } else if (seq > line->n_ended) {
        bool is_bad = line->pushes[seq - 1].row == BAD_ROW;

        if (is_bad != (message->kind == PS_KIND_REFUSED)) {
            fail(sim, "an answer", "is that of another push");
        }
        line->n_ended = seq;
    }
}

/* Effects of the shard; those for the disk join the queue. */
static void perform(sim_t *sim)
{
    for (size_t i = 0; i < sim->outbox.n_effects; i++) {
        ps_effect_t *effect = &sim->outbox.effects[i];

        if (effect->kind == PS_EFFECT_SEND) {
            hear(sim, effect->to, &effect->message);
        } else if (effect->kind == PS_EFFECT_RECORD || effect->kind == PS_EFFECT_PIECE) {
            item_t *item = calloc(1, sizeof *item);

            if (item == NULL) {
                abort();
            }
            item->effect = *effect;
            item->size = effect->kind == PS_EFFECT_PIECE
                             ? ps_payload_size(effect->payload)
                             : ps_record_size(&effect->record, effect->payload);
            effect->payload = NULL; /* the item's now */
            STAILQ_INSERT_TAIL(&sim->queue, item, next);
        }
    }
    ps_outbox_clear(&sim->outbox);
}

static void step(sim_t *sim, ps_event_t *event)
{
    event->now_ms = ++sim->now_ms;
    if (ps_shard_step(sim->shard, event, &sim->outbox, NULL) != PSD_OK) {
        fail(sim, "a step", "failed");
    }
    perform(sim);
}

/* ---- clients ---- */

static void send_push(sim_t *sim, uint32_t client, uint32_t partition, size_t at)
{
    const push_t *push = &sim->lines[client][partition].pushes[at];
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy(
        (ps_bytes_t){(const uint8_t *)&push->row, sizeof push->row}, (ps_bytes_t){NULL, 0},
        (ps_bytes_t){(const uint8_t *)&push->delta, sizeof push->delta});
    const ps_message_t message = {.kind = PS_KIND_PUSH,
                                  .push = {.request = at + 1,
                                           .table = TABLE,
                                           .partition = partition,
                                           .epoch = sim->life,
                                           .seq = at + 1,
                                           .type = PS_TYPE_I64,
                                           .n_rows = 1,
                                           .n_cols = 1,
                                           .n_values = 1}};

    step(sim, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                            .conn = client + 1,
                            .message = &message,
                            .payload = payload});
}

/* Sends a new push, or an unanswered one again. */
static void use_client(sim_t *sim, bool makes)
{
    uint32_t client = (uint32_t)below(sim, CLIENTS);
    uint32_t partition = (uint32_t)below(sim, PARTITIONS);
    line_t *line = &sim->lines[client][partition];

    if (makes && line->n_sent == line->n_made && line->n_made < PUSHES &&
        line->n_made - line->n_ended < 4) {
        line->pushes[line->n_made++] =
            (push_t){.row = below(sim, 12) == 0
                                ? BAD_ROW
                                : partition * (ROWS / PARTITIONS) + below(sim, ROWS / PARTITIONS),
                     .delta = 1 + (int64_t)below(sim, 1000)};
    }
    if (line->n_sent < line->n_made) {
        send_push(sim, client, partition, line->n_sent++);
    } else if (line->n_ended < line->n_made && below(sim, 3) == 0) {
        send_push(sim, client, partition, line->n_ended);
    }
}

/* ---- the thread of the disk ---- */

static void take_item(sim_t *sim)
{
    item_t *item = STAILQ_FIRST(&sim->queue);
    psd_status_t rc = PSD_OK;

    STAILQ_REMOVE_HEAD(&sim->queue, next);
    if (item->effect.kind == PS_EFFECT_RECORD) {
        rc = ps_journal_append(sim->journal, &item->effect.record, item->effect.payload, NULL);
        if (rc != PSD_OK) {
            fail(sim, "append", "failed");
        }
    } else {
        rc = ps_journal_piece(sim->journal, &item->effect.piece, item->effect.payload->span, NULL);
        sim->snapshot_failed = sim->snapshot_failed || rc != PSD_OK;
    }
    sim->unflushed += item->size;
    ps_payload_destroy(&item->effect.payload);
    free(item);
}

static void flush(sim_t *sim)
{
    const ps_position_t *positions = NULL;
    size_t n = 0;
    psd_status_t rc = ps_journal_flush(sim->journal, &positions, &n, NULL);
    ps_event_t event = {.kind = PS_EVENT_FLUSHED, .disk_trouble = rc == PSD_OK ? NULL : "trouble"};

    if (rc == PSD_OK) {
        event.flushed = positions;
        event.n_flushed = n;
        event.flushed_bytes = sim->unflushed;
        event.snapshot_failed = sim->snapshot_failed;
        sim->unflushed = 0;
        sim->snapshot_failed = false;
        rc = ps_journal_tidy(sim->journal, NULL); /* tried again */
    }
    event.log_bytes = ps_journal_log_bytes(sim->journal);
    if (!sim_disk_crashed(sim->disk)) {
        step(sim, &event);
    }
}

static void use_disk(sim_t *sim)
{
    uint64_t n = 1 + below(sim, 6);

    for (uint64_t i = 0; i < n && !STAILQ_EMPTY(&sim->queue); i++) {
        take_item(sim);
    }
    if (below(sim, 4) > 0) {
        flush(sim);
    }
}

/* ---- lives ---- */

static void end_life(sim_t *sim)
{
    while (!STAILQ_EMPTY(&sim->queue)) {
        item_t *item = STAILQ_FIRST(&sim->queue);

        STAILQ_REMOVE_HEAD(&sim->queue, next);
        ps_payload_destroy(&item->effect.payload);
        free(item);
    }
    ps_outbox_clear(&sim->outbox);
    ps_journal_close(&sim->journal);
    ps_shard_destroy(&sim->shard);
    sim->unflushed = 0;
    sim->snapshot_failed = false;
}

static psd_status_t open_all(sim_t *sim, psd_error_t *err)
{
    const ps_journal_args_t journal = {.disk = sim_disk_face(sim->disk),
                                       .dir = "log-0",
                                       .node = "n0",
                                       .n_shards = 1,
                                       .segment_bytes = 700};
    const ps_shard_args_t args = {.incarnation = sim->life,
                                  .credit_requests = 16,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 16,
                                  .disk = true,
                                  .snapshot_after_bytes = 1000 + below(sim, 4000),
                                  .log_queue_bytes = 3000};
    ps_journal_found_t found;
    psd_status_t rc = ps_shard_new(&args, &sim->shard, err);

    if (rc == PSD_OK) {
        rc = ps_journal_open(&journal, &sim->journal, err);
    }
    if (rc == PSD_OK) {
        rc = ps_journal_recover(sim->journal, sim->shard, NULL, NULL, &found, err);
    }
    if (rc == PSD_OK && !ps_shard_recover_knows(sim->shard, TABLE)) {
        rc = ps_journal_put_table(sim->journal, TABLE, &sim->spec, err);
    }
    return rc;
}

static void say_hello(sim_t *sim, uint32_t client)
{
    const ps_message_t hello = {
        .kind = PS_KIND_HELLO,
        .hello = {
            .version_min = 1, .version_max = 1, .incarnation = sim->life, .session = client + 1}};

    step(sim, &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = client + 1, .message = &hello});
}

/* Starts a life; false: the disk crashed during it, is full, or a check
 * failed. */
static bool begin_life(sim_t *sim)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_route_t routes[PARTITIONS] = {{0}};
    psd_status_t rc = PSD_OK;

    sim->life++;
    rc = open_all(sim, err);
    if (rc == PSD_LIMIT || (rc == PSD_IO && sim->n_failing > 0)) {
        sim_disk_set_capacity(sim->disk, UINT64_MAX);
        sim->n_failing--;
    } else if (rc != PSD_OK && !sim_disk_crashed(sim->disk)) {
        fail(sim, "a start", psd_error_text(err));
    }
    if (rc != PSD_OK) {
        return false;
    }
    for (uint32_t i = 0; i < PARTITIONS; i++) {
        routes[i] = (ps_route_t){.partition = i, .epoch = sim->life, .incarnation = sim->life};
    }
    step(sim, &(ps_event_t){.kind = PS_EVENT_TABLE,
                            .table = TABLE,
                            .spec = &sim->spec,
                            .routes = routes,
                            .n_routes = PARTITIONS});
    for (uint32_t i = 0; i < CLIENTS; i++) {
        say_hello(sim, i);
        for (uint32_t k = 0; k < PARTITIONS; k++) {
            sim->lines[i][k].n_sent = sim->lines[i][k].n_ended;
        }
    }
    return true;
}

static void start_again(sim_t *sim, bool with_faults)
{
    do {
        end_life(sim);
        sim_disk_restart(sim->disk);
        if (with_faults && below(sim, 4) == 0) {
            sim_disk_plan(sim->disk, sim_disk_ops(sim->disk) + below(sim, 12), 1, SIM_DISK_CRASH);
        }
    } while (!begin_life(sim) && sim->failure == NULL);
    sim->n_failing = 8;
}

static void plan_fault(sim_t *sim)
{
    uint64_t op = sim_disk_ops(sim->disk) + below(sim, 20);

    switch (below(sim, 5)) {
    case 0:
    case 1:
        sim_disk_plan(sim->disk, op, 1, SIM_DISK_CRASH);
        break;
    case 2:
        sim_disk_plan(sim->disk, op, 1 + below(sim, 6), SIM_DISK_FAIL);
        break;
    case 3:
        sim_disk_set_capacity(sim->disk, 2000 + below(sim, 6000));
        break;
    default:
        sim_disk_set_capacity(sim->disk, UINT64_MAX);
        break;
    }
}

/* ---- the end ---- */

static bool all_ended(const sim_t *sim)
{
    for (uint32_t i = 0; i < CLIENTS; i++) {
        for (uint32_t k = 0; k < PARTITIONS; k++) {
            if (sim->lines[i][k].n_ended < sim->lines[i][k].n_made) {
                return false;
            }
        }
    }
    return true;
}

static int64_t sum_of(const sim_t *sim, uint64_t row)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < CLIENTS; i++) {
        for (uint32_t k = 0; k < PARTITIONS; k++) {
            const line_t *line = &sim->lines[i][k];

            for (size_t at = 0; at < line->n_ended; at++) {
                sum += line->pushes[at].row == row ? line->pushes[at].delta : 0;
            }
        }
    }
    return sum;
}

static void check_row(sim_t *sim, uint64_t row)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *keys = ps_payload_copy((ps_bytes_t){(const uint8_t *)&row, sizeof row},
                                         (ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0});
    const ps_message_t message = {.kind = PS_KIND_PULL,
                                  .pull = {.request = 1,
                                           .table = TABLE,
                                           .partition = (uint32_t)(row / (ROWS / PARTITIONS)),
                                           .epoch = sim->life,
                                           .type = PS_TYPE_I64,
                                           .n_rows = 1,
                                           .n_cols = 1}};
    ps_event_t event = {.kind = PS_EVENT_MESSAGE,
                        .now_ms = ++sim->now_ms,
                        .conn = 1,
                        .message = &message,
                        .payload = keys};
    int64_t value = -1;
    char text[120];

    if (ps_shard_step(sim->shard, &event, &sim->outbox, NULL) == PSD_OK &&
        sim->outbox.n_effects > 0 && sim->outbox.effects[0].payload != NULL) {
        memcpy(&value, sim->outbox.effects[0].payload->spans[0].data, sizeof value);
    }
    ps_outbox_clear(&sim->outbox);
    if (value != sum_of(sim, row)) {
        (void)snprintf(text, sizeof text,
                       "row %" PRIu64 " is %" PRId64 "; its pushes come to %" PRId64, row, value,
                       sum_of(sim, row));
        fail(sim, "wrong sum", text);
    }
}

static void finish(sim_t *sim)
{
    sim_disk_plan(sim->disk, 0, 0, SIM_DISK_SOUND);
    sim_disk_set_capacity(sim->disk, UINT64_MAX);
    if (sim_disk_crashed(sim->disk) || below(sim, 2) == 0) {
        start_again(sim, false);
    }
    for (int i = 0; i < QUIET_TURNS && sim->failure == NULL && !all_ended(sim); i++) {
        use_client(sim, false);
        use_disk(sim);
    }
    if (sim->failure == NULL && !all_ended(sim)) {
        fail(sim, "stuck", "not everything is acknowledged");
    }
    if (sim->failure == NULL) {
        start_again(sim, false);
    }
    for (uint64_t row = 0; row < ROWS && sim->failure == NULL; row++) {
        check_row(sim, row);
    }
}

static bool run(uint64_t seed, bool verbose)
{
    static sim_t sim;

    sim = (sim_t){.rng = {.state = seed}, .n_failing = 8};
    STAILQ_INIT(&sim.queue);
    sim.disk = sim_disk_new(seed);
    ps_table_spec_init(&sim.spec);
    (void)snprintf(sim.spec.name, sizeof sim.spec.name, "w");
    sim.spec.n_rows = ROWS;
    sim.spec.type = PS_TYPE_I64;
    sim.spec.n_partitions = PARTITIONS;
    sim.spec.n_col_slices = 1;
    sim.spec.ack = PS_ACK_DISK;
    start_again(&sim, true);
    for (int i = 0; i < TURNS && sim.failure == NULL; i++) {
        if (below(&sim, 40) == 0) {
            plan_fault(&sim);
        }
        if (below(&sim, 3) > 0) {
            use_client(&sim, true);
        } else {
            use_disk(&sim);
        }
        if (sim_disk_crashed(sim.disk)) {
            start_again(&sim, true);
        }
    }
    if (sim.failure == NULL) {
        finish(&sim);
    }
    if (sim.failure != NULL) {
        (void)printf("seed %" PRIu64 ": %s\n", seed, sim.failure);
    } else if (verbose) {
        (void)printf("seed %" PRIu64 ": %" PRIu64 " lives, %" PRIu64 " operations\n", seed,
                     sim.life, sim_disk_ops(sim.disk));
    }
    end_life(&sim);
    ps_outbox_done(&sim.outbox);
    ps_table_spec_done(&sim.spec);
    sim_disk_destroy(&sim.disk);
    return sim.failure == NULL;
}

uint64_t disk_search(uint64_t first, uint64_t n, bool verbose)
{
    for (uint64_t seed = first; seed < first + n; seed++) {
        if (!run(seed, verbose)) {
            return seed;
        }
    }
    return UINT64_MAX;
}
