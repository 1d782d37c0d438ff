/* SPDX-License-Identifier: Apache-2.0 */
/* Names of environment variables. */
#include "base/env.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

const char *const ps_env_names[] = {
#define SETTING(name, kind, least, most, fallback, help) name,
#include "base/env_settings.def"
    NULL};

static const ps_env_setting_t settings[] = {
#define SETTING(name, kind, least, most, fallback, help) \
    {name, PS_ENV_##kind, least, most, fallback, help},
#include "base/env_settings.def"
};

const ps_env_setting_t *ps_env_setting_at(size_t i)
{
    return i < sizeof settings / sizeof *settings ? &settings[i] : NULL;
}

const ps_env_setting_t *ps_env_setting(const char *name)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (strcmp(settings[i].name, name) == 0) {
            return &settings[i];
        }
    }
    return NULL;
}

bool ps_env_is_known(const char *name)
{
    return ps_env_setting(name) != NULL;
}

/* Is text one of "a|b|c"? */
static bool is_one_of(const char *text, const char *words)
{
    size_t length = strlen(text);

    for (const char *at = words; at != NULL; at = strchr(at, '|')) {
        at += at == words ? 0 : 1;
        if (strncmp(at, text, length) == 0 && (at[length] == '|' || at[length] == '\0')) {
            return length > 0;
        }
    }
    return false;
}

psd_status_t ps_env_check(const ps_env_setting_t *self, const char *text, const char *name,
                          psd_error_t *err)
{
    int64_t value = 0;
    double share = 0;

    if (self->kind == PS_ENV_WORDS && !is_one_of(text, self->fallback)) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %s", name, text,
                             self->fallback);
    }
    if (self->kind == PS_ENV_NUMBER &&
        (!ps_text_i64(text, &value) || value < self->least || value > self->most)) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %" PRId64 "..%" PRId64,
                             name, text, self->least, self->most);
    }
    if (self->kind == PS_ENV_SHARE && (!ps_text_f64(text, &share) || !(share >= 0 && share <= 1))) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: 0..1", name, text);
    }
    return PSD_OK;
}

bool ps_env_next(char *const *environment, size_t *at, const char *prefix,
                 char ret_name[PS_ENV_NAME_SIZE])
{
    for (; environment != NULL && environment[*at] != NULL; (*at)++) {
        const char *entry = environment[*at];
        size_t length = strcspn(entry, "=");

        if (length < PS_ENV_NAME_SIZE && strncmp(entry, prefix, strlen(prefix)) == 0) {
            memcpy(ret_name, entry, length);
            ret_name[length] = '\0';
            (*at)++;
            return true;
        }
    }
    return false;
}
