/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vw - Vowpal Wabbit's text: `[label [weight [initial]]] [tag]|space feature …`
 *
 * Each bar begins a group, whose id is the hash of its name (0 without one);
 * `|name:2` multiplies its values. A feature is `name`, `name:value`,
 * `name:word` or `:value`; its key is a hash of its name that begins with the
 * group's, cut to `bits`. Features of value 0 are left out. The word that
 * touches the first bar, or begins with an apostrophe, is the tag. Labels are
 * simple ones. What that program warns of and goes on with is a bad line here,
 * but a value NaN is 0 and a factor NaN 1, as there.
 *
 * Source   The rules of that program's text parser and of its two hashes
 *          ("strings", the default, and "all").
 */
#include "data/formats/format.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "data/text/murmur.h"
#include "data/text/number.h"

#define CONSTANT UINT64_C(11650396)
#define LABEL_WORDS 3
#define BITS_MAX 61 /* of an index, at the most */

/* A group's name, and what its features begin with. */
typedef struct space {
    uint64_t hash;
    float factor;
    uint64_t n_nameless;
} space_t;

static bool is_end(const char *at)
{
    return *at == '\n' || *at == '|' || ps_is_blank(*at);
}

/* The place after the characters of a name. */
static const char *end_of_name(const char *at)
{
    while (!is_end(at) && *at != ':') {
        at++;
    }
    return at;
}

/* ---- hashes ---- */

static bool is_control(char c)
{
    return (unsigned char)c <= ' ';
}

static uint64_t hash_name(const ps_parser_t *parser, const char *name, const char *end,
                          uint64_t seed)
{
    uint64_t number = 0;

    if (parser->hash_all) {
        return ps_murmur_32(name, (size_t)(end - name), (uint32_t)seed);
    }
    while (name < end && is_control(*name)) {
        name++;
    }
    while (name < end && is_control(end[-1])) {
        end--;
    }
    for (const char *at = name; at < end; at++) {
        if (!ps_is_digit(*at)) {
            return ps_murmur_32(name, (size_t)(end - name), (uint32_t)seed);
        }
        number = number * 10 + (uint64_t)(*at - '0'); /* it may wrap */
    }
    return number + seed;
}

/* ---- in front of the first bar ---- */

/* A finite number that is the whole word. */
static bool read_word(const char *word, const char *end, float *ret_value)
{
    return ps_number_f32(word, ret_value) == end;
}

static psd_status_t take_label_words(const char *at, const char *end, psd_samples_t *samples,
                                     psd_error_t *err)
{
    float words[LABEL_WORDS] = {NAN, 1, 0}; /* label, weight, initial */
    size_t n = 0;

    while (at < end) {
        const char *stop = at;

        while (stop < end && *stop != ' ') {
            stop++;
        }
        if (stop > at) {
            if (n == LABEL_WORDS || !read_word(at, stop, &words[n])) {
                return psd_error_set(
                    err, PSD_INVALID,
                    "\"%s\" is not a label, weight or initial prediction (up to three numbers)",
                    ps_sample_word(at));
            }
            n++;
        }
        at = stop + 1;
    }
    ps_samples_begin(samples, words[0]);
    samples->weights[samples->n] = words[1];
    samples->initials[samples->n] = words[2];
    return PSD_OK;
}

/* at .. end: what stands in front of the first bar. */
static psd_status_t take_head(const char *at, const char *end, psd_samples_t *samples,
                              psd_error_t *err)
{
    const char *tab = memchr(at, '\t', (size_t)(end - at));
    const char *tag = NULL;
    const char *tag_end = end;

    if (tab != NULL) {
        at = tab + 1; /* as that program has it */
    }
    while (tag_end > at && tag_end[-1] == ' ') {
        tag_end--;
    }
    for (tag = tag_end; tag > at && tag[-1] != ' ';) {
        tag--;
    }
    if (tag == tag_end || (tag_end != end && *tag != '\'')) {
        return take_label_words(at, end, samples, err);
    }
    if (!ps_samples_tag(samples, tag + (*tag == '\'' ? 1 : 0),
                        (size_t)(tag_end - tag) - (*tag == '\'' ? 1 : 0))) {
        return ps_sample_no_memory((size_t)(end - at), err);
    }
    return take_label_words(at, tag, samples, err);
}

/* ---- after it ---- */

/* "nan" in any case. */
static bool is_nan(const char *at)
{
    /* Letter by letter: reads nothing after the first that differs. */
    return (at[0] == 'n' || at[0] == 'N') && (at[1] == 'a' || at[1] == 'A') &&
           (at[2] == 'n' || at[2] == 'N') && is_end(at + 3);
}

/* "inf" or "infinity" in any case, with or without a sign, or a number that no
 * float holds. */
static bool is_infinite(const char *at)
{
    static const char word[] = "infinity";
    const char *end = ps_number_pass(at);
    size_t n = 0;

    if (end != NULL) {
        return is_end(end);
    }
    at += *at == '-' || *at == '+' ? 1 : 0;
    while (word[n] != '\0' && (at[n] | 0x20) == word[n]) {
        n++;
    }
    return (n == 3 || n == 8) && is_end(at + n);
}

/* at: after the bar. */
static psd_status_t take_space(const ps_parser_t *parser, const char **at_p, space_t *ret_space,
                               psd_error_t *err)
{
    const char *at = *at_p;
    const char *end = end_of_name(at);

    *ret_space = (space_t){.factor = 1};
    if (is_end(at)) {
        return PSD_OK;
    }
    if (end == at) {
        return ps_sample_refuse(at, "a namespace: it has no name", err);
    }
    ret_space->hash = hash_name(parser, at, end, 0);
    if (*end == ':' && is_nan(end + 1)) {
        end += 4;
    } else if (*end == ':') {
        end = ps_number_f32(end + 1, &ret_space->factor);
        if (end == NULL || !is_end(end)) {
            return ps_sample_refuse(at, "a namespace with a finite factor", err);
        }
    }
    *at_p = end;
    return PSD_OK;
}

/* After a feature's name: its value, or its word, *ret_word .. *ret_end. */
static const char *take_value(const char *at, float *ret_value, const char **ret_word,
                              const char **ret_end)
{
    const char *end = NULL;

    *ret_value = 1;
    *ret_word = NULL;
    if (*at != ':') {
        return at;
    }
    at++;
    if (is_nan(at)) {
        *ret_value = 0;
        return at + 3;
    }
    end = ps_number_f32(at, ret_value);
    if (end != NULL) {
        return is_end(end) ? end : NULL;
    }
    if (is_infinite(at)) {
        return NULL;
    }
    *ret_value = 1;
    /* A word may have any characters but blanks. */
    for (end = at; *end != '\n' && !ps_is_blank(*end);) {
        end++;
    }
    *ret_word = at;
    *ret_end = end;
    return end > at ? end : NULL;
}

static psd_status_t take_feature(const ps_parser_t *parser, const char **at_p, space_t *space,
                                 psd_samples_t *samples, psd_error_t *err)
{
    const char *name = *at_p;
    const char *name_end = end_of_name(name);
    const char *word = NULL;
    const char *word_end = NULL;
    float value = 0;
    uint64_t key = 0;
    const char *end = take_value(name_end, &value, &word, &word_end);

    if (end == NULL) {
        return ps_sample_refuse(name,
                                "NAME, NAME:VALUE, NAME:WORD or :VALUE, of a "
                                "finite value",
                                err);
    }
    if (word != NULL) {
        key = hash_name(parser, word, word_end, hash_name(parser, name, name_end, space->hash));
    } else {
        value *= space->factor;
        key = name_end > name ? hash_name(parser, name, name_end, space->hash)
                              : space->hash + space->n_nameless++;
    }
    *at_p = end;
    if (!isfinite(value)) {
        return ps_sample_refuse(name,
                                "a feature whose value, times its namespace's "
                                "factor, is finite",
                                err);
    }
    if (value != 0) {
        ps_samples_add(samples, key & ((UINT64_C(1) << parser->bits) - 1), value);
    }
    return PSD_OK;
}

static psd_status_t take_spaces(const ps_parser_t *parser, const char *at, psd_samples_t *samples,
                                psd_error_t *err)
{
    while (*at == '|') {
        space_t space;
        psd_status_t rc = PSD_OK;

        at++;
        rc = take_space(parser, &at, &space, err);
        at = ps_skip_blanks(at);
        while (rc == PSD_OK && *at != '|' && *at != '\n') {
            rc = take_feature(parser, &at, &space, samples, err);
            at = ps_skip_blanks(at);
        }
        if (rc != PSD_OK) {
            return rc;
        }
        ps_samples_end_group(samples, (int64_t)space.hash);
    }
    return PSD_OK;
}

static psd_status_t parse(const ps_parser_t *parser, ps_line_t line, psd_samples_t *samples,
                          psd_error_t *err)
{
    const char *at = line.text;
    const char *end = line.text + line.size;
    const char *bar = NULL;
    psd_status_t rc = PSD_OK;

    if (line.size >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0) {
        at += 3; /* a byte order mark */
    }
    if (end > at && end[-1] == '\r') {
        end--;
    }
    if (at == end) {
        return PSD_OK; /* the end of a group of examples, there */
    }
    bar = memchr(at, '|', (size_t)(end - at));
    if (!ps_samples_reserve(samples, line.size + 1, line.size / 2 + 2)) {
        return ps_sample_no_memory(line.size, err);
    }
    rc = take_head(at, bar == NULL ? end : bar, samples, err);
    if (rc == PSD_OK && bar != NULL) {
        rc = take_spaces(parser, bar, samples, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (parser->constant) {
        ps_samples_add(samples, CONSTANT & ((UINT64_C(1) << parser->bits) - 1), 1);
        ps_samples_end_group(samples, (int64_t)CONSTANT);
    }
    ps_samples_end(samples);
    return PSD_OK;
}

static bool fits(ps_line_t line)
{
    return memchr(line.text, '|', line.size) != NULL;
}

/* ---- writing ---- */

/* "label weight initial 'tag", the parts that are not defaults. A blank comes
 * before the bar, unless a tag touches it. */
static psd_status_t print_head(const psd_samples_t *samples, size_t i, ps_buffer_t *out,
                               psd_error_t *err)
{
    bool has_initial = samples->initials[i] != 0;
    bool has_weight = has_initial || samples->weights[i] != 1;
    size_t tag_size = 0;
    const char *tag = psd_samples_tag(samples, i, &tag_size);
    bool room = true;

    if (isnan(samples->labels[i]) && has_weight) {
        return psd_error_set(
            err, PSD_INVALID,
            "a weight or an initial prediction without a label; in vw lines they follow one");
    }
    for (size_t k = 0; k < tag_size; k++) {
        if (tag[k] == ' ' || tag[k] == '\t' || tag[k] == '|' || tag[k] == '\n' || tag[k] == '\r') {
            return psd_error_set(err, PSD_INVALID, "tag \"%.*s\" has a blank or a bar",
                                 tag_size > 40 ? 40 : (int)tag_size, tag);
        }
    }
    if (!isnan(samples->labels[i])) {
        room = ps_sample_print_f32(out, samples->labels[i]);
    }
    if (room && has_weight) {
        room = ps_buffer_append(out, " ", 1) && ps_sample_print_f32(out, samples->weights[i]);
    }
    if (room && has_initial) {
        room = ps_buffer_append(out, " ", 1) && ps_sample_print_f32(out, samples->initials[i]);
    }
    if (room && (tag_size == 0 || !isnan(samples->labels[i]))) {
        room = ps_buffer_append(out, " ", 1);
    }
    if (room && tag_size > 0) {
        room = ps_buffer_append(out, "'", 1) && ps_buffer_append(out, tag, tag_size);
    }
    return room ? PSD_OK : ps_sample_no_memory(out->size, err);
}

/* Groups and features have the names that make them what they are: the digits
 * of a group's id, and of what a key is more than that (it may wrap). */
static psd_status_t print_group(const psd_samples_t *samples, size_t g, ps_buffer_t *out,
                                psd_error_t *err)
{
    uint64_t seed = (uint64_t)samples->group_ids[g];
    bool room = ps_buffer_append(out, "|", 1);

    if (room && seed != 0) {
        room = ps_buffer_print(out, "%" PRIu64, seed);
    }
    for (size_t e = samples->starts[g]; room && e < samples->starts[g + 1]; e++) {
        uint64_t key = samples->keys[e];

        if (key >> BITS_MAX != 0) {
            return psd_error_set(err, PSD_INVALID,
                                 "key %" PRIu64 "; indices of vw have %d bits "
                                 "at the most",
                                 key, BITS_MAX);
        }
        room = ps_buffer_print(out, " %" PRIu64, key - seed);
        if (room && samples->values[e] != 1) {
            room = ps_buffer_append(out, ":", 1) && ps_sample_print_f32(out, samples->values[e]);
        }
    }
    room = room && ps_buffer_append(out, " ", 1);
    return room ? PSD_OK : ps_sample_no_memory(out->size, err);
}

static psd_status_t print(const psd_samples_t *samples, size_t i, ps_printed_t *before,
                          ps_buffer_t *out, psd_error_t *err)
{
    psd_status_t rc = print_head(samples, i, out, err);

    (void)before;
    for (size_t g = samples->groups[i]; rc == PSD_OK && g < samples->groups[i + 1]; g++) {
        rc = print_group(samples, g, out, err);
    }
    if (rc == PSD_OK && !ps_buffer_append(out, "\n", 1)) {
        rc = ps_sample_no_memory(out->size, err);
    }
    return rc;
}

const ps_sample_format_t ps_sample_format_vw = {
    .name = "vw",
    .about = "[label [weight [initial]]] [tag]|space name[:value] …",
    .entries = PSD_ENTRIES_SPARSE,
    .fits = fits,
    .allows = ps_line_is_number,
    .sureness = 1,
    .parse = parse,
    .print = print,
    .holds_groups = true,
    .holds_heads = true,
};
