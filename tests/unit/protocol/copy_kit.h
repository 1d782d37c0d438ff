/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_kit - random tables, and random records of a partition of one
 *
 * What     Everything follows from a seed: the table (updater, type, format,
 *          keys, columns, versions), which partition of it, and a story of
 *          records that a primary could have made: they passed its checks.
 * Owner    A test embeds a story_t: story_open, story_close.
 */
#ifndef PS_TESTS_COPY_KIT_H
#define PS_TESTS_COPY_KIT_H

#include <criterion/criterion.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "base/rng.h"
#include "model/updaters/updater_rule.h"
#include "protocol/facts/job_bytes.h"
#include "protocol/partition/partition_copy.h"
#include "protocol/partition/replay.h"
#include "protocol/shard/shard_state.h"

#define KIT_TABLE 7
#define KIT_JOBS 2
#define KIT_SESSIONS 5

/* A partition and the shard that it is on. */
typedef struct side {
    ps_shard_t *shard;
    ps_outbox_t outbox;
    ps_table_use_t use;
    ps_partition_t *partition;
} side_t;

typedef struct story {
    ps_rng_t rng;
    ps_table_spec_t spec;
    uint32_t number;   /* of the partition */
    uint64_t universe; /* keys that there are */
    side_t primary;
    ps_job_t jobs[KIT_JOBS];
    /* the record at hand */
    ps_record_t record;
    ps_payload_t *payload; /* owned */
} story_t;

static inline uint64_t below(story_t *self, uint64_t bound)
{
    return ps_rng_below(&self->rng, bound);
}

static inline bool side_open(side_t *self, const ps_table_spec_t *spec, uint32_t number)
{
    const ps_shard_args_t args = {.credit_requests = 3,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 24,
                                  .held_bytes = 1 << 24,
                                  .keys_bytes = 1 << 20,
                                  .sessions_max = 8};

    *self = (side_t){.shard = NULL};
    if (ps_shard_new(&args, &self->shard, NULL) != PSD_OK) {
        return false;
    }
    self->shard->step.outbox = &self->outbox;
    return ps_partition_new(spec, &self->use, KIT_TABLE, number, 1, &self->partition, NULL) ==
           PSD_OK;
}

static inline void side_close(side_t *self)
{
    ps_shard_partition_destroy(&self->partition);
    ps_shard_destroy(&self->shard);
    ps_outbox_done(&self->outbox);
}

/* ---- tables ---- */

static inline void pick_updater(story_t *self)
{
    const ps_updater_rule_t *rule = ps_updater_rule_at(below(self, 12));

    self->spec.updater = ps_updater_rule_spec(rule);
    self->spec.updater.workers = 3;
    self->spec.type = (ps_type_t)(rule->takes_integers ? 1 + below(self, 4) : 3 + below(self, 2));
}

static inline void pick_init(story_t *self)
{
    ps_init_spec_t *init = &self->spec.init;

    *init = (ps_init_spec_t){
        .kind = (ps_init_kind_t)(1 + below(self, 3)), .a = (double)below(self, 3), .b = 9};
    if (below(self, 2) == 0) {
        init->kind = PS_INIT_ZERO;
    }
    if (init->kind != PS_INIT_UNIFORM) {
        init->b = 0;
    }
    if (init->kind == PS_INIT_ZERO) {
        init->a = 0;
    }
}

static inline void pick_spec(story_t *self)
{
    static const uint32_t cols[] = {1, 2, 3, 7, 64, 700, 5000};
    static const uint64_t rows[] = {1, 5, 40, 300, 9000};
    ps_table_spec_t *spec = &self->spec;

    do {
        ps_table_spec_init(spec);
        memcpy(spec->name, "t", 2);
        pick_updater(self);
        pick_init(self);
        spec->keys = (ps_keys_t)(1 + below(self, 2));
        spec->row_format = (ps_row_format_t)(1 + below(self, 3));
        spec->n_cols = cols[below(self, 7)];
        self->universe = rows[below(self, 5)];
        if (self->universe * spec->n_cols > 60000) {
            self->universe = 1 + 60000 / spec->n_cols;
        }
        spec->n_rows = spec->keys == PS_KEYS_RANGE ? self->universe : 0;
        spec->n_col_slices = 1 + (uint32_t)below(self, 2);
        spec->n_partitions = spec->n_col_slices * (1 + (uint32_t)below(self, 3));
        spec->partition_by = (ps_partition_by_t)(1 + below(self, 2));
        spec->versions = below(self, 2) == 0;
        spec->seed = below(self, 100);
    } while (ps_table_spec_check(spec, NULL) != PSD_OK);
    self->number = (uint32_t)below(self, spec->n_partitions);
}

static inline const ps_extent_t *extent_of(const story_t *self)
{
    return ps_store_extent(self->primary.partition->store);
}

/* A key of the partition; false: none was found. */
static inline bool pick_key(story_t *self, uint64_t *ret_key)
{
    for (int i = 0; i < 50; i++) {
        uint64_t key = below(self, self->universe);

        if (self->spec.keys == PS_KEYS_HASH && key % 3 > 0) {
            key = ps_hash_u64(key);
        }
        if (ps_extent_has_row(extent_of(self), key)) {
            *ret_key = key;
            return true;
        }
    }
    return false;
}

static inline void story_open(story_t *self, uint64_t seed)
{
    *self = (story_t){.rng = {seed}};
    pick_spec(self);
    cr_assert(side_open(&self->primary, &self->spec, self->number));
    for (uint32_t i = 0; i < KIT_JOBS; i++) {
        self->jobs[i] =
            (ps_job_t){.id = 3 + i, .max_delay = (int32_t)below(self, 3) - 1, .n_workers = 3};
        self->jobs[i].workers = ps_alloc(3, sizeof(ps_worker_t));
        cr_assert_not_null(self->jobs[i].workers);
        for (uint32_t w = 0; w < 3; w++) {
            self->jobs[i].workers[w] = (ps_worker_t){.worker = w,
                                                     .state = PS_WORKER_RUNNING,
                                                     .n_members = 1 + (uint32_t)below(self, 2),
                                                     .joins = 1};
        }
    }
}

static inline void story_close(story_t *self)
{
    for (uint32_t i = 0; i < KIT_JOBS; i++) {
        ps_job_done(&self->jobs[i]);
    }
    ps_payload_destroy(&self->payload);
    side_close(&self->primary);
    ps_table_spec_done(&self->spec);
}

/* ---- pushes ---- */

/* Keys, index and values of a push. */
typedef struct parts {
    ps_buffer_t keys;
    ps_buffer_t index;
    ps_buffer_t values;
} parts_t;

static inline void parts_done(parts_t *self)
{
    ps_buffer_done(&self->keys);
    ps_buffer_done(&self->index);
    ps_buffer_done(&self->values);
}

/* Small whole numbers, of which many are zero and some cancel out. */
static inline void put_value(story_t *self, parts_t *parts)
{
    double value = below(self, 3) == 0 ? 0 : (double)below(self, 9) - 4;
    bool fits = false;

    switch (self->spec.type) {
    case PS_TYPE_I32:
        fits = ps_buffer_i32(&parts->values, (int32_t)value);
        break;
    case PS_TYPE_I64:
        fits = ps_buffer_i64(&parts->values, (int64_t)value);
        break;
    case PS_TYPE_F32:
        fits = ps_buffer_f32(&parts->values, (float)value);
        break;
    case PS_TYPE_F64:
    default:
        fits = ps_buffer_f64(&parts->values, value);
        break;
    }
    cr_assert(fits);
}

static inline void pick_rows(story_t *self, parts_t *parts)
{
    const ps_extent_t *extent = extent_of(self);
    ps_slice_t *slice = &self->record.slice;
    uint64_t most = 1 + 4000 / self->spec.n_cols;
    uint64_t few = below(self, 2) == 0 ? 3 : 700;
    uint64_t n = 1 + below(self, most < few ? most : few);

    if (self->spec.keys == PS_KEYS_RANGE && below(self, 2) == 0 &&
        extent->first_row <= extent->last_row) {
        uint64_t all = extent->last_row - extent->first_row + 1;

        slice->rows = PS_ROWS_RANGE;
        slice->first_row = extent->first_row + below(self, all);
        slice->n_rows = extent->last_row - slice->first_row + 1;
        slice->n_rows = slice->n_rows < n ? slice->n_rows : n;
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        uint64_t key = 0;

        if (pick_key(self, &key)) {
            cr_assert(ps_buffer_u64(&parts->keys, key));
            slice->n_rows++;
        }
    }
}

static inline void pick_columns(story_t *self, parts_t *parts)
{
    const ps_extent_t *extent = extent_of(self);
    uint32_t width = extent->last_col - extent->first_col + 1;
    ps_slice_t *slice = &self->record.slice;

    slice->cols = (ps_cols_kind_t)below(self, 3);
    slice->n_cols = width;
    if (slice->cols == PS_COLS_RANGE) {
        slice->first_col = extent->first_col + (uint32_t)below(self, width);
        slice->n_cols = 1 + (uint32_t)below(self, extent->last_col - slice->first_col + 1);
    } else if (slice->cols == PS_COLS_LIST) {
        uint32_t n = 1 + (uint32_t)below(self, width < 6 ? width : 6);

        slice->n_cols = n;
        for (uint32_t i = 0; i < n; i++) {
            cr_assert(ps_buffer_u32(&parts->index, extent->first_col + (i * 7919 + n) % width));
        }
    }
}

static inline void pick_entries(story_t *self, parts_t *parts)
{
    const ps_extent_t *extent = extent_of(self);
    PSD_AUTO(ps_buffer_done) ps_buffer_t columns = {0};
    ps_slice_t *slice = &self->record.slice;
    uint32_t width = extent->last_col - extent->first_col + 1;
    uint32_t step = 1 + (uint32_t)below(self, 1 + width / 3);

    slice->layout = PS_LAYOUT_SPARSE;
    for (uint64_t i = 0; i < slice->n_rows; i++) {
        uint32_t n = 0;

        for (uint32_t col = (uint32_t)below(self, step); col < width;
             col += 1 + (uint32_t)below(self, step)) {
            cr_assert(ps_buffer_u32(&columns, extent->first_col + col));
            put_value(self, parts);
            n++;
        }
        slice->n_values += n;
        cr_assert(ps_buffer_u32(&parts->index, n));
    }
    cr_assert(columns.size == 0 || ps_buffer_append(&parts->index, columns.data, columns.size));
}

static inline bool push_is_good(story_t *self)
{
    ps_store_t *store = self->primary.partition->store;
    ps_record_t *record = &self->record;
    ps_row_change_t change = {.kind = (ps_change_kind_t)record->op.op,
                              .other = record->op.op == PS_CHANGE_AXPY ? store : NULL};

    if (record->slice.n_rows == 0 ||
        (record->job != 0 && ps_store_check_worker(store, record->worker, NULL) != PSD_OK)) {
        return false;
    }
    memcpy(&change.operand, &record->op.operand, sizeof change.operand);
    return (record->op.op == PS_CHANGE_UPDATE
                ? ps_store_check_push(store, &record->slice, self->payload, NULL)
                : ps_store_check_change(store, &record->slice, self->payload, &change, NULL)) ==
           PSD_OK;
}

static inline bool make_push(story_t *self)
{
    PSD_AUTO(parts_done) parts_t parts = {.keys = {0}};
    ps_record_t *record = &self->record;
    double operand = (double)below(self, 4) - 1;

    record->kind = PS_RECORD_PUSH;
    record->slice.type = self->spec.type;
    pick_rows(self, &parts);
    if (below(self, 5) == 0) {
        record->op.op = (uint8_t)(1 + below(self, 3));
        record->op.other = record->op.op == PS_CHANGE_AXPY ? KIT_TABLE : 0;
        memcpy(&record->op.operand, &operand, sizeof operand);
        pick_columns(self, &parts);
    } else if (below(self, 2) == 0) {
        pick_entries(self, &parts);
    } else {
        pick_columns(self, &parts);
        record->slice.n_values = record->slice.n_rows * record->slice.n_cols;
        for (uint64_t i = 0; i < record->slice.n_values; i++) {
            put_value(self, &parts);
        }
    }
    self->payload = ps_payload_copy((ps_bytes_t){parts.keys.data, parts.keys.size},
                                    (ps_bytes_t){parts.index.data, parts.index.size},
                                    (ps_bytes_t){parts.values.data, parts.values.size});
    cr_assert_not_null(self->payload);
    return push_is_good(self);
}

/* ---- other records ---- */

static inline bool make_job(story_t *self)
{
    ps_job_t *job = &self->jobs[below(self, KIT_JOBS)];
    ps_worker_t *worker = &job->workers[below(self, 3)];
    const ps_job_place_t *place = ps_partition_find_place(self->primary.partition, job->id);

    self->record.kind = PS_RECORD_JOB;
    self->record.job = job->id;
    if (place != NULL && place->open.n_pushes == 0 && below(self, 6) == 0) {
        return true; /* it is forgotten */
    }
    if (place != NULL) {
        worker->state = (ps_worker_state_t)(2 + below(self, 4));
        worker->joins += worker->state == PS_WORKER_JOINING ? 1 : 0;
        worker->start = ps_gate_closed(place->gate);
    }
    self->record.seq = ++job->version;
    self->payload = ps_job_encode(job);
    cr_assert_not_null(self->payload);
    return true;
}

static inline bool make_mark(story_t *self)
{
    ps_record_t *record = &self->record;
    const ps_job_place_t *place = ps_partition_find_place(self->primary.partition, record->job);

    record->kind = PS_RECORD_MARK;
    if (place == NULL) {
        return false;
    }
    record->clock = ps_gate_closed(place->gate) + 1 + below(self, 2);
    return true;
}

static inline bool make_refusal(story_t *self)
{
    static const char text[] = "row 9 is not here";
    const ps_bytes_t none = {NULL, 0};

    self->record.kind = PS_RECORD_REFUSAL;
    self->record.status = PSD_RANGE;
    self->payload =
        ps_payload_copy(none, none, (ps_bytes_t){(const uint8_t *)text, below(self, sizeof text)});
    cr_assert_not_null(self->payload);
    return true;
}

/* The push as a bundle, maybe as that of two positions, with a mark of another worker. */
static inline bool make_bundle(story_t *self)
{
    ps_record_t *record = &self->record;
    const ps_job_place_t *place = ps_partition_find_place(self->primary.partition, record->job);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *push = NULL;
    ps_bundle_from_t from[2];
    ps_bundle_span_t span = {.n = 1, .n_from = 1};
    ps_bundle_t bundle = {.from = from, .spans = &span, .n_from = 1, .n_spans = 1};
    uint8_t *bytes = NULL;
    size_t size = 0;

    if (place == NULL || !ps_gate_is_bsp(place->gate) ||
        self->primary.partition->combine == PS_COMBINE_EACH || !make_push(self) ||
        record->op.op != PS_CHANGE_UPDATE) {
        return false;
    }
    push = self->payload;
    self->payload = NULL;
    from[0] = (ps_bundle_from_t){.session = record->session,
                                 .first_seq = record->seq,
                                 .last_seq = record->seq + below(self, 2),
                                 .worker = record->worker,
                                 .member = record->member,
                                 .joins = 1,
                                 .marks = below(self, 2) == 0};
    span.first = record->worker;
    span.slice = record->slice;
    span.body = (ps_body_t){push->keys, push->index, push->span};
    if (record->worker % 2 == 0 && below(self, 2) == 0) {
        span.n = 2;
    } else if (record->worker < 2 && record->session < KIT_SESSIONS) {
        const ps_window_t *window =
            ps_map_get(&self->primary.partition->windows, record->session + 1);

        from[1] = from[0];
        from[1].session++;
        from[1].worker++;
        from[1].member = 0;
        from[1].first_seq = window == NULL ? 1 : window->next;
        from[1].last_seq = from[1].first_seq;
        from[1].marks = true;
        bundle.n_from = 2;
    }
    cr_assert(ps_bundle_size(&bundle, &size));
    self->payload = ps_payload_room(0, 0, size, &bytes);
    cr_assert_not_null(self->payload);
    ps_bundle_write(&bundle, bytes);
    record->kind = PS_RECORD_BUNDLE;
    record->worker = bundle.n_from;
    record->member = bundle.n_spans;
    record->slice = (ps_slice_t){.n_rows = 0};
    return true;
}

static inline bool make_record(story_t *self)
{
    uint64_t what = below(self, 20);

    if (what < 10) {
        return make_push(self);
    }
    if (what < 12) {
        return make_bundle(self);
    }
    if (what < 16) {
        return make_mark(self);
    }
    if (what == 16) {
        return make_refusal(self);
    }
    if (what == 17) {
        return make_job(self);
    }
    if (what == 19 && below(self, 3) == 0) {
        self->record.kind = PS_RECORD_SET;
        self->record.seq = 1 + below(self, PS_COMBINE_CLOCK_MEAN);
        return true;
    }
    self->record.kind = what == 18 && below(self, 4) == 0 ? PS_RECORD_RETIRE : PS_RECORD_EPOCH;
    if (self->record.kind == PS_RECORD_RETIRE) {
        self->record.seq = self->record.session;
    } else {
        self->record.epoch = self->primary.partition->epoch + 1;
    }
    return true;
}

/* The next record of the story; its primary has not seen it yet. */
static inline void story_next(story_t *self)
{
    const ps_window_t *window = NULL;
    uint64_t session = 0;

    do {
        session = 1 + below(self, KIT_SESSIONS);
        window = ps_map_get(&self->primary.partition->windows, session);
        ps_payload_destroy(&self->payload);
        self->record = (ps_record_t){.table = KIT_TABLE,
                                     .partition = self->number,
                                     .lsn = self->primary.partition->lsn + 1,
                                     .epoch = self->primary.partition->epoch,
                                     .session = session,
                                     .seq = window == NULL ? 1 : window->next};
        if (below(self, 3) > 0) {
            uint32_t job = (uint32_t)below(self, KIT_JOBS);

            self->record.job = self->jobs[job].id;
            self->record.worker = (uint32_t)below(self, 3);
            self->record.member =
                (uint32_t)below(self, self->jobs[job].workers[self->record.worker].n_members);
        }
    } while (!make_record(self));
}

static inline bool replay_on(story_t *self, side_t *side)
{
    bool is_done =
        ps_partition_replay(&side->shard->step, side->partition, &self->record, self->payload);

    ps_outbox_clear(&side->outbox);
    return is_done;
}
#endif
