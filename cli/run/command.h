/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_cmd - the one table of commands
 *
 * What     Parsing, --help, man pages and completion are all made from it, so
 *          that they cannot disagree.
 * Owner    Static; nothing is freed.
 */
#ifndef PS_CLI_COMMAND_H
#define PS_CLI_COMMAND_H

#include "base/options.h"

struct ps_cli;

typedef struct ps_example {
    const char *line; /* what is typed; NULL ends a list */
    const char *says; /* what it does */
} ps_example_t;

#define PS_CMD_WATCH 1U   /* shows only, so that --watch may repeat it */
#define PS_CMD_DRY_RUN 2U /* changes things, and can say what it would do */
/* What follows the first word belongs to another program. */
#define PS_CMD_REST 4U
#define PS_CMD_ALIKE 8U /* all of its words are of the kind `complete` */

typedef psd_status_t (*ps_cmd_run_t)(struct ps_cli *cli, psd_error_t *err);

typedef struct ps_cmd {
    const char *noun;             /* "table" */
    const char *verb;             /* "create"; NULL: the noun stands alone */
    const char *arguments;        /* as the usage line shows them; "" */
    size_t min_args, max_args;    /* words after noun and verb */
    const char *complete;         /* what the first word names: "table",
                                     "job", "node", "code", "shell",
                                     "program", "command" or NULL */
    const char *summary;          /* half a sentence */
    const char *details;          /* paragraphs; "" */
    const ps_example_t *examples; /* at least one */
    const ps_opt_t *options;      /* its own; NULL: none */
    unsigned flags;               /* PS_CMD_… */
    ps_cmd_run_t run;
} ps_cmd_t;

typedef struct ps_noun {
    const char *name;
    const char *summary;
} ps_noun_t;
#endif
