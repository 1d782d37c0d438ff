/* SPDX-License-Identifier: Apache-2.0 */
/* Connecting: to a cluster, to a server of this process, beside a node of it, or to the ranks of
 * an MPI world. */
#include <string.h>

#include "client/connection/client_state.h"
#include "client/connection/private_server.h"
#include "client/connection/rank_server.h"
#include "client/job/serving_node.h"
#include "transport/discovery/discovery.h"
#include "transport/environment/environment.h"

/* To the server of this process, which it holds until it is closed. */
static psd_status_t connect_here(const psd_options_t *options, psd_client_t **ret_client,
                                 psd_error_t *err)
{
    const char *endpoint = NULL;
    psd_status_t rc = ps_private_server_hold(&endpoint, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "connect to embed");
    }
    rc = ps_client_connect(endpoint, options, ret_client, err);
    if (rc == PSD_OK) {
        (*ret_client)->is_private = true;
    } else {
        ps_private_server_release();
    }
    return rc;
}

/* By the node of this process that serves the cluster of `join`. */
static psd_status_t connect_beside(const char *join, const psd_options_t *options,
                                   psd_client_t **ret_client, psd_error_t *err)
{
    const char *endpoint = NULL;
    psd_status_t rc = ps_serving_node_hold(join, &endpoint, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "connect to " PS_PRIVATE_ENDPOINT "%.300s", join);
    }
    rc = ps_client_connect(endpoint, options, ret_client, err);
    if (rc == PSD_OK) {
        (*ret_client)->has_gathered = true;
    }
    return rc;
}

/* To the servers of the ranks that mpirun has started. */
static psd_status_t connect_ranks(const psd_options_t *options, psd_client_t **ret_client,
                                  psd_error_t *err)
{
    const char *endpoint = NULL;
    psd_status_t rc = ps_rank_server_hold(&endpoint, err);

    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "connect to " PS_RANKS_ENDPOINT);
    }
    rc = ps_client_connect(endpoint, options, ret_client, err);
    if (rc == PSD_OK) {
        (*ret_client)->has_gathered = true;
    }
    return rc;
}

psd_status_t psd_connect(const char *endpoint, const psd_options_t *options,
                         psd_client_t **ret_client, psd_error_t *err)
{
    const size_t prefix = strlen(PS_PRIVATE_ENDPOINT);
    char nearest[PS_ENDPOINT_MAX + 1];
    ps_environment_t said = {.text = NULL};

    psd_error_clear(err);
    if (endpoint == NULL) {
        psd_status_t rc = ps_environment_read("PSD_ENDPOINT", &said, err);

        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "connect");
        }
        endpoint = said.text;
    }
    if (endpoint == NULL || endpoint[0] == '\0') {
        ps_discovery_nearest(nearest);
        endpoint = nearest;
    }
    if (strcmp(endpoint, PS_RANKS_ENDPOINT) == 0) {
        return connect_ranks(options, ret_client, err);
    }
    if (strncmp(endpoint, PS_PRIVATE_ENDPOINT, prefix) != 0) {
        return ps_client_connect(endpoint, options, ret_client, err);
    }
    return endpoint[prefix] == '\0' ? connect_here(options, ret_client, err)
                                    : connect_beside(endpoint + prefix, options, ret_client, err);
}
