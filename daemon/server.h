/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_server - this node: its registry, shards and control port, wired together
 *
 * What     Opens everything in the order in which it depends on each other, and
 *          closes it the other way round. Decides nothing.
 * Owner    The caller. Threads: confined to one (the shards have their own).
 */
#ifndef PS_DAEMON_SERVER_H
#define PS_DAEMON_SERVER_H

#include "daemon/control.h"

typedef struct ps_server ps_server_t;

/*
 * Opens the data directory and the registry, binds the ports, starts the
 * shards, and is ready for requests. config is borrowed until the close. The
 * first line of the log has the addresses.
 *
 * Errors: PSD_IO a port or the data directory, named; PSD_BUSY another psd has
 * the data directory; PSD_FOREIGN it is another cluster's or node's;
 * PSD_DAMAGED; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_server_open(const ps_config_t *config,
                                           ps_server_t **ret_server,
                                           psd_error_t *err);
/* Answers who waits, sends what is queued, closes all. Takes NULL. */
void ps_server_close(ps_server_t **self_p);

/* Borrowed. */
ps_control_t *ps_server_control(ps_server_t *self);
/* The ZeroMQ socket of the control port, for zloop. */
void *ps_server_handle(ps_server_t *self);
/* "serving on tcp://…", for systemd. */
void ps_server_status(const ps_server_t *self, char *ret_text, size_t size);
/* The config that was given at the open has new values. */
void ps_server_reloaded(ps_server_t *self);

/* Writes DATA_DIR/endpoints.json in one piece. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_server_announce(const ps_server_t *self,
                                               psd_error_t *err);
#endif
