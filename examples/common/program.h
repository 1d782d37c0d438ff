/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program - what main does around the work
 */
#ifndef EX_PROGRAM_H
#define EX_PROGRAM_H

#include "psd.h"

/* Runs it, or tells the version if that is all that is asked for. An error
 * is one line "NAME: CODE text" on stderr; gives the exit code of the status.
 */
int ex_program(const char *name, psd_status_t (*run)(int argc, char **argv, psd_error_t *err),
               int argc, char **argv);
/* Seconds since some moment; never goes back. */
double ex_now_s(void);
#endif
