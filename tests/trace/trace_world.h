/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One shard with one table of four i64 rows, and workers that talk to it by
 * hand in simulated time. What happens is told as text: a line for each thing
 * that arrives, below it the notes of the shard and its answers. Worker w is
 * session w + 1 and numbers its pushes and marks as told.
 */
#ifndef PS_TESTS_TRACE_WORLD_H
#define PS_TESTS_TRACE_WORLD_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/shard/shard.h"

#define TRACE_JOB 3
#define TRACE_WORKERS_MAX 3

typedef struct world {
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_table_spec_t spec;
    ps_route_t route;
    ps_job_t job; /* workers: the array below */
    ps_worker_t workers[TRACE_WORKERS_MAX];
    uint64_t now_ms;
    char text[16384];
} world_t;

static inline void world_done(world_t *self)
{
    ps_outbox_done(&self->outbox);
    ps_shard_destroy(&self->shard);
    ps_table_spec_done(&self->spec);
}

static inline void PSD_PRINTF(2, 3) tell(world_t *self, const char *format, ...)
{
    size_t used = strlen(self->text);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(self->text + used, sizeof self->text - used, format, args);
    va_end(args);
}

/* The note as the log has it, but for the only table and partition there are.
 */
static inline void tell_note(world_t *self, const ps_note_t *note)
{
    static const char always[] = " table=1 partition=0";
    char text[256];
    char *at = NULL;

    ps_note_print(note, text, sizeof text, NULL);
    at = strstr(text, always);
    if (at != NULL) {
        memmove(at, at + strlen(always), strlen(at + strlen(always)) + 1);
    }
    tell(self, "    %s\n", text);
}

static inline void tell_answer(world_t *self, const ps_effect_t *effect)
{
    const ps_message_t *message = &effect->message;
    uint64_t worker = effect->to - 1;

    tell(self, "    worker %" PRIu64 " gets %s", worker, ps_kind_name(message->kind));
    switch ((int)message->kind) {
    case PS_KIND_ACK:
        tell(self, " of seq %" PRIu64, message->ack.seq);
        break;
    case PS_KIND_VALUES:
        tell(self, " %" PRId64, ps_load_i64(effect->payload->spans[0].data));
        break;
    case PS_KIND_REFUSED:
        tell(self, " %s: %s", psd_status_name((psd_status_t)message->refused.status),
             message->refused.text);
        break;
    case PS_KIND_PARKED:
        tell(self, ": %s", message->parked.text);
        break;
    default:
        break;
    }
    tell(self, "\n");
}

/* Performs one event and tells what came of it. */
static inline void happen(world_t *self, ps_event_t *event)
{
    ps_outbox_clear(&self->outbox);
    event->now_ms = self->now_ms;
    cr_assert_eq(ps_shard_step(self->shard, event, &self->outbox, NULL), PSD_OK);
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        const ps_effect_t *effect = &self->outbox.effects[i];

        if (effect->kind == PS_EFFECT_NOTE) {
            tell_note(self, &effect->note);
        } else if (effect->kind == PS_EFFECT_SEND) {
            tell_answer(self, effect);
        }
    }
}

static inline void message_from(world_t *self, uint32_t worker, const ps_message_t *message,
                                ps_payload_t *payload)
{
    happen(self, &(ps_event_t){.kind = PS_EVENT_MESSAGE,
                               .conn = worker + 1,
                               .message = message,
                               .payload = payload});
}

static inline void job_changes(world_t *self)
{
    self->job.version++;
    happen(self, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &self->job});
}

static inline void table_changes(world_t *self)
{
    happen(self, &(ps_event_t){.kind = PS_EVENT_TABLE,
                               .table = 1,
                               .spec = &self->spec,
                               .routes = &self->route,
                               .n_routes = 1});
}

static inline void hello(world_t *self, uint32_t worker)
{
    ps_message_t message = {
        .kind = PS_KIND_HELLO,
        .hello = {.version_min = 1, .version_max = 1, .incarnation = 77, .session = worker + 1}};

    message.hello.client.bytes[0] = (uint8_t)(worker + 1);
    message_from(self, worker, &message, NULL);
}

static inline void world_open(world_t *self, uint32_t n_workers, int32_t max_delay)
{
    ps_shard_args_t args = {.incarnation = 77,
                            .credit_requests = 8,
                            .credit_bytes = 1 << 20,
                            .chunk_bytes = 1 << 20,
                            .slice_bytes = 1 << 20,
                            .held_bytes = 1 << 20,
                            .sessions_max = 16,
                            .trace = true,
                            .log = true};

    ps_table_spec_init(&self->spec);
    (void)snprintf(self->spec.name, sizeof self->spec.name, "w");
    self->spec.n_rows = 4;
    self->spec.type = PS_TYPE_I64;
    self->spec.n_partitions = 1;
    self->spec.n_col_slices = 1;
    self->route = (ps_route_t){.epoch = 5, .incarnation = 77};
    cr_assert_eq(ps_shard_new(&args, &self->shard, NULL), PSD_OK);
    table_changes(self);
    self->job = (ps_job_t){.id = TRACE_JOB,
                           .name = "lr",
                           .max_delay = max_delay,
                           .workers = self->workers,
                           .n_workers = n_workers};
    for (uint32_t i = 0; i < n_workers; i++) {
        self->workers[i] =
            (ps_worker_t){.worker = i, .state = PS_WORKER_RUNNING, .n_members = 1, .joins = 1};
    }
    job_changes(self);
    for (uint32_t i = 0; i < n_workers; i++) {
        hello(self, i);
    }
    self->text[0] = '\0';
}

#define WORLD(name, n_workers, max_delay)         \
    PSD_AUTO(world_done) world_t name##_at = {0}; \
    world_t *name = &name##_at;                   \
    world_open(name, n_workers, max_delay)

/* Where a request goes and who sends it; PUSH, PULL and MARK name it alike. */
#define FROM(with_request, with_clock)                                                     \
    .request = (with_request), .table = 1, .epoch = 5, .job = TRACE_JOB, .worker = worker, \
    .joins = self->workers[worker].joins, .clock = (with_clock)

static inline ps_slice_t row_slice(uint64_t row, uint64_t n_values)
{
    return (ps_slice_t){.rows = PS_ROWS_RANGE,
                        .type = PS_TYPE_I64,
                        .n_rows = 1,
                        .first_row = row,
                        .n_cols = 1,
                        .n_values = n_values};
}

/* `clock` counts finished clocks, as on the wire. */
static inline void push(world_t *self, uint64_t at_ms, uint32_t worker, uint64_t seq,
                        uint64_t clock, uint64_t row, int64_t delta)
{
    ps_message_t message = {.kind = PS_KIND_PUSH, .push = {FROM(100 + seq, clock), .seq = seq}};
    ps_slice_t slice = row_slice(row, 1);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0},
                                            (ps_bytes_t){(const uint8_t *)&delta, sizeof delta});

    cr_assert_not_null(payload);
    self->now_ms = at_ms;
    ps_message_set_slice(&message, &slice);
    tell(self,
         "[%3" PRIu64 "] worker %" PRIu32 " at %" PRIu64 " pushes %" PRId64 " to row %" PRIu64
         ", seq %" PRIu64 "\n",
         at_ms, worker, clock, delta, row, seq);
    message_from(self, worker, &message, payload);
}

static inline void mark(world_t *self, uint64_t at_ms, uint32_t worker, uint64_t seq,
                        uint64_t clock)
{
    ps_message_t message = {.kind = PS_KIND_MARK,
                            .mark = {FROM(100 + seq, clock), .seq = seq, .timeout_ms = 500}};

    self->now_ms = at_ms;
    tell(self, "[%3" PRIu64 "] worker %" PRIu32 " ticks to %" PRIu64 ", seq %" PRIu64 "\n", at_ms,
         worker, clock, seq);
    message_from(self, worker, &message, NULL);
}

static inline void pull(world_t *self, uint64_t at_ms, uint32_t worker, uint64_t after,
                        uint64_t clock, uint64_t row)
{
    ps_message_t message = {.kind = PS_KIND_PULL,
                            .pull = {FROM(200 + at_ms, clock), .after = after, .timeout_ms = 500}};
    ps_slice_t slice = row_slice(row, 0);

    self->now_ms = at_ms;
    ps_message_set_slice(&message, &slice);
    tell(self, "[%3" PRIu64 "] worker %" PRIu32 " at %" PRIu64 " pulls row %" PRIu64 "\n", at_ms,
         worker, clock, row);
    message_from(self, worker, &message, NULL);
}

static inline void probe(world_t *self, uint64_t at_ms, uint32_t worker, uint64_t seq)
{
    ps_message_t message = {.kind = PS_KIND_PROBE,
                            .probe = {.request = 100 + seq, .table = 1, .epoch = 5, .seq = seq}};

    self->now_ms = at_ms;
    tell(self, "[%3" PRIu64 "] worker %" PRIu32 " asks about seq %" PRIu64 "\n", at_ms, worker,
         seq);
    message_from(self, worker, &message, NULL);
}

static inline void becomes(world_t *self, uint64_t at_ms, uint32_t worker, ps_worker_state_t state)
{
    self->now_ms = at_ms;
    self->workers[worker].state = state;
    tell(self, "[%3" PRIu64 "] worker %" PRIu32 " is %s\n", at_ms, worker,
         ps_worker_state_name(state));
    job_changes(self);
}

static inline void tick(world_t *self, uint64_t at_ms)
{
    self->now_ms = at_ms;
    tell(self, "[%3" PRIu64 "] time passes\n", at_ms);
    happen(self, &(ps_event_t){.kind = PS_EVENT_TICK});
}

#define EXPECT_STORY(self, wanted) cr_assert_str_eq((self)->text, wanted)
#endif
