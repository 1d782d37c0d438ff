/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy_compare - whether two copies of a story's partition are the same
 *
 * What     State, rows in the order of their coming, rows as they are read, and
 *          what is counted, to the bit.
 */
#ifndef PS_TESTS_COPY_COMPARE_H
#define PS_TESTS_COPY_COMPARE_H

#include "copy_kit.h"
#include "model/store/store_ops.h"

static inline bool is_same_payload(const ps_payload_t *a, const ps_payload_t *b)
{
    return a->keys.size == b->keys.size && a->index.size == b->index.size &&
           a->span.size == b->span.size &&
           (a->keys.size == 0 || memcmp(a->keys.data, b->keys.data, a->keys.size) == 0) &&
           (a->index.size == 0 || memcmp(a->index.data, b->index.data, a->index.size) == 0) &&
           (a->span.size == 0 || memcmp(a->span.data, b->span.data, a->span.size) == 0);
}

static inline bool is_same_state(const side_t *a, const side_t *b)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *left = ps_partition_give_state(a->partition);
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *right = ps_partition_give_state(b->partition);

    cr_assert(left != NULL && right != NULL);
    return is_same_payload(left, right);
}

static inline bool hands_out_the_same(const side_t *a, const side_t *b, size_t max_bytes)
{
    ps_store_cursor_t left = {0};
    ps_store_cursor_t right = {0};
    bool same = true;
    bool done[2] = {false, false};

    while (same && !done[0]) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *one = NULL;
        PSD_AUTO(ps_payload_destroy) ps_payload_t *two = NULL;

        cr_assert_eq(ps_partition_give_rows(&a->shard->step, a->partition, &left, max_bytes, &one,
                                            &done[0], NULL),
                     PSD_OK);
        cr_assert_eq(ps_partition_give_rows(&b->shard->step, b->partition, &right, max_bytes, &two,
                                            &done[1], NULL),
                     PSD_OK);
        same = done[0] == done[1] && left.next == right.next && is_same_payload(one, two);
    }
    return same;
}

/* All rows of the partition, or those that changed. */
static inline ps_payload_t *gather(const story_t *story, const side_t *side, const uint64_t *since,
                                   uint64_t *first_row, uint64_t *ret_left)
{
    const ps_extent_t *extent = ps_store_extent(side->partition->store);
    ps_slice_t want = {.rows = PS_ROWS_RANGE,
                       .type = story->spec.type,
                       .n_cols = extent->last_col - extent->first_col + 1,
                       .first_row = *first_row,
                       .n_rows = *ret_left};
    ps_slice_t got;
    ps_payload_t *values = NULL;
    uint64_t n_done = 0;
    psd_status_t rc = since == NULL
                          ? ps_store_gather(side->partition->store, &want, NULL, 1 << 16,
                                            (ps_room_t){NULL, 0}, &got, &values, &n_done, NULL)
                          : ps_store_gather_since(side->partition->store, &want, NULL, *since,
                                                  1 << 16, &got, &values, &n_done, NULL);

    cr_assert_eq(rc, PSD_OK);
    cr_assert_gt(n_done, 0);
    *first_row += n_done;
    *ret_left -= n_done;
    return values;
}

static inline bool reads_the_same(const story_t *story, const side_t *a, const side_t *b,
                                  const uint64_t *since)
{
    const ps_extent_t *extent = ps_store_extent(a->partition->store);
    uint64_t first[2] = {extent->first_row, extent->first_row};
    uint64_t left[2] = {extent->last_row - extent->first_row, 0};
    bool same = true;

    left[0] += left[0] == UINT64_MAX ? 0 : 1;
    left[1] = left[0];
    while (same && left[0] > 0 && extent->first_row <= extent->last_row) {
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *one = gather(story, a, since, &first[0], &left[0]);
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *two = gather(story, b, since, &first[1], &left[1]);

        same = first[0] == first[1] && is_same_payload(one, two);
    }
    return same;
}

static inline bool counts_the_same(const side_t *a, const side_t *b)
{
    ps_store_bytes_t left = ps_store_bytes(a->partition->store);
    ps_store_bytes_t right = ps_store_bytes(b->partition->store);

    return left.rows_present == right.rows_present && left.values == right.values &&
           left.state == right.state;
}

/* looked: rows of the primary were read, which fills blocks of an array. */
static inline bool is_same(story_t *story, const side_t *copy, bool looked)
{
    const side_t *primary = &story->primary;
    uint64_t since = below(story, primary->partition->version + 1);
    size_t max_bytes = 1 + below(story, 100000);

    return is_same_state(primary, copy) && counts_the_same(primary, copy) &&
           (looked || hands_out_the_same(primary, copy, max_bytes)) &&
           reads_the_same(story, primary, copy, NULL) &&
           hands_out_the_same(primary, copy, max_bytes) &&
           (!story->spec.versions || reads_the_same(story, primary, copy, &since));
}
#endif
