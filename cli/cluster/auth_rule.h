/* SPDX-License-Identifier: Apache-2.0 */
/* ps_auth - what commands that let somebody in have in common: the rule, and the file of a key */
#ifndef PS_CLI_AUTH_RULE_H
#define PS_CLI_AUTH_RULE_H

#include <limits.h>

#include "cli/run/cli.h"

#define PS_REACH_SIZE 640 /* two globs, and words */

/* Where the key of that name goes: $XDG_CONFIG_HOME/pscli/keys/NAME.key, or ~/.config/…; makes the
 * folders. Errors: PSD_USAGE there is no such place; PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_auth_key_path(const char *name, char ret_path[PATH_MAX],
                                             psd_error_t *err);
/* A text goes into the request under its name. Errors: PSD_USAGE it is not UTF-8: what is left out
 * would mean more, all tables for one. */
PSD_MUST_CHECK psd_status_t ps_auth_add_text(json_t *request, const char *name, const char *text,
                                             psd_error_t *err);
/* The options --role, --tables and --jobs. Errors: PSD_USAGE no role, or one glob alone. */
PSD_MUST_CHECK psd_status_t ps_auth_add_rule(const ps_cli_t *cli, json_t *request,
                                             psd_error_t *err);
/* What the last rule of a principal covers, "; the rule covers …"; "" for an admin, who may do
 * all. */
void ps_auth_print_reach(const json_t *principal, char ret[PS_REACH_SIZE]);
#endif
