/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_embed_loop - the main loop of an embedded server
 *
 * What     Waits for the control port, the links, the shards and the end; carries
 *          out what the server's deadlines ask for. What daemon/run.c is to the
 *          program psd.
 * Threads  The one that opened the server.
 */
#ifndef PS_SERVER_EMBED_LOOP_H
#define PS_SERVER_EMBED_LOOP_H

#include "server/server.h"

/* Serves until end_fd is readable. on_ready: it serves; called once. Errors: why
 * the server cannot go on (ps_server_failure); PSD_IO, PSD_NOMEM it cannot wait. */
typedef void ps_embed_on_ready_t(void *user);
PSD_MUST_CHECK psd_status_t ps_embed_loop(ps_server_t *server, int end_fd,
                                          ps_embed_on_ready_t *on_ready, void *user,
                                          psd_error_t *err);
#endif
