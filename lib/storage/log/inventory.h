/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_inventory - the list of files that must exist beside a log
 *
 * What     The file `inventory` in the directory of a shard's log: the names of
 *          snapshots and tables' files, and a checksum. Each of these files is
 *          on the disk: the inventory is written after new files are made, and
 *          before old ones are removed. So a file that it names and that is
 *          missing was removed by another program. Without an inventory (it is
 *          not written yet, or the disk was too full) no file counts as
 *          missing.
 * Owner    The caller; ps_inventory_done.
 * Threads  Confined to one at a time; others may make files meanwhile.
 */
#ifndef PS_STORAGE_INVENTORY_H
#define PS_STORAGE_INVENTORY_H

#include "storage/disk/disk.h"

#define PS_INVENTORY_NAME "inventory"

typedef struct ps_inventory {
    ps_disk_t *disk;     /* borrowed */
    const char *dir;     /* borrowed; exists */
    ps_buffer_t written; /* the content of the file, as far as known */
} ps_inventory_t;

/* Frees what it holds. */
void ps_inventory_done(ps_inventory_t *self);

/* Called for a name; a status other than PSD_OK ends the walk. */
typedef psd_status_t ps_inventory_each_t(void *context, const char *name, psd_error_t *err);
/* Tells of each file that is missing. Errors: PSD_DAMAGED naming file and byte;
 * PSD_FOREIGN of a newer version; PSD_IO, PSD_NOMEM, and what `each` returned.
 */
PSD_MUST_CHECK psd_status_t ps_inventory_check(ps_inventory_t *self, ps_inventory_each_t *each,
                                               void *context, psd_error_t *err);

/* True: that file is about to go. */
typedef bool ps_inventory_goes_t(const void *context, const char *name);
/* Writes the list of files that exist and stay; other files may be removed
 * after this. Errors: PSD_IO, PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_inventory_write(ps_inventory_t *self, ps_inventory_goes_t *goes,
                                               const void *context, psd_error_t *err);
#endif
