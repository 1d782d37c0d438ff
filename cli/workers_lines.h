/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of pscli run, turned into something to read beside the pipes. */
#ifndef PS_CLI_WORKERS_LINES_H
#define PS_CLI_WORKERS_LINES_H

#include "cli/workers.h"

/* Blocks the signals that pscli passes on and opens a signalfd for them.
 * Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_workers_catch(ps_workers_t *self,
                                             psd_error_t *err);
#endif
