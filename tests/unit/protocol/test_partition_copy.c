/* SPDX-License-Identifier: Apache-2.0 */
/* A new copy gets its rows while records go on: whatever the table, the records
 * and the moments, it ends as the primary. */
#include "copy_compare.h"

#include <stdlib.h>

#include "protocol/replica/replicas.h"
#include "support/fail_alloc.h"

#define SEEDS 300        /* or as COPY_SEEDS says */
#define SEEDS_TO_FIND 50 /* a planted bug */

typedef enum bug {
    BUG_NONE = 0,
    BUG_ALL_ROWS = 1, /* records change rows that have not come, too */
    BUG_NO_ROWS = 2,  /* records between pieces change nothing */
    BUG_AHEAD = 3     /* pushes go as AHEAD though some of their rows are here */
} bug_t;

static uint64_t n_ahead; /* AHEAD records that copies took */

static uint64_t n_seeds(uint64_t otherwise)
{
    const char *text = getenv("COPY_SEEDS");

    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

/* ---- one seed ---- */

/* Instead of the push at hand, which the copy may have as an AHEAD: that. */
static bool replay_ahead(story_t *story, side_t *copy, bug_t bug)
{
    const ps_record_t push = story->record;
    ps_record_t *record = &story->record;
    bool takes = false;

    if (push.kind != PS_RECORD_PUSH || push.op.op != PS_CHANGE_UPDATE) {
        return false;
    }
    record->kind = PS_RECORD_AHEAD;
    record->slice = (ps_slice_t){.n_rows = push.slice.n_rows, .first_row = UINT64_MAX};
    for (uint64_t i = 0; i < push.slice.n_rows; i++) {
        uint64_t row = ps_slice_row(&push.slice, story->payload, i);

        if (row < record->slice.first_row) {
            record->slice.first_row = row;
        }
    }
    takes = ps_partition_takes_record(&copy->shard->step, copy->partition, record, NULL) ||
            bug == BUG_AHEAD;
    if (takes) {
        cr_assert(replay_on(story, copy));
        n_ahead++;
    }
    *record = push;
    return takes;
}

/* A record on both, as it would reach a copy that has some rows. */
static void go_on(story_t *story, side_t *copy, bug_t bug)
{
    bool is_partial = ps_store_is_partial(copy->partition->store);

    story_next(story);
    cr_assert(replay_on(story, &story->primary));
    if (below(story, 2) == 0 && replay_ahead(story, copy, bug)) {
        return;
    }
    if (is_partial && bug == BUG_NO_ROWS && story->record.kind == PS_RECORD_PUSH) {
        story->record.slice.n_rows = 0;
    }
    if (is_partial && bug == BUG_ALL_ROWS) {
        ps_store_set_partial(copy->partition->store, false);
    }
    cr_assert(replay_on(story, copy));
    ps_store_set_partial(copy->partition->store, is_partial);
}

static bool begin_copy(const story_t *story, side_t *copy)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *state = ps_partition_give_state(story->primary.partition);

    cr_assert_not_null(state);
    cr_assert(side_open(copy, &story->spec, story->number));
    return ps_partition_take_state(&copy->shard->step, copy->partition, state->span, NULL) ==
           PSD_OK;
}

/* Pieces of random sizes, and records between them. */
static bool move_rows(story_t *story, side_t *copy, bug_t bug, bool *looked)
{
    ps_store_cursor_t cursor = {0};
    static const uint64_t sizes[] = {60, 3000, 200000};
    size_t most = 1 + below(story, sizes[below(story, 3)]);
    bool is_done = false;

    while (!is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;

        while (below(story, 3) == 0) {
            go_on(story, copy, bug);
        }
        if (below(story, 40) == 0) {
            *looked = true;
            cr_assert(reads_the_same(story, &story->primary, &story->primary, NULL));
        }
        cr_assert_eq(ps_partition_give_rows(&story->primary.shard->step, story->primary.partition,
                                            &cursor, 1 + below(story, most), &piece, &is_done,
                                            NULL),
                     PSD_OK);
        if (ps_partition_take_rows(&copy->shard->step, copy->partition, piece->span, is_done,
                                   NULL) != PSD_OK) {
            return false;
        }
    }
    return true;
}

/* Many records or few; some find no memory, so that rows are made which stay
 * absent, and clocks close without being applied whole. */
static void begin_story(story_t *story)
{
    for (uint64_t n = below(story, below(story, 2) == 0 ? 4 : 60); n > 0; n--) {
        story_next(story);
        if (below(story, 4) == 0) {
            fail_alloc_at(below(story, 8));
            (void)replay_on(story, &story->primary);
            fail_alloc_off();
        } else {
            cr_assert(replay_on(story, &story->primary));
        }
    }
}

/* Whether the copy ends as the primary. */
static bool run(uint64_t seed, bug_t bug)
{
    PSD_AUTO(story_close) story_t story;
    PSD_AUTO(side_close) side_t copy;
    bool looked = false;
    bool same = false;

    story_open(&story, seed);
    begin_story(&story);
    same = begin_copy(&story, &copy) && move_rows(&story, &copy, bug, &looked) &&
           is_same(&story, &copy, looked);
    for (uint64_t n = 10; same && n > 0; n--) {
        go_on(&story, &copy, BUG_NONE);
    }
    return same && is_same(&story, &copy, true);
}

Test(partition_copy, ends_with_the_primarys_bits)
{
    for (uint64_t seed = 0; seed < n_seeds(SEEDS); seed++) {
        cr_assert(run(seed, BUG_NONE), "seed %llu", (unsigned long long)seed);
    }
    cr_assert_gt(n_ahead, 0);
}

static uint64_t seeds_until(bug_t bug)
{
    uint64_t seed = 0;

    while (seed < SEEDS_TO_FIND && run(seed, bug)) {
        seed++;
    }
    return seed;
}

Test(partition_copy, records_that_change_rows_to_come_would_be_seen)
{
    cr_assert_lt(seeds_until(BUG_ALL_ROWS), SEEDS_TO_FIND);
}

Test(partition_copy, records_that_change_no_rows_would_be_seen)
{
    cr_assert_lt(seeds_until(BUG_NO_ROWS), SEEDS_TO_FIND);
}

Test(partition_copy, a_push_left_out_of_rows_that_are_here_would_be_seen)
{
    cr_assert_lt(seeds_until(BUG_AHEAD), SEEDS_TO_FIND);
}

/* ---- damage ---- */

/* Some bytes other than they were, or fewer. */
static void damage(story_t *story, uint8_t *bytes, size_t *size)
{
    if (below(story, 3) == 0) {
        *size = below(story, *size);
        return;
    }
    for (uint64_t n = 1 + below(story, 3); n > 0; n--) {
        size_t near = *size < 200 || below(story, 2) == 0 ? *size : 200;

        bytes[below(story, near)] ^= (uint8_t)(1U << below(story, 8));
    }
}

/* A damaged copy of bytes, in a block of its own; freed with ps_free. */
static uint8_t *damaged(story_t *story, ps_bytes_t from, size_t *ret_size)
{
    uint8_t *whole = ps_alloc_raw(from.size, 1);
    uint8_t *exact = NULL;

    cr_assert_not_null(whole);
    memcpy(whole, from.data, from.size);
    *ret_size = from.size;
    damage(story, whole, ret_size);
    exact = ps_alloc_raw(*ret_size, 1);
    cr_assert_not_null(exact);
    memcpy(exact, whole, *ret_size);
    ps_free(whole);
    return exact;
}

/* What was taken in spite of its damage can be used without harm. */
static void use(story_t *story, side_t *copy)
{
    for (int i = 0; i < 5; i++) {
        story_next(story);
        if (story->record.kind != PS_RECORD_MARK && story->record.kind != PS_RECORD_JOB) {
            cr_assert(replay_on(story, &story->primary));
            (void)replay_on(story, copy);
        }
    }
    cr_expect(reads_the_same(story, copy, copy, NULL));
    cr_expect(hands_out_the_same(copy, copy, 5000));
}

static void expect_refusal(psd_status_t rc, const psd_error_t *err)
{
    cr_expect(rc == PSD_PROTO || rc == PSD_NOMEM);
    cr_expect(psd_error_text(err)[0] != '\0');
}

static void run_damaged(uint64_t seed)
{
    PSD_AUTO(story_close) story_t story;
    PSD_AUTO(side_close) side_t copy;
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *state = NULL;
    ps_store_cursor_t cursor = {0};
    PSD_AUTO(ps_free_at) uint8_t *bytes = NULL;
    size_t size = 0;
    psd_status_t rc = PSD_OK;
    bool is_done = false;

    story_open(&story, seed);
    for (uint64_t n = 40; n > 0; n--) {
        story_next(&story);
        cr_assert(replay_on(&story, &story.primary));
    }
    cr_assert(side_open(&copy, &story.spec, story.number));
    state = ps_partition_give_state(story.primary.partition);
    cr_assert_not_null(state);
    bytes = damaged(&story, state->span, &size);
    rc = ps_partition_take_state(&copy.shard->step, copy.partition, (ps_bytes_t){bytes, size}, err);
    if (rc != PSD_OK) {
        expect_refusal(rc, err);
        cr_expect_eq(copy.partition->windows.count, 0);
        cr_expect_eq(copy.partition->n_jobs, 0);
        rc = ps_partition_take_state(&copy.shard->step, copy.partition, state->span, err);
        cr_assert_eq(rc, PSD_OK);
    }
    while (rc == PSD_OK && !is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
        PSD_AUTO(ps_free_at) uint8_t *part = NULL;

        cr_assert_eq(ps_partition_give_rows(&story.primary.shard->step, story.primary.partition,
                                            &cursor, 1 + below(&story, 20000), &piece, &is_done,
                                            NULL),
                     PSD_OK);
        if (below(&story, 2) == 0) {
            part = damaged(&story, piece->span, &size);
            rc = ps_partition_take_rows(&copy.shard->step, copy.partition, (ps_bytes_t){part, size},
                                        is_done, err);
        } else {
            rc = ps_partition_take_rows(&copy.shard->step, copy.partition, piece->span, is_done,
                                        err);
        }
    }
    if (rc != PSD_OK) {
        expect_refusal(rc, err);
    }
    use(&story, &copy);
}

Test(partition_copy, damaged_bytes_are_refused_or_do_no_harm)
{
    for (uint64_t seed = 0; seed < n_seeds(SEEDS); seed++) {
        run_damaged(seed);
    }
}

/* ---- a state of an older psd ---- */

/* Of format 4: a number, below which unknown sessions are refused, where runs
 * of them are now; nothing of what becomes of a clock's pushes. */
Test(partition_copy, a_state_of_format_4_is_read)
{
    const size_t place = 44; /* behind format, table, number and four u64 */
    PSD_AUTO(story_close) story_t story;
    PSD_AUTO(side_close) side_t copy;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *now = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t old = {0};
    const ps_session_set_t *retired = NULL;
    const uint8_t *from = NULL;

    story_open(&story, 1);
    cr_assert(side_open(&copy, &story.spec, story.number));
    now = ps_partition_give_state(story.primary.partition);
    cr_assert_not_null(now);
    from = now->span.data;
    cr_assert_eq(ps_load_u32(from), 7);
    cr_assert_eq(ps_load_u32(from + place), 0, "no runs");
    cr_assert_eq(ps_load_u32(from + place + 8), PS_COMBINE_EACH);
    cr_assert(ps_buffer_u32(&old, 4) && ps_buffer_append(&old, from + 4, place - 4) &&
              ps_buffer_u64(&old, 7) && ps_buffer_append(&old, from + place + 4, 4) &&
              ps_buffer_append(&old, from + place + 12, now->span.size - place - 12));
    cr_assert_eq(ps_partition_take_state(&copy.shard->step, copy.partition,
                                         (ps_bytes_t){old.data, old.size}, NULL),
                 PSD_OK);
    retired = &copy.partition->retired;
    cr_expect(ps_session_set_has(retired, 6));
    cr_expect_not(ps_session_set_has(retired, 7));
}

/* Of format 5: without what becomes of a clock's pushes. */
Test(partition_copy, a_state_of_format_5_is_read)
{
    const size_t place = 52; /* behind the above, no runs, and restoring */
    PSD_AUTO(story_close) story_t story;
    PSD_AUTO(side_close) side_t copy;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *now = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t old = {0};
    uint8_t *bytes = NULL;

    story_open(&story, 1);
    cr_assert(side_open(&copy, &story.spec, story.number));
    story.primary.partition->combine = PS_COMBINE_CLOCK_MEAN;
    now = ps_partition_give_state(story.primary.partition);
    cr_assert_not_null(now);
    cr_assert(ps_buffer_u32(&old, 5) && ps_buffer_append(&old, now->span.data + 4, place - 4) &&
              ps_buffer_append(&old, now->span.data + place + 4, now->span.size - place - 4));
    cr_assert_eq(ps_partition_take_state(&copy.shard->step, copy.partition,
                                         (ps_bytes_t){old.data, old.size}, NULL),
                 PSD_OK);
    cr_expect_eq(copy.partition->combine, PS_COMBINE_EACH);
    old.size = 0;
    cr_assert(ps_buffer_append(&old, now->span.data, now->span.size));
    bytes = old.data;
    ps_partition_clear(copy.partition);
    cr_assert_eq(ps_partition_take_state(&copy.shard->step, copy.partition,
                                         (ps_bytes_t){old.data, old.size}, NULL),
                 PSD_OK);
    cr_expect_eq(copy.partition->combine, PS_COMBINE_CLOCK_MEAN);
    ps_partition_clear(copy.partition);
    ps_store_u32(bytes + place, 4);
    cr_assert_eq(ps_partition_take_state(&copy.shard->step, copy.partition,
                                         (ps_bytes_t){old.data, old.size}, NULL),
                 PSD_PROTO);
}

/* ---- a table that is being restored ---- */

/* It served half of its rows when its primary was lost before the next record
 * of rows came. */
Test(partition_copy, a_copy_knows_that_rows_of_a_checkpoint_are_to_come)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        PSD_AUTO(story_close) story_t story;
        PSD_AUTO(side_close) side_t copy;
        ps_record_t record = {.kind = PS_RECORD_ROWS, .seq = 1};

        story_open(&story, seed);
        record.lsn = story.primary.partition->lsn + 1;
        record.epoch = 2;
        cr_assert(ps_partition_replay(&story.primary.shard->step, story.primary.partition, &record,
                                      NULL));
        cr_assert(begin_copy(&story, &copy));
        cr_expect(copy.partition->restoring);
        cr_expect(ps_epochs_have(&copy.partition->epochs, record.lsn, 2));
        record = (ps_record_t){.kind = PS_RECORD_ROWS, .lsn = record.lsn + 1, .epoch = 2};
        cr_assert(ps_partition_replay(&copy.shard->step, copy.partition, &record, NULL));
        cr_expect_not(copy.partition->restoring);
    }
}

/* ---- memory ---- */

static psd_status_t copy_all(void *fixture)
{
    story_t *story = fixture;
    PSD_AUTO(side_close) side_t copy;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *state = ps_partition_give_state(story->primary.partition);
    ps_store_cursor_t cursor = {0};
    bool is_open = side_open(&copy, &story->spec, story->number);
    bool is_done = false;
    psd_status_t rc = PSD_OK;

    if (state == NULL || !is_open) {
        return PSD_NOMEM;
    }
    rc = ps_partition_take_state(&copy.shard->step, copy.partition, state->span, NULL);
    if (rc != PSD_OK) {
        cr_assert_eq(copy.partition->windows.count, 0);
        cr_assert_eq(copy.partition->n_jobs, 0);
        cr_assert_eq(copy.partition->lsn, 0);
    }
    while (rc == PSD_OK && !is_done) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = NULL;
        uint64_t before = cursor.next;

        rc = ps_partition_give_rows(&story->primary.shard->step, story->primary.partition, &cursor,
                                    2000, &piece, &is_done, NULL);
        if (rc != PSD_OK) {
            cr_assert_eq(cursor.next, before);
            return rc;
        }
        rc = ps_partition_take_rows(&copy.shard->step, copy.partition, piece->span, is_done, NULL);
    }
    return rc;
}

Test(partition_copy, without_memory_nothing_is_lost_or_half_taken)
{
    for (uint64_t seed = 0; seed < 12; seed++) {
        PSD_AUTO(story_close) story_t story;

        story_open(&story, seed);
        for (uint64_t n = 30; n > 0; n--) {
            story_next(&story);
            cr_assert(replay_on(&story, &story.primary));
        }
        cr_assert_null(fail_alloc_sweep(copy_all, &story));
    }
}
