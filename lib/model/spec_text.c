/* SPDX-License-Identifier: Apache-2.0 */
/* Updater and init with their numbers: read strictly, printed so that they read
 * back to the same bits. */
#include "model/table.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "model/words.h"

#define DEFAULT_ALPHA 0.1
#define DEFAULT_BETA 1.0

static const ps_word_t updaters[] = {{"add", PS_UPDATER_ADD},
                                     {"assign", PS_UPDATER_ASSIGN},
                                     {"sgd", PS_UPDATER_SGD},
                                     {"adagrad", PS_UPDATER_ADAGRAD},
                                     {"ftrl", PS_UPDATER_FTRL}};
static const ps_word_t inits[] = {{"zero", PS_INIT_ZERO},
                                  {"constant", PS_INIT_CONSTANT},
                                  {"uniform", PS_INIT_UNIFORM},
                                  {"normal", PS_INIT_NORMAL}};

static psd_status_t
bad_number(const char *what, const char *text, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID,
                         "%s \"%.80s\" is not a number; allowed is a decimal "
                         "number such as 0.05 or 1e-3",
                         what, text);
}

/* A whole number that a double would round is refused rather than changed. */
static psd_status_t
read_number(const char *what,
            const char *text,
            double *ret_value,
            psd_error_t *err)
{
    double value = 0;
    int64_t whole = 0;

    if (!ps_text_f64(text, &value) || !isfinite(value)) {
        return bad_number(what, text, err);
    }
    if (ps_text_i64(text, &whole) &&
        (value >= 0x1p63 || (int64_t)value != whole)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s \"%.80s\" cannot be held exactly; beyond 2^53 "
                             "only some whole numbers can",
                             what, text);
    }
    *ret_value = value;
    return PSD_OK;
}

/* Where a parameter of this name goes; NULL: the updater has none. */
static double *
parameter_of(ps_updater_spec_t *spec, const char *name)
{
    bool has_beta =
        spec->kind == PS_UPDATER_ADAGRAD || spec->kind == PS_UPDATER_FTRL;

    if (strcmp(name, "alpha") == 0) {
        return &spec->alpha;
    }
    if (strcmp(name, "beta") == 0 && has_beta) {
        return &spec->beta;
    }
    if (strcmp(name, "l1") == 0) {
        return &spec->l1;
    }
    return strcmp(name, "l2") == 0 ? &spec->l2 : NULL;
}

/* One "name=number". */
static psd_status_t
read_parameter(ps_updater_spec_t *spec, const char *part, psd_error_t *err)
{
    char name[PS_NUMBER_SIZE] = {0};
    const char *number = part;
    double *place = NULL;

    if (!ps_word_take(&number, '=', name)) {
        return bad_number("updater parameter", part, err);
    }
    place = parameter_of(spec, name);
    if (place == NULL) {
        return ps_word_unknown("updater parameter", name,
                               spec->kind == PS_UPDATER_SGD
                                   ? "alpha, l1 or l2"
                                   : "alpha, beta, l1 or l2",
                               err);
    }
    return read_number(name, number, place, err);
}

static bool
takes_parameters(ps_updater_kind_t kind)
{
    return kind != PS_UPDATER_ADD && kind != PS_UPDATER_ASSIGN;
}

static ps_updater_spec_t
updater_defaults(ps_updater_kind_t kind)
{
    ps_updater_spec_t spec = {.kind = kind};

    if (takes_parameters(kind)) {
        spec.alpha = DEFAULT_ALPHA;
        spec.beta = kind == PS_UPDATER_SGD ? 0 : DEFAULT_BETA;
    }
    return spec;
}

psd_status_t
ps_updater_spec_parse(const char *text,
                      ps_updater_spec_t *ret,
                      psd_error_t *err)
{
    size_t length = strcspn(text, ":");
    int kind = ps_word_find(PS_WORDS(updaters), text, length);
    const char *rest = text + length;
    ps_updater_spec_t spec = updater_defaults((ps_updater_kind_t)kind);

    if (kind == 0) {
        return ps_word_unknown("updater", text,
                               "add, assign, sgd, adagrad or ftrl", err);
    }
    if (*rest == ':' && !takes_parameters(spec.kind)) {
        return psd_error_set(err, PSD_INVALID,
                             "updater \"%.80s\" takes no parameters", text);
    }
    while (*rest != '\0') {
        char part[PS_NUMBER_SIZE] = {0};
        psd_status_t rc = PSD_OK;

        rest++; /* ':' or ',' */
        length = strcspn(rest, ",");
        if (length >= PS_NUMBER_SIZE) {
            return bad_number("updater parameter", rest, err);
        }
        memcpy(part, rest, length);
        rc = read_parameter(&spec, part, err);
        if (rc != PSD_OK) {
            return rc;
        }
        rest += length;
    }
    *ret = spec;
    return PSD_OK;
}

/* The numbers behind the colon of an init: as many as its kind takes. */
static psd_status_t
read_init_numbers(const char *text, ps_init_spec_t *spec, psd_error_t *err)
{
    const char *at = text;
    char part[PS_NUMBER_SIZE] = {0};

    if (spec->kind != PS_INIT_CONSTANT) {
        psd_status_t rc = PSD_OK;

        if (!ps_word_take(&at, ',', part)) {
            return bad_number("first value", at, err);
        }
        rc = read_number("first value", part, &spec->a, err);
        if (rc != PSD_OK) {
            return rc;
        }
        return read_number("first value", at, &spec->b, err);
    }
    return read_number("first value", at, &spec->a, err);
}

psd_status_t
ps_init_spec_parse(const char *text, ps_init_spec_t *ret, psd_error_t *err)
{
    size_t length = strcspn(text, ":");
    int kind = ps_word_find(PS_WORDS(inits), text, length);
    ps_init_spec_t spec = {.kind = (ps_init_kind_t)kind};
    bool has_colon = text[length] == ':';

    if (kind == 0 || has_colon != (spec.kind != PS_INIT_ZERO)) {
        return ps_word_unknown(
            "init", text,
            "zero, constant:V, uniform:LOW,HIGH or normal:MEAN,STD", err);
    }
    if (has_colon) {
        psd_status_t rc = read_init_numbers(text + length + 1, &spec, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret = spec;
    return PSD_OK;
}

const char *
ps_updater_name(ps_updater_kind_t value)
{
    return ps_word_of(PS_WORDS(updaters), (int)value);
}

const char *
ps_init_name(ps_init_kind_t value)
{
    return ps_word_of(PS_WORDS(inits), (int)value);
}

/* A program that links us may have set a locale whose decimal point is another:
 * whatever is no part of a number becomes the one dot. */
static void
force_dot(char *text)
{
    char *to = text;

    for (const char *at = text; *at != '\0'; at++) {
        bool is_plain = strchr("0123456789+-einfa", *at) != NULL;

        if (is_plain) {
            *to++ = *at;
        } else if (to == text || to[-1] != '.') {
            *to++ = '.';
        }
    }
    *to = '\0';
}

/* The shortest of the usual precisions that reads back to the same bits. */
static void
format_number(double value, char ret[PS_NUMBER_SIZE])
{
    for (int digits = 15; digits <= 17; digits++) {
        double back = 0;

        (void)snprintf(ret, PS_NUMBER_SIZE, "%.*g", digits, value);
        force_dot(ret);
        if (ps_text_f64(ret, &back) && back == value) {
            return;
        }
    }
}

void
ps_updater_spec_format(const ps_updater_spec_t *self,
                       char ret[PS_SPEC_TEXT_SIZE])
{
    bool has_beta =
        self->kind == PS_UPDATER_ADAGRAD || self->kind == PS_UPDATER_FTRL;
    char alpha[PS_NUMBER_SIZE] = {0};
    char beta[PS_NUMBER_SIZE] = {0};
    char l1[PS_NUMBER_SIZE] = {0};
    char l2[PS_NUMBER_SIZE] = {0};

    if (!has_beta && self->kind != PS_UPDATER_SGD) {
        (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s",
                       ps_updater_name(self->kind));
        return;
    }
    format_number(self->alpha, alpha);
    format_number(self->beta, beta);
    format_number(self->l1, l1);
    format_number(self->l2, l2);
    (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s:alpha=%s%s%s,l1=%s,l2=%s",
                   ps_updater_name(self->kind), alpha, has_beta ? ",beta=" : "",
                   has_beta ? beta : "", l1, l2);
}

void
ps_init_spec_format(const ps_init_spec_t *self, char ret[PS_SPEC_TEXT_SIZE])
{
    bool has_b = self->kind == PS_INIT_UNIFORM || self->kind == PS_INIT_NORMAL;
    char a[PS_NUMBER_SIZE] = {0};
    char b[PS_NUMBER_SIZE] = {0};

    if (!has_b && self->kind != PS_INIT_CONSTANT) {
        (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s", ps_init_name(self->kind));
        return;
    }
    format_number(self->a, a);
    format_number(self->b, b);
    (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s:%s%s%s",
                   ps_init_name(self->kind), a, has_b ? "," : "",
                   has_b ? b : "");
}
