/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outputs - the output files of a program
 */
#ifndef EX_OUTPUTS_H
#define EX_OUTPUTS_H

#include "options.h"

/* Checks that none of them is also an input or another output, and that
 * worker 0 can write them; other ranks may run elsewhere and do not check.
 * Errors: PSD_USAGE, PSD_IO. */
PSD_MUST_CHECK psd_status_t ex_outputs_check(const ex_command_t *command, const void *options,
                                             psd_error_t *err);
#endif
