/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/options: all commands in one table
 *
 * It is       The rows of all commands, the command line read by them, and the
 *             texts that follow from them: help, man pages, completion.
 * It uses     The rooms of the commands, for their functions; run, output,
 *             lib/model/tables/updaters.def, lib/base.
 * It ignores  What a command does.
 * Start at    commands.c, args.c. A new command is a row here and a function in
 *             its room.
 */
/*
 * ps_cmds - the commands that there are, and a command line read by them
 *
 * Owner    Static; nothing is freed.
 */
#ifndef PS_CLI_COMMANDS_H
#define PS_CLI_COMMANDS_H

#include "cli/run/args.h"

/* The options of every command. */
extern const ps_opt_t ps_opts_global[];

/* The commands by file; each list ends with a NULL noun. */
extern const ps_cmd_t ps_cmds_cluster[];
extern const ps_cmd_t ps_cmds_unknown[];
extern const ps_cmd_t ps_cmds_table[];
extern const ps_cmd_t ps_cmds_checkpoint[];
extern const ps_cmd_t ps_cmds_plan[];
extern const ps_cmd_t ps_cmds_data[];
extern const ps_cmd_t ps_cmds_tool[];
extern const ps_cmd_t ps_cmds_watch[];
extern const ps_cmd_t ps_cmds_auth[];
extern const ps_cmd_t ps_cmds_bench[];

/* All of them, in the order of help; NULL after the last. */
const ps_cmd_t *ps_cmd_at(size_t i);
/* NULL when there is none; verb NULL for a noun that stands alone; a verb may be
 * two words, with a space between them. "ls" and "rm" stand for list, and for
 * drop or remove. */
const ps_cmd_t *ps_cmd_find(const char *noun, const char *verb);
/* True when verbs of that noun begin with this word and have a second one. */
bool ps_cmd_is_group(const char *noun, const char *word);
/* The nouns, in the order of help; NULL after the last. */
const ps_noun_t *ps_noun_at(size_t i);
const ps_noun_t *ps_noun_find(const char *name);
/* The known words nearest to `word`; NULL when none is near. Searches the
 * nouns when noun is NULL, else its verbs. */
const char *ps_cmd_suggest(const char *noun, const char *word);

#define PS_ARGS_ENV "PSCLI_" /* begins the names of the options' variables */

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
/* The format of errors, whatever else is wrong with the line: "json" …, or
 * NULL when none is named (borrowed from argv, environment). */
const char *ps_args_find_format(int argc, char *const *argv);
#endif
