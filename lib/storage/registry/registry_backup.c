/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of the registry, and a registry out of a copy. */
#include "storage/registry/registry_backup.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "protocol/registry/registry.h"
#include "storage/disk/data_dir.h"
#include "storage/disk/disk.h"
#include "storage/disk/format_note.h"
#include "storage/disk/page_sums.h"
#include "storage/registry/registry_db_impl.h"
#include "wire/messages/formats.h"

#define NEW_DIR                                                  \
    "restore" /* where the new registry is made, below the other \
               */

#define JOURNAL_MODE_AT 18 /* two bytes of SQLite's head; 1: no WAL */
#define END_MAGIC "psdBackp"
#define END_SIZE 16 /* bytes after the database */

/* ---- backup ---- */

psd_status_t ps_registry_backup_check(ps_bytes_t bytes, psd_error_t *err)
{
    size_t size = bytes.size < END_SIZE ? 0 : bytes.size - END_SIZE;
    const uint8_t *end = size == 0 ? NULL : bytes.data + size;

    if (end == NULL || memcmp(end, END_MAGIC, 8) != 0) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%zu bytes are not a complete backup of a registry: \"" END_MAGIC
                             "\" is missing at their end",
                             bytes.size);
    }
    if (ps_hash_bytes(bytes.data, size + 8, 0) != ps_load_u64(end + 8)) {
        return psd_error_set(err, PSD_DAMAGED,
                             "the checksum at byte %zu does not match the bytes before it",
                             size + 8);
    }
    return PSD_OK;
}

static bool add_end(ps_buffer_t *bytes, size_t from)
{
    return ps_buffer_append(bytes, END_MAGIC, 8) &&
           ps_buffer_u64(bytes, ps_hash_bytes(bytes->data + from, bytes->size - from, 0));
}

static psd_status_t copy_all(sqlite3 *to, sqlite3 *from, psd_error_t *err)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    int code = SQLITE_OK;

    if (backup == NULL) {
        return ps_sql_error(to, sqlite3_extended_errcode(to), err);
    }
    code = sqlite3_backup_step(backup, -1);
    (void)sqlite3_backup_finish(backup);
    return code == SQLITE_DONE ? PSD_OK : ps_sql_error(from, code, err);
}

psd_status_t ps_registry_backup(ps_registry_db_t *db, ps_buffer_t *ret_bytes, psd_error_t *err)
{
    sqlite3 *copy = NULL;
    sqlite3_int64 size = 0;
    unsigned char *bytes = NULL;
    psd_status_t rc = PSD_OK;

    if (sqlite3_open_v2(":memory:", &copy,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        (void)sqlite3_close(copy);
        return psd_error_set(err, PSD_NOMEM, "no memory in SQLite");
    }
    rc = copy_all(copy, db->db, err);
    if (rc == PSD_OK) {
        bytes = sqlite3_serialize(copy, "main", &size, 0);
        if (bytes != NULL) {
            ps_page_sums_put(bytes, (size_t)size);
        }
        if (bytes == NULL || !ps_buffer_append(ret_bytes, bytes, (size_t)size) ||
            !add_end(ret_bytes, ret_bytes->size - (size_t)size)) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for a backup of %lld bytes",
                               (long long)size);
        }
    }
    sqlite3_free(bytes);
    (void)sqlite3_close(copy);
    return rc;
}

static psd_status_t read_copy(sqlite3 *copy, ps_bytes_t bytes, psd_error_t *err)
{
    sqlite3_int64 size = (sqlite3_int64)(bytes.size - END_SIZE);
    unsigned char *owned = sqlite3_malloc64((sqlite3_uint64)size);
    int code = SQLITE_NOMEM;

    if (owned == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a backup of %lld bytes",
                             (long long)size);
    }
    memcpy(owned, bytes.data, (size_t)size);
    memset(owned + JOURNAL_MODE_AT, 1, 2); /* memory has no WAL */
    code = sqlite3_deserialize(copy, "main", owned, size, size,
                               SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY);
    return code == SQLITE_OK ? PSD_OK : ps_sql_error(copy, code, err);
}

psd_status_t ps_registry_db_replace(ps_registry_db_t *db, ps_bytes_t bytes, psd_error_t *err)
{
    sqlite3 *copy = NULL;
    psd_status_t rc = ps_registry_backup_check(bytes, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (sqlite3_open_v2(":memory:", &copy,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK) {
        (void)sqlite3_close(copy);
        return psd_error_set(err, PSD_NOMEM, "no memory in SQLite");
    }
    rc = read_copy(copy, bytes, err);
    if (rc == PSD_OK) {
        rc = copy_all(db->db, copy, err);
    }
    (void)sqlite3_close(copy);
    return rc == PSD_OK ? ps_registry_db_look(db, err) : rc;
}

/* ---- restore ---- */

typedef struct places {
    ps_buffer_t dir;  /* where the new one is made */
    ps_buffer_t made; /* its file … */
    ps_buffer_t lock; /* … its lock … */
    ps_buffer_t form; /* … which format it has … */
    ps_buffer_t note; /* … and its number of commits */
    ps_buffer_t wal;  /* what SQLite has beside it … */
    ps_buffer_t shm;
    ps_buffer_t file;     /* where it will be … */
    ps_buffer_t file_wal; /* … and what would be taken for a part of it */
    ps_buffer_t file_shm;
    ps_buffer_t log; /* of a member */
    ps_buffer_t old; /* a number of commits that is there already */
} places_t;

static void places_done(places_t *self)
{
    ps_buffer_done(&self->dir);
    ps_buffer_done(&self->made);
    ps_buffer_done(&self->lock);
    ps_buffer_done(&self->form);
    ps_buffer_done(&self->note);
    ps_buffer_done(&self->wal);
    ps_buffer_done(&self->shm);
    ps_buffer_done(&self->file);
    ps_buffer_done(&self->file_wal);
    ps_buffer_done(&self->file_shm);
    ps_buffer_done(&self->log);
    ps_buffer_done(&self->old);
}

static const char *text_of(const ps_buffer_t *buffer)
{
    return (const char *)buffer->data;
}

static psd_status_t find_places(const char *dir, places_t *places, psd_error_t *err)
{
    return ps_buffer_print(&places->dir, "%s/" NEW_DIR, dir) &&
                   ps_buffer_print(&places->made, "%s/" NEW_DIR "/registry.db", dir) &&
                   ps_buffer_print(&places->lock, "%s/" NEW_DIR "/lock", dir) &&
                   ps_buffer_print(&places->form, "%s/" NEW_DIR "/format", dir) &&
                   ps_buffer_print(&places->note, "%s/" NEW_DIR "/registry.commits", dir) &&
                   ps_buffer_print(&places->old, "%s/registry.commits", dir) &&
                   ps_buffer_print(&places->wal, "%s-wal", text_of(&places->made)) &&
                   ps_buffer_print(&places->shm, "%s-shm", text_of(&places->made)) &&
                   ps_buffer_print(&places->file, "%s/registry.db", dir) &&
                   ps_buffer_print(&places->file_wal, "%s/registry.db-wal", dir) &&
                   ps_buffer_print(&places->file_shm, "%s/registry.db-shm", dir) &&
                   ps_buffer_print(&places->log, "%s/registry-log", dir)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for paths");
}

/* What an interrupted one left, too. */
static void clear(const places_t *places)
{
    ps_disk_t *disk = ps_disk_real();

    (void)disk->remove(disk, text_of(&places->made), NULL);
    (void)disk->remove(disk, text_of(&places->wal), NULL);
    (void)disk->remove(disk, text_of(&places->shm), NULL);
    (void)disk->remove(disk, text_of(&places->lock), NULL);
    (void)disk->remove(disk, text_of(&places->form), NULL);
    (void)disk->remove(disk, text_of(&places->note), NULL);
    (void)rmdir(text_of(&places->dir));
}

static psd_status_t check_free(const char *path, psd_error_t *err)
{
    char reason[128];

    if (access(path, F_OK) == 0) {
        return psd_error_set(
            err, PSD_INVALID,
            "%s exists; restore needs a data directory without a registry: move this one away",
            path);
    }
    return errno == ENOENT ? PSD_OK
                           : psd_error_set(err, PSD_IO, "cannot look at %s: %s", path,
                                           strerror_r(errno, reason, sizeof reason));
}

/* A log that is left of another registry would become a part of this one. */
static psd_status_t check_all_free(const places_t *places, psd_error_t *err)
{
    psd_status_t rc = check_free(text_of(&places->file), err);

    if (rc == PSD_OK) {
        rc = check_free(text_of(&places->file_wal), err);
    }
    if (rc == PSD_OK) {
        rc = check_free(text_of(&places->file_shm), err);
    }
    return rc == PSD_OK ? check_free(text_of(&places->log), err) : rc;
}

/* Numbers that were assigned after the backup are not assigned again, and
 * members that know what came after it are of another history. */
static const char advance[] =
    "UPDATE cluster SET epoch = epoch + 65536, applied_term = applied_term + 65536, "
    "  sessions = sessions + 4294967296, last_table = last_table + 65536, "
    "  last_job = last_job + 65536, lineage = randomblob(16);"
    "DELETE FROM members;"
    "UPDATE jobs SET version = version + 65536;";

static psd_status_t note(ps_registry_db_t *db, uint64_t unix_ms, const char *kind, const char *text,
                         psd_error_t *err)
{
    ps_query_t query = ps_registry_db_query(db, STATEMENT_EVENT_ADD);

    ps_query_put_u64(&query, unix_ms);
    ps_query_put_u64(&query, 0);
    ps_query_put_text(&query, kind);
    ps_query_put_text(&query, text);
    return ps_query_run(&query, err);
}

psd_status_t ps_registry_db_advance(ps_registry_db_t *db, uint64_t unix_ms, const char *kind,
                                    const char *text, psd_error_t *err)
{
    psd_status_t rc = ps_sql_exec(db->db, "BEGIN IMMEDIATE", err);

    if (rc == PSD_OK) {
        rc = ps_sql_exec(db->db, advance, err);
    }
    if (rc == PSD_OK) {
        rc = note(db, unix_ms, kind, text, err);
    }
    if (rc == PSD_OK) {
        rc = ps_sql_exec(db->db, "COMMIT", err);
        db->unflushed = true;
    }
    return rc;
}

/* Whether psd would start with it. */
static psd_status_t check(ps_registry_db_t *db, psd_error_t *err)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    const ps_registry_args_t args = {/* limits are not for what is loaded */
                                     .default_partitions = 1, .lost_after_ms = 1,
                                     .join_within_ms = 1,     .tables_max = 1,
                                     .jobs_max = 1,           .nodes_max = 1};
    psd_status_t rc = ps_registry_new(&args, &registry, err);

    if (rc == PSD_OK) {
        rc = ps_registry_db_load(db, registry, 0, err);
    }
    if (rc == PSD_OK && ps_registry_cluster(registry, NULL) == NULL) {
        rc = psd_error_set(err, PSD_FOREIGN, "the backup has no cluster");
    }
    return rc;
}

static psd_status_t change_checked(const char *dir, uint64_t unix_ms, psd_error_t *err)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    psd_status_t rc = ps_registry_db_open(dir, &db, err);

    if (rc == PSD_OK) {
        rc = check(db, err);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_advance(db, unix_ms, "registry_restored",
                                    "the registry was restored from a backup", err);
    }
    return rc == PSD_OK ? check(db, err) : rc;
}

/* Only the database is renamed: what is in its log would be lost. */
static psd_status_t check_wal_empty(const char *path, psd_error_t *err)
{
    struct stat info = {0};
    char reason[128];

    if (stat(path, &info) != 0) {
        return errno == ENOENT ? PSD_OK
                               : psd_error_set(err, PSD_IO, "cannot look at %s: %s", path,
                                               strerror_r(errno, reason, sizeof reason));
    }
    return info.st_size == 0 ? PSD_OK
                             : psd_error_set(err, PSD_IO,
                                             "%s has %lld bytes that could not be written "
                                             "into the database",
                                             path, (long long)info.st_size);
}

static psd_status_t make(const char *dir, const places_t *places, ps_bytes_t bytes,
                         uint64_t unix_ms, psd_error_t *err)
{
    ps_disk_t *disk = ps_disk_real();
    psd_status_t rc = disk->make_dir(disk, text_of(&places->dir), err);

    if (rc == PSD_OK) {
        rc = ps_disk_make(disk, text_of(&places->dir), text_of(&places->made), bytes, NULL, err);
    }
    if (rc == PSD_OK) {
        rc = change_checked(text_of(&places->dir), unix_ms, err);
    }
    if (rc == PSD_OK) {
        rc = check_wal_empty(text_of(&places->wal), err);
    }
    if (rc == PSD_OK) {
        rc = disk->remove(disk, text_of(&places->old), err);
    }
    if (rc == PSD_OK) {
        rc = disk->rename(disk, text_of(&places->made), text_of(&places->file), err);
    }
    return rc == PSD_OK ? disk->flush_dir(disk, dir, err) : rc;
}

psd_status_t ps_registry_restore(const char *dir, ps_bytes_t bytes, uint64_t unix_ms,
                                 psd_error_t *err)
{
    PSD_AUTO(places_done) places_t places = {0};
    int lock = -1;
    psd_status_t rc = ps_registry_backup_check(bytes, err);

    if (rc == PSD_OK) {
        rc = find_places(dir, &places, err);
    }
    if (rc == PSD_OK) {
        rc = ps_data_dir_lock(dir, &lock, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    rc = check_all_free(&places, err);
    if (rc == PSD_OK) {
        rc = ps_format_note_settle(ps_disk_real(), dir, PS_DISK_FORMAT, err);
    }
    if (rc == PSD_OK) {
        clear(&places);
        bytes.size -= END_SIZE;
        rc = make(dir, &places, bytes, unix_ms, err);
        clear(&places);
    }
    (void)close(lock);
    return rc;
}
