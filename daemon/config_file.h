/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_config_file - settings from a YAML file
 *
 * What     Walks a file against the table of keys (config_keys.def), and sets in a
 *          ps_config what it gives.
 */
#ifndef PS_DAEMON_CONFIG_FILE_H
#define PS_DAEMON_CONFIG_FILE_H

#include "server/config/config.h"

/* Reads a YAML file. Errors: PSD_CONFIG with file, line, key, value and what is
 * allowed (also when the file cannot be read); PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_config_load(ps_config_t *self, const char *path, psd_error_t *err);
/* The same from memory; `name` stands for the file in errors. */
PSD_MUST_CHECK psd_status_t ps_config_parse(ps_config_t *self, const char *name, ps_bytes_t text,
                                            psd_error_t *err);
#endif
