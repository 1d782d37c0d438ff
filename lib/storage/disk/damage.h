/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_damage - damage that a start found and survived
 *
 * What     Collects what is wrong with which file, so that a damaged file costs
 *          only its own content. Nothing on the disk changes before the
 *          registry, which knows of other copies, has agreed.
 * Owner    The caller; ps_damage_done.
 * Threads  Confined to one at a time.
 */
#ifndef PS_STORAGE_DAMAGE_H
#define PS_STORAGE_DAMAGE_H

#include "protocol/facts/lost.h"
#include "storage/disk/disk.h"

typedef struct ps_damage {
    uint64_t n_holes; /* in the log: places where records may be missing */
    char **texts;     /* owned, each too: "PATH: byte N: why" */
    size_t n_texts;
    size_t texts_capacity;
    char **aside; /* owned, each too: files that are to get another name, for
                     nothing of them is used */
    size_t n_aside;
    size_t aside_capacity;
    ps_lost_t *lost; /* owned; what cannot be read for it */
    size_t n_lost;
    size_t lost_capacity;
} ps_damage_t;

/* Frees what it holds and zeroes it. */
void ps_damage_done(ps_damage_t *self);
/*
 * Skips damage: when rc is PSD_DAMAGED and self is not NULL, it notes the text
 * of err, clears err and returns PSD_OK; any other rc is returned as it is.
 *
 * aside  in  the file, when nothing of it is used; else NULL
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_damage_pass(ps_damage_t *self, psd_status_t rc, const char *aside,
                                           psd_error_t *err);
/* Renames PATH to PATH.damaged; a missing file counts as renamed. The caller
 * flushes the directory. Errors: those of the disk. */
PSD_MUST_CHECK psd_status_t ps_damage_rename(ps_disk_t *disk, const char *path, psd_error_t *err);
/* The same for all that are to be put aside; then none is any more. */
PSD_MUST_CHECK psd_status_t ps_damage_put_aside(ps_damage_t *self, ps_disk_t *disk, const char *dir,
                                                psd_error_t *err);
#endif
