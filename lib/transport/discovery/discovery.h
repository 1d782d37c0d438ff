/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/transport/discovery: the psd of this host
 *
 * It is       The files by which programs find a psd here, and by which address hosts reach each
 *             other.
 * It uses     lib/base; lib/wire, for documents; environment; sockets, to see who listens.
 * It ignores  What is said over a connection, and who may do what.
 * Start at    discovery.h.
 */
/*
 * ps_discovery - how programs find a psd of this host
 *
 * What     psd says in endpoints.json, in its data directory and its runtime_dir, where it is. At
 *          level encrypt, without a runtime_dir, it writes another file for programs of its user,
 *          ADDRESS:PORT.json: with it tcp://ADDRESS:PORT is all that these need, as the key stands
 *          in the file.
 * Shape    {"control":"tcp://HOST:PORT#KEY","ipc":"ipc://PATH","listens":"tcp://ADDRESS:PORT",
 *          "cluster":UUID,...}. ADDRESS:PORT.json has "key_file", the path of the first admin's key
 *          ("": another node has it), and the namespaces that it counts in, "net" and "mount".
 * Where    psd/run/HOST below the user's state directory, which hosts may share. Not below
 *          $XDG_RUNTIME_DIR: that goes when the user logs out, and psd may run on.
 * Trust    A file counts when it is the caller's or root's, or in a directory that the caller names
 *          or /run/psd the owner's of that, and nobody else may write it. So that what a killed psd
 *          left names nobody, a process must listen at its socket, and let the caller connect.
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_TRANSPORT_DISCOVERY_H
#define PS_TRANSPORT_DISCOVERY_H

#include <limits.h>
#include <stdbool.h>

#include "wire/messages/doc.h"
#include "wire/messages/route.h"

typedef struct ps_discovery {
    char control[PS_ENDPOINT_MAX + 1]; /* "": it listens at ipc alone */
    char ipc[PS_ENDPOINT_MAX + 1];
    char listens[PS_ENDPOINT_MAX + 1]; /* 0.0.0.0 or [::]: at each address of the host */
    char key_file[PATH_MAX];
    ps_id_t cluster;
} ps_discovery_t;

/* false: the user has none. */
bool ps_discovery_dir(char ret_dir[PATH_MAX]);
/* ADDRESS:PORT.json, for what listens there, with control, ipc, listens, key_file and cluster of
 * self. false: no memory. */
PSD_MUST_CHECK bool ps_discovery_print(const ps_discovery_t *self, ps_buffer_t *ret_name,
                                       ps_buffer_t *ret_text);
/* Removes the files of the psd with that unix socket. With is_start also those of psds that are
 * gone. */
void ps_discovery_sweep(const char *ipc, bool is_start);

/* The psd of this host that asks for keys at tcp://HOST:PORT or tcp://HOST:PORT#KEY: one of this
 * user, else one whose runtime_dir this user may enter ($PSD_RUNTIME_DIR, else /run/psd). false:
 * there is none, or it has another key. */
bool ps_discovery_find(const char *endpoint, ps_discovery_t *ret);
/*
 * Where a program connects that has no endpoint: to the psd in $PSD_RUNTIME_DIR; if that is not set
 * to the one that this user has started in the default data directory, else to that in /run/psd.
 * Over its unix socket if that lets the caller in, else over tcp; tcp://127.0.0.1:7171 if there is
 * no such psd.
 */
void ps_discovery_nearest(char ret_endpoint[PS_ENDPOINT_MAX + 1]);
#endif
