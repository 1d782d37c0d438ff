/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_embed_ask - what an embedded server asks its registry for its program
 *
 * What     A client that asks by the control port, as pscli does: the registry may
 *          be another node.
 * Threads  any; each call has a client of its own
 */
#ifndef PS_SERVER_EMBED_ASK_H
#define PS_SERVER_EMBED_ASK_H

#include <stdint.h>

#include "psd/status.h"

/* Drains the node of that name until it has no copy. Errors: PSD_DEADLINE naming
 * what is left; those of psd_connect; what the registry answers. */
PSD_MUST_CHECK psd_status_t ps_embed_ask_drain(const char *endpoint, const char *node,
                                               uint32_t timeout_ms, psd_error_t *err);
/* Waits until a worker has joined the job. Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_embed_ask_begun(const char *endpoint, const char *job,
                                               uint32_t timeout_ms, psd_error_t *err);
/* Waits until no node but this one is up. Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_embed_ask_alone(const char *endpoint, const char *node,
                                               uint32_t timeout_ms, psd_error_t *err);
/* Waits until the job has ended. Errors: as above. */
PSD_MUST_CHECK psd_status_t ps_embed_ask_job(const char *endpoint, const char *job,
                                             uint32_t timeout_ms, psd_error_t *err);
#endif
