/* SPDX-License-Identifier: Apache-2.0 */
/* ps_resolve - the address that a port of a host by name is bound on */
#ifndef PS_TRANSPORT_RESOLVE_H
#define PS_TRANSPORT_RESOLVE_H

#include "psd/status.h"

#define PS_RESOLVE_SIZE 320

/*
 * "tcp://HOST:PORT" with an address for HOST. ZeroMQ binds addresses and
 * interfaces only: *, addresses and names of interfaces stay as they are,
 * localhost is 127.0.0.1, and of another name it is the first IPv4 address that
 * the system's resolver gives, else the first IPv6 one. Waits for the resolver.
 * Errors: PSD_IO the name has no address.
 */
PSD_MUST_CHECK psd_status_t ps_resolve_bind(const char *endpoint, char ret[PS_RESOLVE_SIZE],
                                            psd_error_t *err);
#endif
