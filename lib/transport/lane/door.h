/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_door - unix sockets to listen on, and which users of this host may connect
 *
 * What     The socket's file has its mode and group before the socket listens,
 *          whatever the umask is. A refusal can name the group that the user
 *          should join.
 * Threads  any
 */
#ifndef PS_TRANSPORT_DOOR_H
#define PS_TRANSPORT_DOOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "psd/status.h"

typedef enum ps_door_peers {
    PS_PEERS_OWNER = 0, /* the server's user, and root */
    PS_PEERS_GROUP = 1, /* also members of the server's group */
    PS_PEERS_ANY = 2    /* any user that may enter the file's directory */
} ps_door_peers_t;

/* The mode of the file: 0600, 0660 or 0666. */
mode_t ps_peers_mode(ps_door_peers_t peers);

/* Listens at path with a socket of that type (SOCK_STREAM, SOCK_SEQPACKET),
 * close-on-exec and non-blocking. A stale socket file without a listener is
 * replaced; any other file stays. Errors: PSD_INVALID the path is too long;
 * PSD_IO with the reason, as "Address already in use". */
PSD_MUST_CHECK psd_status_t ps_door_listen(const char *path, int type, ps_door_peers_t peers,
                                           int *ret_fd, psd_error_t *err);
/* True when the user that connected is allowed; else err says why not
 * (PSD_DENIED). */
PSD_MUST_CHECK bool ps_door_admits(int fd, ps_door_peers_t peers, psd_error_t *err);

#define PS_DOOR_TEXT 192
/* Why a connection to path failed with errno `code`, in words. When this user
 * is not allowed (EACCES): which users are, and which group to join. Returns
 * ret. */
const char *ps_door_reason(const char *path, int code, char ret[PS_DOOR_TEXT]);
#endif
