/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_private_psd - a private psd, in a temporary directory; or several as one cluster
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

typedef struct ps_private_args {
    const char *program; /* NULL: psd beside pscli, else from PATH */
    const char *host;    /* the address at which it listens, on a free port; NULL: loopback */
    const char *join;    /* the node whose cluster it joins; NULL: a cluster of its own */
    uint32_t n_shards;   /* 0: psd's default */
    uint32_t timeout_ms; /* until it is ready */
    bool has_registry;   /* for good, whatever $PSD_REGISTRY_VOTERS says */
} ps_private_args_t;

/* Starts it and waits until it is ready. Errors: PSD_IO it cannot be started, with the last
 * line of its log; PSD_DEADLINE it is not ready in time. */
PSD_MUST_CHECK psd_status_t ps_private_psd_start(ps_private_psd_t *ret_psd,
                                                 const ps_private_args_t *args, psd_error_t *err);
/* Fits PSD_AUTO. */
void ps_private_psd_done(ps_private_psd_t *self);

/* Several of them as one cluster: the first is the registry, the others join it. */
typedef struct ps_private_nodes {
    ps_private_psd_t *items; /* owned */
    uint32_t n;
} ps_private_nodes_t;

/* Errors: as ps_private_psd_start; PSD_NOMEM. Those started are stopped by
 * ps_private_nodes_done. */
PSD_MUST_CHECK psd_status_t ps_private_nodes_start(ps_private_nodes_t *ret_nodes, uint32_t n,
                                                   const ps_private_args_t *args, psd_error_t *err);
/* Fits PSD_AUTO. */
void ps_private_nodes_done(ps_private_nodes_t *self);
#endif
