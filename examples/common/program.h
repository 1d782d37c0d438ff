/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program - what main does around the work
 */
#ifndef EX_PROGRAM_H
#define EX_PROGRAM_H

#include <stdbool.h>

#include "psd.h"

/* Runs it. An error is one line "NAME: CODE text" on stderr; gives the exit
 * code of the status. */
int ex_program(const char *name,
               psd_status_t (*run)(int argc, char **argv, psd_error_t *err),
               int argc,
               char **argv);
/*
 * Whether worker 0 will be able to write a file: looked at before hours are
 * spent on what it gets. Other ranks do not look: they may run elsewhere.
 *
 * option    in  that named it, for the error
 * path      in  NULL: nothing is written
 * replaces  in  the file is made beside its place and then moved there
 *
 * Errors: PSD_IO.
 */
PSD_MUST_CHECK psd_status_t ex_output_check(const char *option,
                                            const char *path,
                                            bool replaces,
                                            psd_error_t *err);
/* Seconds since some moment; never goes back. */
double ex_now_s(void);
#endif
