/* SPDX-License-Identifier: Apache-2.0 */
/* A psd of this host that asks for keys: where a program of its user reaches it. */
#include "client/connection/discover.h"

#include <stdio.h>
#include <string.h>

#include "client/connection/own_address.h"
#include "transport/discovery/discovery.h"

#define MARK '#'
#define KEY_SIZE 65 /* with its mark */

/* The psd of this user at that endpoint. */
static bool find(const char *endpoint, ps_discovery_t *ret)
{
    const char *key = strchr(endpoint, MARK);

    return ps_discovery_find(ps_discovery_port(endpoint), ret) &&
           (key == NULL || strcmp(key, strchr(ret->control, MARK)) == 0) &&
           ps_own_address_is_here(endpoint);
}

void ps_discover(const char *endpoint, bool by_key, char ret_endpoint[PS_ENDPOINT_MAX + 1])
{
    bool is_whole = by_key && strchr(endpoint, MARK) != NULL;
    ps_discovery_t found;

    if (is_whole || !find(endpoint, &found)) {
        (void)snprintf(ret_endpoint, PS_ENDPOINT_MAX + 1, "%s", endpoint);
    } else if (by_key) {
        (void)snprintf(ret_endpoint, PS_ENDPOINT_MAX + 1, "%.*s%.*s", PS_ENDPOINT_MAX - KEY_SIZE,
                       endpoint, KEY_SIZE, strchr(found.control, MARK));
    } else {
        (void)snprintf(ret_endpoint, PS_ENDPOINT_MAX + 1, "%s", found.ipc);
    }
}

bool ps_discover_key(const char *endpoint, char ret_path[PATH_MAX])
{
    ps_discovery_t found;

    if (!find(endpoint, &found) || found.key_file[0] == '\0') {
        return false;
    }
    (void)snprintf(ret_path, PATH_MAX, "%s", found.key_file);
    return true;
}
