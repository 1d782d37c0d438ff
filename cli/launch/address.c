/* SPDX-License-Identifier: Apache-2.0 */
/* The own address on the way to several hosts. */
#include "cli/launch/address.h"

#include <stdio.h>
#include <string.h>

#define LOOPBACK "127.0.0.1"

psd_status_t ps_address_to_host(const char *host, char ret_address[PS_ADDRESS_SIZE],
                                psd_error_t *err)
{
    bool is_same = false;
    psd_status_t rc = ps_own_address(host, ret_address, &is_same, err);

    if (rc == PSD_OK && is_same) {
        (void)snprintf(ret_address, PS_ADDRESS_SIZE, "%s", LOOPBACK);
    }
    return rc;
}

psd_status_t ps_address_to(const ps_hosts_t *hosts, char ret_address[PS_ADDRESS_SIZE],
                           const char **ret_other, psd_error_t *err)
{
    char found[PS_ADDRESS_SIZE] = LOOPBACK;
    const char *other = "";

    for (size_t i = 0; i < hosts->n; i++) {
        const char *host = ps_host_address(&hosts->items[i]);
        char address[PS_ADDRESS_SIZE] = LOOPBACK;
        psd_status_t rc = ps_address_to_host(host, address, err);

        if (rc != PSD_OK) {
            return rc;
        }
        if (ps_address_is_local(address)) {
            continue;
        }
        if (ps_address_is_local(found)) {
            (void)snprintf(found, sizeof found, "%s", address);
        } else if (strcmp(found, address) != 0) {
            other = host;
        }
    }
    (void)snprintf(ret_address, PS_ADDRESS_SIZE, "%s", found);
    *ret_other = other;
    return PSD_OK;
}
