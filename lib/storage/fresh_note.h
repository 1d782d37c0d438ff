/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fresh_note - the logs of a node are new, and nobody knows that yet
 *
 * What     The registry believes of a node that starts with its logs that it
 *          has kept what its copies had. Logs that were lost, and made anew by
 *          a start that ended before it had joined, are there at the next one
 *          as well. So a file beside them says that they are new, from before
 *          they are made until the registry has heard of a start with them.
 * Shape    DIR/logs-new, empty; the logs are DIR/log-0, DIR/log-1, …
 * Threads  Confined to one at a time.
 */
#ifndef PS_STORAGE_FRESH_NOTE_H
#define PS_STORAGE_FRESH_NOTE_H

#include "storage/disk.h"

/*
 * Before the logs are opened: looks for them, and makes the note where one of
 * them is missing.
 *
 * dir           in   of the node; it is there
 * ret_is_fresh  out  there is a note: what the logs had is not kept
 *
 * Errors: those of disk.h. The directories of the logs are made.
 */
PSD_MUST_CHECK psd_status_t ps_fresh_note_settle(ps_disk_t *disk,
                                                 const char *dir,
                                                 uint32_t n_shards,
                                                 bool *ret_is_fresh,
                                                 psd_error_t *err);
/* The registry has heard of this start; nothing was written to the logs before.
 * Errors: PSD_IO, PSD_NOMEM: the note may be there still. */
PSD_MUST_CHECK psd_status_t ps_fresh_note_remove(ps_disk_t *disk,
                                                 const char *dir,
                                                 psd_error_t *err);
#endif
