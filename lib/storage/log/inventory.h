/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_inventory - which files there are to be beside a log
 *
 * What     The file `inventory` in the directory of a shard's log: the names of
 *          snapshots and tables' files, and a checksum. Each of them is on the
 *          disk: the inventory is written behind those that come, and in front
 *          of the end of those that go. So whichever is named there and missing
 *          was removed by somebody else. Where there is no inventory (it is not
 *          written yet, or the disk was too full) none is missed.
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
    ps_buffer_t written; /* what the file has, as far as that is known */
} ps_inventory_t;

/* Frees what it holds. */
void ps_inventory_done(ps_inventory_t *self);

/* Told of a name; what is not PSD_OK ends the walk. */
typedef psd_status_t ps_inventory_each_t(void *context, const char *name, psd_error_t *err);
/* Tells of each file that is missing. Errors: PSD_DAMAGED naming file and byte;
 * PSD_FOREIGN of a newer version; PSD_IO, PSD_NOMEM, and what `each` returned.
 */
PSD_MUST_CHECK psd_status_t ps_inventory_check(ps_inventory_t *self, ps_inventory_each_t *each,
                                               void *context, psd_error_t *err);

/* True: that file is about to go. */
typedef bool ps_inventory_goes_t(const void *context, const char *name);
/* Takes down what is there and does not go; files may go behind this. Errors:
 * PSD_IO, PSD_NOMEM, PSD_LIMIT. */
PSD_MUST_CHECK psd_status_t ps_inventory_write(ps_inventory_t *self, ps_inventory_goes_t *goes,
                                               const void *context, psd_error_t *err);
#endif
