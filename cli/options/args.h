/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_args - the command line, read by the table of commands
 *
 * What     Which command, its words, and the value of every option: from the
 *          flag, else the environment (PSCLI_ROW_FORMAT for --row-format),
 *          else the context's file, else the table's default. Every value is
 *          checked when it is read.
 * Owner    The caller owns the struct (ps_args_done); argv and the environment
 *          are borrowed until then.
 */
#ifndef PS_CLI_ARGS_H
#define PS_CLI_ARGS_H

#include <stdbool.h>

#include "base/env.h"
#include "cli/options/command.h"

typedef struct ps_args_value {
    const char *text; /* NULL: not given */
    char origin[96];  /* for errors: "--rows", "PSCLI_ROWS", "FILE:3: rows" */
    char *joined;     /* owned; the text of an option that was given again */
} ps_args_value_t;

typedef struct ps_args {
    const ps_noun_t *noun; /* NULL: none named */
    const ps_cmd_t *cmd;   /* NULL: no command, or a noun that wants a verb */
    bool help;
    bool version;
    const char **words; /* owned array; behind noun and verb */
    size_t n_words, words_capacity;
    ps_args_value_t values[PS_OPTS_MAX]; /* global ones, then the command's */
    char *context;                       /* owned; the file's text, cut up */
} ps_args_t;

/* A zeroed struct is empty. Frees and zeroes it; fits PSD_AUTO. */
void ps_args_done(ps_args_t *self);
/*
 * Reads everything. With help or version asked for, a missing command or word
 * is no error.
 *
 * self  out  empty before; holds what was read so far on errors
 *
 * Errors: PSD_USAGE naming the word and what is allowed; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_args_parse(ps_args_t *self, int argc, char *const *argv,
                                          psd_error_t *err);
/* The format that errors shall have, whatever else is wrong with the line:
 * "json" …, or NULL when none is named (borrowed from argv, environment). */
const char *ps_args_find_format(int argc, char *const *argv);

/* The option's value or default; NULL when there is neither. The name is one
 * of the table's (an assert says so). */
const char *ps_args_text(const ps_args_t *self, const char *name);
bool ps_args_given(const ps_args_t *self, const char *name);
/* Its number may be written like 1e9, 64M (PS_OPT_COUNT). */
bool ps_args_is_count(const ps_args_t *self, const char *name);
/* A switch's. */
bool ps_args_on(const ps_args_t *self, const char *name);
/* Numbers, checked already; 0 when there is no value. */
uint64_t ps_args_u64(const ps_args_t *self, const char *name);
int64_t ps_args_i64(const ps_args_t *self, const char *name);
uint64_t ps_args_ms(const ps_args_t *self, const char *name);

/* The name of the option's environment variable. */
void ps_args_env_name(const ps_opt_t *opt, char ret_name[PS_ENV_NAME_SIZE]);
/* Is the value one that the option takes? origin names it in the error.
 * Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ps_args_check(const ps_opt_t *opt, const char *value,
                                          const char *origin, psd_error_t *err);
#endif
