/* SPDX-License-Identifier: Apache-2.0 */
/* ps_place - the data directory, and files that are there whole or not at all
 */
#ifndef PS_DAEMON_PLACE_H
#define PS_DAEMON_PLACE_H

#include "base/bytes.h"

/* Makes the directory and those above it (0700) and gives its absolute path,
 * which the caller frees with ps_free. Errors: PSD_IO naming the directory;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_place_make(const char *dir,
                                          char **ret_path,
                                          psd_error_t *err);
/* Writes DIR/NAME beside, flushes, renames, flushes the directory. Errors:
 * PSD_IO naming the file; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_place_write(const char *dir,
                                           const char *name,
                                           ps_bytes_t text,
                                           psd_error_t *err);
/* Somebody listens on the unix socket `path`. ZeroMQ would take it over. */
bool ps_place_is_served(const char *path);
/* Removes DIR/NAME if it is there. */
void ps_place_remove(const char *dir, const char *name);
#endif
