/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_own_address - by which address other hosts reach this one
 *
 * What     Never a host name, and never what /etc/hosts says of the own name (127.0.1.1): the
 *          address that this host itself has on its route to the other one. Nothing is sent.
 */
#ifndef PS_TRANSPORT_OWN_ADDRESS_H
#define PS_TRANSPORT_OWN_ADDRESS_H

#include <stdbool.h>

#include "psd.h"

#define PS_ADDRESS_SIZE 64

/*
 * ret_own      out  the own address on the way to that host, without brackets
 * ret_is_same  out  it is the other one's address, too: that host is this one
 *
 * Errors: PSD_FAILED naming the host: its name does not resolve, or there is no route.
 */
PSD_MUST_CHECK psd_status_t ps_own_address(const char *host, char ret_own[PS_ADDRESS_SIZE],
                                           bool *ret_is_same, psd_error_t *err);
/* Whether only this host reaches that address. */
bool ps_address_is_local(const char *address);
/* Whether who connects to tcp://HOST:PORT from here comes to a listener of this host at `listens`,
 * which is tcp://ADDRESS:PORT or tcp://0.0.0.0:PORT, and has that port. A name is looked up. */
bool ps_own_address_leads_to(const char *endpoint, const char *listens);
/*
 * As ps_own_address, on the way to the first of the endpoints that is a tcp:// one and has a route.
 *
 * endpoints    tcp://HOST:PORT or others, with commas between them
 * ret_own      out  "127.0.0.1" where none is tcp://
 *
 * Errors: as ps_own_address, of the last one.
 */
PSD_MUST_CHECK psd_status_t ps_own_address_to(const char *endpoints, char ret_own[PS_ADDRESS_SIZE],
                                              psd_error_t *err);
#endif
