/* SPDX-License-Identifier: Apache-2.0 */
/* An initialiser as text: "uniform:-1,1". */
#include "model/tables/table.h"

#include <stdio.h>
#include <string.h>

#include "model/tables/words.h"

static const ps_word_t inits[] = {{"zero", PS_INIT_ZERO},
                                  {"constant", PS_INIT_CONSTANT},
                                  {"uniform", PS_INIT_UNIFORM},
                                  {"normal", PS_INIT_NORMAL}};

/* The numbers after the colon of an init: as many as its kind takes. */
static psd_status_t read_init_numbers(const char *text, ps_init_spec_t *spec, psd_error_t *err)
{
    const char *at = text;
    char part[PS_NUMBER_SIZE] = {0};

    if (spec->kind != PS_INIT_CONSTANT) {
        psd_status_t rc = PSD_OK;

        if (!ps_word_take(&at, ',', part)) {
            return ps_word_no_number("first value", at, err);
        }
        rc = ps_word_number("first value", part, &spec->a, err);
        if (rc != PSD_OK) {
            return rc;
        }
        return ps_word_number("first value", at, &spec->b, err);
    }
    return ps_word_number("first value", at, &spec->a, err);
}

psd_status_t ps_init_spec_parse(const char *text, ps_init_spec_t *ret, psd_error_t *err)
{
    size_t length = strcspn(text, ":");
    int kind = ps_word_find(PS_WORDS(inits), text, length);
    ps_init_spec_t spec = {.kind = (ps_init_kind_t)kind};
    bool has_colon = text[length] == ':';

    if (kind == 0 || has_colon != (spec.kind != PS_INIT_ZERO)) {
        return ps_word_unknown("init", text,
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

const char *ps_init_name(ps_init_kind_t value)
{
    return ps_word_of(PS_WORDS(inits), (int)value);
}

void ps_init_spec_format(const ps_init_spec_t *self, char ret[PS_SPEC_TEXT_SIZE])
{
    bool has_b = self->kind == PS_INIT_UNIFORM || self->kind == PS_INIT_NORMAL;
    char a[PS_NUMBER_SIZE] = {0};
    char b[PS_NUMBER_SIZE] = {0};

    if (!has_b && self->kind != PS_INIT_CONSTANT) {
        (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s", ps_init_name(self->kind));
        return;
    }
    ps_word_format_number(self->a, a);
    ps_word_format_number(self->b, b);
    (void)snprintf(ret, PS_SPEC_TEXT_SIZE, "%s:%s%s%s", ps_init_name(self->kind), a,
                   has_b ? "," : "", has_b ? b : "");
}
