/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_kit - values on their way through wire/filters/quant.h and back, for its tests
 *
 * What     A round holds n values of a type, their bytes, and what is read from
 *          these, in blocks of exactly the right size, so that a sanitizer
 *          sees every step beyond.
 */
#ifndef PS_TESTS_QUANT_KIT_H
#define PS_TESTS_QUANT_KIT_H

#include <criterion/criterion.h>
#include <math.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "wire/filters/quant.h"

#define FOR_EACH_AS(as) \
    for (ps_values_as_t as = PS_VALUES_F16; as <= PS_VALUES_AS_MAX; as = (ps_values_as_t)(as + 1))

typedef struct kit_round {
    ps_values_as_t as;
    ps_type_t type;
    size_t n;
    uint8_t *values;
    uint8_t *coded;
    size_t coded_size;
    uint8_t *back;
} kit_round_t;

static inline kit_round_t kit_round_new(ps_values_as_t as, ps_type_t type, size_t n)
{
    kit_round_t self = {.as = as, .type = type, .n = n};
    uint64_t size = 0;

    cr_assert(ps_quant_size(as, type, n, &size));
    self.coded_size = (size_t)size;
    self.values = ps_alloc(n, ps_type_size(type));
    self.coded = ps_alloc(self.coded_size, 1);
    self.back = ps_alloc(n, ps_type_size(type));
    return self;
}

static inline void kit_round_done(kit_round_t *self)
{
    ps_free(self->values);
    ps_free(self->coded);
    ps_free(self->back);
}

static inline void kit_store(ps_type_t type, const double *values, size_t n, uint8_t *ret)
{
    for (size_t i = 0; i < n; i++) {
        if (type == PS_TYPE_F32) {
            ps_store_f32(ret + 4 * i, (float)values[i]);
        } else {
            ps_store_f64(ret + 8 * i, values[i]);
        }
    }
}

static inline double kit_load(ps_type_t type, const uint8_t *from, size_t i)
{
    return type == PS_TYPE_F32 ? (double)ps_load_f32(from + 4 * i) : ps_load_f64(from + 8 * i);
}

static inline void kit_set(kit_round_t *self, size_t i, double value)
{
    kit_store(self->type, &value, 1, self->values + ps_type_size(self->type) * i);
}

static inline void kit_fill_uniform(kit_round_t *self, double lo, double hi, uint64_t seed)
{
    ps_rng_t rng = {.state = seed};

    for (size_t i = 0; i < self->n; i++) {
        kit_set(self, i, lo + (hi - lo) * ps_rng_f64(&rng));
    }
}

static inline bool kit_encode(kit_round_t *self, uint64_t seed)
{
    return ps_quant_encode(self->as, self->type, self->values, self->n, seed, self->coded);
}

static inline void kit_decode(kit_round_t *self)
{
    cr_assert_eq(ps_quant_decode(self->as, self->type, (ps_bytes_t){self->coded, self->coded_size},
                                 self->n, self->back, NULL),
                 PSD_OK);
}

static inline double kit_error(const kit_round_t *self, size_t i)
{
    return kit_load(self->type, self->back, i) - kit_load(self->type, self->values, i);
}

/* The bound that the header gives for value i of a block within lo .. hi. */
static inline double kit_bound(const kit_round_t *self, double lo, double hi, size_t i)
{
    double x = fabs(kit_load(self->type, self->values, i));
    double ulp = x * (self->type == PS_TYPE_F32 ? 0x1p-24 : 0x1p-53);
    int bits = 8 * (1 + (int)self->as - PS_VALUES_FIXED1);

    if (self->as == PS_VALUES_F16) {
        return fmax(x * 0x1p-10, 0x1p-24);
    }
    if (self->as == PS_VALUES_BF16) {
        return fmax(x * 0x1p-7, 0x1p-133);
    }
    return (hi - lo) / (ldexp(1, bits) - 2) * (1 + 0x1p-20) + ulp;
}
#endif
