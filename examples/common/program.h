/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program - the frame of main around the work
 */
#ifndef EX_PROGRAM_H
#define EX_PROGRAM_H

#include "psd.h"

/* Runs it, or prints the version if only that was requested. An error is one
 * line "NAME: CODE text" on stderr; returns the exit code of the status. */
int ex_program(const char *name, psd_status_t (*run)(int argc, char **argv, psd_error_t *err),
               int argc, char **argv);
/* Seconds since some moment; never goes back. */
double ex_now_s(void);
#endif
