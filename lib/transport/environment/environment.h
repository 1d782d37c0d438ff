/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/environment: what the environment says
 *
 * It is       Settings as variables: those of psd, and those of other systems, which one
 *             table (aliases.def) turns into psd's.
 * It uses     lib/base.
 * It ignores  What a setting does: whoever reads it knows.
 * Start at    environment.h, aliases.def.
 */
/*
 * ps_environment - one setting, from psd's variable or from other systems'
 *
 * What     PSD_ENDPOINT is what PSD_ENDPOINT says; where that is not set or empty, what the
 *          names of other systems say (DMLC_PS_ROOT_URI and DMLC_PS_ROOT_PORT). Two of
 *          those that differ are an error that names both.
 * Threads  Any, while nobody changes the environment.
 */
#ifndef PS_TRANSPORT_ENVIRONMENT_H
#define PS_TRANSPORT_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_ENVIRONMENT_TEXT 1024
#define PS_ENVIRONMENT_ORIGIN 128

/* What an alias does with its value; see aliases.def. */
typedef enum ps_alias_how {
    PS_ALIAS_TEXT = 0,
    PS_ALIAS_LAST,
    PS_ALIAS_HOST,
    PS_ALIAS_PORT,
    PS_ALIAS_INTERFACE,
    PS_ALIAS_SECONDS,
    PS_ALIAS_WHEN,
    PS_ALIAS_UNLESS,
    PS_ALIAS_ZERO,
    PS_ALIAS_WORDS,
    PS_ALIAS_MORE,
    PS_ALIAS_NAMED,
    PS_ALIAS_NODE,
    PS_ALIAS_FILE,
    PS_ALIAS_NOTHING,
    PS_ALIAS_REFUSED
} ps_alias_how_t;

/* One row of aliases.def; all static. */
typedef struct ps_alias {
    const char *family; /* "dmlc" */
    const char *name;
    const char *setting; /* "": none */
    ps_alias_how_t how;
    const char *detail;
    const char *help;
} ps_alias_t;

/* A setting's value, and who says it. Not to be copied: text may be within. */
typedef struct ps_environment {
    const char *text;                   /* NULL: nobody says it; never empty */
    char origin[PS_ENVIRONMENT_ORIGIN]; /* names of variables, with commas between them */
    char made[PS_ENVIRONMENT_TEXT];
} ps_environment_t;

/* NULL after the last. */
const ps_alias_t *ps_alias_at(size_t i);
/* What the variable of this row says: NULL when it is not set or empty, or its family is
 * not read ($PSD_ALIASES). */
const char *ps_alias_text(const ps_alias_t *self);
/* Is the family read? */
bool ps_alias_is_read(const ps_alias_t *self);

/*
 * Reads a setting (a row of env_settings.def, or the variable of a key of psd.yaml), and
 * checks what an alias says.
 * Errors: PSD_INVALID of an alias, by its name: its value, two that differ, half of an
 * address, a file or an interface that is not there.
 */
PSD_MUST_CHECK psd_status_t ps_environment_read(const char *setting, ps_environment_t *ret,
                                                psd_error_t *err);
/* A number of it; *number stays when nobody says it. Errors: PSD_INVALID by the name. */
PSD_MUST_CHECK psd_status_t ps_environment_number(const char *setting, int64_t *number,
                                                  psd_error_t *err);
/* Reads the whole of a file that a setting names. Errors: PSD_IO it cannot be read; PSD_INVALID it
 * has `size` bytes or more, or is a FIFO, a directory or the like. */
PSD_MUST_CHECK psd_status_t ps_environment_file(const char *path, char *ret_text, size_t size,
                                                size_t *ret_length, psd_error_t *err);
/* Is a variable set that psd refuses? Errors: PSD_INVALID by its name. */
PSD_MUST_CHECK psd_status_t ps_environment_check(psd_error_t *err);
/* Where this user's psd keeps its state if nothing else is said: psd in $XDG_STATE_HOME, else in
 * ~/.local/state. false: neither is there to say, or it is too long. */
bool ps_environment_state_dir(char *ret_dir, size_t size);
#endif
