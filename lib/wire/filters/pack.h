/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_packer - compresses bytes with LZ4 or zstd when that makes them fewer
 *
 * What     A packed part is its plain size as u64, then LZ4's block or zstd's
 *          frames. A part that would not get smaller stays plain.
 * Owner    The caller. The two libraries allocate their working memory
 *          themselves, each at its first use: about 16 KiB for LZ4, 1 MiB for
 *          zstd. It does not grow with the data.
 * Threads  Confined to one thread.
 */
#ifndef PS_WIRE_PACK_H
#define PS_WIRE_PACK_H

#include "base/bytes.h"

/* The numbers travel on the wire. */
typedef enum ps_pack { PS_PACK_NONE = 0, PS_PACK_LZ4 = 1, PS_PACK_ZSTD = 2 } ps_pack_t;
#define PS_PACK_MAX PS_PACK_ZSTD

#define PS_PACK_HEAD 8 /* bytes of the plain size */

typedef struct ps_packer ps_packer_t;

/* NULL when there is no memory. */
PSD_MUST_CHECK ps_packer_t *ps_packer_new(void);
/* Takes NULL, nulls *self_p. */
void ps_packer_destroy(ps_packer_t **self_p);

/*
 * Compresses bytes; pack is not NONE.
 *
 * to          in   the packed part is appended
 * ret_packed  out  false: it would not be smaller, and nothing was appended
 *
 * Errors: PSD_NOMEM, nothing was appended.
 */
PSD_MUST_CHECK psd_status_t ps_pack(ps_packer_t *self, ps_pack_t pack, ps_bytes_t plain,
                                    ps_buffer_t *to, bool *ret_packed);
/* The unpacked size that a packed part claims. Check it against the limit
 * before allocating. Errors: PSD_PROTO too short to contain it. */
PSD_MUST_CHECK psd_status_t ps_pack_plain_size(ps_bytes_t packed, uint64_t *ret_size,
                                               psd_error_t *err);
/*
 * Unpacks a packed part, which must fill ret_plain exactly.
 *
 * size       in   what ps_pack_plain_size gave
 * ret_plain  out  size bytes; undefined on failure
 *
 * Errors: PSD_PROTO invalid bytes, or more or fewer than size; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_unpack(ps_packer_t *self, ps_pack_t pack, ps_bytes_t packed,
                                      uint8_t *ret_plain, size_t size, psd_error_t *err);
#endif
