/* SPDX-License-Identifier: Apache-2.0 */
/* ps_confirm - asks before something is destroyed */
#ifndef PS_CLI_CONFIRM_H
#define PS_CLI_CONFIRM_H

#include "cli/run/cli.h"

#define PS_CONFIRM_NAMES_SIZE 512

/* `"w", "v" and 3 more`: names, or the members "table" of objects, as many as
 * fit. */
void ps_confirm_names(const json_t *items, char ret_names[PS_CONFIRM_NAMES_SIZE]);

/* Asks on the terminal whether to drop `what`; not with --yes. Errors:
 * PSD_USAGE there is no terminal; PSD_FAILED the answer is no. */
PSD_MUST_CHECK psd_status_t ps_confirm_drop(const ps_cli_t *cli, const char *what,
                                            psd_error_t *err);
/* The same for removing. */
PSD_MUST_CHECK psd_status_t ps_confirm_remove(const ps_cli_t *cli, const char *what,
                                              psd_error_t *err);
#endif
