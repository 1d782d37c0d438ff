/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inputs - the files that a program has been told to read
 */
#ifndef EX_INPUTS_H
#define EX_INPUTS_H

#include "options.h"

/*
 * Whether all of them can be read. Each worker looks at all, also at those that
 * worker 0 alone will read: if one is missing, none joins and waits for the
 * others. A pipe is not opened, for that would take what is in it, and of a
 * directory it is only seen that it can be listed.
 *
 * Errors: PSD_IO; PSD_INVALID a pattern that matches nothing.
 */
PSD_MUST_CHECK psd_status_t ex_inputs_check(const ex_command_t *command, const void *options,
                                            psd_error_t *err);
#endif
