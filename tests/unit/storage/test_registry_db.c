/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry_db.h: the registry on disk. */
#include "storage/registry_db.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support/fail_alloc.h"
#include "support/registry_walk.h"
#include "support/temp_dir.h"

static psd_error_t *err;
static temp_dir_t temp;
static char dir[PATH_MAX + 16];  /* the data directory, not there yet */
static char file[PATH_MAX + 32]; /* its registry.db */

static void
make_temp(void)
{
    err = psd_error_new();
    cr_assert_not_null(err);
    cr_assert(temp_dir_make(&temp));
    (void)snprintf(dir, sizeof dir, "%s/data", temp.path);
    (void)snprintf(file, sizeof file, "%s/registry.db", dir);
}

static void
drop_temp(void)
{
    temp_dir_drop(&temp);
    psd_error_destroy(&err);
}

TestSuite(registry_db, .init = make_temp, .fini = drop_temp);

static psd_status_t
store_in(void *context, const ps_command_t *command, psd_error_t *error)
{
    return ps_registry_db_store(context, command, error);
}

static ps_registry_db_t *
open_db(void)
{
    ps_registry_db_t *db = NULL;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_db_open(dir, &db, err), PSD_OK, "%s",
                 psd_error_text(err));
    return db;
}

static ps_registry_t *
load_db(ps_registry_db_t *db)
{
    ps_registry_t *registry = NULL;
    ps_registry_args_t args = fixture_args();

    psd_error_clear(err);
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    cr_assert_eq(ps_registry_db_load(db, registry, 1, err), PSD_OK, "%s",
                 psd_error_text(err));
    return registry;
}

/* Makes a cluster with node n0, and a table when it has a name. */
static void
make_cluster(ps_registry_db_t *db, ps_registry_t *registry, const char *table)
{
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 7, 2, shards);
    ps_id_t uuid = fixture_uuid();
    psd_status_t rc = PSD_OK;

    rc = ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    rc = ps_registry_plan_node(registry, &node, 2, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    if (table != NULL) {
        ps_table_spec_t spec = fixture_spec(table);

        rc = ps_registry_plan_table(registry, &spec, 3, &command, err);
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                     PSD_OK);
    }
}

/* A data directory with a cluster and table w, closed again. */
static void
make_data(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

    make_cluster(db, registry, "w");
}

/* What psd would never do to its file. */
static void
run_sql(const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;

    cr_assert_eq(sqlite3_open(file, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &text), SQLITE_OK, "%s: %s",
                 sql, text);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
}

static void
assert_open_fails(psd_status_t status, const char *says)
{
    ps_registry_db_t *db = NULL;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_db_open(dir, &db, err), status, "%s: %s", says,
                 psd_error_text(err));
    cr_assert_eq(psd_error_status(err), status);
    cr_assert_null(db);
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s",
                       psd_error_text(err));
}

static void
assert_load_fails(const char *sql, const char *says)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_registry_args_t args = fixture_args();

    run_sql(sql);
    db = open_db();
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    cr_assert_eq(ps_registry_db_load(db, registry, 1, err), PSD_DAMAGED, "%s",
                 sql);
    cr_assert_eq(psd_error_status(err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s: %s", sql,
                       psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), "registry.db: table "), "%s",
                       psd_error_text(err));
}

Test(registry_db, open_makes_what_is_missing_for_its_owner_only)
{
    struct stat status;
    ps_registry_db_t *db = NULL;

    (void)snprintf(dir, sizeof dir, "%s/a/b//data/", temp.path);
    db = open_db();
    cr_assert_eq(stat(dir, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0700);
    (void)snprintf(file, sizeof file, "%s/registry.db", dir);
    cr_assert_eq(stat(file, &status), 0);
    cr_assert_eq(status.st_mode & 0777, 0600);
    ps_registry_db_close(&db);
    cr_assert_null(db);
    ps_registry_db_close(&db);
    ps_registry_db_close(NULL);
}

Test(registry_db, open_says_what_cannot_be_made)
{
    int fd = open(dir, O_CREAT | O_WRONLY, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(close(fd), 0);
    assert_open_fails(PSD_IO, "Not a directory");
    (void)snprintf(dir, sizeof dir, "%s/data/below", temp.path);
    assert_open_fails(PSD_IO, "Not a directory");
    dir[0] = '\0';
    assert_open_fails(PSD_INVALID, "the data directory is \"\"");
}

Test(registry_db, a_data_directory_has_one_psd)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    char says[64];

    (void)snprintf(says, sizeof says, "another psd with pid %d", (int)getpid());
    assert_open_fails(PSD_BUSY, says);
    ps_registry_db_close(&db);
    db = open_db();
}

Test(registry_db, a_fresh_one_is_empty)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    size_t n = 7;

    cr_assert_null(ps_registry_cluster(registry, NULL));
    cr_assert_eq(ps_registry_db_events(db, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 0);
}

Test(registry_db, has_the_settings_that_its_promises_need)
{
    static const struct {
        const char *pragma;
        int value;
    } cases[] = {{"PRAGMA application_id", 0x70735247},
                 {"PRAGMA user_version", 1}};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    make_data();
    cr_assert_eq(sqlite3_open(file, &db), SQLITE_OK);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(sqlite3_prepare_v2(db, cases[i].pragma, -1, &stmt, NULL),
                     SQLITE_OK);
        cr_assert_eq(sqlite3_step(stmt), SQLITE_ROW);
        cr_assert_eq(sqlite3_column_int(stmt, 0), cases[i].value);
        cr_assert_eq(sqlite3_finalize(stmt), SQLITE_OK);
    }
    cr_assert_eq(sqlite3_prepare_v2(db,
                                    "SELECT count(*) FROM pragma_table_list "
                                    "WHERE schema = 'main' AND NOT strict "
                                    "AND name NOT LIKE 'sqlite_%'",
                                    -1, &stmt, NULL),
                 SQLITE_OK);
    cr_assert_eq(sqlite3_step(stmt), SQLITE_ROW);
    cr_assert_eq(sqlite3_column_int(stmt, 0), 0, "every table is STRICT");
    cr_assert_eq(sqlite3_finalize(stmt), SQLITE_OK);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
}

Test(registry_db, what_was_stored_is_loaded)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_id_t uuid = {{0}};

    make_data();
    db = open_db();
    registry = load_db(db);
    cr_assert_str_eq(ps_registry_cluster(registry, &uuid), "psd");
    cr_assert_eq(uuid.bytes[0], 0xC1);
    cr_assert_eq(ps_registry_epoch(registry), 2);
    cr_assert_not(ps_registry_node(registry, "n0")->up,
                  "it has not started in this life");
    cr_assert_eq(ps_registry_table(registry, "w")->created_unix_ms, 3);
    cr_assert_str_eq(ps_registry_table(registry, "w")->routes[1].tcp,
                     ps_registry_node(registry, "n0")->shards[1].tcp);
}

/* Store then load gives what plan then apply gave, at every point of many
 * random lives. */
Test(registry_db, a_load_is_the_state_at_any_time)
{
    for (uint64_t seed = 0; seed < 4; seed++) {
        PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
        PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
        walk_t walk = {.rng = {seed}};

        (void)snprintf(dir, sizeof dir, "%s/data%u", temp.path, (unsigned)seed);
        db = open_db();
        registry = load_db(db);
        for (int i = 0; i < 300; i++) {
            ps_command_t command = {0};
            psd_status_t rc = walk_plan(&walk, registry, &command, NULL);

            psd_error_clear(err);
            if (rc == PSD_OK) {
                cr_assert_eq(
                    fixture_do(registry, rc, &command, 1, store_in, db, err),
                    PSD_OK, "%s", psd_error_text(err));
            }
            if (i % 10 == 9) {
                PSD_AUTO(ps_registry_destroy)
                ps_registry_t *loaded = load_db(db);
                PSD_AUTO(ps_free_at) char *a = fixture_dump(registry);
                PSD_AUTO(ps_free_at) char *b = fixture_dump(loaded);

                cr_assert_str_eq(a, b);
            }
        }
    }
}

/* Ids and sessions are not used again, even when what had them is gone. */
Test(registry_db, what_was_given_out_stays_given)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 8, 2, shards);
    ps_table_spec_t spec = fixture_spec("v");
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, "w");
    rc = ps_registry_plan_sessions(registry, 100, 4, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    cr_assert_eq(ps_registry_take_session(registry), 1);
    rc = ps_registry_plan_drop(registry, "w", 4, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_eq(ps_registry_old_sessions(registry), 100);
    cr_assert_eq(ps_registry_take_session(registry), 0);
    rc = ps_registry_plan_sessions(registry, 100, 4, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    cr_assert_eq(ps_registry_take_session(registry), 101);
    rc = ps_registry_plan_node(registry, &node, 5, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
    rc = ps_registry_plan_table(registry, &spec, 5, &command, err);
    cr_assert_eq(command.table.id, 2);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK);
}

Test(registry_db, numbers_of_64_bits_come_back)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = fixture_spec("big");
    ps_command_t command = {0};
    const ps_table_t *table = NULL;
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, NULL);
    spec.seed = UINT64_MAX;
    spec.type = PS_TYPE_F64;
    spec.keys = PS_KEYS_HASH;
    spec.n_rows = 0;
    cr_assert_eq(
        ps_partition_by_parse("list:9223372036854775808,18446744073709551615",
                              &spec, err),
        PSD_OK);
    cr_assert_eq(
        ps_updater_spec_parse("sgd:alpha=0.1,l2=1e-300", &spec.updater, err),
        PSD_OK);
    rc = ps_registry_plan_table(registry, &spec, 5, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                 PSD_OK, "%s", psd_error_text(err));
    ps_registry_destroy(&registry);
    registry = load_db(db);
    table = ps_registry_table(registry, "big");
    cr_assert_eq(table->spec.seed, UINT64_MAX);
    cr_assert_eq(table->spec.boundaries[1], UINT64_MAX);
    cr_assert_eq(table->spec.updater.alpha, 0.1);
    cr_assert_eq(table->spec.updater.l2, 1e-300);
}

/* History */

Test(registry_db, every_command_is_an_event)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    size_t n = 0;

    make_data();
    db = open_db();
    cr_assert_eq(ps_registry_db_events(db, 2, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 2, "the last two");
    cr_assert_eq(rows[0].id, 2);
    cr_assert_str_eq(rows[0].kind, "node");
    cr_assert_str_eq(rows[0].text, "node n0 joined with 2 shards");
    cr_assert_eq(rows[1].id, 3, "oldest first");
    cr_assert_eq(rows[1].unix_ms, 3);
    cr_assert_eq(rows[1].epoch, 2);
    cr_assert_str_eq(rows[1].kind, "table");
    cr_assert_str_eq(rows[1].text, "table w was created with 4 partitions");
}

Test(registry_db, history_is_bounded)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    ps_command_t command = {0};
    size_t n = 0;
    psd_status_t rc = PSD_OK;

    make_data();
    run_sql("WITH RECURSIVE n(i) AS (SELECT 4 UNION ALL SELECT i + 1 FROM n "
            "WHERE i < 100000) INSERT INTO events SELECT i, 0, 2, 'job', 'x' "
            "FROM n");
    db = open_db();
    registry = load_db(db);
    for (uint32_t i = 100; i <= 10000; i *= 10) {
        rc = ps_registry_plan_sessions(registry, i, 4, &command, err);
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err),
                     PSD_OK);
    }
    cr_assert_eq(ps_registry_db_events(db, SIZE_MAX, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 100000);
    cr_assert_eq(rows[0].id, 4, "the oldest three are gone");
    cr_assert_eq(rows[n - 1].id, 100003);
}

/* What cannot be opened */

static void
write_file(const char *text, size_t at)
{
    int fd = open(file, O_WRONLY | O_CREAT, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(pwrite(fd, text, strlen(text), (off_t)at),
                 (ssize_t)strlen(text));
    cr_assert_eq(close(fd), 0);
}

Test(registry_db, a_newer_schema_is_refused_by_both_versions)
{
    make_data();
    run_sql("PRAGMA user_version = 2");
    assert_open_fails(PSD_FOREIGN,
                      "its schema is version 2; psd 0.1.0 knows up to 1");
}

Test(registry_db, somebody_elses_database_is_refused_and_not_touched)
{
    struct stat before;
    struct stat after;

    cr_assert_eq(mkdir(dir, 0700), 0);
    run_sql("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(1)");
    cr_assert_eq(stat(file, &before), 0);
    assert_open_fails(PSD_FOREIGN, "is no registry of psd");
    cr_assert_eq(stat(file, &after), 0);
    cr_assert_eq(before.st_size, after.st_size);
    cr_assert_eq(before.st_mtim.tv_nsec, after.st_mtim.tv_nsec);
    run_sql("PRAGMA application_id = 252006673");
    assert_open_fails(PSD_FOREIGN, "its application_id is 252006673");
}

Test(registry_db, a_file_that_is_no_database_is_refused)
{
    cr_assert_eq(mkdir(dir, 0700), 0);
    write_file("cats and dogs and other animals", 0);
    assert_open_fails(PSD_FOREIGN, "is no registry of psd: not SQLite");
}

Test(registry_db, a_damaged_file_is_refused)
{
    make_data();
    run_sql("PRAGMA journal_mode = DELETE");
    for (size_t at = 4096; at < 20 * 4096; at += 4096) {
        write_file("not a page of a b-tree any more", at);
    }
    assert_open_fails(PSD_DAMAGED, "registry.db");
}

Test(registry_db, a_cut_file_is_refused)
{
    make_data();
    run_sql("PRAGMA journal_mode = DELETE");
    cr_assert_eq(truncate(file, 5 * 4096), 0);
    assert_open_fails(PSD_DAMAGED, "registry.db");
}

Test(registry_db, a_missing_table_is_damage)
{
    make_data();
    run_sql("DROP TABLE job_tables");
    assert_open_fails(PSD_DAMAGED, "no such table: job_tables");
}

Test(registry_db, a_row_that_refers_to_nothing_is_damage)
{
    make_data();
    run_sql("DELETE FROM shards WHERE shard = 1");
    assert_open_fails(PSD_DAMAGED, "foreign_key_check says \"partitions\"");
}

Test(registry_db, our_file_without_a_schema_is_damage)
{
    make_data();
    run_sql("PRAGMA user_version = 0");
    assert_open_fails(PSD_DAMAGED, "its schema is version 0");
}

/* Rows that are damaged: each case spoils one row of a good file. */

Test(registry_db, every_row_is_checked)
{
    static const char *const cases[][2] = {
        {"UPDATE cluster SET name = 'a b'", "name of the cluster"},
        {"UPDATE cluster SET name = printf('%0100d', 1)",
         "row id=1, name=0000"},
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
        {"DELETE FROM partitions; DELETE FROM shards", "0 shards"},
        {"DELETE FROM partitions; DELETE FROM shards WHERE shard = 0",
         "table shards: number 0 of node n0 is 1"},
        {"UPDATE shards SET tcp = ''", "shard 0 of node n0 has no endpoint"},
        {"UPDATE shards SET ipc = printf('%0300d', 1)", "ipc is not of"},
        {"UPDATE tables SET name = '-w'", "name of the table"},
        {"UPDATE tables SET rows_lost = 2", "rows_lost is not of"},
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
        {"DELETE FROM partitions WHERE partition = 2",
         "row table_id=1, partition=2: missing"},
        {"UPDATE partitions SET partition = 9 WHERE partition = 2",
         "row table_id=1, partition=2: missing"},
        {"DELETE FROM partitions", "partition=0: missing"},
        {"UPDATE partitions SET epoch = 99", "of epoch 99"},
        {"UPDATE partitions SET epoch = 0", "of epoch 0"},
        {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0)", "0 workers"},
        {"INSERT INTO jobs VALUES(-1, 'j', 0, 1, 0, 1, 1, 0)", "id is not of"},
        {"INSERT INTO jobs VALUES(1, 'j', 3000000000, 1, 0, 1, 1, 0)",
         "max_delay is not of"},
        {"INSERT INTO jobs VALUES(1, '', 0, 1, 0, 1, 1, 0); "
         "INSERT INTO workers VALUES(1, 0, 'running', 1, 1, 0)",
         "name of the job"},
        {"INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
         "INSERT INTO workers VALUES(1, 0, 'asleep', 1, 1, 0)",
         "worker 0 of job j has state 0"},
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

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        (void)snprintf(dir, sizeof dir, "%s/data%u", temp.path, (unsigned)i);
        (void)snprintf(file, sizeof file, "%s/registry.db", dir);
        make_data();
        assert_load_fails(cases[i][0], cases[i][1]);
    }
}

/* Failures while storing */

Test(registry_db, a_command_that_does_not_fit_stores_nothing)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = NULL;
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    ps_command_t bad = {.kind = PS_COMMAND_DROP, .number = 44, .epoch = 9};
    size_t n = 0;

    cr_assert_eq(ps_registry_db_store(db, &bad, err), PSD_DAMAGED);
    psd_error_clear(err);
    bad = (ps_command_t){.kind = PS_COMMAND_SESSIONS, .number = 9};
    cr_assert_eq(ps_registry_db_store(db, &bad, err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), "\"sessions\""));
    psd_error_clear(err);
    bad.kind = (ps_command_kind_t)0;
    cr_assert_eq(ps_registry_db_store(db, &bad, err), PSD_INVALID);
    psd_error_clear(err);
    make_cluster(db, registry, "w");
    before = fixture_dump(registry);
    bad = (ps_command_t){.kind = PS_COMMAND_DROP, .number = 44, .epoch = 9};
    cr_assert_eq(ps_registry_db_store(db, &bad, err), PSD_DAMAGED);
    loaded = load_db(db);
    after = fixture_dump(loaded);
    cr_assert_str_eq(before, after);
    cr_assert_eq(ps_registry_db_events(db, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 3);
}

/* Like a full disk: no file of this process may grow past `bytes`. */
static void
limit_files(rlim_t bytes)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

Test(registry_db, a_full_disk_stores_nothing_and_goes_on_when_there_is_room)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    int n_refused = 0;

    make_cluster(db, registry, "w");
    (void)signal(SIGXFSZ, SIG_IGN);
    for (rlim_t room = 0; room < 40; room++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = NULL;
        PSD_AUTO(ps_free_at) char *before = fixture_dump(registry);
        PSD_AUTO(ps_free_at) char *after = NULL;
        char name[16];
        ps_table_spec_t spec = fixture_spec(name);
        ps_command_t command = {0};
        psd_status_t rc = PSD_OK;
        struct stat wal = {0};
        char path[PATH_MAX + 40];

        (void)snprintf(path, sizeof path, "%s-wal", file);
        (void)snprintf(spec.name, sizeof spec.name, "t%u", (unsigned)room);
        cr_assert_eq(stat(path, &wal), 0);
        cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &command, err),
                     PSD_OK);
        limit_files((rlim_t)wal.st_size + room * 1000);
        rc = ps_registry_db_store(db, &command, err);
        limit_files(RLIM_INFINITY);
        if (rc == PSD_OK) {
            cr_assert_eq(ps_registry_apply(registry, &command, 1, err), PSD_OK);
        } else {
            cr_assert_eq(rc, PSD_IO, "%s", psd_error_text(err));
            n_refused++;
            loaded = load_db(db);
            after = fixture_dump(loaded);
            cr_assert_str_eq(before, after);
            cr_assert_eq(ps_registry_db_store(db, &command, err), PSD_OK);
            cr_assert_eq(ps_registry_apply(registry, &command, 1, err), PSD_OK);
        }
        ps_command_done(&command);
    }
    cr_assert_gt(n_refused, 3);
    {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = load_db(db);
        PSD_AUTO(ps_free_at) char *a = fixture_dump(registry);
        PSD_AUTO(ps_free_at) char *b = fixture_dump(loaded);

        cr_assert_str_eq(a, b);
    }
}

/* Memory */

static psd_status_t
use_db(void *fixture)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    ps_registry_args_t args = fixture_args();
    size_t n = 0;
    psd_status_t rc = ps_registry_db_open(fixture, &db, NULL);

    if (rc == PSD_OK) {
        rc = ps_registry_new(&args, &registry, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_load(db, registry, 1, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_db_events(db, 10, &rows, &n, NULL);
    }
    return rc;
}

Test(registry_db, no_memory_is_said_and_nothing_leaks)
{
    make_data();
    run_sql("INSERT INTO jobs VALUES(1, 'j', 0, 1, 0, 1, 1, 0); "
            "INSERT INTO workers VALUES(1, 0, 'running', 1, 1, 0); "
            "INSERT INTO job_tables VALUES(1, 1, 1)");
    cr_assert_null(fail_alloc_sweep(use_db, dir));
}

static psd_status_t
store_list_table(void *fixture)
{
    ps_registry_db_t *db = fixture;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    PSD_AUTO(ps_command_done) ps_command_t command = {0};
    PSD_AUTO(ps_table_spec_done) ps_table_spec_t spec = {0};
    ps_registry_args_t args = fixture_args();
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = {0};
    psd_status_t rc = ps_registry_new(&args, &registry, NULL);

    if (rc == PSD_OK) {
        rc = ps_registry_db_load(db, registry, 1, NULL);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_registry_table(registry, "list") != NULL) {
        rc = ps_registry_plan_drop(registry, "list", 1, &command, NULL);
        return rc == PSD_OK ? ps_registry_db_store(db, &command, NULL) : rc;
    }
    node = fixture_node("n0", ps_registry_epoch(registry) + 100, 2, shards);
    rc = ps_registry_plan_node(registry, &node, 1, &command, NULL);
    if (rc == PSD_OK) {
        rc = fixture_do(registry, rc, &command, 1, store_in, db, NULL);
    }
    if (rc == PSD_OK) {
        spec = fixture_spec("list");
        rc = ps_partition_by_parse("list:5,60", &spec, NULL);
    }
    if (rc == PSD_OK) {
        rc = ps_registry_plan_table(registry, &spec, 1, &command, NULL);
    }
    return rc == PSD_OK ? ps_registry_db_store(db, &command, NULL) : rc;
}

Test(registry_db, no_memory_while_storing_stores_nothing)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;

    make_data();
    db = open_db();
    cr_assert_null(fail_alloc_sweep(store_list_table, db));
    cr_assert_null(fail_alloc_sweep(store_list_table, db));
}
