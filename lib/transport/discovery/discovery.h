/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/discovery: the psd of this host
 *
 * It is       The files by which programs find a psd here.
 * It uses     lib/base; lib/wire, for documents; lib/transport/sockets, to see who listens.
 * It ignores  What is said over a connection, and who may do what.
 * Start at    discovery.h.
 */
/*
 * ps_discovery - how programs find a psd of this host
 *
 * What     psd says in endpoints.json, in its data directory and its runtime_dir, where it is. At
 *          level encrypt it writes PORT.json besides, for programs of its user: with it
 *          tcp://127.0.0.1:PORT is all that these need, as the key stands in the file.
 * Shape    {"control":"tcp://HOST:PORT#KEY","ipc":"ipc://PATH",...}. PORT.json has "key_file", the
 *          path of the first admin's key ("": another node has it), and "net", the network
 *          namespace that the port is in.
 * Trust    A file counts when it is the caller's or root's, or in a directory that the caller names
 *          or /run/psd the owner's of that, and nobody else may write it. So that what a killed psd
 *          left names nobody, a process must listen at its socket, and let the caller connect.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_TRANSPORT_DISCOVERY_H
#define PS_TRANSPORT_DISCOVERY_H

#include <limits.h>
#include <stdbool.h>

#include "wire/messages/route.h"

#define PS_DISCOVERY_NAME_SIZE 16

typedef struct ps_discovery {
    char control[PS_ENDPOINT_MAX + 1]; /* "": it listens at ipc alone */
    char ipc[PS_ENDPOINT_MAX + 1];
    char key_file[PATH_MAX];
} ps_discovery_t;

/* The port of "tcp://HOST:PORT" or "tcp://HOST:PORT#KEY"; 0: it has none. */
uint32_t ps_discovery_port(const char *endpoint);
/*
 * Where psds of this user write PORT.json: $XDG_RUNTIME_DIR/psd; else /run/user/UID/psd, where the
 * system has made that user's directory; else psd/run/HOST below the user's state directory, which
 * hosts may share. false: the user has none.
 */
bool ps_discovery_dir(char ret_dir[PATH_MAX]);
void ps_discovery_name(uint32_t port, char ret_name[PS_DISCOVERY_NAME_SIZE]);
/* The network namespace of this process; 0: the system does not say. */
uint64_t ps_discovery_net(void);
/* Removes the file of that port, if it is the one of the psd with that unix socket. */
void ps_discovery_withdraw(uint32_t port, const char *ipc);
/* Removes files of psds that are gone from such a directory, and those of the one with that unix
 * socket, which may have had another port. */
void ps_discovery_sweep(const char *dir, const char *ipc);

/* The psd of this host that asks for keys at that port: one of this user, else one whose
 * runtime_dir this user may enter ($PSD_RUNTIME_DIR, else /run/psd). false: there is none. */
bool ps_discovery_find(uint32_t port, ps_discovery_t *ret);
/*
 * Where a program connects that has no endpoint: to the psd in $PSD_RUNTIME_DIR; if that is not set
 * to the one that this user has started in the default data directory, else to that in /run/psd.
 * Over its unix socket if that lets the caller in, else over tcp; tcp://127.0.0.1:7171 if there is
 * no such psd.
 */
void ps_discovery_nearest(char ret_endpoint[PS_ENDPOINT_MAX + 1]);
#endif
