/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_plugins_load - the updaters that lie in updaters.dir
 *
 * What     Loads every NAME.so of the directory once, when the daemon starts; a
 *          file that must not be loaded stays in the list with the reason, and
 *          the log names it. Nothing is ever unloaded.
 * Security the directory and each file belong to root or to this process's
 *          user and are writable by no other user; files are loaded through the
 *          open directory (/proc/self/fd), so that psd loads the file that it
 *          checked, whatever the path leads to by then; no links
 */
#ifndef PS_SERVER_PLUGINS_H
#define PS_SERVER_PLUGINS_H

#include "model/updaters/plugin.h"

#define PS_PLUGINS_MAX 256 /* files of the directory */

/*
 * dir          in   "" allows none
 * ret_plugins  out  set on PSD_OK only; dir is borrowed
 *
 * Errors: PSD_CONFIG the directory cannot be read, is not safe, or has too many
 * files; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_plugins_load(const char *dir, ps_plugins_t *ret_plugins,
                                            psd_error_t *err);
/* Frees the list; fits PSD_AUTO. */
void ps_plugins_done(ps_plugins_t *self);
#endif
