/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_options - the command line of psd
 *
 * What     What to do, and the settings that flags give, by their names;
 *          ps_options_config puts default, file, environment and flags together.
 * Owner    The caller; texts are borrowed from argv.
 */
#ifndef PS_DAEMON_OPTIONS_H
#define PS_DAEMON_OPTIONS_H

#include "base/options.h"
#include "server/config/config.h"

/* ret_options is ps_opts_done by the caller, also after errors. Errors:
 * PSD_USAGE naming the word, with a suggestion; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_options_parse(int argc, char *const *argv, ps_opts_t *ret_options,
                                             psd_error_t *err);
/* All settings, checked. ret_config is ps_config_done by the caller; set on
 * PSD_OK only. Errors: PSD_CONFIG, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_options_config(const ps_opts_t *self, ps_config_t *ret_config,
                                              psd_error_t *err);
/* The text of --help; static. */
const char *ps_options_help(void);
#endif
