/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_options - the command line of psd
 *
 * What     What to do, and the settings that flags give; ps_options_config puts
 *          default, file, environment and flags together.
 * Owner    The caller; texts are borrowed from argv.
 */
#ifndef PS_DAEMON_OPTIONS_H
#define PS_DAEMON_OPTIONS_H

#include "daemon/config/config.h"

#define PS_OPTIONS_LISTEN_MAX 16

typedef struct ps_options {
    bool help;
    bool version;
    bool accept_loss; /* what has no other copy may go, this once */
    bool check_config;
    bool print_config;
    const char *config;   /* --config; NULL: $PSD_CONFIG, or none */
    const char *data_dir; /* NULL: not given; so the others */
    const char *name;
    const char *shards;
    const char *join[PS_OPTIONS_LISTEN_MAX];
    size_t n_join;
    const char *listen[PS_OPTIONS_LISTEN_MAX];
    size_t n_listen;
} ps_options_t;

/* Errors: PSD_USAGE naming the word, with a suggestion. */
PSD_MUST_CHECK psd_status_t ps_options_parse(int argc, char *const *argv, ps_options_t *ret_options,
                                             psd_error_t *err);
/* All settings, checked. ret_config is ps_config_done by the caller; set on
 * PSD_OK only. Errors: PSD_CONFIG, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_options_config(const ps_options_t *self, ps_config_t *ret_config,
                                              psd_error_t *err);
/* The text of --help; static. */
const char *ps_options_help(void);
#endif
