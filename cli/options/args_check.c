/* SPDX-License-Identifier: Apache-2.0 */
/* Is a value one that its option takes? */
#include "cli/options/args.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static const char *const YES[] = {"true", "1", "yes", "on", NULL};
static const char *const NO[] = {"false", "0", "no", "off", NULL};

static bool is_one_of(const char *word, const char *const *words)
{
    for (size_t i = 0; words[i] != NULL; i++) {
        if (strcmp(words[i], word) == 0) {
            return true;
        }
    }
    return false;
}

static psd_status_t refuse_choice(const ps_opt_t *opt, const char *value, const char *origin,
                                  psd_error_t *err)
{
    const char *near = ps_text_suggest(value, opt->words);
    char list[200] = "";
    size_t used = 0;

    for (size_t i = 0; opt->words[i] != NULL && used < sizeof list; i++) {
        int n =
            snprintf(list + used, sizeof list - used, "%s%s", i == 0 ? "" : ", ", opt->words[i]);

        used += n > 0 ? (size_t)n : 0;
    }
    return psd_error_set(err, PSD_USAGE, "%s is \"%s\"%s%s%sallowed: %s", origin, value,
                         near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                         near == NULL ? "; " : "\"? ", list);
}

static psd_status_t check_u64(const ps_opt_t *opt, const char *value, const char *origin,
                              psd_error_t *err)
{
    uint64_t number = 0;

    if (ps_text_u64(value, &number) && number >= opt->min && number <= opt->max) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_USAGE, "%s is \"%s\"; allowed: %" PRIu64 " to %" PRIu64, origin,
                         value, opt->min, opt->max);
}

static psd_status_t check_count(const ps_opt_t *opt, const char *value, const char *origin,
                                psd_error_t *err)
{
    uint64_t number = 0;

    if (ps_text_count(value, &number) && number >= opt->min && number <= opt->max) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_USAGE,
                         "%s is \"%s\"; allowed: %" PRIu64 " to %" PRIu64
                         ", also like 1e9, 64M, 1.5G",
                         origin, value, opt->min, opt->max);
}

static psd_status_t check_i64(const char *value, const char *origin, psd_error_t *err)
{
    int64_t number = 0;

    if (ps_text_i64(value, &number) && number > INT32_MIN && number <= INT32_MAX) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_USAGE, "%s is \"%s\"; allowed: a whole number of 32 bits", origin,
                         value);
}

static psd_status_t check_duration(const ps_opt_t *opt, const char *value, const char *origin,
                                   psd_error_t *err)
{
    uint64_t ms = 0;

    if (ps_text_duration(value, &ms) && ms >= opt->min && ms <= opt->max) {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_USAGE, "%s is \"%s\"; allowed: %" PRIu64 "ms to %" PRIu64 "s, like 250ms, 10s, 5m",
        origin, value, opt->min, opt->max / 1000);
}

static psd_status_t check_switch(const char *value, const char *origin, psd_error_t *err)
{
    if (is_one_of(value, YES) || is_one_of(value, NO)) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_USAGE, "%s is \"%s\"; allowed: true, false", origin, value);
}

psd_status_t ps_args_check(const ps_opt_t *opt, const char *value, const char *origin,
                           psd_error_t *err)
{
    switch (opt->kind) {
    case PS_OPT_SWITCH:
        return check_switch(value, origin, err);
    case PS_OPT_U64:
        return check_u64(opt, value, origin, err);
    case PS_OPT_COUNT:
        return check_count(opt, value, origin, err);
    case PS_OPT_I64:
        return check_i64(value, origin, err);
    case PS_OPT_DURATION:
        return check_duration(opt, value, origin, err);
    case PS_OPT_CHOICE:
        return is_one_of(value, opt->words) ? PSD_OK : refuse_choice(opt, value, origin, err);
    case PS_OPT_TEXT:
    default:
        return value[0] != '\0' ? PSD_OK : psd_error_set(err, PSD_USAGE, "%s is empty", origin);
    }
}

bool ps_args_on(const ps_args_t *self, const char *name)
{
    const char *text = ps_args_text(self, name);

    return text != NULL && is_one_of(text, YES);
}
