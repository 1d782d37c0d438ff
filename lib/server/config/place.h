/* SPDX-License-Identifier: Apache-2.0 */
/* ps_place - the data directory, and files that are written whole or not at all */
#ifndef PS_SERVER_PLACE_H
#define PS_SERVER_PLACE_H

#include <sys/types.h>

#include "base/bytes.h"

/* Makes the directory and its parents, with that mode, whatever the umask.
 * Gives its absolute path, which the caller frees with ps_free. An existing
 * directory keeps its mode. Errors: PSD_IO naming the directory; PSD_FOREIGN
 * when it is a symbolic link; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_place_make(const char *dir, mode_t mode, char **ret_path,
                                          psd_error_t *err);
/* Writes DIR/NAME under a temporary name with that mode, whatever the umask,
 * flushes it, renames it and flushes the directory. Errors: PSD_IO naming
 * the file; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_place_write(const char *dir, const char *name, mode_t mode,
                                           ps_bytes_t text, psd_error_t *err);
/* Removes DIR/NAME if it exists. */
void ps_place_remove(const char *dir, const char *name);
#endif
