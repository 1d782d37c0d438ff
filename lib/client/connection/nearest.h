/* SPDX-License-Identifier: Apache-2.0 */
/* ps_nearest - where a client connects that has no endpoint set */
#ifndef PS_CLIENT_NEAREST_H
#define PS_CLIENT_NEAREST_H

#include "wire/messages/route.h"

/*
 * The psd of this host, as endpoints.json in $PSD_RUNTIME_DIR, else /run/psd,
 * names it: its ipc endpoint if a connection to it succeeds now, else its tcp
 * endpoint. If the file cannot be read or is of no use: tcp://127.0.0.1:7171.
 * Never fails. The caller handles $PSD_ENDPOINT.
 */
void ps_nearest_endpoint(char ret_endpoint[PS_ENDPOINT_MAX + 1]);
#endif
