/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_serving_node - the node with which this process serves the others of its job
 *
 * What     psd_connect("embed:ENDPOINT") starts it, in libpsd_server.so; it joins the
 *          cluster of ENDPOINT. All clients of the process share it. With PSD_SERVERS
 *          only the ranks below that have one. Others use its partitions, so that an
 *          exit with code 0 waits for them: all these processes join the job
 *          "JOB.nodes", and leave it when they exit; the last one ends it.
 * Threads  any
 */
#ifndef PS_CLIENT_SERVING_NODE_H
#define PS_CLIENT_SERVING_NODE_H

#include "psd/status.h"

/* Starts it, if it does not run. ret_endpoint: where clients of this process connect;
 * for good. Errors: PSD_INVALID it serves another cluster, or a variable; PSD_CLOSED
 * the process exits; PSD_NOMEM; those of ps_private_server_start and psd_join. */
PSD_MUST_CHECK psd_status_t ps_serving_node_hold(const char *join, const char **ret_endpoint,
                                                 psd_error_t *err);
#endif
