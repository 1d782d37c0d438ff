/* SPDX-License-Identifier: Apache-2.0 */
/* A float is finite unless all bits of its exponent are set; adding one to such
 * an exponent carries into the sign's bit. The loops never leave early and
 * compare nothing, so that they vectorise: bad values are rare. */
#include "model/finite.h"

#include "base/cursor.h"

#define EXPONENT_F32 UINT32_C(0x7f800000)
#define ONE_F32 UINT32_C(0x00800000)
#define EXPONENT_F64 UINT64_C(0x7ff0000000000000)
#define ONE_F64 UINT64_C(0x0010000000000000)

static bool
all_f32(const uint8_t *values, size_t n)
{
    uint32_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint32_t bits = ps_load_u32(values + i * sizeof bits);

        bad |= (bits & EXPONENT_F32) + ONE_F32;
    }
    return bad >> 31 == 0;
}

static bool
all_f64(const uint8_t *values, size_t n)
{
    uint64_t bad = 0;

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = ps_load_u64(values + i * sizeof bits);

        bad |= (bits & EXPONENT_F64) + ONE_F64;
    }
    return bad >> 63 == 0;
}

bool
ps_finite_all(ps_type_t type, const uint8_t *values, size_t n)
{
    switch (type) {
    case PS_TYPE_F32:
        return all_f32(values, n);
    case PS_TYPE_F64:
        return all_f64(values, n);
    case PS_TYPE_I32:
    case PS_TYPE_I64:
    default:
        return true;
    }
}
