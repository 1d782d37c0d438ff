/* SPDX-License-Identifier: Apache-2.0 */
/* Values in fewer bytes, block by block: load, draw chances, write. */
#include "wire/filters/quant.h"

#include <assert.h>
#include <inttypes.h>

#include "base/cursor.h"
#include "wire/filters/quant_inner.h"

#define BLOCK PS_QUANT_BLOCK

/* Bytes of a code; 0 for RAW and for unknown encodings. */
static size_t code_width(ps_values_as_t as)
{
#define WIDTH_OF(NAME, word, number, width) \
    case PS_VALUES_##NAME:                  \
        return width;
    switch (as) {
        PS_VALUES_AS_MAP(WIDTH_OF)
    default:
        return 0;
    }
#undef WIDTH_OF
}

static bool is_fixed(ps_values_as_t as)
{
    return as >= PS_VALUES_FIXED1 && as <= PS_VALUES_FIXED4;
}

bool ps_quant_takes(ps_values_as_t as, ps_type_t type)
{
    return as == PS_VALUES_RAW ||
           (code_width(as) > 0 && (type == PS_TYPE_F32 || type == PS_TYPE_F64));
}

bool ps_quant_size(ps_values_as_t as, ps_type_t type, uint64_t n, uint64_t *ret_size)
{
    uint64_t width = as == PS_VALUES_RAW ? ps_type_size(type) : code_width(as);
    uint64_t n_blocks = is_fixed(as) ? n / BLOCK + (n % BLOCK != 0) : 0;
    uint64_t size = 0;

    if (__builtin_mul_overflow(n, width, &size) ||
        __builtin_add_overflow(size, n_blocks * PS_QUANT_HEAD, &size)) {
        return false;
    }
    *ret_size = size;
    return true;
}

/* n > 0 values; of an odd number the last one is there twice. */
static void load_values(ps_type_t type, const uint8_t *values, size_t n, double *ret)
{
    if (type == PS_TYPE_F64) {
        memcpy(ret, values, n * sizeof *ret);
    } else {
        for (size_t i = 0; i < n; i++) {
            ret[i] = (double)ps_load_f32(values + sizeof(float) * i);
        }
    }
    if (n % 2 != 0) { /* so n is not BLOCK */
        ret[n] = ret[n - 1];
    }
}

static void store_values(ps_type_t type, const double *values, size_t n, uint8_t *ret)
{
    if (type == PS_TYPE_F64) {
        memcpy(ret, values, n * sizeof *values);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        ps_store_f32(ret + sizeof(float) * i, (float)values[i]);
    }
}

/* Values of the next block, and the bytes that they are written in. */
static size_t block_of(ps_values_as_t as, uint64_t n_left, size_t *ret_coded_size)
{
    size_t n = n_left < BLOCK ? (size_t)n_left : BLOCK;

    *ret_coded_size = n * code_width(as) + (is_fixed(as) ? PS_QUANT_HEAD : 0);
    return n;
}

bool ps_quant_encode(ps_values_as_t as, ps_type_t type, const uint8_t *values, uint64_t n,
                     uint64_t seed, uint8_t *ret_coded)
{
    ps_quant_noise_t noise;
    double chances[BLOCK];
    double block[BLOCK];
    size_t n_block = 0;
    size_t coded_size = 0;

    assert(as != PS_VALUES_RAW && ps_quant_takes(as, type));
    ps_quant_noise_init(&noise, seed);
    for (uint64_t done = 0; done < n; done += n_block) {
        bool good = false;

        n_block = block_of(as, n - done, &coded_size);
        load_values(type, values, n_block, block);
        ps_quant_noise_fill(&noise, chances);
        good = is_fixed(as)
                   ? ps_quant_fixed_encode(code_width(as), type, block, chances, n_block, ret_coded)
                   : ps_quant_half_encode(as, block, chances, n_block, ret_coded);
        if (!good) {
            return false;
        }
        values += n_block * ps_type_size(type);
        ret_coded += coded_size;
    }
    return true;
}

psd_status_t ps_quant_decode(ps_values_as_t as, ps_type_t type, ps_bytes_t coded, uint64_t n,
                             uint8_t *ret_values, psd_error_t *err)
{
    const uint8_t *from = coded.data;
    double block[BLOCK];
    size_t n_block = 0;
    size_t coded_size = 0;
    uint64_t need = 0;

    assert(as != PS_VALUES_RAW && ps_quant_takes(as, type));
    if (!ps_quant_size(as, type, n, &need) || coded.size != need) {
        return psd_error_set(err, PSD_PROTO,
                             "%" PRIu64 " values are written in %zu bytes; "
                             "needed: %" PRIu64,
                             n, coded.size, need);
    }
    for (uint64_t done = 0; done < n; done += n_block) {
        n_block = block_of(as, n - done, &coded_size);
        if (!is_fixed(as)) {
            ps_quant_half_decode(as, from, n_block, block);
        } else if (!ps_quant_fixed_decode(code_width(as), type, from, n_block, block)) {
            return psd_error_set(err, PSD_PROTO,
                                 "block %" PRIu64 " of fixed-point values "
                                 "begins at %g in steps of %g; %s cannot hold "
                                 "its values",
                                 done / BLOCK, ps_load_f64(from), ps_load_f64(from + 8),
                                 ps_type_name(type));
        }
        store_values(type, block, n_block, ret_values);
        from += coded_size;
        ret_values += n_block * ps_type_size(type);
    }
    return PSD_OK;
}
