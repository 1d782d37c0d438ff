/* SPDX-License-Identifier: Apache-2.0 */
/* Filters as text, and the bits that peers offer. */
#include "wire/filters/filter.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define WORD_MAX 40 /* bytes of a word with its number */

static const char ALLOWED[] = "cache, delta, lz4 or zstd, f16, bf16 or fixed1..fixed4, topk=SHARE, "
                              "threshold=SIZE or skip=SHARE, joined by +; or none";

bool ps_filter_is_none(const ps_filter_t *self)
{
    return !self->cache && !self->delta && self->pack == PS_PACK_NONE &&
           self->values_as == PS_VALUES_RAW && self->thin == PS_THIN_NONE;
}

static const char *pack_word(ps_pack_t pack)
{
    return pack == PS_PACK_LZ4 ? "lz4" : "zstd";
}

static const char *values_word(ps_values_as_t as)
{
#define WORD_OF(NAME, word, number, width) \
    case PS_VALUES_##NAME:                 \
        return word;
    switch (as) {
        PS_VALUES_AS_MAP(WORD_OF)
    default:
        return "?";
    }
#undef WORD_OF
}

const char *ps_filter_thin_name(ps_thin_t thin)
{
    switch (thin) {
    case PS_THIN_TOPK:
        return "topk";
    case PS_THIN_THRESHOLD:
        return "threshold";
    case PS_THIN_SKIP:
        return "skip";
    case PS_THIN_NONE:
        break;
    }
    return "?";
}

/* ---- parse -------------------------------------------------------------- */

/* The result of parsing a word. */
typedef enum verdict {
    TAKEN,
    UNKNOWN,
    SECOND, /* of its kind */
    AMOUNT  /* of a number that is not allowed */
} verdict_t;

static verdict_t take_switch(bool *to)
{
    verdict_t verdict = *to ? SECOND : TAKEN;

    *to = true;
    return verdict;
}

static verdict_t take_thin(const char *word, const char *equals, ps_filter_t *filter)
{
    size_t length = (size_t)(equals - word);
    double amount = 0;
    ps_thin_t thin = PS_THIN_TOPK;

    while (thin <= PS_THIN_SKIP && (strlen(ps_filter_thin_name(thin)) != length ||
                                    strncmp(word, ps_filter_thin_name(thin), length) != 0)) {
        thin = (ps_thin_t)(thin + 1);
    }
    if (thin > PS_THIN_SKIP) {
        return UNKNOWN;
    }
    if (filter->thin != PS_THIN_NONE) {
        return SECOND;
    }
    if (!ps_text_f64(equals + 1, &amount) || !(amount > 0) || !isfinite(amount) ||
        (thin != PS_THIN_THRESHOLD && amount >= 1)) {
        return AMOUNT;
    }
    filter->thin = thin;
    filter->thin_amount = amount;
    return TAKEN;
}

static verdict_t take_word(const char *word, ps_filter_t *filter)
{
    const char *equals = strchr(word, '=');

    if (equals != NULL) {
        return take_thin(word, equals, filter);
    }
    if (strcmp(word, "cache") == 0) {
        return take_switch(&filter->cache);
    }
    if (strcmp(word, "delta") == 0) {
        return take_switch(&filter->delta);
    }
    for (ps_pack_t pack = PS_PACK_LZ4; pack <= PS_PACK_MAX; pack = (ps_pack_t)(pack + 1)) {
        if (strcmp(word, pack_word(pack)) == 0) {
            verdict_t verdict = filter->pack == PS_PACK_NONE ? TAKEN : SECOND;

            filter->pack = pack;
            return verdict;
        }
    }
    for (ps_values_as_t as = PS_VALUES_F16; as <= PS_VALUES_AS_MAX; as = (ps_values_as_t)(as + 1)) {
        if (strcmp(word, values_word(as)) == 0) {
            verdict_t verdict = filter->values_as == PS_VALUES_RAW ? TAKEN : SECOND;

            filter->values_as = as;
            return verdict;
        }
    }
    return UNKNOWN;
}

static psd_status_t refuse(verdict_t verdict, const char *word, psd_error_t *err)
{
    if (verdict == SECOND) {
        return psd_error_set(
            err, PSD_INVALID,
            "filter names \"%s\" and another of its kind; allowed: one of each of %s", word,
            ALLOWED);
    }
    if (verdict == AMOUNT) {
        return psd_error_set(err, PSD_INVALID,
                             "filter is \"%s\"; allowed: a share above 0 and "
                             "below 1, or a size above 0",
                             word);
    }
    return psd_error_set(err, PSD_INVALID, "filter is \"%s\"; allowed: %s", word, ALLOWED);
}

psd_status_t ps_filter_parse(const char *text, ps_filter_t *ret_filter, psd_error_t *err)
{
    ps_filter_t filter = {0};

    if (strcmp(text, "none") == 0) {
        *ret_filter = filter;
        return PSD_OK;
    }
    for (const char *at = text; at != NULL;) {
        size_t length = strcspn(at, "+,");
        char word[WORD_MAX + 1] = "";
        verdict_t verdict = UNKNOWN;

        memcpy(word, at, length < WORD_MAX ? length : WORD_MAX);
        if (length <= WORD_MAX) {
            verdict = take_word(word, &filter);
        }
        if (verdict != TAKEN) {
            return refuse(verdict, word, err);
        }
        at = at[length] == '\0' ? NULL : at + length + 1;
    }
    *ret_filter = filter;
    return PSD_OK;
}

/* ---- format ------------------------------------------------------------- */

static void add_word(char ret[PS_FILTER_TEXT_MAX], const char *word)
{
    size_t size = strlen(ret);

    (void)snprintf(ret + size, PS_FILTER_TEXT_MAX - size, "%s%s", size > 0 ? "+" : "", word);
}

void ps_filter_format(const ps_filter_t *self, char ret[PS_FILTER_TEXT_MAX])
{
    ret[0] = '\0';
    if (self->cache) {
        add_word(ret, "cache");
    }
    if (self->delta) {
        add_word(ret, "delta");
    }
    if (self->pack != PS_PACK_NONE) {
        add_word(ret, pack_word(self->pack));
    }
    if (self->values_as != PS_VALUES_RAW) {
        add_word(ret, values_word(self->values_as));
    }
    if (self->thin != PS_THIN_NONE) {
        char word[WORD_MAX] = "";

        (void)snprintf(word, sizeof word, "%s=%.17g", ps_filter_thin_name(self->thin),
                       self->thin_amount);
        add_word(ret, word);
    }
    if (ret[0] == '\0') {
        add_word(ret, "none");
    }
}

/* ---- what goes together -------------------------------------------------- */

psd_status_t ps_filter_check(const ps_filter_t *self, ps_type_t type, psd_error_t *err)
{
    bool is_float = type == PS_TYPE_F32 || type == PS_TYPE_F64;

    if (is_float) {
        return PSD_OK;
    }
    if (self->values_as != PS_VALUES_RAW) {
        return psd_error_set(err, PSD_INVALID,
                             "filter %s rounds values; allowed for f32 and "
                             "f64, and these are %s",
                             values_word(self->values_as), ps_type_name(type));
    }
    if (self->thin != PS_THIN_NONE) {
        return psd_error_set(err, PSD_INVALID,
                             "filter %s thins values; allowed for f32 and "
                             "f64, and these are %s",
                             ps_filter_thin_name(self->thin), ps_type_name(type));
    }
    return PSD_OK;
}

static uint32_t bit_of_pack(ps_pack_t pack)
{
    switch (pack) {
    case PS_PACK_LZ4:
        return PS_FILTER_BIT_LZ4;
    case PS_PACK_ZSTD:
        return PS_FILTER_BIT_ZSTD;
    case PS_PACK_NONE:
        break;
    }
    return 0;
}

static uint32_t bit_of_values(ps_values_as_t as)
{
    switch (as) {
    case PS_VALUES_F16:
        return PS_FILTER_BIT_F16;
    case PS_VALUES_BF16:
        return PS_FILTER_BIT_BF16;
    case PS_VALUES_FIXED1:
    case PS_VALUES_FIXED2:
    case PS_VALUES_FIXED3:
    case PS_VALUES_FIXED4:
        return PS_FILTER_BIT_FIXED;
    case PS_VALUES_RAW:
        break;
    }
    return 0;
}

uint32_t ps_filter_bits(const ps_filter_t *self)
{
    return (self->cache ? PS_FILTER_BIT_CACHE : 0) | (self->delta ? PS_FILTER_BIT_DELTA : 0) |
           bit_of_pack(self->pack) | bit_of_values(self->values_as);
}

ps_filter_t ps_filter_within(const ps_filter_t *self, uint32_t bits)
{
    ps_filter_t within = *self;

    within.cache = self->cache && (bits & PS_FILTER_BIT_CACHE) != 0;
    within.delta = self->delta && (bits & PS_FILTER_BIT_DELTA) != 0;
    if ((bit_of_pack(self->pack) & bits) == 0) {
        within.pack = PS_PACK_NONE;
    }
    if ((bit_of_values(self->values_as) & bits) == 0) {
        within.values_as = PS_VALUES_RAW;
    }
    return within;
}
