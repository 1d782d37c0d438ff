/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/storage/audit: the audit's files
 *
 * It is       audit.jsonl and the older files beside it: written, checked at the start,
 *             replaced when one is full, read.
 * It uses     disk, lib/protocol/audit for the lines, lib/base.
 * It ignores  What is noted.
 * Start at    audit_log.h.
 */
/*
 * ps_audit_files - which files a data directory's audit has
 *
 * What     audit.jsonl is being written; audit.N.jsonl is older, and its first line has
 *          number N.
 */
#ifndef PS_STORAGE_AUDIT_FILES_H
#define PS_STORAGE_AUDIT_FILES_H

#include "storage/disk/disk.h"

#define PS_AUDIT_FILE "audit.jsonl"

typedef struct ps_audit_files {
    uint64_t *older; /* owned; the numbers, in ascending order */
    size_t n_older;
    bool has_current;
} ps_audit_files_t;

/* Looks. Errors: those of the disk; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_audit_files_find(ps_disk_t *disk, const char *dir,
                                                ps_audit_files_t *ret, psd_error_t *err);
/* Frees and empties it; fits PSD_AUTO. */
void ps_audit_files_done(ps_audit_files_t *self);
/* The path of an older file; of audit.jsonl with 0. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_audit_path(ps_buffer_t *to, const char *dir, uint64_t number,
                                          psd_error_t *err);

/* Called with each line, without its line break; number: 1 for the file's first. */
typedef psd_status_t ps_audit_take_t(void *context, ps_bytes_t line, uint64_t number,
                                     psd_error_t *err);

/*
 * Lines out of bytes that come piece by piece.
 * Owner  The caller: zeroed before the first piece, but for take and context.
 */
typedef struct ps_audit_splitter {
    ps_audit_take_t *take;
    void *context;
    ps_buffer_t part; /* owned; of a line whose end has not come */
    uint64_t n_lines;
} ps_audit_splitter_t;

/* Errors: what take returns; PSD_DAMAGED a line has no end; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_audit_split(ps_audit_splitter_t *self, ps_bytes_t piece,
                                           psd_error_t *err);
void ps_audit_splitter_done(ps_audit_splitter_t *self);

/* All whole lines of a file. ret_rest: bytes after the last one. Errors: those of the disk and of
 * ps_audit_split. */
PSD_MUST_CHECK psd_status_t ps_audit_read(ps_disk_t *disk, const char *path, ps_audit_take_t *take,
                                          void *context, uint64_t *ret_rest, psd_error_t *err);
#endif
