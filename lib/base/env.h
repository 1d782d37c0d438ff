/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_env - the variables of the environment that libpsd and programs read
 *
 * What     The list of their names and values, and an iterator over the environment's
 *          variables with a prefix. With both, a program warns about variables
 *          that nothing reads. The daemon's keys (PSD_LIMITS_CHUNK_BYTES) are
 *          its own.
 */
#ifndef PS_BASE_ENV_H
#define PS_BASE_ENV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_ENV_NAME_SIZE 64

typedef enum ps_env_kind {
    PS_ENV_TEXT = 0,
    PS_ENV_NUMBER,
    PS_ENV_SHARE, /* 0 .. 1 */
    PS_ENV_WORDS
} ps_env_kind_t;

/* One row of env_settings.def; all static. */
typedef struct ps_env_setting {
    const char *name;
    ps_env_kind_t kind;
    int64_t least; /* NUMBER */
    int64_t most;
    const char *fallback; /* as one would type it; WORDS: all words, the default first */
    const char *help;
} ps_env_setting_t;

/* PSD_ENDPOINT …; NULL at the end. */
extern const char *const ps_env_names[];

/* NULL after the last. */
const ps_env_setting_t *ps_env_setting_at(size_t i);
/* NULL: there is none. */
const ps_env_setting_t *ps_env_setting(const char *name);
bool ps_env_is_known(const char *name);
/* Is text a value of that setting? name is what the error calls it. Errors: PSD_INVALID. */
PSD_MUST_CHECK psd_status_t ps_env_check(const ps_env_setting_t *self, const char *text,
                                         const char *name, psd_error_t *err);
/*
 * The next name in `environment` (as environ has it) that begins with prefix;
 * skips names of PS_ENV_NAME_SIZE bytes and more.
 *
 * at  in/out  0 before the first
 *
 * False when there is none.
 */
bool ps_env_next(char *const *environment, size_t *at, const char *prefix,
                 char ret_name[PS_ENV_NAME_SIZE]);
#endif
