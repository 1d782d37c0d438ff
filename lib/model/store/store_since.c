/* SPDX-License-Identifier: Apache-2.0 */
/* Versions of rows: stamping rows, and gathering changed ones. */
#include "base/alloc.h"
#include "model/store/reply.h"
#include "model/store/store_ops.h"

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

    if (!find_changed(self, gather, ps_store_gather_limit(self, gather), &changed, &n_done)) {
        return ps_reply_no_memory(gather->want.n_rows, err);
    }
    rc = ps_store_gather_keys(self, gather, changed.keys, changed.n, ret_slice, ret_payload, err);
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
        return ps_store_gather_range(self, &gather, ret_slice, ret_payload, ret_done, err);
    }
    return gather_list(self, &gather, ret_slice, ret_payload, ret_done, err);
}
