/* SPDX-License-Identifier: Apache-2.0 */
/* ps_args_context - named settings in $XDG_CONFIG_HOME/pscli/contexts/NAME
 * (~/.config without it): lines `key=value`, empty ones, and `#` comments. */
#ifndef PS_CLI_ARGS_CONTEXT_H
#define PS_CLI_ARGS_CONTEXT_H

#include "psd/status.h"

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
#endif
