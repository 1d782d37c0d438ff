/* SPDX-License-Identifier: Apache-2.0 */
/* One number for all that is stored, by which members are compared. */
#include "base/hash.h"
#include "protocol/registry/registry_rows.h"
#include "protocol/registry/registry_state.h"

#define COLUMNS(NAME, table, type, n_keys, n_of, n_cut) \
    static const ps_field_t NAME##_fields[] = {PS_ROW_##NAME##_FIELDS(PS_FIELD_ROW, type)};
PS_ROW_MAP(COLUMNS)
#undef COLUMNS

#define SHAPE(NAME, table, type, n_keys, n_of, n_cut)   \
    {.fields = NAME##_fields,                           \
     .n = sizeof NAME##_fields / sizeof *NAME##_fields, \
     .size = sizeof(type)},
static const ps_field_shape_t shapes[PS_ROW_COUNT] = {PS_ROW_MAP(SHAPE)};
#undef SHAPE

typedef struct sum {
    ps_buffer_t bytes; /* of a row */
    uint64_t sum;
} sum_t;

static psd_status_t add_row(void *context, ps_registry_row_t row, const void *value,
                            psd_error_t *err)
{
    sum_t *self = context;

    self->bytes.size = 0;
    if (!ps_shape_encode(&shapes[row], value, &self->bytes)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a row");
    }
    self->sum += ps_hash_bytes(self->bytes.data, self->bytes.size, (uint64_t)row);
    return PSD_OK;
}

static psd_status_t cut_nothing(void *context, ps_registry_row_t row, const uint64_t *keys,
                                psd_error_t *err)
{
    (void)context;
    (void)row;
    (void)keys;
    (void)err;
    return PSD_OK;
}

uint64_t ps_registry_hash(const ps_registry_t *self)
{
    sum_t sum = {0};
    const ps_row_sink_t sink = {.put = add_row, .cut = cut_nothing, .context = &sum};
    psd_status_t rc = ps_registry_all_rows(self, &sink, NULL);

    ps_buffer_done(&sum.bytes);
    if (rc != PSD_OK) {
        return 0;
    }
    return sum.sum == 0 ? 1 : sum.sum;
}
