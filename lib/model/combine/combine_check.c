/* SPDX-License-Identifier: Apache-2.0 */
/* Weighs the values of a slice. */
#include "model/combine/combine_check.h"

#include "model/rows/deltas.h"

/* Steele et al., SplitMix (OOPSLA 2014): neighbours get weights that have nothing in common. */
static uint64_t mix(uint64_t at)
{
    at = (at ^ at >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    at = (at ^ at >> 27) * UINT64_C(0x94D049BB133111EB);
    return at ^ at >> 31;
}

/* Odd: no value but 0 has the check 0. */
static uint64_t weight(uint64_t row, uint32_t column)
{
    return mix(row * UINT64_C(0x9E3779B97F4A7C15) + column + 1) | 1;
}

bool ps_combine_has_check(ps_type_t type)
{
    return type == PS_TYPE_I32 || type == PS_TYPE_I64;
}

bool ps_combine_checks_agree(ps_type_t type, uint64_t a, uint64_t b)
{
    return type == PS_TYPE_I32 ? (uint32_t)a == (uint32_t)b : a == b;
}

static uint64_t check_piece(ps_type_t type, uint64_t row, ps_columns_t columns,
                            const uint8_t *values, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t value =
            type == PS_TYPE_I32 ? ps_load_u32(values + 4 * i) : ps_load_u64(values + 8 * i);

        sum += value * weight(row, ps_columns_at(columns, i));
    }
    return sum;
}

uint64_t ps_combine_check(const ps_slice_t *slice, const ps_payload_t *payload, uint32_t first_col)
{
    uint64_t sum = 0;

    if (payload == NULL) {
        return 0;
    }
    ps_deltas_t deltas = ps_deltas_over(slice, payload, first_col);

    while (ps_deltas_next(&deltas)) {
        ps_columns_t columns = {.list = NULL};
        const uint8_t *values = NULL;
        size_t n = ps_deltas_take(&deltas, &columns, &values);

        while (n > 0) {
            sum += check_piece(slice->type, deltas.row, columns, values, n);
            n = ps_deltas_take(&deltas, &columns, &values);
        }
    }
    return sum;
}
