/* SPDX-License-Identifier: Apache-2.0 */
/* ps_args_context - named settings in $XDG_CONFIG_HOME/pscli/contexts/NAME
 * (~/.config without it): lines `key=value`, empty ones, and `#` comments. The file
 * `current` in $XDG_CONFIG_HOME/pscli names the one that counts without --context. */
#ifndef PS_CLI_ARGS_CONTEXT_H
#define PS_CLI_ARGS_CONTEXT_H

#include <limits.h>

#include "cli/run/cli.h"

#define PS_CONTEXT_NAME_MAX 63 /* as ps_text_is_name has it */

/* Called for each line; origin ("FILE:3: key") is for errors. Key and value
 * live as long as the text that ps_args_context_read gives. */
typedef psd_status_t (*ps_args_context_set_t)(void *arg, const char *key, const char *value,
                                              const char *origin, psd_error_t *err);

/*
 * Reads the file of a context and calls `set` for each setting.
 * ret_text  out  the file's text, cut up; the caller frees it with ps_free,
 *                also after errors
 * Errors: PSD_USAGE no such context, a bad name or line; what set returns;
 * PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_args_context_read(const char *name, char **ret_text,
                                                 ps_args_context_set_t set, void *arg,
                                                 psd_error_t *err);
/* A setting of `arg`, a ps_opts_t of which one table is the global options; fits
 * ps_args_context_read. Errors: PSD_USAGE, of an unknown key too. */
PSD_MUST_CHECK psd_status_t ps_args_context_offer(void *arg, const char *key, const char *value,
                                                  const char *origin, psd_error_t *err);
/* The path of a context, or, with NULL, of the directory of all. Errors: PSD_USAGE a bad
 * name, a path that is too long. */
PSD_MUST_CHECK psd_status_t ps_args_context_path(const char *name, char ret_path[PATH_MAX],
                                                 psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_args_context_current_path(char ret_path[PATH_MAX], psd_error_t *err);
/* The name in `current`; "": there is none. Errors: PSD_USAGE when the file cannot be
 * read, or has no name. */
PSD_MUST_CHECK psd_status_t ps_args_context_current(char ret_name[PS_CONTEXT_NAME_MAX + 1],
                                                    psd_error_t *err);

psd_status_t ps_cmd_context_list(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_context_show(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_context_set(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_context_use(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_context_drop(ps_cli_t *cli, psd_error_t *err);
#endif
