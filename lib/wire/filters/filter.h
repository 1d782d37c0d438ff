/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_filter - what shrinks messages, as a table or a call asks for it
 *
 * What     As text: words joined by "+" or ",", in any order, each at most
 *          once; one of lz4, zstd; one of f16 ... fixed4; one of topk ... skip:
 *            cache        lists of keys that were sent before go as a hash
 *            delta        ascending lists of keys go as differences
 *            lz4, zstd    bytes are packed when that makes them fewer
 *            f16, bf16, fixed1 .. fixed4
 *                         f32 and f64 values in fewer bytes (wire/filters/quant.h)
 *            topk=S       a push sends the share S of its values that are
 *                         largest, 0 < S < 1; the others wait at the sender
 *            threshold=T  a push sends the values of at least the size T > 0;
 *                         the others wait at the sender
 *            skip=S       a push leaves each value out with the chance S,
 *                         0 < S < 1, and sends the others 1 / (1 - S) fold
 *          "none" is no filter.
 * Threads  any
 */
#ifndef PS_WIRE_FILTER_H
#define PS_WIRE_FILTER_H

#include "wire/messages/pack.h"
#include "wire/filters/quant.h"

typedef enum ps_thin {
    PS_THIN_NONE = 0,
    PS_THIN_TOPK = 1,
    PS_THIN_THRESHOLD = 2,
    PS_THIN_SKIP = 3
} ps_thin_t;

typedef struct ps_filter {
    bool cache;
    bool delta;
    ps_pack_t pack;
    ps_values_as_t values_as;
    ps_thin_t thin;     /* which values of a push are sent at all */
    double thin_amount; /* S or T; 0 with NONE */
} ps_filter_t;

#define PS_FILTER_TEXT_MAX 96 /* bytes of the longest text, with '\0' */

/* What peers offer each other, a bit each, in HELLO and WELCOME; what thins
 * concerns the sender alone. */
#define PS_FILTER_BIT_CACHE 0x01U
#define PS_FILTER_BIT_DELTA 0x02U
#define PS_FILTER_BIT_LZ4 0x04U
#define PS_FILTER_BIT_ZSTD 0x08U
#define PS_FILTER_BIT_F16 0x10U
#define PS_FILTER_BIT_BF16 0x20U
#define PS_FILTER_BIT_FIXED 0x40U
#define PS_FILTER_BITS_ALL 0x7FU
/* What is used over a lane: what it is not faster than, and what rounds, as
 * that does not depend on the way that a message goes. */
#define PS_FILTER_BITS_LANE \
    (PS_FILTER_BIT_CACHE | PS_FILTER_BIT_F16 | PS_FILTER_BIT_BF16 | PS_FILTER_BIT_FIXED)

/* No filter at all. */
bool ps_filter_is_none(const ps_filter_t *self);
/* Errors: PSD_INVALID, naming the word and what is allowed. */
PSD_MUST_CHECK psd_status_t ps_filter_parse(const char *text, ps_filter_t *ret_filter,
                                            psd_error_t *err);
/* The text in one order, "none" for none; parsing it gives the filter again. */
void ps_filter_format(const ps_filter_t *self, char ret[PS_FILTER_TEXT_MAX]);
/* Whether values of the type may go through it. Errors: PSD_INVALID: integers
 * are never rounded, and are not thinned by chance or held back in shares. */
PSD_MUST_CHECK psd_status_t ps_filter_check(const ps_filter_t *self, ps_type_t type,
                                            psd_error_t *err);
/* "topk" …; "?" */
const char *ps_filter_thin_name(ps_thin_t thin);
/* The bits that it needs. */
uint32_t ps_filter_bits(const ps_filter_t *self);
/* Without what the bits do not offer. */
ps_filter_t ps_filter_within(const ps_filter_t *self, uint32_t bits);
#endif
