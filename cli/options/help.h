/* SPDX-License-Identifier: Apache-2.0 */
/* Texts made from the table of commands: help, man pages, completion. */
#ifndef PS_CLI_HELP_H
#define PS_CLI_HELP_H

#include <stdio.h>

#include "cli/options/commands.h"
#include "cli/run/cli.h"

/* Help for a command; for a noun with verbs (cmd NULL); for pscli (both NULL).
 * Examples come first. */
void ps_help_write(FILE *file, const ps_noun_t *noun, const ps_cmd_t *cmd);
/* Breaks text into lines of at most 78 columns, each after `indent` blanks;
 * the first line has `used` columns written already. */
void ps_help_fill(FILE *file, const char *text, size_t indent, size_t used);

/* Writes pscli.1 and pscli-NOUN.1 into an existing directory. Errors: PSD_IO
 * naming the file. */
PSD_MUST_CHECK psd_status_t ps_man_write(const char *directory, psd_error_t *err);

/* bash, zsh, fish. */
void ps_completion_bash(FILE *file);
void ps_completion_zsh(FILE *file);
void ps_completion_fish(FILE *file);

psd_status_t ps_cmd_completion(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_help(ps_cli_t *cli, psd_error_t *err);
psd_status_t ps_cmd_version(ps_cli_t *cli, psd_error_t *err);
#endif
