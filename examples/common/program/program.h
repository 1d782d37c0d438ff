/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room examples/common/program: the frame of a program
 *
 * It is       main around the work, options, numbers, input and output files,
 *             random numbers.
 * It uses     The public headers, lib/base/options.h.
 * It ignores  Samples, models and jobs.
 * Start at    program.h, options.h.
 */
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
