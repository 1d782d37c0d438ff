/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs - the input files of a program
 */
#ifndef EX_INPUTS_H
#define EX_INPUTS_H

#include "options.h"

/*
 * Checks that all of them can be read. Each worker checks all, also those that
 * only worker 0 will read: if one is missing, no worker joins and waits for the
 * others. It does not open a pipe, since that would consume its content, and
 * for a directory it only checks that it can be listed.
 *
 * Errors: PSD_IO; PSD_INVALID a pattern that matches nothing.
 */
PSD_MUST_CHECK psd_status_t ex_inputs_check(const ex_command_t *command, const void *options,
                                            psd_error_t *err);
#endif
