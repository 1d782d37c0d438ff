/* SPDX-License-Identifier: Apache-2.0 */
/* A psd of this host that asks for keys: where a program of its user reaches it. */
#include "client/connection/discover.h"

#include <stdio.h>
#include <string.h>

#include "transport/discovery/discovery.h"

#define MARK '#'
#define KEY_SIZE 65 /* with its mark */

void ps_discover(const char *endpoint, bool by_key, char ret_endpoint[PS_ENDPOINT_MAX + 1])
{
    bool is_whole = by_key && strchr(endpoint, MARK) != NULL;
    ps_discovery_t found;

    if (is_whole || !ps_discovery_find(endpoint, &found)) {
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

    if (!ps_discovery_find(endpoint, &found) || found.key_file[0] == '\0') {
        return false;
    }
    (void)snprintf(ret_path, PATH_MAX, "%s", found.key_file);
    return true;
}
