/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_packer - bytes through LZ4 or zstd, when that makes them fewer
 *
 * What     A packed part is its plain size as u64, then LZ4's block or zstd's
 *          frames. What does not get smaller by that is not packed.
 * Owner    The caller. The two libraries take their working memory where they
 *          like, at the first use of each: about 16 KiB for LZ4, 1 MiB for
 *          zstd; it does not grow with what is packed or unpacked.
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
 * Packs bytes; pack is not NONE.
 *
 * to          in   what is packed is appended
 * ret_packed  out  false: it would not be smaller, and nothing was appended
 *
 * Errors: PSD_NOMEM, nothing was appended.
 */
PSD_MUST_CHECK psd_status_t ps_pack(ps_packer_t *self, ps_pack_t pack, ps_bytes_t plain,
                                    ps_buffer_t *to, bool *ret_packed);
/* The size that a packed part says it has unpacked; to be asked, and compared
 * with what may be, before room for it is made. Errors: PSD_PROTO too short to
 * say it. */
PSD_MUST_CHECK psd_status_t ps_pack_plain_size(ps_bytes_t packed, uint64_t *ret_size,
                                               psd_error_t *err);
/*
 * Unpacks a packed part, which has to fill the room exactly.
 *
 * size       in   what ps_pack_plain_size gave
 * ret_plain  out  size bytes; rubbish on failure
 *
 * Errors: PSD_PROTO no such bytes, or more or fewer of them; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_unpack(ps_packer_t *self, ps_pack_t pack, ps_bytes_t packed,
                                      uint8_t *ret_plain, size_t size, psd_error_t *err);
#endif
