/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_private_psd - a private psd, in a temporary directory
 *
 * Owner    The caller; ps_private_psd_done stops it and removes its directory.
 */
#ifndef PS_CLI_PRIVATE_PSD_H
#define PS_CLI_PRIVATE_PSD_H

#include <limits.h>
#include <sys/types.h>

#include "cli/run/cli.h"

typedef struct ps_private_psd {
    pid_t pid;                /* 0: none runs */
    char directory[PATH_MAX]; /* "" when there is none */
    char endpoint[256];       /* its control port */
} ps_private_psd_t;

/* Starts `program` (NULL: psd beside pscli, else from PATH) on a free
 * loopback port and waits until it is ready. n_shards 0: psd's default.
 * Errors: PSD_IO it cannot be started, with the last line of its log;
 * PSD_DEADLINE it is not ready in time. */
PSD_MUST_CHECK psd_status_t ps_private_psd_start(ps_private_psd_t *ret_psd, const char *program,
                                                 uint32_t n_shards, uint32_t timeout_ms,
                                                 psd_error_t *err);
/* Fits PSD_AUTO. */
void ps_private_psd_done(ps_private_psd_t *self);
#endif
