/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_endpoint - "tcp://HOST:PORT" and "ipc://PATH" taken apart
 *
 * Shape    HOST is a name, an IPv4 address, [IPv6] or * (every address); PORT
 *          is 0 .. 65535 or *, where 0 and * let the kernel choose
 * Threads  any
 */
#ifndef PS_SERVER_ENDPOINT_H
#define PS_SERVER_ENDPOINT_H

#include "wire/messages/route.h"

bool ps_endpoint_is_valid(const char *text);
/* Only this machine can reach it: ipc, and tcp on a loopback address. */
bool ps_endpoint_is_local(const char *text);
/* HOST of a valid tcp endpoint, with its brackets; "" for ipc. */
void ps_endpoint_host(const char *text, char ret_host[PS_ENDPOINT_MAX + 1]);
/* ipc with a name that is not a file: @NAME of Linux, * of ZeroMQ. */
bool ps_endpoint_is_abstract(const char *text);
/* PORT of a valid tcp endpoint; 0: the kernel chooses it, or it is ipc. */
uint64_t ps_endpoint_port(const char *text);
/* HOST is every address: *, 0.0.0.0 or [::]. */
bool ps_endpoint_is_wildcard(const char *text);
/* The same endpoint with another host; "" when it would be too long. */
void ps_endpoint_with_host(const char *text, const char *host, char ret[PS_ENDPOINT_MAX + 1]);
#endif
