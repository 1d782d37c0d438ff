/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_db.h: the registry on disk. */
#include "storage/registry/registry_db.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "protocol/placement/registry_decide.h"
#include "support/fail_alloc.h"
#include "support/registry_walk.h"
#include "support/registry_db_test.h"

TestSuite(registry_db, .init = make_temp, .fini = drop_temp);

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
    assert_open_fails(PSD_HELD, says);
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
    cr_assert_eq(ps_registry_db_events(db, 0, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 0);
}

Test(registry_db, has_the_settings_that_its_promises_need)
{
    static const struct {
        const char *pragma;
        int value;
    } cases[] = {{"PRAGMA application_id", 0x70735247}, {"PRAGMA user_version", 17}};
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;

    make_data();
    cr_assert_eq(
        sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ps_page_sums_vfs()),
        SQLITE_OK);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(sqlite3_prepare_v2(db, cases[i].pragma, -1, &stmt, NULL), SQLITE_OK);
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
    cr_assert_not(ps_registry_node(registry, "n0")->up, "it has not started in this life");
    cr_assert_eq(ps_registry_table(registry, "w")->created_unix_ms, 3);
    cr_assert_str_eq(ps_registry_table(registry, "w")->routes[1].tcp,
                     ps_registry_node(registry, "n0")->shards[1].tcp);
}

/* What version 3 had: where a partition is, without copies. */
static const char to_version_3[] =
    "CREATE TABLE old (table_id INTEGER NOT NULL REFERENCES tables(id) "
    "ON DELETE CASCADE, partition INTEGER NOT NULL, node_id INTEGER NOT NULL, "
    "shard INTEGER NOT NULL, epoch INTEGER NOT NULL, "
    "PRIMARY KEY (table_id, partition), FOREIGN KEY (node_id, shard) "
    "REFERENCES shards(node_id, shard) DEFERRABLE INITIALLY DEFERRED) "
    "STRICT, WITHOUT ROWID;"
    "INSERT INTO old SELECT p.table_id, p.partition, c.node_id, c.shard, "
    "p.epoch FROM partitions p JOIN copies c USING (table_id, partition);"
    "DROP TABLE copies; DROP TABLE partitions;"
    "ALTER TABLE old RENAME TO partitions;"
    "CREATE INDEX partitions_by_shard ON partitions(node_id, shard);"
    "ALTER TABLE nodes DROP COLUMN state; ALTER TABLE nodes DROP COLUMN weight;"
    "ALTER TABLE nodes DROP COLUMN held;"
    "DROP TABLE slices_done; DROP TABLE slices_given; DROP TABLE queues;"
    "DROP TABLE rules; DROP TABLE principals;"
    "ALTER TABLE tables DROP COLUMN combine;"
    "DROP TABLE settings; DROP TABLE members; DROP TABLE answers;"
    "ALTER TABLE cluster DROP COLUMN lineage;"
    "ALTER TABLE cluster DROP COLUMN sm_version;"
    "ALTER TABLE cluster DROP COLUMN applied_index;"
    "ALTER TABLE cluster DROP COLUMN applied_term;"
    "ALTER TABLE cluster DROP COLUMN commits;"
    "ALTER TABLE nodes DROP COLUMN secret;"
    "ALTER TABLE tables DROP COLUMN lost_sessions;"
    "ALTER TABLE tables DROP COLUMN lost_jobs;"
    "ALTER TABLE tables DROP COLUMN loss_acked;"
    "ALTER TABLE tables DROP COLUMN restoring;"
    "PRAGMA user_version = 3";

Test(registry_db, a_partition_of_version_3_is_a_copy)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;

    make_data();
    run_sql("UPDATE cluster SET sm_version = 1");
    db = open_db();
    registry = load_db(db);
    before = fixture_dump(registry);
    ps_registry_destroy(&registry);
    ps_registry_db_close(&db);
    run_sql(to_version_3);
    db = open_db();
    registry = load_db(db);
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
    cr_assert_eq(ps_registry_table(registry, "w")->copies[1].n, 1);
}

/* A node that had none is given its secret with its next start, and keeps it
 * for good: in all lives, and over a load. */
Test(registry_db, a_node_keeps_its_secret)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 8, 2, shards);
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, NULL); /* n0 without one */
    node.secret = (ps_id_t){.bytes = {1, 2, 3}};
    rc = ps_registry_plan_node(registry, &node, 2, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert(ps_id_equal(&ps_registry_node(registry, "n0")->secret, &node.secret));
    node.incarnation = 9;
    node.secret.bytes[15] = 1;
    cr_assert_eq(ps_registry_plan_node(registry, &node, 2, &command, err), PSD_DENIED);
    psd_error_clear(err);
    node.secret = (ps_id_t){{0}};
    cr_assert_eq(ps_registry_plan_node(registry, &node, 2, &command, err), PSD_DENIED);
    psd_error_clear(err);
    node.secret = (ps_id_t){.bytes = {1, 2, 3}};
    rc = ps_registry_plan_node(registry, &node, 2, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
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
                cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK, "%s",
                             psd_error_text(err));
            }
            if (i % 10 == 9) {
                PSD_AUTO(ps_registry_destroy)
                ps_registry_t *loaded = load_db(db);
                PSD_AUTO(ps_free_at) char *a = fixture_dump(registry);
                PSD_AUTO(ps_free_at) char *b = fixture_dump(loaded);

                cr_assert_str_eq(a, b);
                cr_assert_eq(ps_registry_hash(registry), ps_registry_hash(loaded));
            }
        }
    }
}

/* Each decision about copies is there after a load, a fence too. */
Test(registry_db, decisions_about_copies_are_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n1", 8, 2, shards);
    ps_table_spec_t spec = fixture_spec("w");
    ps_command_t command = {0};
    psd_status_t rc = PSD_OK;
    uint32_t n_commits = 0;

    make_cluster(db, registry, NULL);
    rc = ps_registry_plan_node(registry, &node, 2, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    spec.replicas = 2;
    rc = ps_registry_plan_table(registry, &spec, 3, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    cr_assert(ps_registry_node_ends(registry, "n1", 8, 1));
    cr_assert_eq(ps_registry_node_beat(registry, "n0", 7, 0, 301, err), PSD_OK, "%s",
                 psd_error_text(err));
    for (int i = 0; i < 20; i++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = NULL;
        PSD_AUTO(ps_free_at) char *a = NULL;
        PSD_AUTO(ps_free_at) char *b = NULL;
        ps_decision_t decision;

        cr_assert_eq(ps_registry_decide(registry, 301, 4, &decision, err), PSD_OK);
        for (size_t j = 0; j < decision.n_fences; j++) {
            ps_report_t position = {.kind = PS_REPORT_POSITION,
                                    .table = decision.fences[j].table,
                                    .partition = decision.fences[j].partition,
                                    .epoch = decision.fences[j].epoch,
                                    .lsn = 5};

            cr_assert_eq(decision.fences[j].n, 1);
            cr_assert(ps_registry_fenced(registry, decision.fences[j].to[0], &position));
        }
        n_commits += decision.kind == PS_DECIDE_COMMIT ? 1 : 0;
        cr_assert_eq(fixture_do(registry, PSD_OK, &decision.command, 1, store_in, db, err), PSD_OK,
                     "%s", psd_error_text(err));
        ps_decision_done(&decision);
        loaded = load_db(db);
        a = fixture_dump(registry);
        b = fixture_dump(loaded);
        cr_assert_str_eq(a, b);
    }
    cr_assert_eq(n_commits, 3, "fenced, promoted, out of sync");
    for (uint32_t i = 0; i < 4; i++) {
        const ps_copies_t *copies = &ps_registry_table(registry, "w")->copies[i];

        cr_assert_eq(copies->at[0].incarnation, 7);
        cr_assert_eq(ps_copies_n_whole(copies), 1);
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
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    cr_assert_eq(ps_registry_take_session(registry), 1);
    rc = ps_registry_plan_drop(registry, "w", 4, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_eq(ps_registry_old_sessions(registry), 100);
    cr_assert_eq(ps_registry_take_session(registry), 0);
    rc = ps_registry_plan_sessions(registry, 100, 4, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    cr_assert_eq(ps_registry_take_session(registry), 101);
    rc = ps_registry_plan_node(registry, &node, 5, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    rc = ps_registry_plan_table(registry, &spec, 5, &command, err);
    cr_assert_eq(command.table.id, 2);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
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
    cr_assert_eq(ps_partition_by_parse("list:9223372036854775808,18446744073709551615", &spec, err),
                 PSD_OK);
    cr_assert_eq(ps_updater_spec_parse("sgd:alpha=0.1,l2=1e-300", &spec.updater, err), PSD_OK);
    rc = ps_registry_plan_table(registry, &spec, 5, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
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
    cr_assert_eq(ps_registry_db_events(db, 0, 2, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 2, "the last two");
    cr_assert_eq(rows[0].id, 2);
    cr_assert_str_eq(rows[0].kind, "node");
    cr_assert_str_eq(rows[0].text, "node n0 joined with 2 shards");
    cr_assert_eq(rows[1].id, 3, "oldest first");
    cr_assert_eq(rows[1].unix_ms, 3);
    cr_assert_eq(rows[1].epoch, 2);
    cr_assert_str_eq(rows[1].kind, "table");
    cr_assert_str_eq(rows[1].text, "table w was created with 4 partitions");

    ps_free_at(&rows);
    cr_assert_eq(ps_registry_db_events(db, 2, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 1, "those after it alone");
    cr_assert_eq(rows[0].id, 3);
    ps_free_at(&rows);
    cr_assert_eq(ps_registry_db_events(db, 3, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 0);
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
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    }
    cr_assert_eq(ps_registry_db_events(db, 0, SIZE_MAX, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 100000);
    cr_assert_eq(rows[0].id, 4, "the oldest three are gone");
    cr_assert_eq(rows[n - 1].id, 100003);
}

/* Failures while storing */

static psd_status_t do_bad(ps_registry_db_t *db, ps_registry_t *registry, ps_command_t bad)
{
    psd_error_clear(err);
    return fixture_do(registry, PSD_OK, &bad, 1, store_in, db, err);
}

Test(registry_db, a_command_that_does_not_fit_stores_nothing)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = NULL;
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    const ps_command_t drop = {.kind = PS_COMMAND_DROP, .number = 44, .epoch = 9};
    const ps_command_t sessions = {.kind = PS_COMMAND_SESSIONS, .number = 9};
    const ps_command_t unknown = {.kind = (ps_command_kind_t)44, .epoch = 9};
    size_t n = 0;

    cr_assert_eq(do_bad(db, registry, drop), PSD_DAMAGED);
    cr_assert_eq(do_bad(db, registry, sessions), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), "no cluster yet"));
    psd_error_clear(err);
    make_cluster(db, registry, "w");
    before = fixture_dump(registry);
    cr_assert_eq(do_bad(db, registry, drop), PSD_DAMAGED);
    cr_assert_eq(do_bad(db, registry, unknown), PSD_DAMAGED);
    loaded = load_db(db);
    after = fixture_dump(loaded);
    cr_assert_str_eq(before, after);
    cr_assert_eq(ps_registry_db_events(db, 0, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 3);
}

/* Like a full disk: no file of this process may grow past `bytes`. */
static void limit_files(rlim_t bytes)
{
    struct rlimit limit;

    cr_assert_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* As fixture_do; the command stays. */
static psd_status_t try_to_store(ps_registry_db_t *db, ps_registry_t *registry,
                                 const ps_command_t *command)
{
    psd_status_t rc = ps_registry_try(registry, command, 1, err);

    if (rc == PSD_OK) {
        rc = ps_registry_db_store(db, registry, command, ps_registry_db_next(db), err);
        if (rc == PSD_OK) {
            ps_registry_keep(registry);
        } else {
            ps_registry_undo(registry);
        }
    }
    return rc;
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
        uint64_t index = ps_registry_db_applied(db).index;

        (void)snprintf(path, sizeof path, "%s-wal", file);
        (void)snprintf(spec.name, sizeof spec.name, "t%u", (unsigned)room);
        cr_assert_eq(stat(path, &wal), 0);
        cr_assert_eq(ps_registry_plan_table(registry, &spec, 3, &command, err), PSD_OK);
        limit_files((rlim_t)wal.st_size + room * 1000);
        rc = try_to_store(db, registry, &command);
        limit_files(RLIM_INFINITY);
        if (rc != PSD_OK) {
            PSD_AUTO(ps_free_at) char *undone = fixture_dump(registry);

            cr_assert_eq(rc, PSD_IO, "%s", psd_error_text(err));
            cr_assert_str_eq(before, undone);
            cr_assert_eq(ps_registry_db_applied(db).index, index, "its place is free");
            n_refused++;
            loaded = load_db(db);
            after = fixture_dump(loaded);
            cr_assert_str_eq(before, after);
            cr_assert_eq(try_to_store(db, registry, &command), PSD_OK);
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

static psd_status_t use_db(void *fixture)
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
        rc = ps_registry_db_events(db, 0, 10, &rows, &n, NULL);
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

static psd_status_t store_list_table(void *fixture)
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
        return rc == PSD_OK ? fixture_do(registry, rc, &command, 1, store_in, db, NULL) : rc;
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
    return rc == PSD_OK ? fixture_do(registry, rc, &command, 1, store_in, db, NULL) : rc;
}

Test(registry_db, no_memory_while_storing_stores_nothing)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;

    make_data();
    db = open_db();
    cr_assert_null(fail_alloc_sweep(store_list_table, db));
    cr_assert_null(fail_alloc_sweep(store_list_table, db));
}
