/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_db.h: files that are foreign, newer, cut or damaged. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/rng.h"
#include "support/registry_db_test.h"

TestSuite(registry_db_damage, .init = make_temp, .fini = drop_temp);

/* What cannot be opened */

static void write_file(const char *text, size_t at)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, text, strlen(text), (off_t)at), (ssize_t)strlen(text));
    cr_assert_eq(close(fd), 0);
}

Test(registry_db_damage, a_newer_schema_is_refused_by_both_versions)
{
    make_data();
    run_sql("PRAGMA user_version = 18");
    assert_open_fails(PSD_FOREIGN, "its schema is version 18; psd 0.1.0 knows up to 17");
}

Test(registry_db_damage, somebody_elses_database_is_refused_and_not_touched)
{
    struct stat before;
    struct stat after;

    cr_assert_eq(mkdir(dir, 0700), 0);
    run_sql("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
    cr_assert_eq(stat(file, &before), 0);
    assert_open_fails(PSD_FOREIGN, "is not a registry of psd");
    cr_assert_eq(stat(file, &after), 0);
    cr_assert_eq(before.st_size, after.st_size);
    cr_assert_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    run_sql("PRAGMA application_id = 252006673");
    assert_open_fails(PSD_FOREIGN, "its application_id is 252006673");
}

Test(registry_db_damage, a_file_that_is_no_database_is_refused)
{
    cr_assert_eq(mkdir(dir, 0700), 0);
    write_file("cats and dogs and other animals", 0);
    assert_open_fails(PSD_FOREIGN, "is not a registry of psd: not SQLite");
}

Test(registry_db_damage, a_damaged_file_is_refused)
{
    make_data();
    run_sql("PRAGMA journal_mode = DELETE");
    for (size_t at = 4096; at < 20 * 4096; at += 4096) {
        write_file("not a page of a b-tree any more", at);
    }
    assert_open_fails(PSD_DAMAGED, "registry.db");
}

Test(registry_db_damage, a_cut_file_is_refused)
{
    make_data();
    run_sql("PRAGMA journal_mode = DELETE");
    cr_assert_eq(truncate(file, 5 * 4096), 0);
    assert_open_fails(PSD_DAMAGED, "registry.db");
}

Test(registry_db_damage, a_missing_table_is_damage)
{
    make_data();
    run_sql("DROP TABLE job_tables");
    assert_open_fails(PSD_DAMAGED, "no such table: job_tables");
}

Test(registry_db_damage, a_row_that_refers_to_nothing_is_damage)
{
    make_data();
    run_sql("DELETE FROM shards WHERE shard = 1");
    assert_open_fails(PSD_DAMAGED, "foreign_key_check says \"copies\"");
}

Test(registry_db_damage, our_file_without_a_schema_is_damage)
{
    make_data();
    run_sql("PRAGMA user_version = 0");
    assert_open_fails(PSD_DAMAGED, "its schema is version 0");
}

/* Rows that are damaged: each case spoils one row of a good file. */

static const char *const damaged_rows[][2] = {
    {"UPDATE cluster SET name = 'a b'", "name of the cluster"},
    {"UPDATE cluster SET name = printf('%0100d', 1)", "row id=1, name=0000"},
    {"UPDATE cluster SET uuid = x'00'", "uuid is not of its type"},
    {"UPDATE cluster SET uuid = zeroblob(16)", "UUID is 0"},
    {"UPDATE cluster SET epoch = -1", "epoch"},
    {"UPDATE cluster SET epoch = 0", "epoch"},
    {"UPDATE cluster SET sessions = -1", "sessions are out of range"},
    {"UPDATE cluster SET last_table = -1", "last_table is not of its"},
    {"UPDATE cluster SET last_job = 4294967296", "last_job is not of its"},
    {"DELETE FROM cluster", "there is no cluster yet"},
    {"UPDATE nodes SET name = ''", "name of the node"},
    {"UPDATE nodes SET incarnation = 0", "incarnation of node n0 is 0"},
    {"UPDATE nodes SET control = printf('%0300d', 1)", "control is not"},
    {"DELETE FROM copies; DELETE FROM shards", "0 shards"},
    {"DELETE FROM copies; DELETE FROM shards WHERE shard = 0",
     "table shards: number 0 of node n0 is 1"},
    {"UPDATE shards SET tcp = '', ipc = ''", "shard 0 of node n0 has no endpoint"},
    {"UPDATE shards SET ipc = printf('%0300d', 1)", "ipc is not of"},
    {"UPDATE tables SET name = '-w'", "name of the table"},
    {"UPDATE tables SET rows_lost = 2", "rows_lost is not of"},
    {"UPDATE tables SET loss_acked = 2", "loss_acked is not of"},
    {"UPDATE tables SET n_rows = 0", "table tables, row id=1, name=w"},
    {"UPDATE tables SET n_rows = -1", "table w"},
    {"UPDATE tables SET n_cols = 0", "table w"},
    {"UPDATE tables SET n_cols = -1", "n_cols is not of"},
    {"UPDATE tables SET type = 'f16'", "f16"},
    {"UPDATE tables SET row_format = 'x'", "\"x\""},
    {"UPDATE tables SET keys = 'x'", "\"x\""},
    {"UPDATE tables SET updater = 'sgd:alpha=0'", "alpha"},
    {"UPDATE tables SET updater = printf('%01000d', 1)", "updater"},
    {"UPDATE tables SET init = 'uniform:1'", "first value"},
    {"UPDATE tables SET n_partitions = 5", "missing or not one of 5"},
    {"UPDATE tables SET n_partitions = 3", "missing or not one of 3"},
    {"UPDATE tables SET n_partitions = 1000000000", "one of 1000000000"},
    {"UPDATE tables SET n_col_slices = 0", "table w"},
    {"UPDATE tables SET partition_by = 'list:9,8,7'", "8"},
    {"UPDATE tables SET partition_by = 'list:1'", "table w"},
    {"UPDATE tables SET replicas = 0", "replicas"},
    {"UPDATE tables SET ack = 'default'", "default"},
    {"UPDATE tables SET allow_nonfinite = 7", "allow_nonfinite is not"},
    {"UPDATE tables SET versions = 7", "versions is not"},
    {"UPDATE tables SET combine = 'all'", "combine is"},
    {"UPDATE tables SET filter = 'f17'", "filter is \"f17\""},
    {"DELETE FROM copies WHERE partition = 2; "
     "DELETE FROM partitions WHERE partition = 2",
     "row table_id=1, partition=2: missing"},
    {"UPDATE copies SET partition = 9 WHERE partition = 2; "
     "UPDATE partitions SET partition = 9 WHERE partition = 2",
     "row table_id=1, partition=2: missing"},
    {"DELETE FROM copies; DELETE FROM partitions", "partition=0: missing"},
    {"UPDATE partitions SET epoch = 99", "of epoch 99"},
    {"UPDATE partitions SET epoch = 0", "of epoch 0"},
    {"UPDATE partitions SET fenced = 2", "fenced is not of"},
    {"UPDATE partitions SET fenced = 1", "copy 0 of 1, fenced, is primary"},
    {"DELETE FROM copies WHERE partition = 2", "partition 2 of table w: there are 0 copies"},
    {"UPDATE copies SET place = 1 WHERE partition = 2",
     "row table_id=1, partition=2, place=1: out of order"},
    {"UPDATE copies SET place = -1", "place is not of"},
    {"UPDATE copies SET state = 'in_sync'", "copy 0 of 1 is in_sync"},
    {"UPDATE copies SET state = 'dead'", "state is \"dead\""},
    {"UPDATE copies SET leaving = 2", "leaving is not of"},
    {"UPDATE copies SET dropped = 2", "dropped is not of"},
    {"UPDATE copies SET dropped = 1", "copy 0 of 1 was dropped and is primary"},
    {"INSERT INTO copies VALUES(1, 0, 1, 1, 1, 'in_sync', 0, 0)", "copies 0 and 1 are on one node"},
    {"UPDATE nodes SET state = 'gone'", "state is \"gone\""},
    {"UPDATE nodes SET weight = 1025", "weight of node n0 is 1025"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0)", "0 workers"},
    {"INSERT INTO jobs VALUES(-1, 'j', 0, 1, 0, 1, 1, 0)", "id is not of"},
    {"INSERT INTO jobs VALUES(1, 'j', 3000000000, 1, 0, 1, 1, 0)", "max_delay is not of"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 5); "
     "INSERT INTO workers VALUES(1, 0, 'running', 1, 1, 0)",
     "job j has ended as 5, worker 0 is running"},
    {"INSERT INTO jobs VALUES(1, '', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 0, 'running', 1, 1, 0)",
     "name of the job"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 0, 'asleep', 1, 1, 0)",
     "state is \"asleep\""},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 5000, 'running', 1, 1, 0)",
     "out of order or range"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "INSERT INTO workers VALUES(1, 0, 'running', 257, 1, 0)",
     "257 members"},
    {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
     "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n "
     "WHERE i < 6000) INSERT INTO workers SELECT 1, i, 'running', 1, 1, 0 "
     "FROM n",
     "4097 workers"},
};

Test(registry_db_damage, every_row_is_checked)
{
    for (size_t i = 0; i < sizeof damaged_rows / sizeof *damaged_rows; i++) {
        (void)snprintf(dir, sizeof dir, "%s/data%u", temp.path, (unsigned)i);
        (void)snprintf(file, sizeof file, "%s/registry.db", dir);
        make_data();
        assert_load_fails(damaged_rows[i][0], damaged_rows[i][1]);
    }
}

/* Every flip and every cut */

#define FLIPS 200

static size_t read_bytes(const char *path, uint8_t *bytes, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, size);

    cr_assert_geq(n, 0);
    if (fd >= 0) {
        cr_assert_eq(close(fd), 0);
    }
    return (size_t)n;
}

static void write_bytes(const char *path, const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    cr_assert_eq(close(fd), 0);
}

/* The files of a registry that was killed with its last commits in the -wal. */
static const char *const NAMES[] = {"registry.db", "registry.db-wal", "registry.commits"};
#define N_FILES 3
static uint8_t images[N_FILES][1 << 20];
static size_t sizes[N_FILES];
static uint64_t n_sessions; /* that they know of */

static void take_images(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_command_t command = {0};
    psd_status_t rc = PSD_OK;

    make_data();
    db = open_db();
    registry = load_db(db);
    for (uint32_t i = 1; i <= 3; i++) {
        rc = ps_registry_plan_sessions(registry, 1000 * i, i, &command, err);
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    }
    cr_assert_eq(ps_registry_db_flush(db, err), PSD_OK);
    for (size_t i = 0; i < N_FILES; i++) {
        char path[PATH_MAX + 64];

        (void)snprintf(path, sizeof path, "%s/%s", dir, NAMES[i]);
        sizes[i] = read_bytes(path, images[i], sizeof images[i]);
        cr_assert_gt(sizes[i], 0, "%s", path);
    }
}

/* Opens a registry of these files: it says what is wrong, or it is whole. */
static void assert_noticed(const char *what, size_t at)
{
    ps_registry_db_t *db = NULL;
    psd_status_t rc = PSD_OK;

    psd_error_clear(err);
    rc = ps_registry_db_open(dir, &db, err);
    if (rc == PSD_OK) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

        /* Nothing of it counted, and nothing of it is gone. */
        cr_assert_eq(ps_registry_old_sessions(registry), n_sessions, "%s at %zu", what, at);
        cr_assert_not_null(ps_registry_table(registry, "w"));
    } else {
        cr_assert(rc == PSD_DAMAGED || rc == PSD_FOREIGN, "%s at %zu: %s", what, at,
                  psd_error_text(err));
        cr_assert_not_null(strstr(psd_error_text(err), "registry."));
    }
    ps_registry_db_close(&db);
}

static void put_images(size_t except, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < N_FILES; i++) {
        char path[PATH_MAX + 64];

        (void)snprintf(path, sizeof path, "%s/%s", dir, NAMES[i]);
        write_bytes(path, i == except ? bytes : images[i], i == except ? size : sizes[i]);
    }
    {
        char path[PATH_MAX + 64];

        (void)snprintf(path, sizeof path, "%s/registry.db-shm", dir);
        (void)unlink(path);
    }
}

Test(registry_db_damage, every_flip_and_every_cut_is_noticed)
{
    static uint8_t bytes[1 << 20];
    ps_rng_t rng = {.state = 5};

    take_images();
    (void)snprintf(dir, sizeof dir, "%s/damaged", temp.path);
    cr_assert_eq(mkdir(dir, 0700), 0);
    put_images(N_FILES, NULL, 0);
    {
        PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
        PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

        n_sessions = ps_registry_old_sessions(registry);
        cr_assert_geq(n_sessions, 3000);
    }
    for (size_t i = 0; i < N_FILES; i++) {
        for (size_t flip = 0; flip < FLIPS / N_FILES; flip++) {
            size_t at = (size_t)ps_rng_below(&rng, sizes[i]);

            memcpy(bytes, images[i], sizes[i]);
            bytes[at] ^= (uint8_t)(1U << ps_rng_below(&rng, 8));
            put_images(i, bytes, sizes[i]);
            assert_noticed(NAMES[i], at);
            put_images(i, images[i], at);
            assert_noticed("cut", at);
        }
    }
}

Test(registry_db_damage, a_damaged_page_is_named)
{
    char says[PATH_MAX + 128];

    make_data();
    {
        int fd = open(file, O_RDWR);
        uint8_t byte = 0;

        cr_assert_geq(fd, 0);
        cr_assert_eq(pread(fd, &byte, 1, 4096 + 2000), 1);
        byte ^= 4;
        cr_assert_eq(pwrite(fd, &byte, 1, 4096 + 2000), 1);
        cr_assert_eq(close(fd), 0);
    }
    (void)snprintf(says, sizeof says, "%s: the page at byte 4096 is damaged", file);
    assert_open_fails(PSD_DAMAGED, says);
}

Test(registry_db_damage, a_registry_that_lost_commits_is_refused)
{
    char path[PATH_MAX + 64];

    take_images();
    (void)snprintf(dir, sizeof dir, "%s/damaged", temp.path);
    cr_assert_eq(mkdir(dir, 0700), 0);
    put_images(N_FILES, NULL, 0);
    (void)snprintf(path, sizeof path, "%s/registry.db-wal", dir);
    cr_assert_eq(unlink(path), 0);
    assert_open_fails(PSD_DAMAGED, "its last ones are lost");
    (void)snprintf(path, sizeof path, "%s/registry.commits", dir);
    cr_assert_eq(unlink(path), 0);
    {
        PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();

        cr_assert_not_null(db);
    }
}
