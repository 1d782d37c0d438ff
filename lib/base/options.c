/* SPDX-License-Identifier: Apache-2.0 */
/* Turns words and settings into values, according to tables of options. */
#include "base/options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define WORDS_MAX 16   /* of a choice that lists them in its value */
#define WORDS_SIZE 160 /* bytes of these */

static const char *const YES[] = {"true", "1", "yes", "on", NULL};
static const char *const NO[] = {"false", "0", "no", "off", NULL};

bool ps_opt_is_end(const ps_opt_t *opt)
{
    return opt == NULL || (opt->name == NULL && opt->kind != PS_OPT_HEADING);
}

/* ---- one value ---- */

/* The word's place in the list; -1: not found. */
static int place_of(const char *word, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    return -1;
}

static void store(const ps_opt_t *opt, void *to, const void *value, size_t size)
{
    if (to != NULL) {
        memcpy((char *)to + opt->offset, value, size);
    }
}

static psd_status_t take_switch(const ps_opt_t *opt, const char *value, const char *origin,
                                psd_status_t refused, void *to, psd_error_t *err)
{
    bool on = place_of(value, YES) >= 0;

    if (!on && place_of(value, NO) < 0) {
        return psd_error_set(err, refused, "%s is \"%s\"; allowed: true, false", origin, value);
    }
    store(opt, to, &on, sizeof on);
    return PSD_OK;
}

static bool read_whole(const ps_opt_t *opt, const char *value, uint64_t *ret)
{
    switch ((int)opt->kind) {
    case PS_OPT_COUNT:
        return ps_text_count(value, ret);
    case PS_OPT_DURATION:
        return ps_text_duration(value, ret);
    default:
        return ps_text_u64(value, ret);
    }
}

static psd_status_t take_whole(const ps_opt_t *opt, const char *value, const char *origin,
                               psd_status_t refused, void *to, psd_error_t *err)
{
    uint64_t min = (uint64_t)opt->min;
    bool is_u32 = opt->kind == PS_OPT_U32 || opt->kind == PS_OPT_DURATION;
    uint64_t most = is_u32 ? UINT32_MAX : UINT64_MAX;
    uint64_t max = opt->max > 0 && opt->max < (double)most ? (uint64_t)opt->max : most;
    uint64_t number = 0;
    uint32_t narrow = 0;

    if (read_whole(opt, value, &number) && number >= min && number <= max) {
        narrow = (uint32_t)number;
        if (is_u32) {
            store(opt, to, &narrow, sizeof narrow);
        } else {
            store(opt, to, &number, sizeof number);
        }
        return PSD_OK;
    }
    if (opt->kind == PS_OPT_DURATION) {
        return psd_error_set(err, refused,
                             "%s is \"%s\"; allowed: %" PRIu64 "ms to %" PRIu64
                             "s, like 250ms, 10s, 5m",
                             origin, value, min, max / 1000);
    }
    return psd_error_set(err, refused, "%s is \"%s\"; allowed: %" PRIu64 " to %" PRIu64 "%s",
                         origin, value, min, max,
                         opt->kind == PS_OPT_COUNT ? ", also like 1e9, 64M, 1.5G" : "");
}

static psd_status_t take_i32(const ps_opt_t *opt, const char *value, const char *origin,
                             psd_status_t refused, void *to, psd_error_t *err)
{
    bool is_bound = opt->min < opt->max;
    int64_t min = is_bound ? (int64_t)opt->min : -INT32_MAX;
    int64_t max = is_bound ? (int64_t)opt->max : INT32_MAX;
    int64_t number = 0;
    int32_t narrow = 0;

    if (ps_text_i64(value, &number) && number >= min && number <= max) {
        narrow = (int32_t)number;
        store(opt, to, &narrow, sizeof narrow);
        return PSD_OK;
    }
    if (!is_bound) {
        return psd_error_set(err, refused, "%s is \"%s\"; allowed: a whole number of 32 bits",
                             origin, value);
    }
    return psd_error_set(err, refused, "%s is \"%s\"; allowed: %" PRId64 " to %" PRId64, origin,
                         value, min, max);
}

static psd_status_t take_real(const ps_opt_t *opt, const char *value, const char *origin,
                              psd_status_t refused, void *to, psd_error_t *err)
{
    double number = 0;

    if (ps_text_f64(value, &number) && number >= opt->min && number <= opt->max) {
        store(opt, to, &number, sizeof number);
        return PSD_OK;
    }
    return psd_error_set(err, refused, "%s is \"%s\"; allowed: %.10g to %.10g", origin, value,
                         opt->min, opt->max);
}

/* Cuts "one|two" into words; NULL at the end. */
static void split_words(const char *value, char text[WORDS_SIZE], const char *words[WORDS_MAX + 1])
{
    char *rest = text;
    size_t n = 0;

    (void)snprintf(text, WORDS_SIZE, "%s", value);
    while (rest != NULL && n < WORDS_MAX) {
        words[n++] = rest;
        rest = strchr(rest, '|');
        if (rest != NULL) {
            *rest++ = '\0';
        }
    }
    words[n] = NULL;
}

static psd_status_t take_choice(const ps_opt_t *opt, const char *value, const char *origin,
                                psd_status_t refused, void *to, psd_error_t *err)
{
    char text[WORDS_SIZE];
    const char *split[WORDS_MAX + 1];
    const char *const *words = opt->words != NULL ? opt->words : split;
    const char *near = NULL;
    char list[200] = "";
    size_t used = 0;

    if (opt->words == NULL) {
        split_words(opt->value, text, split);
    }
    int place = place_of(value, words);

    if (place >= 0) {
        uint32_t number = (uint32_t)place;

        store(opt, to, &number, sizeof number);
        return PSD_OK;
    }
    for (size_t i = 0; words[i] != NULL && used < sizeof list; i++) {
        int n = snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", words[i]);

        used += n > 0 ? (size_t)n : 0;
    }
    near = ps_text_suggest(value, words);
    return psd_error_set(err, refused, "%s is \"%s\"%s%s%sallowed: %s", origin, value,
                         near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                         near == NULL ? "; " : "\"? ", list);
}

psd_status_t ps_opt_take(const ps_opt_t *opt, const char *value, const char *origin,
                         psd_status_t refused, void *to, psd_error_t *err)
{
    switch ((int)opt->kind) {
    case PS_OPT_SWITCH:
        return take_switch(opt, value, origin, refused, to, err);
    case PS_OPT_U32:
    case PS_OPT_U64:
    case PS_OPT_COUNT:
    case PS_OPT_DURATION:
        return take_whole(opt, value, origin, refused, to, err);
    case PS_OPT_I32:
        return take_i32(opt, value, origin, refused, to, err);
    case PS_OPT_REAL:
        return take_real(opt, value, origin, refused, to, err);
    case PS_OPT_CHOICE:
        return take_choice(opt, value, origin, refused, to, err);
    default:
        if (value[0] == '\0') {
            return psd_error_set(err, refused, "%s is empty", origin);
        }
        store(opt, to, &value, sizeof value);
        return PSD_OK;
    }
}

/* ---- a reader ---- */

void ps_opts_done(ps_opts_t *self)
{
    for (size_t i = 0; i < PS_OPTS_MAX; i++) {
        ps_free(self->values[i].joined);
    }
    *self = (ps_opts_t){0};
}

/* The rows of the first table. */
static size_t count_first(const ps_opts_t *self)
{
    size_t n = 0;

    while (self->lists[0] != NULL && !ps_opt_is_end(&self->lists[0][n])) {
        n++;
    }
    return n;
}

const ps_opt_t *ps_opts_at(const ps_opts_t *self, size_t i)
{
    size_t n = count_first(self);
    const ps_opt_t *opt = self->lists[1];

    assert(i < PS_OPTS_MAX);
    if (i < n) {
        return &self->lists[0][i];
    }
    for (; i > n && !ps_opt_is_end(opt); i--) {
        opt++;
    }
    return ps_opt_is_end(opt) ? NULL : opt;
}

/* Index of an option by its long name (length bytes), or by its letter when the
 * name is NULL; -1: none. */
static int find(const ps_opts_t *self, const char *name, size_t length, char letter)
{
    const ps_opt_t *opt = NULL;

    for (int i = 0; (opt = ps_opts_at(self, (size_t)i)) != NULL; i++) {
        if (name == NULL ? opt->letter == letter
                         : opt->name != NULL && strlen(opt->name) == length &&
                               strncmp(opt->name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

int ps_opts_find(const ps_opts_t *self, const char *name)
{
    return find(self, name, strlen(name), '\0');
}

static psd_status_t refuse_option(const ps_opts_t *self, const char *word, psd_error_t *err)
{
    const char *names[PS_OPTS_MAX + 1] = {NULL};
    const ps_opt_t *opt = NULL;
    const char *near = NULL;
    char name[64] = "";
    size_t length = strcspn(word, "=");
    size_t n = 0;

    for (size_t i = 0; (opt = ps_opts_at(self, i)) != NULL; i++) {
        if (opt->name != NULL) {
            names[n++] = opt->name;
        }
    }
    if (length > 2 && length - 2 < sizeof name && word[1] == '-') {
        memcpy(name, word + 2, length - 2);
        near = ps_text_suggest(name, names);
    }
    if (near != NULL) {
        return psd_error_set(err, PSD_USAGE, "unknown option \"%.*s\"; did you mean --%s?",
                             (int)length, word, near);
    }
    return psd_error_set(err, PSD_USAGE, "unknown option \"%.*s\"%s", (int)length, word,
                         self->where == NULL ? "" : self->where);
}

/* Gives an option a value, or adds one when the option may be repeated. */
static psd_status_t set(ps_opts_t *self, int at, const char *value, const char *origin,
                        psd_error_t *err)
{
    ps_opts_value_t *slot = &self->values[at];
    const ps_opt_t *opt = ps_opts_at(self, (size_t)at);
    void *to = (size_t)at < count_first(self) ? self->to : NULL;
    psd_status_t rc = ps_opt_take(opt, value, origin, PSD_USAGE, to, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (opt->many && slot->text != NULL) {
        size_t size = strlen(slot->text) + strlen(value) + 2;
        char *joined = ps_alloc(size, 1);

        if (joined == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for the command line");
        }
        (void)snprintf(joined, size, "%s,%s", slot->text, value);
        ps_free(slot->joined);
        slot->joined = joined;
        value = joined;
    }
    slot->text = value;
    (void)snprintf(slot->origin, sizeof slot->origin, "%s", origin);
    return PSD_OK;
}

/* Reads the option at argv[*at] and its value, and moves *at to the last word
 * that it took. */
static psd_status_t read_option(ps_opts_t *self, int argc, char *const *argv, int *at,
                                psd_error_t *err)
{
    const char *word = argv[*at];
    bool is_long = word[1] == '-';
    size_t length = strcspn(word + 2, "=");
    const char *value = NULL;
    char origin[72];
    int i = find(self, is_long ? word + 2 : NULL, length, word[1]);
    const ps_opt_t *opt = i < 0 ? NULL : ps_opts_at(self, (size_t)i);

    if (opt == NULL) {
        return refuse_option(self, word, err);
    }
    (void)snprintf(origin, sizeof origin, "--%s", opt->name);
    if (is_long && word[2 + length] == '=') {
        value = word + 2 + length + 1;
    } else if (!is_long && word[2] != '\0') {
        value = word + 2;
    }
    if (opt->kind == PS_OPT_SWITCH) {
        if (value != NULL) {
            return psd_error_set(err, PSD_USAGE, "%s takes no value", origin);
        }
        value = "true";
    } else if (value == NULL) {
        if (*at + 1 >= argc) {
            return psd_error_set(err, PSD_USAGE, "%s needs a value: %s", origin, opt->value);
        }
        value = argv[++*at];
    }
    return set(self, i, value, origin, err);
}

psd_status_t ps_opts_read(ps_opts_t *self, int argc, char *const *argv, ps_opts_word_t take_word,
                          void *arg, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    bool rest = false;

    for (int i = 1; i < argc && rc == PSD_OK; i++) {
        if (!rest && argv[i][0] == '-' && argv[i][1] == '-' && argv[i][2] == '\0') {
            rest = true;
        } else if (!rest && argv[i][0] == '-' && argv[i][1] != '\0') {
            rc = read_option(self, argc, argv, &i, err);
            if (take_word == NULL && ps_opts_given(self, "help")) {
                return rc;
            }
        } else if (take_word != NULL) {
            rc = take_word(arg, argv[i], &rest, err);
        } else {
            rc = psd_error_set(err, PSD_USAGE, "\"%s\" is not an option; allowed: options only",
                               argv[i]);
        }
    }
    return rc;
}

psd_status_t ps_opts_offer(ps_opts_t *self, int i, const char *value, const char *origin,
                           psd_error_t *err)
{
    return self->values[i].text == NULL
               ? set(self, i, value, origin, err)
               : ps_opt_take(ps_opts_at(self, (size_t)i), value, origin, PSD_USAGE, NULL, err);
}

void ps_opt_env_name(const ps_opt_t *opt, const char *prefix, char ret_name[PS_ENV_NAME_SIZE])
{
    (void)snprintf(ret_name, PS_ENV_NAME_SIZE, "%s%s", prefix, opt->name);
    for (char *at = ret_name; *at != '\0'; at++) {
        if (*at == '-') {
            *at = '_';
        } else if (*at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
}

psd_status_t ps_opts_read_env(ps_opts_t *self, const char *prefix, char *(*get)(const char *name),
                              psd_error_t *err)
{
    const ps_opt_t *opt = NULL;
    psd_status_t rc = PSD_OK;

    for (int i = 0; rc == PSD_OK && (opt = ps_opts_at(self, (size_t)i)) != NULL; i++) {
        char name[PS_ENV_NAME_SIZE];
        const char *value = NULL;

        if (opt->name == NULL) {
            continue; /* a heading */
        }
        ps_opt_env_name(opt, prefix, name);
        value = self->values[i].text == NULL ? get(name) : NULL;
        if (value != NULL && value[0] != '\0' && strcmp(opt->name, "help") != 0 &&
            strcmp(opt->name, "version") != 0) {
            rc = set(self, i, value, name, err);
        }
    }
    return rc;
}

/* ---- values ---- */

const ps_opts_value_t *ps_opts_value(const ps_opts_t *self, const char *name,
                                     const ps_opt_t **ret_opt)
{
    int i = ps_opts_find(self, name);

    assert(i >= 0);
    *ret_opt = ps_opts_at(self, (size_t)i);
    return &self->values[i];
}

const char *ps_opts_text(const ps_opts_t *self, const char *name)
{
    const ps_opt_t *opt = NULL;
    const ps_opts_value_t *value = ps_opts_value(self, name, &opt);

    return value->text != NULL ? value->text : opt->fallback;
}

bool ps_opts_given(const ps_opts_t *self, const char *name)
{
    const ps_opt_t *opt = NULL;

    return ps_opts_value(self, name, &opt)->text != NULL;
}

bool ps_opts_on(const ps_opts_t *self, const char *name)
{
    const char *text = ps_opts_text(self, name);

    return text != NULL && place_of(text, YES) >= 0;
}

uint64_t ps_opts_u64(const ps_opts_t *self, const char *name)
{
    const char *text = ps_opts_text(self, name);
    uint64_t value = 0;

    return text != NULL && ps_text_count(text, &value) ? value : 0;
}

int64_t ps_opts_i64(const ps_opts_t *self, const char *name)
{
    const char *text = ps_opts_text(self, name);
    int64_t value = 0;

    return text != NULL && ps_text_i64(text, &value) ? value : 0;
}

uint64_t ps_opts_ms(const ps_opts_t *self, const char *name)
{
    const char *text = ps_opts_text(self, name);
    uint64_t value = 0;

    return text != NULL && ps_text_duration(text, &value) ? value : 0;
}

double ps_opts_real(const ps_opts_t *self, const char *name)
{
    const char *text = ps_opts_text(self, name);
    double value = 0;

    return text != NULL && ps_text_f64(text, &value) ? value : 0;
}
