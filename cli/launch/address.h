/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_address - by which address the workers' hosts reach this one (ps_own_address)
 */
#ifndef PS_CLI_ADDRESS_H
#define PS_CLI_ADDRESS_H

#include "cli/launch/hosts.h"
#include "transport/discovery/own_address.h"

/*
 * The address of this host on its way to all of the hosts.
 *
 * ret_address  out  without brackets; "127.0.0.1" where all of them are this host
 * ret_other    out  a host that is reached from another address than the first one; "": none
 *
 * Errors: PSD_FAILED a name does not resolve, or has no route.
 */
PSD_MUST_CHECK psd_status_t ps_address_to(const ps_hosts_t *hosts,
                                          char ret_address[PS_ADDRESS_SIZE], const char **ret_other,
                                          psd_error_t *err);
/* The address of this host on its way to one; "127.0.0.1" where that is this host. Errors: as
 * above. */
PSD_MUST_CHECK psd_status_t ps_address_to_host(const char *host, char ret_address[PS_ADDRESS_SIZE],
                                               psd_error_t *err);
#endif
