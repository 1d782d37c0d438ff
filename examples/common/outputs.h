/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outputs - the files that a program has been told to write
 */
#ifndef EX_OUTPUTS_H
#define EX_OUTPUTS_H

#include "options.h"

/* Whether none of them is a file that is read too, or another one of them, and
 * worker 0 will be able to write them; other ranks may run elsewhere and do not
 * look. Errors: PSD_USAGE, PSD_IO. */
PSD_MUST_CHECK psd_status_t ex_outputs_check(const ex_command_t *command, const void *options,
                                             psd_error_t *err);
#endif
