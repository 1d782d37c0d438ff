/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers rows into a reply: one block of keys, index and values, written
 * once. */
#include "model/store/store.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "model/store/present_rows.h"
#include "model/store/reply.h"
#include "model/store/store_ops.h"

bool ps_reply_init(ps_reply_t *self, ps_room_t room)
{
    bool fits = self->values_size > 0 && self->values_size <= room.size;
    uint8_t *bytes = NULL;

    self->payload =
        ps_payload_room(self->keys_size, self->index_size, fits ? 0 : self->values_size, &bytes);
    if (self->payload == NULL) {
        return false;
    }
    self->keys = bytes;
    self->index = self->keys + self->keys_size;
    self->values = self->index + self->index_size;
    if (fits) {
        self->values = room.data;
        self->payload->span = (ps_bytes_t){room.data, self->values_size};
        self->payload->spans = &self->payload->span;
        self->payload->n_spans = 1;
    }
    return true;
}

void ps_reply_done(ps_reply_t *self)
{
    ps_payload_destroy(&self->payload);
}

psd_status_t ps_reply_no_memory(uint64_t n_rows, psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to read %" PRIu64 " rows", n_rows);
}

/* Bytes that each row adds to a dense reply, and bytes that all rows share. */
static void dense_costs(const ps_store_t *self, const ps_slice_t *want, bool with_keys,
                        size_t *ret_row, size_t *ret_shared)
{
    size_t key = with_keys ? PS_KEY_BYTES : 0;

    *ret_row = key + (size_t)want->n_cols * self->shape.value_size;
    *ret_shared = want->cols == PS_COLS_LIST ? PS_COLUMN_BYTES * (size_t)want->n_cols : 0;
}

/* At least one row, if there is any. */
static uint64_t rows_that_fit(size_t max_bytes, size_t shared, size_t row, uint64_t n_rows)
{
    uint64_t n = 0;

    if (n_rows == 0) {
        return 0;
    }
    n = max_bytes > shared ? (max_bytes - shared) / row : 0;
    n = n > 0 ? n : 1;
    return n < n_rows ? n : n_rows;
}

static psd_status_t gather_dense(ps_store_t *self, const ps_gather_t *gather, ps_slice_t *ret_slice,
                                 ps_payload_t **ret_payload, psd_error_t *err)
{
    PSD_AUTO(ps_reply_done) ps_reply_t reply = {0};
    const ps_slice_t *want = &gather->want;
    size_t row_bytes = 0;
    uint64_t n = 0;

    dense_costs(self, want, gather->with_keys, &row_bytes, &reply.index_size);
    n = rows_that_fit(gather->max_bytes, reply.index_size, row_bytes, want->n_rows);
    reply.keys_size = gather->with_keys ? n * PS_KEY_BYTES : 0;
    if (__builtin_mul_overflow(n, (size_t)want->n_cols * self->shape.value_size,
                               &reply.values_size) ||
        !ps_reply_init(&reply, gather->room)) {
        return ps_reply_no_memory(n, err);
    }
    if (reply.keys_size > 0) {
        memcpy(reply.keys, gather->rows->keys.data, reply.keys_size);
    }
    if (reply.index_size > 0) {
        /* `wire` has checked its size */
        assert(gather->rows->index.data != NULL);
        memcpy(reply.index, gather->rows->index.data, reply.index_size);
    }
    ps_store_read_rows(self, want, gather->rows, n, reply.values);
    *ret_slice = *want;
    ret_slice->n_rows = n;
    ret_slice->n_values = n * want->n_cols;
    *ret_payload = reply.payload;
    reply.payload = NULL;
    return PSD_OK;
}

static psd_status_t gather_named(ps_store_t *self, const ps_gather_t *gather, ps_slice_t *ret_slice,
                                 ps_payload_t **ret_payload, psd_error_t *err)
{
    ps_gather_t named = *gather;
    psd_status_t rc = PSD_OK;

    named.want.type = self->spec.type;
    if (named.want.layout == PS_LAYOUT_SPARSE) {
        named.want.cols = PS_COLS_ALL;
        named.want.first_col = 0;
        named.want.n_cols = 0;
        rc = ps_store_gather_sparse(self, &named, ret_slice, ret_payload, err);
    } else {
        rc = gather_dense(self, &named, ret_slice, ret_payload, err);
    }
    if (rc == PSD_OK && ret_slice->rows == PS_ROWS_LIST && !gather->with_keys) {
        ret_slice->rows = PS_ROWS_ASKED;
    }
    return rc;
}

/* The most rows that fit into gather->max_bytes, at least one. */
static size_t gather_limit(const ps_store_t *self, const ps_gather_t *gather)
{
    size_t row = PS_KEY_BYTES + PS_COUNT_BYTES;
    size_t shared = 0;

    if (gather->want.layout == PS_LAYOUT_DENSE) {
        dense_costs(self, &gather->want, true, &row, &shared);
    }
    return rows_that_fit(gather->max_bytes, shared, row, SIZE_MAX);
}

/* Gathers the n rows of these keys, which the reply names; columns as in
 * `gather`. */
static psd_status_t gather_keys(ps_store_t *self, const ps_gather_t *gather, const uint64_t *keys,
                                size_t n, ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                psd_error_t *err)
{
    ps_gather_t named = *gather;
    ps_payload_t names = {.keys = {(const uint8_t *)keys, n * PS_KEY_BYTES}};

    named.want.rows = PS_ROWS_LIST;
    named.want.first_row = 0;
    named.want.n_rows = n;
    named.rows = &names;
    named.with_keys = true;
    if (gather->rows != NULL) {
        names.index = gather->rows->index; /* only with a column list */
    }
    return gather_named(self, &named, ret_slice, ret_payload, err);
}

/* Gathers a range of rows: the rows present in a scattered store, or the
 * changed rows. */
static psd_status_t gather_range(ps_store_t *self, const ps_gather_t *gather, ps_slice_t *ret_slice,
                                 ps_payload_t **ret_payload, uint64_t *ret_done, psd_error_t *err)
{
    PSD_AUTO(ps_present_rows_done) ps_present_rows_t present = {0};
    const ps_slice_t *want = &gather->want;
    psd_status_t rc = PSD_OK;

    /* sorts no more keys than can fit */
    if (!ps_present_rows_find(self, want->first_row, want->n_rows, gather->since,
                              gather_limit(self, gather), &present)) {
        return ps_reply_no_memory(want->n_rows, err);
    }
    rc = gather_keys(self, gather, present.keys, present.n, ret_slice, ret_payload, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_done = want->n_rows;
    if (present.is_cut || ret_slice->n_rows < present.n) {
        *ret_done = present.keys[ret_slice->n_rows - 1] - want->first_row + 1;
    }
    return PSD_OK;
}

psd_status_t ps_store_gather(ps_store_t *self, const ps_slice_t *want, const ps_payload_t *rows,
                             size_t max_bytes, ps_room_t room, ps_slice_t *ret_slice,
                             ps_payload_t **ret_payload, uint64_t *ret_done, psd_error_t *err)
{
    ps_gather_t gather = {.want = *want, .rows = rows, .max_bytes = max_bytes, .room = room};
    psd_status_t rc = PSD_OK;

    if (want->rows == PS_ROWS_RANGE && want->n_rows > 0 && ps_store_is_scattered(self)) {
        return gather_range(self, &gather, ret_slice, ret_payload, ret_done, err);
    }
    rc = gather_named(self, &gather, ret_slice, ret_payload, err);
    if (rc == PSD_OK) {
        *ret_done = ret_slice->n_rows;
    }
    return rc;
}

/* ---- versions of rows, and changed rows ---- */

bool ps_store_has_versions(const ps_store_t *self)
{
    return self->spec.versions;
}

void ps_store_stamp(ps_store_t *self, uint64_t version)
{
    self->version = version;
}

/* Changed rows of a list: their keys, and their places in the list. */
typedef struct changed {
    uint64_t *keys;   /* owned */
    uint64_t *places; /* owned */
    size_t n;
    size_t keys_capacity;
    size_t places_capacity;
} changed_t;

static void changed_done(changed_t *self)
{
    ps_free(self->keys);
    ps_free(self->places);
}

static bool append(changed_t *self, uint64_t key, uint64_t place)
{
    if (!ps_grow(&self->keys, &self->keys_capacity, self->n + 1, sizeof key) ||
        !ps_grow(&self->places, &self->places_capacity, self->n + 1, sizeof place)) {
        return false;
    }
    self->keys[self->n] = key;
    self->places[self->n] = place;
    self->n++;
    return true;
}

/* Finds at most `limit` of them; *ret_done: rows of the list looked at. */
static bool find_changed(ps_store_t *self, const ps_gather_t *gather, size_t limit, changed_t *ret,
                         uint64_t *ret_done)
{
    const ps_slice_t *want = &gather->want;
    ps_store_walk_t walk;
    uint64_t i = 0;

    ps_store_walk_begin(&walk, self, want, gather->rows, want->n_rows, PS_NEED_HEAD);
    for (; i < want->n_rows && ret->n < limit; i++) {
        uint64_t key = ps_slice_row(want, gather->rows, i);
        const uint8_t *at = ps_store_walk_at(&walk, i);
        uint64_t version = 0;

        if (self->is_array) {
            version = ps_array_rows_version(&self->array, key);
        } else if (at != NULL) {
            version = ps_indexed_row_version(&self->indexed, at);
        }
        if (version > *gather->since && !append(ret, key, i)) {
            return false;
        }
    }
    *ret_done = i;
    return true;
}

static psd_status_t gather_list(ps_store_t *self, const ps_gather_t *gather, ps_slice_t *ret_slice,
                                ps_payload_t **ret_payload, uint64_t *ret_done, psd_error_t *err)
{
    PSD_AUTO(changed_done) changed_t changed = {.keys = NULL};
    uint64_t n_done = 0;
    psd_status_t rc = PSD_OK;

    if (!find_changed(self, gather, gather_limit(self, gather), &changed, &n_done)) {
        return ps_reply_no_memory(gather->want.n_rows, err);
    }
    rc = gather_keys(self, gather, changed.keys, changed.n, ret_slice, ret_payload, err);
    if (rc == PSD_OK) {
        *ret_done = ret_slice->n_rows < changed.n ? changed.places[ret_slice->n_rows] : n_done;
    }
    return rc;
}

psd_status_t ps_store_gather_since(ps_store_t *self, const ps_slice_t *want,
                                   const ps_payload_t *rows, uint64_t since, size_t max_bytes,
                                   ps_slice_t *ret_slice, ps_payload_t **ret_payload,
                                   uint64_t *ret_done, psd_error_t *err)
{
    ps_gather_t gather = {.want = *want, .rows = rows, .max_bytes = max_bytes, .since = &since};

    if (want->rows == PS_ROWS_RANGE && want->n_rows > 0) {
        return gather_range(self, &gather, ret_slice, ret_payload, ret_done, err);
    }
    return gather_list(self, &gather, ret_slice, ret_payload, ret_done, err);
}
