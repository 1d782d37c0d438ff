/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options - a command line, read from a table of options
 *
 * What     A program lists its options: name, kind, where the value goes, what
 *          it may be, a line of help. From that come the reader and --help. It
 *          is strict: an option that is unknown, has no value or one outside
 *          its range gives one line of error with the option, its value and the
 *          allowed values. It checks output files before the program spends
 *          hours on their content.
 *
 *              static const ps_opt_t OPTIONS[] = {
 *                  {.kind = PS_OPT_HEADING, .help = "Training"},
 *                  PS_OPT_NUMBER("epochs", "N", PS_OPT_U32, offsetof(mine_t, epochs),
 *                                1, 1000, "passes over the data (default 5)"),
 *                  PS_OPT_END,
 *              };
 *              static const ex_command_t COMMAND = {"mine - learns", OPTIONS};
 */
#ifndef EX_OPTIONS_H
#define EX_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/options.h"
#include "psd.h"

/* Of the words "yes|no". */
enum { EX_YES, EX_NO };
/* The value of a choice that was not given. */
#define EX_NOT_CHOSEN UINT32_MAX

typedef struct ex_command {
    const char *about;       /* the head of --help */
    const ps_opt_t *options; /* PS_OPT_END ends them */
} ex_command_t;

#define EX_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/*
 * Reads argv[1 .. argc - 1]: options (base/options.h).
 *
 * options   in/out  the program's own struct, with its defaults
 * ret_help  out     -h or --help was given; the rest was not read
 *
 * Errors: PSD_USAGE, also an output that is an input too; PSD_IO an output that
 * this worker, of rank 0, could not write.
 */
PSD_MUST_CHECK psd_status_t ex_options_read(const ex_command_t *command, void *options, int argc,
                                            char **argv, bool *ret_help, psd_error_t *err);
/* Prints the help text. */
void ex_options_help(const ex_command_t *command);
/* Whether a program's tables can begin with this name: a table's name has 63
 * characters at most, and `tail`, such as ".factors", is the longest suffix
 * that the program appends; "" none. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ex_options_check_table(const char *name, const char *tail,
                                                   psd_error_t *err);
/* Whether these files go together, for a program that trains a model or uses
 * one; each may be NULL. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t ex_options_check_files(const char *train, const char *test,
                                                   const char *save, const char *predict,
                                                   const char *scores, psd_error_t *err);
#endif
