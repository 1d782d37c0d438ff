/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/storage/snapshot: rows and tables in files
 *
 * It is       Snapshots of partitions, the specs of tables, directories of
 *             checkpoints and the checkpoints that they build on.
 * It uses     disk, lib/protocol/facts for specs, lib/model, lib/wire, lib/base.
 * It ignores  What a piece holds, when a snapshot is made, and the log.
 * Start at    snapshot_file.h, then checkpoint.h and checkpoint_chain.h.
 */
/*
 * ps_snapshot - the rows of one partition as pieces in a file
 *
 * What     snap-<table>-<partition>-<life>-<lsn>.rows: a head, pieces with the
 *          lsn that each was read at, an end. docs/storage.md has the format.
 *          Only the writer knows the content of a piece. A file of that name
 *          is complete: it is written under another name, flushed, renamed,
 *          and the directory flushed.
 * Owner    The caller ends a writer by commit or abort, a reader by close.
 * Threads  Each writer and reader is confined to one thread.
 */
#ifndef PS_STORAGE_SNAPSHOT_FILE_H
#define PS_STORAGE_SNAPSHOT_FILE_H

#include "storage/disk/disk.h"

/* What a file's name says. */
typedef struct ps_snapshot_id {
    uint32_t table;
    uint32_t partition;
    uint64_t lsn;  /* at which the first piece was begun: records up to here are
                      in every piece */
    uint64_t life; /* of the copy that it is of; 0: of none */
} ps_snapshot_id_t;

/* Where snapshots lie, and whose. Borrowed by writers and readers. */
typedef struct ps_snapshot_dir {
    ps_disk_t *disk;
    const char *dir; /* exists */
    ps_id_t cluster;
    bool streams; /* files are written as PS_DISK_STREAM: they are long, and
                     must disturb other work little */
} ps_snapshot_dir_t;

/* ---- the directory ------------------------------------------------------- */

/* Called for each complete snapshot, in any order; nothing of it has been
 * read. */
typedef psd_status_t ps_snapshot_each_t(void *context, const ps_snapshot_id_t *id,
                                        psd_error_t *err);

/* The id in the name of a whole snapshot. false: it is no such name. */
PSD_MUST_CHECK bool ps_snapshot_parse(const char *name, ps_snapshot_id_t *ret_id);
/* Call it before any writer: removes files that an earlier psd did not finish,
 * then calls `each` for the others. Errors: PSD_IO, PSD_NOMEM, PSD_FOREIGN
 * naming a snapshot of another version, and what `each` returned. */
PSD_MUST_CHECK psd_status_t ps_snapshot_list(const ps_snapshot_dir_t *dir, ps_snapshot_each_t *each,
                                             void *context, psd_error_t *err);
/* Bytes of a file. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_snapshot_size(const ps_snapshot_dir_t *dir,
                                             const ps_snapshot_id_t *id, uint64_t *ret_bytes,
                                             psd_error_t *err);
/* Removes a file; one that is not there is removed already. Errors: PSD_IO,
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_snapshot_remove(const ps_snapshot_dir_t *dir,
                                               const ps_snapshot_id_t *id, psd_error_t *err);

/* ---- writing ------------------------------------------------------------- */

typedef struct ps_snapshot_writer ps_snapshot_writer_t;

/* level  1 .. 19: the level of zstd. Pieces that it does not make smaller, and
 * long ones of which it saves less than a tenth, are stored plain. 0: all are
 * stored plain. Errors: PSD_LIMIT no room; PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_snapshot_begin(const ps_snapshot_dir_t *dir,
                                              const ps_snapshot_id_t *id, int level,
                                              ps_snapshot_writer_t **ret_writer, psd_error_t *err);
/* Adds a piece of any size, 0 too. When it fails, only abort may follow. Errors
 * as of begin. */
PSD_MUST_CHECK psd_status_t ps_snapshot_add(ps_snapshot_writer_t *self, uint64_t lsn,
                                            ps_bytes_t piece, psd_error_t *err);
/* Bytes written until now. */
uint64_t ps_snapshot_bytes(const ps_snapshot_writer_t *self);
/* Of the blocks written until now: of their heads, which hold a checksum of
 * what follows each. */
uint64_t ps_snapshot_sum(const ps_snapshot_writer_t *self);
/* Completes the file: after this it is on the disk under its name, and replaces
 * an older one of the same name. last_lsn: the lsn of the last piece. Takes the
 * writer in any case. Errors as of begin; then the file does not exist, or is
 * complete but its name is not flushed. */
PSD_MUST_CHECK psd_status_t ps_snapshot_commit(ps_snapshot_writer_t **self_p, uint64_t last_lsn,
                                               psd_error_t *err);
/* Removes what was written. Takes NULL. */
void ps_snapshot_abort(ps_snapshot_writer_t **self_p);

/* ---- reading ------------------------------------------------------------- */

typedef struct ps_snapshot_reader ps_snapshot_reader_t;

typedef struct ps_snapshot_piece {
    uint64_t lsn;     /* that it was read at; of the end: the last lsn */
    ps_bytes_t bytes; /* borrowed until the next call */
    bool is_end;      /* there are no more; bytes is empty */
    uint64_t sum;     /* of all blocks of pieces until now, as the writer's */
} ps_snapshot_piece_t;

/* Errors: PSD_FOREIGN of another cluster or a newer version; PSD_DAMAGED;
 * PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_snapshot_open(const ps_snapshot_dir_t *dir,
                                             const ps_snapshot_id_t *id,
                                             ps_snapshot_reader_t **ret_reader, psd_error_t *err);
/* The next piece, or the end; do not call it after the end. Only a reader that
 * has seen the end has read a complete snapshot. Errors: PSD_DAMAGED naming
 * file and byte; PSD_IO; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_snapshot_next(ps_snapshot_reader_t *self,
                                             ps_snapshot_piece_t *ret_piece, psd_error_t *err);
/* Takes NULL. */
void ps_snapshot_close(ps_snapshot_reader_t **self_p);
#endif
