/* SPDX-License-Identifier: Apache-2.0 */
/* wire/filters/pack.h: bytes through LZ4 and zstd. */
#include "wire/filters/pack.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/rng.h"
#include "support/fail_alloc.h"

#define N_BYTES 100000
#define FOR_EACH_PACK(pack) \
    for (ps_pack_t pack = PS_PACK_LZ4; pack <= PS_PACK_MAX; pack = (ps_pack_t)(pack + 1))

/* Bytes of few kinds, so that packing pays. */
static uint8_t *few_kinds(size_t n)
{
    uint8_t *bytes = ps_alloc_raw(n, 1);
    ps_rng_t rng = {.state = 5};

    for (size_t i = 0; i < n; i++) {
        bytes[i] = (uint8_t)ps_rng_below(&rng, 3);
    }
    return bytes;
}

static bool pack_all(ps_pack_t pack, ps_bytes_t plain, ps_buffer_t *to)
{
    PSD_AUTO(ps_packer_destroy) ps_packer_t *packer = ps_packer_new();
    bool packed = false;

    cr_assert_eq(ps_pack(packer, pack, plain, to, &packed), PSD_OK);
    return packed;
}

Test(pack, bytes_come_back)
{
    PSD_AUTO(ps_free_at) uint8_t *bytes = few_kinds(N_BYTES);

    FOR_EACH_PACK(pack)
    {
        PSD_AUTO(ps_packer_destroy) ps_packer_t *packer = ps_packer_new();
        PSD_AUTO(ps_buffer_done) ps_buffer_t packed = {0};
        PSD_AUTO(ps_free_at) uint8_t *back = ps_alloc_raw(N_BYTES, 1);
        uint64_t size = 0;
        ps_bytes_t part;

        for (int again = 0; again < 2; again++) {
            packed.size = 0;
            cr_assert(pack_all(pack, (ps_bytes_t){bytes, N_BYTES}, &packed));
            cr_assert_lt(packed.size, N_BYTES / 4 * 3);
            part = (ps_bytes_t){packed.data, packed.size};
            cr_assert_eq(ps_pack_plain_size(part, &size, NULL), PSD_OK);
            cr_assert_eq(size, N_BYTES);
            cr_assert_eq(ps_unpack(packer, pack, part, back, N_BYTES, NULL), PSD_OK);
            cr_assert_arr_eq(back, bytes, N_BYTES);
        }
    }
}

Test(pack, what_would_grow_or_is_tiny_is_left)
{
    PSD_AUTO(ps_free_at) uint8_t *noise = ps_alloc_raw(N_BYTES, 1);
    ps_rng_t rng = {.state = 5};
    uint8_t zeros[63] = {0};

    for (size_t i = 0; i < N_BYTES; i++) {
        noise[i] = (uint8_t)ps_rng_u64(&rng);
    }
    FOR_EACH_PACK(pack)
    {
        PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};

        cr_assert(ps_buffer_append(&to, "psd", 3));
        cr_assert_not(pack_all(pack, (ps_bytes_t){noise, N_BYTES}, &to));
        cr_assert_not(pack_all(pack, (ps_bytes_t){zeros, 63}, &to));
        cr_assert_not(pack_all(pack, (ps_bytes_t){NULL, 0}, &to));
        cr_assert_eq(to.size, 3);
    }
}

static void assert_refused(ps_pack_t pack, ps_bytes_t part, size_t size)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_packer_destroy) ps_packer_t *packer = ps_packer_new();
    PSD_AUTO(ps_free_at) uint8_t *exact = ps_alloc_raw(part.size, 1);
    PSD_AUTO(ps_free_at) uint8_t *back = ps_alloc_raw(size, 1);

    memcpy(exact, part.data, part.size);
    part.data = exact;
    cr_assert_eq(ps_unpack(packer, pack, part, back, size, err), PSD_PROTO);
    cr_assert_not_null(strstr(psd_error_text(err), "does not unpack to the"));
}

Test(pack, bytes_that_are_cut_bent_or_of_another_size_are_refused)
{
    PSD_AUTO(ps_free_at) uint8_t *bytes = few_kinds(N_BYTES);

    FOR_EACH_PACK(pack)
    {
        PSD_AUTO(ps_buffer_done) ps_buffer_t packed = {0};
        ps_bytes_t part;

        cr_assert(pack_all(pack, (ps_bytes_t){bytes, N_BYTES}, &packed));
        part = (ps_bytes_t){packed.data, packed.size};
        assert_refused(pack, part, N_BYTES - 1);
        assert_refused(pack, part, N_BYTES + 1);
        part.size = packed.size - 1;
        assert_refused(pack, part, N_BYTES);
        part.size = PS_PACK_HEAD + 1;
        assert_refused(pack, part, N_BYTES);
        memset(packed.data + PS_PACK_HEAD, 0xFF, 16);
        part.size = packed.size;
        assert_refused(pack, part, N_BYTES);
    }
}

Test(pack, part_without_its_size_is_refused)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t bytes[PS_PACK_HEAD] = {0};
    uint64_t size = 7;

    cr_assert_eq(ps_pack_plain_size((ps_bytes_t){bytes, sizeof bytes}, &size, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), "packed part is 8 bytes; allowed: more than 8");
    cr_assert_eq(size, 7);
}

static psd_status_t pack_once(void *fixture)
{
    PSD_AUTO(ps_packer_destroy) ps_packer_t *packer = ps_packer_new();
    PSD_AUTO(ps_buffer_done) ps_buffer_t to = {0};
    bool packed = false;
    psd_status_t rc = PSD_OK;

    if (packer == NULL) {
        return PSD_NOMEM;
    }
    rc = ps_pack(packer, PS_PACK_LZ4, (ps_bytes_t){fixture, N_BYTES}, &to, &packed);
    cr_assert_eq(packed, rc == PSD_OK);
    cr_assert(rc == PSD_OK || to.size == 0);
    return rc;
}

Test(pack, no_memory_is_said)
{
    PSD_AUTO(ps_free_at) uint8_t *bytes = few_kinds(N_BYTES);

    cr_assert_null(fail_alloc_sweep(pack_once, bytes));
}
