/* SPDX-License-Identifier: Apache-2.0 */
/* The only file of the data plane that sees LZ4 and zstd. */
#include "wire/filters/pack.h"

#include <assert.h>
#include <limits.h>
#include <lz4.h>
#include <zstd.h>

#include "base/alloc.h"
#include "base/cursor.h"

#define ZSTD_LEVEL 1 /* the fastest of the ordinary ones: a network waits */
#define LZ4_PACE 1   /* its default */
#define PLAIN_MIN 64 /* fewer bytes are not worth a try */

struct ps_packer {
    void *lz4;            /* owned; NULL until its first use, as are these: */
    ZSTD_CCtx *zstd_pack; /* owned */
    ZSTD_DCtx *zstd_read; /* owned */
};

ps_packer_t *ps_packer_new(void)
{
    return ps_alloc(1, sizeof(ps_packer_t));
}

void ps_packer_destroy(ps_packer_t **self_p)
{
    ps_packer_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    ps_free(self->lz4);
    (void)ZSTD_freeCCtx(self->zstd_pack);
    (void)ZSTD_freeDCtx(self->zstd_read);
    ps_free(self);
}

/* Packs into at most `room` bytes, fewer than the plain ones. *ret_size 0: they
 * do not suffice. */
static psd_status_t pack_lz4(ps_packer_t *self, ps_bytes_t plain, uint8_t *to, size_t room,
                             size_t *ret_size)
{
    int size = 0;

    if (self->lz4 == NULL) {
        self->lz4 = ps_alloc_raw((size_t)LZ4_sizeofState(), 1);
    }
    if (self->lz4 == NULL) {
        return PSD_NOMEM;
    }
    size = LZ4_compress_fast_extState(self->lz4, (const char *)plain.data, (char *)to,
                                      (int)plain.size, (int)room, LZ4_PACE);
    *ret_size = size > 0 ? (size_t)size : 0;
    return PSD_OK;
}

static psd_status_t pack_zstd(ps_packer_t *self, ps_bytes_t plain, uint8_t *to, size_t room,
                              size_t *ret_size)
{
    size_t size = 0;

    if (self->zstd_pack == NULL) {
        self->zstd_pack = ZSTD_createCCtx();
    }
    if (self->zstd_pack == NULL) {
        return PSD_NOMEM;
    }
    size = ZSTD_compressCCtx(self->zstd_pack, to, room, plain.data, plain.size, ZSTD_LEVEL);
    *ret_size = ZSTD_isError(size) ? 0 : size;
    return PSD_OK;
}

psd_status_t ps_pack(ps_packer_t *self, ps_pack_t pack, ps_bytes_t plain, ps_buffer_t *to,
                     bool *ret_packed)
{
    size_t room = 0;
    size_t size = 0;
    uint8_t *at = NULL;
    psd_status_t rc = PSD_OK;

    assert(pack == PS_PACK_LZ4 || pack == PS_PACK_ZSTD);
    if (plain.size < PLAIN_MIN || plain.size > LZ4_MAX_INPUT_SIZE) {
        *ret_packed = false;
        return PSD_OK;
    }
    room = plain.size - PS_PACK_HEAD - 1; /* so that it gets smaller */
    if (!ps_buffer_reserve(to, plain.size)) {
        return PSD_NOMEM;
    }
    at = to->data + to->size;
    rc = pack == PS_PACK_LZ4 ? pack_lz4(self, plain, at + PS_PACK_HEAD, room, &size)
                             : pack_zstd(self, plain, at + PS_PACK_HEAD, room, &size);
    if (rc != PSD_OK) {
        return rc;
    }
    if (size > 0) {
        ps_store_u64(at, plain.size);
        to->size += PS_PACK_HEAD + size;
    }
    *ret_packed = size > 0;
    return PSD_OK;
}

psd_status_t ps_pack_plain_size(ps_bytes_t packed, uint64_t *ret_size, psd_error_t *err)
{
    if (packed.size <= PS_PACK_HEAD) {
        return psd_error_set(err, PSD_PROTO, "packed part is %zu bytes; allowed: more than %d",
                             packed.size, PS_PACK_HEAD);
    }
    *ret_size = ps_load_u64(packed.data);
    return PSD_OK;
}

/* Bytes unpacked; negative: there is no such thing. */
static int64_t unpack_lz4(ps_bytes_t coded, uint8_t *ret_plain, size_t size)
{
    if (coded.size > INT_MAX || size > INT_MAX) {
        return -1;
    }
    return LZ4_decompress_safe((const char *)coded.data, (char *)ret_plain, (int)coded.size,
                               (int)size);
}

psd_status_t ps_unpack(ps_packer_t *self, ps_pack_t pack, ps_bytes_t packed, uint8_t *ret_plain,
                       size_t size, psd_error_t *err)
{
    ps_bytes_t coded = {.data = packed.data + PS_PACK_HEAD, .size = packed.size - PS_PACK_HEAD};
    int64_t got = -1;

    assert(pack == PS_PACK_LZ4 || pack == PS_PACK_ZSTD);
    assert(packed.size > PS_PACK_HEAD);
    if (pack == PS_PACK_LZ4) {
        got = unpack_lz4(coded, ret_plain, size);
    } else {
        size_t n = 0;

        if (self->zstd_read == NULL) {
            self->zstd_read = ZSTD_createDCtx();
        }
        if (self->zstd_read == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory to unpack");
        }
        n = ZSTD_decompressDCtx(self->zstd_read, ret_plain, size, coded.data, coded.size);
        got = ZSTD_isError(n) ? -1 : (int64_t)n;
    }
    if (got < 0 || (uint64_t)got != size) {
        return psd_error_set(err, PSD_PROTO,
                             "packed part of %zu bytes does not unpack to the "
                             "%zu bytes that it says",
                             packed.size, size);
    }
    return PSD_OK;
}
