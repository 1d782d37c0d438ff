/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_private_server - the server that "embed:" names: the process's own
 *
 * What     psd_connect("embed:") starts it, in libpsd_server.so, which is loaded
 *          only then. All clients of the process share it; it ends with the last
 *          one, or with the process.
 * Threads  any
 */
#ifndef PS_CLIENT_PRIVATE_SERVER_H
#define PS_CLIENT_PRIVATE_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "psd/status.h"

#define PS_PRIVATE_ENDPOINT "embed:"

struct psd_embed;

/* Starts it, if it does not run, and holds it. ret_endpoint: borrowed for as long as
 * it is held. Errors: PSD_IO the library cannot be loaded, naming its file; those of
 * psd_embed_start. */
PSD_MUST_CHECK psd_status_t ps_private_server_hold(const char **ret_endpoint, psd_error_t *err);
/* As often as it was held by this process, or by the one that this one was forked from. */
void ps_private_server_release(void);

/* Starts another one, which joins the cluster of `join` (cluster.join; NULL: it begins one), with
 * one shard unless PSD_SHARDS says more; its directory and its name are its own, and it takes no
 * part in the registry, whatever the environment says. listen: its endpoints; NULL: what the
 * environment says. ret_endpoint: borrowed until its stop.
 * Errors as above.
 */
PSD_MUST_CHECK psd_status_t ps_private_server_start(const char *join, const char *listen,
                                                    struct psd_embed **ret_server,
                                                    const char **ret_endpoint, psd_error_t *err);
/* psd_embed_drain of such a one. */
PSD_MUST_CHECK psd_status_t ps_private_server_drain(struct psd_embed *self, uint32_t timeout_ms,
                                                    psd_error_t *err);
/* Ends one that ps_private_server_start has started. */
void ps_private_server_stop(struct psd_embed **server_p);
#endif
