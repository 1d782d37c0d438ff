/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_format_note - the format of the files of a data directory
 *
 * Shape    DIR/format, one line: "psd data format N". A directory without it is
 *          new, or of a build that wrote none, which is format 1.
 */
#ifndef PS_STORAGE_FORMAT_NOTE_H
#define PS_STORAGE_FORMAT_NOTE_H

#include "storage/disk/disk.h"

/*
 * Makes the note where it is missing and `format` is 1, or the directory has no
 * registry, no logs and no member.json; else reads it. An older format that is
 * still read (PS_DISK_FORMAT_MIN) becomes PS_DISK_FORMAT.
 *
 * dir     in  is there, and locked
 * format  in  what this psd reads and writes; PS_DISK_FORMAT but for tests
 *
 * Errors: PSD_FOREIGN another format, naming both and what to do; PSD_DAMAGED
 * no such line; those of disk.h.
 */
PSD_MUST_CHECK psd_status_t ps_format_note_settle(ps_disk_t *disk, const char *dir, uint64_t format,
                                                  psd_error_t *err);
#endif
