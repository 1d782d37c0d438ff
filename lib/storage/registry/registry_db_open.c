/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the registry's file and brings it to the newest schema. First it checks
 * that the file is a registry, of a known version, and undamaged; it writes
 * nothing before that. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "storage/disk/disk.h"
#include "storage/disk/page_sums.h"
#include "storage/registry/registry_db_impl.h"

#define SUMS_SINCE 6     /* schema: pages have checksums */
#define PATIENCE_MS 1000 /* for a user that reads the file with sqlite3 */
#define ANSWER_SIZE 256  /* of a check's first complaint */

/* Step i makes schema i + 1 of schema i. A step that was shipped is never
 * changed; docs/storage.md explains the tables. */
static const char *const migrations[] = {
    "CREATE TABLE cluster ("
    "  id INTEGER PRIMARY KEY CHECK (id = 1),"
    "  name TEXT NOT NULL,"
    "  uuid BLOB NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  sessions INTEGER NOT NULL,"
    "  last_table INTEGER NOT NULL,"
    "  last_job INTEGER NOT NULL,"
    "  created_unix_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE nodes ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  incarnation INTEGER NOT NULL UNIQUE,"
    "  control TEXT NOT NULL,"
    "  started_unix_ms INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE shards ("
    "  node_id INTEGER NOT NULL REFERENCES nodes(id) ON DELETE CASCADE,"
    "  shard INTEGER NOT NULL,"
    "  tcp TEXT NOT NULL,"
    "  ipc TEXT NOT NULL,"
    "  PRIMARY KEY (node_id, shard)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE tables ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  created_unix_ms INTEGER NOT NULL,"
    "  rows_lost INTEGER NOT NULL,"
    "  n_rows INTEGER NOT NULL,"
    "  n_cols INTEGER NOT NULL,"
    "  type TEXT NOT NULL,"
    "  row_format TEXT NOT NULL,"
    "  keys TEXT NOT NULL,"
    "  updater TEXT NOT NULL,"
    "  init TEXT NOT NULL,"
    "  seed INTEGER NOT NULL,"
    "  n_partitions INTEGER NOT NULL,"
    "  n_col_slices INTEGER NOT NULL,"
    "  partition_by TEXT NOT NULL,"
    "  replicas INTEGER NOT NULL,"
    "  ack TEXT NOT NULL,"
    "  allow_nonfinite INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE partitions ("
    "  table_id INTEGER NOT NULL REFERENCES tables(id) ON DELETE CASCADE,"
    "  partition INTEGER NOT NULL,"
    "  node_id INTEGER NOT NULL,"
    "  shard INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  PRIMARY KEY (table_id, partition),"
    "  FOREIGN KEY (node_id, shard) REFERENCES shards(node_id, shard)"
    "    DEFERRABLE INITIALLY DEFERRED"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX partitions_by_shard ON partitions(node_id, shard);"
    "CREATE TABLE jobs ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL,"
    "  max_delay INTEGER NOT NULL,"
    "  version INTEGER NOT NULL,"
    "  stopped INTEGER NOT NULL,"
    "  n_expected INTEGER NOT NULL,"
    "  created_unix_ms INTEGER NOT NULL,"
    "  ended INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE workers ("
    "  job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,"
    "  worker INTEGER NOT NULL,"
    "  state TEXT NOT NULL,"
    "  n_members INTEGER NOT NULL,"
    "  joins INTEGER NOT NULL,"
    "  start INTEGER NOT NULL,"
    "  PRIMARY KEY (job_id, worker)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE job_tables ("
    "  job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,"
    "  place INTEGER NOT NULL,"
    "  table_id INTEGER NOT NULL REFERENCES tables(id) ON DELETE CASCADE,"
    "  PRIMARY KEY (job_id, place),"
    "  UNIQUE (job_id, table_id)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX job_tables_by_table ON job_tables(table_id);"
    "CREATE TABLE events ("
    "  id INTEGER PRIMARY KEY,"
    "  unix_ms INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  text TEXT NOT NULL"
    ") STRICT;"
    "PRAGMA application_id = 0x70735247;"
    "PRAGMA user_version = 1",
    "ALTER TABLE tables ADD COLUMN filter TEXT NOT NULL DEFAULT '';"
    "PRAGMA user_version = 2",
    "ALTER TABLE tables ADD COLUMN versions INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 3",
    "ALTER TABLE nodes ADD COLUMN state TEXT NOT NULL DEFAULT 'up';"
    "ALTER TABLE nodes ADD COLUMN weight INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE partitions RENAME TO partitions_3;"
    "CREATE TABLE partitions ("
    "  table_id INTEGER NOT NULL REFERENCES tables(id) ON DELETE CASCADE,"
    "  partition INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  fenced INTEGER NOT NULL,"
    "  PRIMARY KEY (table_id, partition)"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO partitions SELECT table_id, partition, epoch, 0 "
    "  FROM partitions_3;"
    "CREATE TABLE copies ("
    "  table_id INTEGER NOT NULL,"
    "  partition INTEGER NOT NULL,"
    "  place INTEGER NOT NULL,"
    "  node_id INTEGER NOT NULL,"
    "  shard INTEGER NOT NULL,"
    "  state TEXT NOT NULL,"
    "  leaving INTEGER NOT NULL,"
    "  PRIMARY KEY (table_id, partition, place),"
    "  FOREIGN KEY (table_id, partition)"
    "    REFERENCES partitions(table_id, partition) ON DELETE CASCADE,"
    "  FOREIGN KEY (node_id, shard) REFERENCES shards(node_id, shard)"
    "    DEFERRABLE INITIALLY DEFERRED"
    ") STRICT, WITHOUT ROWID;"
    "INSERT INTO copies SELECT table_id, partition, 0, node_id, shard, "
    "  'primary', 0 FROM partitions_3;"
    "DROP TABLE partitions_3;"
    "CREATE INDEX copies_by_shard ON copies(node_id, shard);"
    "PRAGMA user_version = 4",
    "CREATE TABLE queues ("
    "  job_id INTEGER NOT NULL REFERENCES jobs(id) ON DELETE CASCADE,"
    "  queue INTEGER NOT NULL,"
    "  name TEXT NOT NULL,"
    "  n_slices INTEGER NOT NULL,"
    "  n_epochs INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  PRIMARY KEY (job_id, queue),"
    "  UNIQUE (job_id, name)"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE slices_done ("
    "  job_id INTEGER NOT NULL,"
    "  queue INTEGER NOT NULL,"
    "  slice INTEGER NOT NULL,"
    "  PRIMARY KEY (job_id, queue, slice),"
    "  FOREIGN KEY (job_id, queue) REFERENCES queues(job_id, queue)"
    "    ON DELETE CASCADE"
    ") STRICT, WITHOUT ROWID;"
    "CREATE TABLE slices_given ("
    "  job_id INTEGER NOT NULL,"
    "  queue INTEGER NOT NULL,"
    "  session INTEGER NOT NULL,"
    "  ask INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL,"
    "  slice INTEGER NOT NULL,"
    "  worker INTEGER NOT NULL,"
    "  joins INTEGER NOT NULL,"
    "  done INTEGER NOT NULL,"
    "  PRIMARY KEY (job_id, queue, session, ask),"
    "  FOREIGN KEY (job_id, queue) REFERENCES queues(job_id, queue)"
    "    ON DELETE CASCADE"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA user_version = 5",
    "ALTER TABLE cluster ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 6",
    "ALTER TABLE nodes ADD COLUMN secret BLOB NOT NULL"
    "  DEFAULT x'00000000000000000000000000000000';"
    "PRAGMA user_version = 7",
    "ALTER TABLE tables ADD COLUMN lost_sessions INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE tables ADD COLUMN lost_jobs INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 8",
    "ALTER TABLE copies ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 9",
    "ALTER TABLE tables ADD COLUMN restoring INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 10",
    "ALTER TABLE tables ADD COLUMN loss_acked INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 11",
    "ALTER TABLE cluster ADD COLUMN lineage BLOB NOT NULL"
    "  DEFAULT x'00000000000000000000000000000000';"
    "ALTER TABLE cluster ADD COLUMN sm_version INTEGER NOT NULL DEFAULT 1;"
    "ALTER TABLE cluster ADD COLUMN applied_index INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE cluster ADD COLUMN applied_term INTEGER NOT NULL DEFAULT 0;"
    "UPDATE cluster SET lineage = uuid, applied_index = commits;"
    "CREATE TABLE members ("
    "  id INTEGER PRIMARY KEY,"
    "  node TEXT NOT NULL UNIQUE,"
    "  role TEXT NOT NULL,"
    "  made_by INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE answers ("
    "  id INTEGER PRIMARY KEY,"
    "  session INTEGER NOT NULL,"
    "  request INTEGER NOT NULL,"
    "  kind INTEGER NOT NULL,"
    "  number INTEGER NOT NULL,"
    "  detail INTEGER NOT NULL"
    ") STRICT;"
    "PRAGMA user_version = 12",
    "CREATE TABLE settings ("
    "  id INTEGER PRIMARY KEY,"
    "  value INTEGER NOT NULL"
    ") STRICT;"
    "PRAGMA user_version = 13",
    "ALTER TABLE tables ADD COLUMN combine TEXT NOT NULL DEFAULT 'each';"
    "PRAGMA user_version = 14",
    "CREATE TABLE principals ("
    "  id INTEGER PRIMARY KEY,"
    "  name TEXT NOT NULL UNIQUE,"
    "  public_key TEXT NOT NULL,"
    "  uid INTEGER NOT NULL,"
    "  denied INTEGER NOT NULL,"
    "  epoch INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TABLE rules ("
    "  principal_id INTEGER NOT NULL REFERENCES principals(id) ON DELETE CASCADE,"
    "  place INTEGER NOT NULL,"
    "  role TEXT NOT NULL,"
    "  tables TEXT NOT NULL,"
    "  jobs TEXT NOT NULL,"
    "  PRIMARY KEY (principal_id, place)"
    ") STRICT, WITHOUT ROWID;"
    "PRAGMA user_version = 15",
    "ALTER TABLE nodes ADD COLUMN held INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 16",
    "ALTER TABLE principals ADD COLUMN old_key TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE principals ADD COLUMN old_until_unix_ms INTEGER NOT NULL DEFAULT 0;"
    "PRAGMA user_version = 17",
};
#define SCHEMA_VERSION ((int64_t)(sizeof migrations / sizeof *migrations))

/* A file whose bytes cannot have come from SQLite is not a registry. A new file
 * is made here, so that no other user may read it. */
static psd_status_t check_magic(const char *path, psd_error_t *err)
{
    static const char magic[] = "SQLite format 3";
    char head[sizeof magic] = "";
    char reason[128];
    int fd = ps_disk_open_at(path, O_RDWR | O_CREAT);
    ssize_t size = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
    int number = errno;

    if (fd >= 0) {
        (void)close(fd);
    }
    if (fd < 0) {
        errno = number;
        return ps_disk_open_error(path, err);
    }
    if (size < 0) {
        return psd_error_set(err, PSD_IO, "cannot read %s: %s", path,
                             strerror_r(number, reason, sizeof reason));
    }
    if (size > 0 && (size < (ssize_t)sizeof magic || memcmp(head, magic, sizeof magic) != 0)) {
        return psd_error_set(err, PSD_FOREIGN, "%s is not a registry of psd: not SQLite", path);
    }
    return PSD_OK;
}

/* *ret_version is 0 for an empty file. */
static psd_status_t check_ids(sqlite3 *db, const char *path, int64_t *ret_version, psd_error_t *err)
{
    int64_t id = 0;
    int64_t version = 0;
    int64_t n_objects = 0;
    psd_status_t rc = ps_sql_number(db, "PRAGMA application_id", &id, err);

    if (rc == PSD_OK) {
        rc = ps_sql_number(db, "PRAGMA user_version", &version, err);
    }
    if (rc == PSD_OK) {
        rc = ps_sql_number(db, "SELECT count(*) FROM sqlite_schema", &n_objects, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (id != PS_REGISTRY_DB_ID && (id != 0 || version != 0 || n_objects != 0)) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s is not a registry of psd: its application_id is %lld", path,
                             (long long)id);
    }
    if (version > SCHEMA_VERSION) {
        return psd_error_set(err, PSD_FOREIGN,
                             "%s was written by a newer psd: its schema is "
                             "version %lld; psd %s knows up to %lld",
                             path, (long long)version, PSD_RELEASE, (long long)SCHEMA_VERSION);
    }
    if (version < 0 || (id == PS_REGISTRY_DB_ID && version == 0)) {
        return psd_error_set(err, PSD_DAMAGED, "%s: its schema is version %lld", path,
                             (long long)version);
    }
    *ret_version = version;
    return PSD_OK;
}

/* What a check of SQLite says must be `good`. */
static psd_status_t check_answer(sqlite3 *db, const char *pragma, const char *good,
                                 psd_status_t status, psd_error_t *err)
{
    char answer[ANSWER_SIZE];
    psd_status_t rc = ps_sql_text(db, pragma, answer, sizeof answer, err);

    if (rc == PSD_OK && strcmp(answer, good) != 0) {
        rc = psd_error_set(err, status, "%s: %s says \"%s\"", sqlite3_db_filename(db, "main"),
                           pragma, answer);
    }
    return rc;
}

static psd_status_t set_up(sqlite3 *db, psd_error_t *err)
{
    psd_status_t rc = check_answer(db, "PRAGMA journal_mode = WAL", "wal", PSD_IO, err);

    if (rc != PSD_OK) {
        return rc;
    }
    return ps_sql_exec(db,
                       "PRAGMA synchronous = FULL;"
                       "PRAGMA foreign_keys = ON;"
                       "PRAGMA trusted_schema = OFF;"
                       "PRAGMA cell_size_check = ON;"
                       "PRAGMA journal_size_limit = 16777216",
                       err);
}

static psd_status_t migrate_one(sqlite3 *db, int64_t version, psd_error_t *err)
{
    psd_status_t rc = ps_sql_exec(db, "BEGIN IMMEDIATE", err);

    if (rc == PSD_OK) {
        rc = ps_sql_exec(db, migrations[version], err);
    }
    if (rc == PSD_OK) {
        rc = ps_sql_exec(db, "COMMIT", err);
    }
    if (rc != PSD_OK && sqlite3_get_autocommit(db) == 0) {
        (void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    }
    return psd_error_wrap(err, rc, "schema version %lld", (long long)version + 1);
}

/* Adds checksums to pages that an older psd wrote without them. */
static psd_status_t settle_sums(sqlite3 *db, const char *path, int64_t version, psd_error_t *err)
{
    if (version >= SUMS_SINCE) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: byte 20 is damaged: it says that pages have "
                             "no checksums",
                             path);
    }
    if (!ps_page_sums_want(db)) {
        return psd_error_set(err, PSD_IO, "%s: no room for checksums", path);
    }
    return PSD_OK;
}

/* A page that nothing refers to is looked at, too. */
static psd_status_t check_pages(sqlite3 *db, psd_error_t *err)
{
    psd_status_t rc = ps_sql_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", err);
    int code = rc == PSD_OK ? ps_page_sums_check(db) : SQLITE_OK;

    if (code == SQLITE_IOERR_SHORT_READ) {
        return psd_error_set(err, PSD_DAMAGED, "%s is shorter than its head says",
                             sqlite3_db_filename(db, "main"));
    }
    return code == SQLITE_OK ? rc : ps_sql_error(db, code, err);
}

static psd_status_t migrate(sqlite3 *db, int64_t version, bool had_sums, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (version > 0 && !had_sums) {
        rc = ps_sql_exec(db, "VACUUM", err);
    }
    for (; version < SCHEMA_VERSION && rc == PSD_OK; version++) {
        rc = migrate_one(db, version, err);
    }
    return rc;
}

/* SQLite follows no link at all then, so that those on the way to the
 * directory, which are the operator's, are resolved before. */
static psd_status_t open_sqlite(const char *path, sqlite3 **ret_db, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t real = {0};
    PSD_AUTO(ps_free_at) char *dir = ps_strdup(path);
    char *slash = dir == NULL ? NULL : strrchr(dir, '/');
    char resolved[PATH_MAX];
    char reason[128];
    int code = SQLITE_OK;

    if (slash != NULL) {
        *slash = '\0';
    }
    if (dir != NULL && realpath(slash == NULL ? "." : slash == dir ? "/" : dir, resolved) == NULL) {
        return psd_error_set(err, PSD_IO, "cannot resolve %s: %s", dir,
                             strerror_r(errno, reason, sizeof reason));
    }
    if (dir == NULL ||
        !ps_buffer_print(&real, "%s/%s", resolved, slash == NULL ? path : slash + 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    code = sqlite3_open_v2((const char *)real.data, ret_db,
                           SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
                           ps_page_sums_vfs());
    if (*ret_db == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory in SQLite");
    }
    return code == SQLITE_OK ? PSD_OK : ps_sql_error(*ret_db, code, err);
}

psd_status_t ps_registry_db_open_file(const char *path, sqlite3 **ret_db, psd_error_t *err)
{
    int64_t version = 0;
    bool had_sums = false;
    psd_status_t rc = check_magic(path, err);

    if (rc == PSD_OK) {
        rc = open_sqlite(path, ret_db, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    (void)sqlite3_extended_result_codes(*ret_db, 1);
    (void)sqlite3_busy_timeout(*ret_db, PATIENCE_MS);
    (void)sqlite3_db_config(*ret_db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    rc = check_ids(*ret_db, path, &version, err);
    had_sums = ps_page_sums_are_there(*ret_db);
    if (rc == PSD_OK) {
        rc = had_sums ? check_pages(*ret_db, err) : settle_sums(*ret_db, path, version, err);
    }
    if (rc == PSD_OK) {
        rc = check_answer(*ret_db, "PRAGMA quick_check(1)", "ok", PSD_DAMAGED, err);
    }
    if (rc == PSD_OK) {
        rc = set_up(*ret_db, err);
    }
    if (rc == PSD_OK) {
        rc = migrate(*ret_db, version, had_sums, err);
    }
    if (rc == PSD_OK) {
        rc = check_answer(*ret_db, "PRAGMA foreign_key_check", "", PSD_DAMAGED, err);
    }
    return rc;
}
