/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_filter - how messages are compressed, set per table or per call
 *
 * What     As text: words joined by "+" or ",", in any order, each at most
 *          once; one of lz4, zstd; one of f16 ... fixed4; one of topk ... skip:
 *            cache        key lists that were sent before are sent as a hash
 *            delta        ascending key lists are sent as differences
 *            lz4, zstd    bytes are compressed when that makes them fewer
 *            f16, bf16, fixed1 .. fixed4
 *                         f32 and f64 values in fewer bytes (wire/filters/quant.h)
 *            topk=S       a push sends the share S of its values that are
 *                         largest, 0 < S < 1; the others wait at the sender
 *            threshold=T  a push sends the values of at least the size T > 0;
 *                         the others wait at the sender
 *            skip=S       a push leaves each value out with the chance S,
 *                         0 < S < 1, and sends the others multiplied by 1 / (1 - S)
 *          "none" is no filter.
 * Threads  any
 */
#ifndef PS_WIRE_FILTER_H
#define PS_WIRE_FILTER_H

#include "wire/filters/pack.h"
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

/* The filters that peers offer each other in HELLO and WELCOME, one bit each;
 * thinning concerns only the sender. */
#define PS_FILTER_BIT_CACHE 0x01U
#define PS_FILTER_BIT_DELTA 0x02U
#define PS_FILTER_BIT_LZ4 0x04U
#define PS_FILTER_BIT_ZSTD 0x08U
#define PS_FILTER_BIT_F16 0x10U
#define PS_FILTER_BIT_BF16 0x20U
#define PS_FILTER_BIT_FIXED 0x40U
#define PS_FILTER_BITS_ALL 0x7FU
/* The filters used over a lane: the cache, which still saves time there, and
 * rounding, so that results do not depend on the transport. */
#define PS_FILTER_BITS_LANE \
    (PS_FILTER_BIT_CACHE | PS_FILTER_BIT_F16 | PS_FILTER_BIT_BF16 | PS_FILTER_BIT_FIXED)

/* No filter at all. */
bool ps_filter_is_none(const ps_filter_t *self);
/* Errors: PSD_INVALID, naming the word and what is allowed. */
PSD_MUST_CHECK psd_status_t ps_filter_parse(const char *text, ps_filter_t *ret_filter,
                                            psd_error_t *err);
/* The canonical text, "none" for none; parsing it gives the same filter. */
void ps_filter_format(const ps_filter_t *self, char ret[PS_FILTER_TEXT_MAX]);
/* Whether the filter allows values of the type. Errors: PSD_INVALID: integers
 * are never rounded, and neither skip nor topk applies to them. */
PSD_MUST_CHECK psd_status_t ps_filter_check(const ps_filter_t *self, ps_type_t type,
                                            psd_error_t *err);
/* "topk" …; "?" */
const char *ps_filter_thin_name(ps_thin_t thin);
/* The bits that the filter needs. */
uint32_t ps_filter_bits(const ps_filter_t *self);
/* The filter without the parts that the bits do not offer. */
ps_filter_t ps_filter_within(const ps_filter_t *self, uint32_t bits);
#endif
