/* SPDX-License-Identifier: Apache-2.0 */
/* Adds values along the tree, a block that fits the cache at a time. */
#include "model/combine/combine_sum.h"

#include <string.h>

#include "base/alloc.h"

#define NAN_F32 UINT32_C(0x7fc00000)
#define NAN_F64 UINT64_C(0x7ff8000000000000)

psd_status_t ps_sum_begin(ps_sum_t *self, ps_type_t type, psd_error_t *err)
{
    *self = (ps_sum_t){.add = ps_loops_best()->of[PS_UPDATER_ADD][type],
                       .value_size = ps_type_size(type)};
    self->open = ps_alloc_raw(PS_TREE_DEPTH, PS_SUM_BLOCK);
    return self->open != NULL ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory to add pushes");
}

void ps_sum_done(ps_sum_t *self)
{
    ps_free(self->open);
    ps_free(self->leaves);
    *self = (ps_sum_t){.open = NULL};
}

bool ps_sum_leaf(ps_sum_t *self, uint32_t position, const uint8_t *values)
{
    if (!ps_grow(&self->leaves, &self->capacity, self->n_leaves + 1, sizeof *self->leaves)) {
        return false;
    }
    self->leaves[self->n_leaves++] = (ps_leaf_t){.position = position, .values = values};
    return true;
}

/* Where the i-th open sum of a block lies. */
static uint8_t *open_sum(const ps_sum_t *self, uint8_t *to, uint32_t i)
{
    return i == 0 ? to : self->open + i * PS_SUM_BLOCK;
}

static void merge(const ps_sum_t *self, ps_tree_t *tree, uint32_t position, uint8_t *to, size_t n)
{
    while (ps_tree_merges(tree, position)) {
        self->add(NULL, open_sum(self, to, tree->n - 1), NULL, 0, open_sum(self, to, tree->n), n);
    }
}

/* n values from `offset` bytes on, no more than a block. */
static void make_block(const ps_sum_t *self, uint8_t *to, size_t offset, size_t n)
{
    ps_tree_t tree = {.n = 0};

    for (size_t i = 0; i < self->n_leaves; i++) {
        const ps_leaf_t *leaf = &self->leaves[i];
        const uint8_t *values = leaf->values + offset;

        if (ps_tree_folds(&tree, leaf->position)) {
            self->add(NULL, open_sum(self, to, tree.n - 1), NULL, 0, values, n);
            continue;
        }
        merge(self, &tree, leaf->position, to, n);
        memcpy(open_sum(self, to, tree.n), values, n * self->value_size);
        ps_tree_push(&tree, leaf->position);
    }
    merge(self, &tree, PS_COMBINE_POSITIONS, to, n);
}

void ps_sum_make(ps_sum_t *self, uint8_t *to, size_t n)
{
    size_t most = PS_SUM_BLOCK / self->value_size;

    for (size_t i = 0; i < n; i += most) {
        size_t offset = i * self->value_size;

        make_block(self, to + offset, offset, n - i < most ? n - i : most);
    }
    self->n_leaves = 0;
}

bool ps_sum_room(size_t keys_size, size_t index_size, size_t values_size, ps_sum_room_t *ret_room)
{
    size_t keys_at = (values_size + sizeof(uint64_t) - 1) / sizeof(uint64_t) * sizeof(uint64_t);
    size_t size = keys_at + keys_size + index_size;
    uint8_t *block = ps_alloc_raw(size > 0 ? size : 1, 1);
    ps_bytes_t keys = {NULL, keys_size};
    ps_bytes_t index = {NULL, index_size};

    if (block == NULL) {
        return false;
    }
    keys.data = block + keys_at;
    index.data = keys.data + keys_size;
    *ret_room = (ps_sum_room_t){
        .payload = ps_payload_new(keys, index, (ps_bytes_t){block, values_size}, block, ps_free),
        .keys = block + keys_at,
        .index = block + keys_at + keys_size,
        .values = block};
    if (ret_room->payload == NULL) {
        ps_free(block);
        return false;
    }
    return true;
}

#define FINISH_FLOATS(name, type, bits_type, NAN_BITS)                 \
    static void name(uint8_t *values, size_t n, uint32_t divisor)      \
    {                                                                  \
        const bits_type nan = NAN_BITS;                                \
                                                                       \
        for (size_t i = 0; i < n; i++) {                               \
            type value;                                                \
                                                                       \
            memcpy(&value, values + i * sizeof value, sizeof value);   \
            value = divisor == 1 ? value : value / (type)divisor;      \
            if (value != value) {                                      \
                memcpy(values + i * sizeof value, &nan, sizeof nan);   \
            } else {                                                   \
                memcpy(values + i * sizeof value, &value, sizeof nan); \
            }                                                          \
        }                                                              \
    }

FINISH_FLOATS(finish_f32, float, uint32_t, NAN_F32)
FINISH_FLOATS(finish_f64, double, uint64_t, NAN_F64)

#define FINISH_INTEGERS(name, type)                                  \
    static void name(uint8_t *values, size_t n, uint32_t divisor)    \
    {                                                                \
        for (size_t i = 0; i < n; i++) {                             \
            type value;                                              \
                                                                     \
            memcpy(&value, values + i * sizeof value, sizeof value); \
            value = (type)((int64_t)value / (int64_t)divisor);       \
            memcpy(values + i * sizeof value, &value, sizeof value); \
        }                                                            \
    }

FINISH_INTEGERS(divide_i32, int32_t)
FINISH_INTEGERS(divide_i64, int64_t)

void ps_sum_finish(ps_type_t type, uint32_t divisor, uint8_t *values, size_t n)
{
    switch (type) {
    case PS_TYPE_F32:
        finish_f32(values, n, divisor);
        break;
    case PS_TYPE_F64:
        finish_f64(values, n, divisor);
        break;
    case PS_TYPE_I32:
        divide_i32(values, n, divisor);
        break;
    case PS_TYPE_I64:
    default:
        divide_i64(values, n, divisor);
        break;
    }
}
