/* SPDX-License-Identifier: Apache-2.0 */
/* The registry's rows in SQLite: all columns, every schema so far, and that a
 * small change writes little. */
#include <sys/stat.h>

#include "base/rng.h"
#include "protocol/registry/registry_rows.h"
#include "protocol/registry/registry_work.h"
#include "support/registry_db_test.h"

TestSuite(registry_db_rows, .init = make_temp, .fini = drop_temp);

/* ---- columns ---- */

static int64_t number_of(const char *sql)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *stmt = NULL;
    int64_t number = 0;

    cr_assert_eq(
        sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ps_page_sums_vfs()),
        SQLITE_OK);
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK, "%s", sql);
    cr_assert_eq(sqlite3_step(stmt), SQLITE_ROW);
    number = sqlite3_column_int64(stmt, 0);
    cr_assert_eq(sqlite3_finalize(stmt), SQLITE_OK);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
    return number;
}

#define ONE(S, kind, column, member) +1
#define N_COLUMNS(NAME, table, type, n_keys, n_of, n_cut) \
    {#table, 0 PS_ROW_##NAME##_FIELDS(ONE, type), n_keys},
static const struct {
    const char *table;
    int n;
    int n_keys;
} counts[] = {PS_ROW_MAP(N_COLUMNS)};

/* Each column is in the list, but for the count of commits and the place of the
 * last; the keys of the list are those of the table. That the list has no others, an opening
 * checks. */
Test(registry_db_rows, the_list_has_every_column)
{
    make_data();
    for (size_t i = 0; i < PS_ROW_COUNT; i++) {
        char sql[128];
        int more = strcmp(counts[i].table, "cluster") == 0 ? 3 : 0;

        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM pragma_table_info('%s')",
                       counts[i].table);
        cr_assert_eq(number_of(sql), counts[i].n + more, "%s", counts[i].table);
        (void)snprintf(sql, sizeof sql, "SELECT max(pk) FROM pragma_table_info('%s')",
                       counts[i].table);
        cr_assert_eq(number_of(sql), counts[i].n_keys, "%s", counts[i].table);
    }
}

/* ---- every schema so far ---- */

/* Step i takes back what made version 17 - i of the one before. */
static const char *const back[] = {
    "ALTER TABLE principals DROP COLUMN old_key;"
    "ALTER TABLE principals DROP COLUMN old_until_unix_ms",
    "ALTER TABLE nodes DROP COLUMN held",
    "DROP TABLE rules; DROP TABLE principals",
    "ALTER TABLE tables DROP COLUMN combine",
    "DROP TABLE settings",
    "DROP TABLE members; DROP TABLE answers;"
    "ALTER TABLE cluster DROP COLUMN lineage;"
    "ALTER TABLE cluster DROP COLUMN sm_version;"
    "ALTER TABLE cluster DROP COLUMN applied_index;"
    "ALTER TABLE cluster DROP COLUMN applied_term",
    "ALTER TABLE tables DROP COLUMN loss_acked",
    "ALTER TABLE tables DROP COLUMN restoring",
    "ALTER TABLE copies DROP COLUMN dropped",
    "ALTER TABLE tables DROP COLUMN lost_sessions;"
    "ALTER TABLE tables DROP COLUMN lost_jobs",
    "ALTER TABLE nodes DROP COLUMN secret",
    "ALTER TABLE cluster DROP COLUMN commits",
    "DROP TABLE slices_done; DROP TABLE slices_given; DROP TABLE queues",
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
    "ALTER TABLE nodes DROP COLUMN state; ALTER TABLE nodes DROP COLUMN weight",
    "ALTER TABLE tables DROP COLUMN versions",
    "ALTER TABLE tables DROP COLUMN filter",
};

/* A cluster as version 1 could have had it already. */
static void make_old_data(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    const ps_join_t join = {.job = "lr", .worker = 0, .n_workers = 2, .max_delay = 1};
    ps_command_t command = {0};
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, "w");
    rc = ps_registry_plan_join(registry, &join, 4, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    rc = ps_registry_plan_job_table(registry, 1, 1, 5, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
}

static char *dump_of_file(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

    return fixture_dump(registry);
}

/* An old file opens, and what is stored in it afterwards is there. */
static void use_file(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    ps_command_t command = {0};
    ps_table_spec_t spec = fixture_spec("v");
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 8, 2, shards);
    psd_status_t rc = ps_registry_plan_node(registry, &node, 6, &command, err);

    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
    rc = ps_registry_plan_table(registry, &spec, 7, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
    before = fixture_dump(registry);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
}

Test(registry_db_rows, every_schema_so_far_is_read)
{
    size_t n = sizeof back / sizeof *back;

    for (size_t version = 17 - n; version < 17; version++) {
        PSD_AUTO(ps_free_at) char *before = NULL;
        PSD_AUTO(ps_free_at) char *after = NULL;
        char sql[64];

        (void)snprintf(dir, sizeof dir, "%s/data%zu", temp.path, version);
        (void)snprintf(file, sizeof file, "%s/registry.db", dir);
        make_old_data();
        run_sql("UPDATE cluster SET sm_version = 1");
        before = dump_of_file();
        for (size_t i = 0; i < 17 - version; i++) {
            run_sql(back[i]);
        }
        (void)snprintf(sql, sizeof sql, "PRAGMA user_version = %zu", version);
        run_sql(sql);
        after = dump_of_file();
        cr_assert_str_eq(before, after, "version %zu", version);
        cr_assert_eq(number_of("PRAGMA user_version"), 17);
        use_file();
    }
}

/* Places of a job's tables had gaps where a table between was dropped. */
Test(registry_db_rows, gaps_between_tables_of_a_job_close)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_command_t command = {0};
    ps_table_spec_t spec = fixture_spec("v");
    const uint32_t *tables = NULL;
    psd_status_t rc = PSD_OK;

    make_old_data();
    run_sql("UPDATE job_tables SET place = 7");
    db = open_db();
    registry = load_db(db);
    ps_registry_set_node_up(registry, 7, true, 1);
    rc = ps_registry_plan_table(registry, &spec, 7, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    rc = ps_registry_plan_job_table(registry, 1, 2, 8, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    rc = ps_registry_plan_drop(registry, "w", 9, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_eq(ps_registry_job_tables(registry, 1, &tables), 1);
    cr_assert_eq(tables[0], 2);
}

/* The order in which jobs end goes on after a load: the same one is forgotten
 * first in memory and on disk. */
Test(registry_db_rows, the_first_to_end_is_forgotten_first_after_a_load_too)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;

    make_cluster(db, registry, NULL);
    for (uint32_t i = 0; i < PS_JOBS_ENDED_MAX + 3; i++) {
        char name[16];
        const ps_join_t join = {.job = name, .worker = 0, .n_workers = 1};
        ps_command_t command = {0};
        psd_status_t rc = PSD_OK;

        (void)snprintf(name, sizeof name, "j%u", i);
        rc = ps_registry_plan_join(registry, &join, 4, &command, err);
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
        rc = ps_registry_plan_end(registry, i + 1, 0, PS_WORKER_LOST, 5, &command, err);
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
        if (i == 100 || i == PS_JOBS_ENDED_MAX) {
            ps_registry_destroy(&registry);
            registry = load_db(db);
        }
    }
    cr_assert_eq(ps_registry_n_jobs(registry), PS_JOBS_ENDED_MAX);
    cr_assert_eq(ps_registry_job_at(registry, 0)->id, 4);
    before = fixture_dump(registry);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
}

static void do_planned(ps_registry_db_t *db, ps_registry_t *registry, psd_status_t rc,
                       ps_command_t *command)
{
    cr_assert_eq(fixture_do(registry, rc, command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
}

/* A client took two slices and has done the first one: that one is remembered
 * after a load as well, and its row goes with the worker. Rows that a load left
 * out would stay for good, and not fit later. */
Test(registry_db_rows, a_slice_that_was_done_before_a_later_one_is_loaded)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_free_at) char *before = NULL;
    PSD_AUTO(ps_free_at) char *after = NULL;
    const ps_join_t join = {.job = "lr", .worker = 0, .n_workers = 1};
    ps_work_ask_t ask = {.job = 1, .queue = "input", .session = 5, .epoch = 1};
    ps_work_answer_t answer;
    ps_command_t command = {0};
    psd_status_t rc = PSD_OK;

    make_cluster(db, registry, NULL);
    rc = ps_registry_plan_join(registry, &join, 4, &command, err);
    do_planned(db, registry, rc, &command);
    rc = ps_registry_plan_start(registry, 1, 0, NULL, NULL, 0, 4, &command, err);
    do_planned(db, registry, rc, &command);
    rc = ps_registry_plan_queue(registry, 1, "input", 3, 2, 4, &command, err);
    do_planned(db, registry, rc, &command);
    for (ask.number = 1; ask.number <= 2; ask.number++) {
        rc = ps_registry_plan_work_next(registry, &ask, 4, &command, &answer, err);
        do_planned(db, registry, rc, &command);
    }
    rc = ps_registry_plan_work_done(registry, &ask, 4, &command, err);
    do_planned(db, registry, rc, &command);
    before = fixture_dump(registry);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    after = fixture_dump(registry);
    cr_assert_str_eq(before, after);
    cr_assert_eq(number_of("SELECT count(*) FROM slices_given"), 2);
    rc = ps_registry_plan_end(registry, 1, 0, PS_WORKER_LOST, 5, &command, err);
    do_planned(db, registry, rc, &command);
    cr_assert_eq(number_of("SELECT count(*) FROM slices_given"), 0);
    ps_registry_destroy(&registry);
    registry = load_db(db);
}

/* One random step of workers 0 and 1 of a job with a queue; what is refused is
 * part of it. */
static psd_status_t plan_work(ps_rng_t *rng, const ps_registry_t *registry, ps_command_t *command)
{
    const ps_job_t *job = ps_registry_job(registry, "lr");
    uint32_t id = job == NULL ? 0 : job->id;
    uint32_t worker = (uint32_t)ps_rng_below(rng, 2);
    const ps_join_t join = {.job = "lr", .worker = worker, .n_workers = 2};
    ps_work_ask_t ask = {.job = id,
                         .worker = worker,
                         .queue = "input",
                         .session = 1 + 2 * ps_rng_below(rng, 2) + worker,
                         .number = 1 + ps_rng_below(rng, 40),
                         .slice = (uint32_t)ps_rng_below(rng, 5),
                         .epoch = 1 + ps_rng_below(rng, 3)};
    ps_work_answer_t answer;

    switch (ps_rng_below(rng, 12)) {
    case 0:
        return ps_registry_plan_join(registry, &join, 4, command, NULL);
    case 1:
        return ps_registry_plan_end(registry, id, worker, PS_WORKER_LOST, 5, command, NULL);
    case 2:
        return ps_registry_plan_queue(registry, id, "input", 5, 0, 4, command, NULL);
    case 3:
    case 4:
        return ps_registry_plan_start(registry, id, worker, NULL, NULL, 0, 4, command, NULL);
    case 5:
    case 6:
    case 7:
        return ps_registry_plan_work_next(registry, &ask, 4, command, &answer, NULL);
    default:
        return ps_registry_plan_work_done(registry, &ask, 4, command, NULL);
    }
}

/* After each step the file is what memory is, also where psd was started again
 * before and goes on from the file. */
Test(registry_db_rows, work_goes_on_from_the_file)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_rng_t rng = {.state = 11};
    int n_given = 0;

    make_cluster(db, registry, NULL);
    for (int i = 0; i < 3000; i++) {
        PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = NULL;
        PSD_AUTO(ps_free_at) char *memory = NULL;
        PSD_AUTO(ps_free_at) char *disk = NULL;
        ps_command_t command = {0};

        if (plan_work(&rng, registry, &command) == PSD_OK && command.kind != 0) {
            n_given += command.kind == PS_COMMAND_WORK ? 1 : 0;
            do_planned(db, registry, PSD_OK, &command);
        }
        loaded = load_db(db);
        memory = fixture_dump(registry);
        disk = fixture_dump(loaded);
        cr_assert_str_eq(memory, disk, "step %d", i);
        if (ps_rng_below(&rng, 30) == 0) {
            ps_registry_destroy(&registry);
            registry = loaded;
            loaded = NULL;
        }
    }
    cr_assert_gt(n_given, 100, "%d", n_given);
}

/* ---- how much ---- */

static off_t wal_size(void)
{
    char path[PATH_MAX + 40];
    struct stat stats = {0};

    (void)snprintf(path, sizeof path, "%s-wal", file);
    cr_assert_eq(stat(path, &stats), 0);
    return stats.st_size;
}

/* One partition of a large table changes: a few pages are written, not the
 * table. */
Test(registry_db_rows, a_small_change_writes_little)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_command_done) ps_command_t change = {.kind = PS_COMMAND_COPIES};
    ps_table_spec_t spec = fixture_spec("big");
    ps_command_t command = {0};
    psd_status_t rc = PSD_OK;
    off_t before = 0;

    make_cluster(db, registry, NULL);
    spec.n_rows = 4096;
    spec.n_partitions = 4096;
    rc = ps_registry_plan_table(registry, &spec, 3, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
    before = wal_size();
    cr_assert_gt(before, 30 * 4096, "a large table takes pages");
    change.epoch = ps_registry_epoch(registry) + 1;
    change.changes = ps_alloc(1, sizeof *change.changes);
    change.n_changes = 1;
    change.changes[0] = (ps_change_t){
        .table = 1, .partition = 2000, .copies = ps_registry_table(registry, "big")->copies[2000]};
    change.changes[0].copies.epoch = change.epoch;
    cr_assert_eq(fixture_do(registry, PSD_OK, &change, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_leq(wal_size() - before, 10 * 4200);
}
