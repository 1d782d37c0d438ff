/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_http_host - whether a request's header Host may stand there
 *
 * What     A page of another site can give its own name the address 127.0.0.1, and then
 *          read what this port answers without a token. Its requests carry that name. So
 *          a name is taken only when it is ours; no name server makes an address a name.
 * Threads  no shared state
 */
#ifndef PS_DAEMON_HTTP_HOST_H
#define PS_DAEMON_HTTP_HOST_H

#include <stdbool.h>

/* host: the value of the header, with or without a port; NULL or "": there is none, as
 * in HTTP/1.0. own: the host of http.listen, without brackets. True for none, an IP
 * address, localhost and own. */
bool ps_http_host_fits(const char *host, const char *own);
#endif
