/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_args - the command line, read by the table of commands
 *
 * What     Which command, its words, and the value of every option: from the
 *          flag, else the environment (PSCLI_ROW_FORMAT for --row-format),
 *          else the context's file, else the table's default; the current
 *          context comes after $PSD_ENDPOINT. Every value is checked when it
 *          is read.
 * Owner    The caller owns the struct (ps_args_done); argv and the environment
 *          are borrowed until then.
 */
#ifndef PS_CLI_ARGS_H
#define PS_CLI_ARGS_H

#include "cli/run/command.h"
#include "transport/environment/environment.h"

typedef struct ps_args {
    const ps_noun_t *noun; /* NULL: none named */
    const char *group;     /* the first word of a verb of two; else NULL. Borrowed from argv */
    const ps_cmd_t *cmd;   /* NULL: no command, or a noun that needs a verb */
    bool help;
    bool version;
    const char **words; /* owned array; after noun and verb */
    size_t n_words, words_capacity;
    ps_opts_t opts;                     /* global ones, then the command's */
    char *context;                      /* owned; the file's text, cut up */
    ps_environment_t programs_endpoint; /* $PSD_ENDPOINT … */
    ps_environment_t hostfile;          /* other systems' machine_file */
} ps_args_t;

/* A zeroed struct is empty. Frees and zeroes it; fits PSD_AUTO. */
void ps_args_done(ps_args_t *self);
/* ps_opts_text, …, of the command line's options. */
#define ps_args_text(self, name) ps_opts_text(&(self)->opts, name)
#define ps_args_given(self, name) ps_opts_given(&(self)->opts, name)
#define ps_args_on(self, name) ps_opts_on(&(self)->opts, name)
#define ps_args_u64(self, name) ps_opts_u64(&(self)->opts, name)
#define ps_args_i64(self, name) ps_opts_i64(&(self)->opts, name)
#define ps_args_ms(self, name) ps_opts_ms(&(self)->opts, name)
#define ps_args_real(self, name) ps_opts_real(&(self)->opts, name)
#endif
