/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/server/embed: the options, and how they become a configuration. */
#ifndef PS_SERVER_EMBED_INNER_H
#define PS_SERVER_EMBED_INNER_H

#include "psd_server.h"
#include "server/config/config.h"

struct psd_embed_options {
    char *texts[PS_KEY_COUNT]; /* owned; NULL: not set */
    psd_on_log_t *on_log;      /* NULL: lines go to descriptor 2 */
    void *on_log_user;
    psd_on_end_t *on_end; /* may be NULL */
    void *on_end_user;
};

/* The configuration of a server with these options (may be NULL). *ret_temporary: its
 * data directory is to be made. ret_config is ps_config_done by the caller; set on
 * PSD_OK only. Errors: PSD_CONFIG, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_embed_options_config(const psd_embed_options_t *self,
                                                    ps_config_t *ret_config, bool *ret_temporary,
                                                    psd_error_t *err);
#endif
