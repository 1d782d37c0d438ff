/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the way: pushes of the same rows and columns are one array each. */
#include "model/combine/combine.h"

#include <string.h>

#include "base/alloc.h"
#include "model/combine/combine_rows.h"
#include "model/rows/deltas.h"

bool ps_combine_is_interval(uint32_t first, uint32_t n)
{
    return n > 0 && (n & (n - 1)) == 0 && first % n == 0 && first < PS_COMBINE_POSITIONS &&
           n <= PS_COMBINE_POSITIONS - first;
}

bool ps_combine_fits(const ps_combine_part_t *parts, size_t n_parts)
{
    for (size_t i = 0; i < n_parts; i++) {
        const ps_combine_part_t *before = i == 0 ? NULL : &parts[i - 1];
        bool again =
            before != NULL && parts[i].n == 1 && before->n == 1 && parts[i].first == before->first;

        if (!ps_combine_is_interval(parts[i].first, parts[i].n) ||
            (before != NULL && !again && parts[i].first < before->first + before->n)) {
            return false;
        }
    }
    return true;
}

/* ---- are they alike? ---- */

static bool same_list(ps_bytes_t a, ps_bytes_t b)
{
    return a.size == b.size && (a.data == b.data || memcmp(a.data, b.data, a.size) == 0);
}

/* Both name the same columns in the same order. */
static bool same_columns(const ps_combine_args_t *args, const ps_combine_part_t *a,
                         const ps_combine_part_t *b)
{
    ps_columns_t left = ps_slice_columns(a->slice, a->payload, args->first_col);
    ps_columns_t right = ps_slice_columns(b->slice, b->payload, args->first_col);

    if (a->slice->layout != PS_LAYOUT_DENSE || b->slice->layout != PS_LAYOUT_DENSE ||
        a->slice->n_cols != b->slice->n_cols || (left.list == NULL) != (right.list == NULL)) {
        return false;
    }
    return left.list == NULL ? left.first == right.first
                             : same_list(a->payload->index, b->payload->index);
}

/* Each column once: a cell has one value of each row then. */
static bool has_each_once(const ps_combine_args_t *args, const ps_combine_part_t *part)
{
    ps_columns_t columns = ps_slice_columns(part->slice, part->payload, args->first_col);

    return part->slice->layout == PS_LAYOUT_DENSE &&
           ps_columns_ascending(columns, part->slice->n_cols) == part->slice->n_cols;
}

static bool rows_ascend(const ps_combine_part_t *part)
{
    for (uint64_t i = 1; part->slice->rows == PS_ROWS_LIST && i < part->slice->n_rows; i++) {
        if (ps_slice_row(part->slice, part->payload, i) <=
            ps_slice_row(part->slice, part->payload, i - 1)) {
            return false;
        }
    }
    return true;
}

static bool same_rows(const ps_combine_part_t *a, const ps_combine_part_t *b)
{
    if (a->slice->rows != b->slice->rows || a->slice->n_rows != b->slice->n_rows) {
        return false;
    }
    return a->slice->rows == PS_ROWS_RANGE ? a->slice->first_row == b->slice->first_row
                                           : same_list(a->payload->keys, b->payload->keys);
}

/* ---- the same rows ---- */

/* Where the next value of a part lies. */
typedef struct place {
    size_t span;
    size_t at; /* bytes into the span */
} place_t;

/* Bytes from there to the end of the span; there is a value. */
static size_t ahead(const ps_payload_t *payload, place_t *place)
{
    while (place->at == payload->spans[place->span].size) {
        place->span++;
        place->at = 0;
    }
    return payload->spans[place->span].size - place->at;
}

/* The values of all parts as far as they lie in one piece each, into `to`.
 * Returns their bytes; 0: no memory. */
static size_t add_piece(ps_sum_t *sum, const ps_combine_part_t *parts, size_t n_parts,
                        place_t *places, uint8_t *to, size_t left)
{
    size_t size = left;

    for (size_t i = 0; i < n_parts; i++) {
        size_t bytes = ahead(parts[i].payload, &places[i]);

        size = bytes < size ? bytes : size;
    }
    for (size_t i = 0; i < n_parts; i++) {
        const ps_bytes_t *span = &parts[i].payload->spans[places[i].span];

        if (!ps_sum_leaf(sum, parts[i].first, span->data + places[i].at)) {
            return 0;
        }
        places[i].at += size;
    }
    ps_sum_make(sum, to, size / sum->value_size);
    return size;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to add pushes");
}

static void copy(uint8_t *to, ps_bytes_t from)
{
    if (from.size > 0) {
        memcpy(to, from.data, from.size);
    }
}

static psd_status_t combine_same(const ps_combine_args_t *args, ps_sum_t *sum,
                                 const ps_combine_part_t *parts, size_t n_parts,
                                 ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                 psd_error_t *err)
{
    const ps_slice_t *slice = parts[0].slice;
    const ps_payload_t *first = parts[0].payload;
    PSD_AUTO(ps_free_at) place_t *places = ps_alloc(n_parts, sizeof *places);
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
    ps_sum_room_t room = {.payload = NULL};
    size_t size = (size_t)slice->n_values * sum->value_size;
    size_t done = 0;

    if (places == NULL || !ps_sum_room(first->keys.size, first->index.size, size, &room)) {
        return no_memory(err);
    }
    payload = room.payload;
    while (done < size) {
        size_t more = add_piece(sum, parts, n_parts, places, room.values + done, size - done);

        if (more == 0) {
            return no_memory(err);
        }
        done += more;
    }
    ps_sum_finish(args->type, args->divisor, room.values, (size_t)slice->n_values);
    copy(room.keys, first->keys);
    copy(room.index, first->index);
    *ret_slice = *slice;
    *ret_payload = payload;
    payload = NULL;
    return PSD_OK;
}

/* ---- any ---- */

/* Parts with rows, in `ret`; returns their number. */
static size_t with_rows(const ps_combine_part_t *parts, size_t n_parts, ps_combine_part_t *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < n_parts; i++) {
        if (parts[i].slice->n_rows > 0) {
            ret[n++] = parts[i];
        }
    }
    return n;
}

static psd_status_t combine(const ps_combine_args_t *args, ps_sum_t *sum,
                            const ps_combine_part_t *parts, size_t n_parts, ps_slice_t *ret_slice,
                            ps_payload_t **ret_payload, psd_error_t *err)
{
    bool like = has_each_once(args, &parts[0]);
    bool same = like && rows_ascend(&parts[0]);

    for (size_t i = 1; like && i < n_parts; i++) {
        like = same_columns(args, &parts[0], &parts[i]);
        same = same && like && same_rows(&parts[0], &parts[i]);
    }
    return like && same
               ? combine_same(args, sum, parts, n_parts, ret_slice, ret_payload, err)
               : ps_combine_rows(args, sum, parts, n_parts, like, ret_slice, ret_payload, err);
}

psd_status_t ps_combine(const ps_combine_args_t *args, const ps_combine_part_t *parts,
                        size_t n_parts, ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                        psd_error_t *err)
{
    PSD_AUTO(ps_free_at) ps_combine_part_t *full = ps_alloc_raw(n_parts, sizeof *full);
    PSD_AUTO(ps_sum_done) ps_sum_t sum = {.open = NULL};
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    if (full == NULL) {
        return no_memory(err);
    }
    n = with_rows(parts, n_parts, full);
    if (n == 0) {
        *ret_slice = (ps_slice_t){.rows = PS_ROWS_RANGE, .type = args->type};
        *ret_payload = NULL;
        return PSD_OK;
    }
    rc = ps_sum_begin(&sum, args->type, err);
    return rc == PSD_OK ? combine(args, &sum, full, n, ret_slice, ret_payload, err) : rc;
}
