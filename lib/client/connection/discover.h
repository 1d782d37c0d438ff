/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_discover - where a program reaches a psd of its user that asks for keys
 *
 * What     tcp://127.0.0.1:PORT is enough, as psd has written down the rest (transport/discovery):
 *          psd knows the user over its unix socket, and who asks for tcp takes the key of psd's
 *          first admin.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_CLIENT_DISCOVER_H
#define PS_CLIENT_DISCOVER_H

#include <limits.h>

#include "psd.h"

#include "wire/messages/route.h"

/*
 * endpoint      of one control port
 * by_key        the program has a key, or asks for tcp
 * ret_endpoint  out  where to connect: as it was given, but for such a psd
 */
void ps_discover(const char *endpoint, bool by_key, char ret_endpoint[PS_ENDPOINT_MAX + 1]);
/* The file with the key of that psd's first admin. false: it is no such psd, or has none. */
bool ps_discover_key(const char *endpoint, char ret_path[PATH_MAX]);
#endif
