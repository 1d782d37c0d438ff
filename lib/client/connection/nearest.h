/* SPDX-License-Identifier: Apache-2.0 */
/* ps_nearest - where a client connects that nobody has told an endpoint */
#ifndef PS_CLIENT_NEAREST_H
#define PS_CLIENT_NEAREST_H

#include "wire/messages/route.h"

/*
 * The psd of this host, by endpoints.json in $PSD_RUNTIME_DIR, else /run/psd,
 * if that can be read: its ipc endpoint when connecting to it succeeds now,
 * else its tcp one. Where there is none, or it says nothing of use:
 * tcp://127.0.0.1:7171. Never fails. $PSD_ENDPOINT is the caller's matter.
 */
void ps_nearest_endpoint(char ret_endpoint[PS_ENDPOINT_MAX + 1]);
#endif
