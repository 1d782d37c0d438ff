/* SPDX-License-Identifier: Apache-2.0 */
/* A table's spec as a value, and what the cluster fills in. */
#include "model/tables/table.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"

#define ROW_SLICE_BYTES (UINT64_C(16) * 1024 * 1024) /* of a dense row */

ps_partition_by_t ps_partition_by_default(ps_keys_t keys)
{
    return keys == PS_KEYS_HASH ? PS_PARTITION_BY_HASH : PS_PARTITION_BY_RANGE;
}

void ps_table_spec_init(ps_table_spec_t *self)
{
    *self = (ps_table_spec_t){
        .n_cols = 1,
        .type = PS_TYPE_F32,
        .row_format = PS_ROW_DENSE,
        .keys = PS_KEYS_RANGE,
        .updater = {.kind = PS_UPDATER_ADD},
        .init = {.kind = PS_INIT_ZERO},
        .partition_by = PS_PARTITION_BY_RANGE,
        .replicas = 1,
        .ack = PS_ACK_MEMORY,
        .combine = PS_COMBINE_EACH,
    };
}

void ps_table_spec_done(ps_table_spec_t *self)
{
    ps_free(self->boundaries);
    memset(self, 0, sizeof *self);
}

psd_status_t ps_table_spec_copy(const ps_table_spec_t *self, ps_table_spec_t *ret_spec,
                                psd_error_t *err)
{
    ps_table_spec_t copy = *self;

    copy.boundaries = NULL;
    if (self->n_boundaries > 0) {
        copy.boundaries = ps_alloc_raw(self->n_boundaries, sizeof *copy.boundaries);
        if (copy.boundaries == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for %" PRIu32 " boundaries",
                                 self->n_boundaries);
        }
        memcpy(copy.boundaries, self->boundaries, self->n_boundaries * sizeof *copy.boundaries);
    }
    *ret_spec = copy;
    return PSD_OK;
}

/* The number of column slices that keeps a slice of a dense row small
 * enough. */
static uint32_t wanted_col_slices(const ps_table_spec_t *self)
{
    uint64_t bytes = (uint64_t)self->n_cols * ps_type_size(self->type);
    uint64_t n = (bytes + ROW_SLICE_BYTES - 1) / ROW_SLICE_BYTES;

    return n < 1 ? 1 : (uint32_t)n;
}

/* The least divisor of n_partitions that is at least the wanted number;
 * n_partitions itself is one. Boundaries fix the number of row slices, and so
 * also this number. */
static uint32_t fitting_col_slices(const ps_table_spec_t *self)
{
    uint32_t n = wanted_col_slices(self);

    if (self->partition_by == PS_PARTITION_BY_LIST) {
        n = self->n_partitions / (self->n_boundaries + 1);
        return n > 0 ? n : 1; /* the check reports what is wrong */
    }
    if (self->n_partitions > PS_TABLE_PARTITIONS_MAX) {
        return n; /* as above */
    }
    while (n < self->n_partitions && self->n_partitions % n != 0) {
        n++;
    }
    return n < self->n_partitions ? n : self->n_partitions;
}

static uint32_t settled_row_slices(const ps_table_spec_t *self, uint32_t default_partitions)
{
    uint64_t n = default_partitions < 1 ? 1 : default_partitions;
    uint32_t limit = PS_TABLE_PARTITIONS_MAX / self->n_col_slices;

    if (self->partition_by == PS_PARTITION_BY_LIST) {
        return self->n_boundaries + 1;
    }
    n = n < limit ? n : limit;
    if (self->keys == PS_KEYS_RANGE && n > self->n_rows) {
        n = self->n_rows;
    }
    return n < 1 ? 1 : (uint32_t)n;
}

void ps_table_spec_settle(ps_table_spec_t *self, uint32_t default_partitions)
{
    if (self->n_col_slices == 0) {
        self->n_col_slices =
            self->n_partitions == 0 ? wanted_col_slices(self) : fitting_col_slices(self);
    }
    if (self->n_partitions == 0 && self->n_col_slices > 0) {
        self->n_partitions = self->n_col_slices * settled_row_slices(self, default_partitions);
    }
}
