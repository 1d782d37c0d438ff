/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the configuration: which line of a YAML file sets which key.
 *
 * What     libyaml's events are walked against the table of keys, so that an
 *          unknown key, a key set twice or a list in place of a number is told
 *          with its line. What passes here fits cyaml's schema.
 */
#ifndef PS_DAEMON_CONFIG_LINES_H
#define PS_DAEMON_CONFIG_LINES_H

#include "daemon/config/config.h"

typedef struct ps_config_lines {
    unsigned lines[PS_KEY_COUNT]; /* from 1; 0: the file does not set it */
    bool is_empty;                /* the file sets nothing */
} ps_config_lines_t;

/* name stands for the file in errors. Errors: PSD_CONFIG with file, line, what
 * is wrong and what is allowed; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_config_lines(const char *name, ps_bytes_t text,
                                            ps_config_lines_t *ret_lines, psd_error_t *err);
#endif
