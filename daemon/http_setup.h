/* SPDX-License-Identifier: Apache-2.0 */
/* ps_http_setup - the HTTP port, and what it shows, as the configuration wants them */
#ifndef PS_DAEMON_HTTP_SETUP_H
#define PS_DAEMON_HTTP_SETUP_H

#include "server/config/config.h"
#include "daemon/http/http.h"

/*
 * Makes the metrics and opens the port.
 *
 * ret_metrics  out  the caller ends its writers, then destroys it; NULL: nothing is
 *                   counted
 * ret_http     out  the caller stops it before all of them; NULL: it is off: by
 *                   http.listen off, or auto, when there is ipc alone or the loopback
 *                   cannot be used (it logs that)
 *
 * Errors: PSD_IO, naming the address; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_http_setup(const ps_config_t *config, ps_metrics_t **ret_metrics,
                                          ps_http_t **ret_http, psd_error_t *err);
/* Opens /api/v1 for those who have the token of that data directory, which is made when
 * there is none. endpoint: of the control port. http NULL: does nothing. Errors: PSD_IO,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_http_setup_api(ps_http_t *http, const char *dir,
                                              const char *endpoint, psd_error_t *err);
#endif
