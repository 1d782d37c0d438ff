/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/storage/disk: files that survive a crash
 *
 * It is       The functions with which all files are written, streams past the
 *             page cache, the data directory and its lock, small notes in files
 *             of their own, damage that a start survived, checksums of SQLite
 *             pages.
 * It uses     lib/base; lib/protocol/facts/lost.h; the numbers of
 *             lib/wire/messages/formats.h; sqlite3 in page_sums.c.
 * It ignores  Records, snapshots, and what a file holds.
 * Start at    disk.h; tests put a virtual disk in its place.
 */
/*
 * ps_disk - files, as the logs and snapshots need them
 *
 * What     A table of functions. ps_disk_real is the system's; tests and the
 *          simulator put a virtual one in its place, which tears, fails and
 *          forgets (tests/support/sim_disk.h).
 * Shape    Paths are as the caller gives them. Readers see written data at
 *          once. It survives a power loss only when it was flushed: bytes by
 *          flush, names (open of a new file, rename, remove) by flush_dir of
 *          their directory.
 * Owner    The caller closes what it opens.
 * Threads  A file belongs to one thread at a time.
 * Errors   PSD_LIMIT there is no room: the disk is full, a quota or the limit
 *          of a file's size is reached (a process that ignores SIGXFSZ);
 *          PSD_IO everything else, naming call, path and the system's reason;
 *          PSD_FOREIGN the file or its directory is a symbolic link; PSD_NOMEM.
 */
#ifndef PS_STORAGE_DISK_H
#define PS_STORAGE_DISK_H

#include "base/bytes.h"

typedef struct ps_disk ps_disk_t;
typedef struct ps_disk_file ps_disk_file_t;

typedef enum ps_disk_mode {
    PS_DISK_READ = 0, /* a file that exists; read and size only */
    PS_DISK_NEW = 1,  /* made with mode 0600, or emptied; for writing */
    PS_DISK_KEEP = 2, /* made when missing, kept as it is; both */
    /* made or emptied like NEW; written once from its first byte to its last,
     * flushed once, closed. It bypasses the page cache (disk_stream.h), and a
     * later call may report a failure */
    PS_DISK_STREAM = 3
} ps_disk_mode_t;

/* Called with each name of a directory; what is not PSD_OK ends the walk. */
typedef psd_status_t ps_disk_name_t(void *context, const char *name, psd_error_t *err);

struct ps_disk {
    psd_status_t (*open)(ps_disk_t *self, const char *path, ps_disk_mode_t mode,
                         ps_disk_file_t **ret_file, psd_error_t *err);
    /* Takes a pointer to NULL; nulls the pointer. Flushes nothing. */
    void (*close)(ps_disk_t *self, ps_disk_file_t **file_p);
    /* Writes all spans in a row from offset on. When it fails, any part of that
     * range may have been written. */
    psd_status_t (*write)(ps_disk_t *self, ps_disk_file_t *file, uint64_t offset,
                          const ps_bytes_t *spans, size_t n_spans, psd_error_t *err);
    /* Fewer than size bytes only where the file ends. */
    psd_status_t (*read)(ps_disk_t *self, ps_disk_file_t *file, uint64_t offset, uint8_t *ret_bytes,
                         size_t size, size_t *ret_size, psd_error_t *err);
    /* These bytes will be read soon; may do nothing. */
    void (*ahead)(ps_disk_t *self, ps_disk_file_t *file, uint64_t offset, uint64_t size);
    psd_status_t (*size)(ps_disk_t *self, ps_disk_file_t *file, uint64_t *ret_bytes,
                         psd_error_t *err);
    /* When it fails, it is unknown which of the bytes written since the last
     * flush are on the disk. A later flush that succeeds does not change that:
     * write them again, elsewhere. */
    psd_status_t (*flush)(ps_disk_t *self, ps_disk_file_t *file, psd_error_t *err);
    psd_status_t (*truncate)(ps_disk_t *self, ps_disk_file_t *file, uint64_t size,
                             psd_error_t *err);
    /* Replaces what is called `to`. */
    psd_status_t (*rename)(ps_disk_t *self, const char *from, const char *to, psd_error_t *err);
    /* A missing file counts as removed. */
    psd_status_t (*remove)(ps_disk_t *self, const char *path, psd_error_t *err);
    /* Names of a directory without . and .., in any order. As for flush_dir, it may be no
     * symbolic link; DIR/. is what DIR leads to. */
    psd_status_t (*list)(ps_disk_t *self, const char *dir, ps_disk_name_t *each, void *context,
                         psd_error_t *err);
    psd_status_t (*flush_dir)(ps_disk_t *self, const char *dir, psd_error_t *err);
    /* Makes a directory with mode 0700, and flushes the one above; one that
     * exists is good. */
    psd_status_t (*make_dir)(ps_disk_t *self, const char *dir, psd_error_t *err);
    /* What may still be written below dir. */
    psd_status_t (*room)(ps_disk_t *self, const char *dir, uint64_t *ret_bytes, psd_error_t *err);
};

/* The system's files; static, for any thread. */
ps_disk_t *ps_disk_real(void);

/*
 * Opens PATH relative to its directory. Neither may be a symbolic link, which
 * could redirect psd to another file. With O_CREAT a new file has mode 0600.
 *
 * -1: errno says why; ELOOP where a link stands.
 */
int ps_disk_open_at(const char *path, int flags);
/* Why that has failed, from errno. */
psd_status_t ps_disk_open_error(const char *path, psd_error_t *err);
bool ps_disk_is_link(const char *path);
/* Sets PSD_FOREIGN, naming the path. */
psd_status_t ps_disk_refuse_link(const char *path, psd_error_t *err);

/* Writes a file atomically: as PATH.tmp, flushed, renamed, the directory
 * flushed. ret_file may be NULL; else the file, open for writing, is the
 * caller's. Errors as above; then PATH is unchanged, or complete but its name
 * is not flushed. */
PSD_MUST_CHECK psd_status_t ps_disk_make(ps_disk_t *disk, const char *dir, const char *path,
                                         ps_bytes_t bytes, ps_disk_file_t **ret_file,
                                         psd_error_t *err);

/* "DIR/NAME", printed as by printf into `to`, which is emptied before and ends
 * with a '\0' that is not counted. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_disk_path(ps_buffer_t *to, psd_error_t *err, const char *dir,
                                         const char *format, ...) PSD_PRINTF(4, 5);
#endif
