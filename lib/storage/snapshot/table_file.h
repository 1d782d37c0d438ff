/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_table_file - the spec of a table, beside the log of a shard
 *
 * What     table-<id>.spec: the table of a number, so that a shard can replay
 *          records before the registry has sent it any tables. docs/storage.md
 *          has the format. A file of that name is complete: it is written under
 *          another name, flushed, renamed, and the directory flushed.
 * Owner    Borrows everything.
 * Threads  Any, one at a time for a directory.
 */
#ifndef PS_STORAGE_TABLE_FILE_H
#define PS_STORAGE_TABLE_FILE_H

#include "model/tables/table.h"
#include "storage/disk/disk.h"

/* Where they lie, and whose. */
typedef struct ps_table_dir {
    ps_disk_t *disk;
    const char *dir; /* exists */
    ps_id_t cluster;
    uint32_t n_shards; /* of the node: partitions are dealt to these */
} ps_table_dir_t;

/* Called for each table, in any order. The spec is borrowed. */
typedef psd_status_t ps_table_file_each_t(void *context, uint32_t table,
                                          const ps_table_spec_t *spec, psd_error_t *err);
/* Called for a table whose file, at path, is damaged, as err says; returns
 * PSD_DAMAGED to end the walk. */
typedef psd_status_t ps_table_file_damaged_t(void *context, uint32_t table, const char *path,
                                             psd_error_t *err);

/* Errors: PSD_LIMIT no room; PSD_IO; PSD_NOMEM; the file is then not there, or
 * whole but its name not flushed. */
PSD_MUST_CHECK psd_status_t ps_table_file_write(const ps_table_dir_t *dir, uint32_t table,
                                                const ps_table_spec_t *spec, psd_error_t *err);
/* One that is not there is removed already. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_table_file_remove(const ps_table_dir_t *dir, uint32_t table,
                                                 psd_error_t *err);
/* The table in the name of a whole file. false: it is no such name. */
PSD_MUST_CHECK bool ps_table_file_parse(const char *name, uint32_t *ret_table);
/* Removes files that an earlier psd did not finish, and calls `each` for the
 * others. Errors: PSD_DAMAGED naming the file; PSD_FOREIGN of another cluster,
 * number of shards or a newer version, naming both; PSD_IO, PSD_NOMEM, and what
 * `each` returned. */
PSD_MUST_CHECK psd_status_t ps_table_file_list(const ps_table_dir_t *dir,
                                               ps_table_file_each_t *each,
                                               ps_table_file_damaged_t *damaged, void *context,
                                               psd_error_t *err);
#endif
