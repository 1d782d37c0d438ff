/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A registry's file with rows or bytes that are not what psd wrote
 *
 * The first byte chooses: even, the rest are edits of rows (which table and
 * column, which row, what value); odd, edits of bytes anywhere in the file. The
 * file is then refused with a reason, or it loads; what loads can be used, and
 * loads again as the same.
 */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include "base/cursor.h"
#include "protocol/registry/registry_work.h"
#include "storage/disk/page_sums.h"
#include "storage/registry/registry_db.h"
#include "support/registry_fixture.h"
#include "support/temp_dir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EDITS_MAX 16
#define FILE_MAX (256 * 1024)

static temp_dir_t temp;
static char dir[PATH_MAX + 16];
static char file[PATH_MAX + 32];
static uint8_t model[FILE_MAX]; /* a good file */
static size_t model_size;

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Columns, and the column by which a row of the table is chosen. */
static const struct {
    const char *table;
    const char *key;
    const char *column;
} columns[] = {
    {"cluster", "id", "name"},
    {"cluster", "id", "uuid"},
    {"cluster", "id", "epoch"},
    {"cluster", "id", "sessions"},
    {"cluster", "id", "last_table"},
    {"cluster", "id", "last_job"},
    {"nodes", "id", "id"},
    {"nodes", "id", "name"},
    {"nodes", "id", "incarnation"},
    {"nodes", "id", "control"},
    {"nodes", "id", "state"},
    {"nodes", "id", "weight"},
    {"shards", "shard", "shard"},
    {"shards", "shard", "tcp"},
    {"shards", "shard", "ipc"},
    {"tables", "id", "id"},
    {"tables", "id", "name"},
    {"tables", "id", "created_unix_ms"},
    {"tables", "id", "rows_lost"},
    {"tables", "id", "n_rows"},
    {"tables", "id", "n_cols"},
    {"tables", "id", "type"},
    {"tables", "id", "row_format"},
    {"tables", "id", "keys"},
    {"tables", "id", "updater"},
    {"tables", "id", "init"},
    {"tables", "id", "seed"},
    {"tables", "id", "n_partitions"},
    {"tables", "id", "n_col_slices"},
    {"tables", "id", "partition_by"},
    {"tables", "id", "replicas"},
    {"tables", "id", "ack"},
    {"tables", "id", "allow_nonfinite"},
    {"tables", "id", "filter"},
    {"partitions", "partition", "table_id"},
    {"partitions", "partition", "partition"},
    {"partitions", "partition", "epoch"},
    {"partitions", "partition", "fenced"},
    {"copies", "partition", "table_id"},
    {"copies", "partition", "partition"},
    {"copies", "partition", "place"},
    {"copies", "partition", "node_id"},
    {"copies", "partition", "shard"},
    {"copies", "partition", "state"},
    {"copies", "partition", "leaving"},
    {"copies", "partition", "dropped"},
    {"jobs", "id", "id"},
    {"jobs", "id", "name"},
    {"jobs", "id", "max_delay"},
    {"jobs", "id", "version"},
    {"jobs", "id", "stopped"},
    {"jobs", "id", "n_expected"},
    {"jobs", "id", "ended"},
    {"workers", "worker", "job_id"},
    {"workers", "worker", "worker"},
    {"workers", "worker", "state"},
    {"workers", "worker", "n_members"},
    {"workers", "worker", "joins"},
    {"workers", "worker", "start"},
    {"job_tables", "place", "job_id"},
    {"job_tables", "place", "place"},
    {"job_tables", "place", "table_id"},
    {"queues", "queue", "queue"},
    {"queues", "queue", "name"},
    {"queues", "queue", "n_slices"},
    {"queues", "queue", "n_epochs"},
    {"queues", "queue", "epoch"},
    {"slices_done", "slice", "slice"},
    {"slices_given", "slice", "session"},
    {"slices_given", "slice", "ask"},
    {"slices_given", "slice", "epoch"},
    {"slices_given", "slice", "slice"},
    {"slices_given", "slice", "worker"},
    {"slices_given", "slice", "joins"},
    {"slices_given", "slice", "done"},
    {"principals", "id", "id"},
    {"principals", "id", "name"},
    {"principals", "id", "public_key"},
    {"principals", "id", "uid"},
    {"principals", "id", "denied"},
    {"principals", "id", "epoch"},
    {"principals", "id", "old_key"},
    {"principals", "id", "old_until_unix_ms"},
    {"rules", "place", "principal_id"},
    {"rules", "place", "place"},
    {"rules", "place", "role"},
    {"rules", "place", "tables"},
    {"rules", "place", "jobs"},
};
#define N_COLUMNS (sizeof columns / sizeof *columns)

static const char *const words[] = {
    "i32",
    "i64",
    "f32",
    "f64",
    "dense",
    "sparse",
    "auto",
    "range",
    "hash",
    "memory",
    "replica",
    "disk",
    "add",
    "assign",
    "sgd",
    "adagrad:alpha=0.5",
    "ftrl:l1=1",
    "zero",
    "normal:1,2",
    "uniform:-1,1",
    "constant:nan",
    "list:1,2,3",
    "list:",
    "list:50,40,60",
    "expected",
    "joining",
    "running",
    "finished",
    "lost",
    "default",
    "",
    "tcp://a:1",
    "sgd:alpha=",
    "uniform:1e999",
    ".",
    "sgd:alpha=0x1p3",
    "primary",
    "in_sync",
    "catching_up",
    "kept",
    "draining",
    "admin",
    "job",
    "*",
};
#define N_WORDS (sizeof words / sizeof *words)

static psd_status_t store_in(void *context, const ps_registry_t *registry,
                             const ps_command_t *command, psd_error_t *err)
{
    return ps_registry_db_store(context, registry, command, ps_registry_db_next(context), err);
}

static ps_registry_t *new_registry(void)
{
    ps_registry_t *registry = NULL;
    ps_registry_args_t args = fixture_args();

    check(ps_registry_new(&args, &registry, NULL) == PSD_OK);
    return registry;
}

static void make_jobs(ps_registry_db_t *db, ps_registry_t *registry)
{
    ps_command_t command = {0};

    for (uint32_t i = 0; i < 4; i++) {
        ps_join_t join = {.job = i < 3 ? "lr" : "mf",
                          .worker = i,
                          .n_workers = i < 3 ? 3 : 4,
                          .max_delay = i < 3 ? 0 : 2};
        psd_status_t rc = ps_registry_plan_join(registry, &join, 4, &command, NULL);

        check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
        rc = ps_registry_plan_job_table(registry, 1, 1 + i % 2, 4, &command, NULL);
        check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    }
}

/* A queue with a slice that is done and one that is not. */
static void make_work(ps_registry_db_t *db, ps_registry_t *registry)
{
    ps_command_t command = {0};
    ps_work_ask_t ask = {.job = 1, .queue = "input", .session = 5, .epoch = 1};
    ps_work_answer_t answer;
    psd_status_t rc = ps_registry_plan_start(registry, 1, 0, NULL, NULL, 0, 4, &command, NULL);

    check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    rc = ps_registry_plan_queue(registry, 1, "input", 3, 2, 4, &command, NULL);
    check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    for (ask.number = 1; ask.number <= 2; ask.number++) {
        rc = ps_registry_plan_work_next(registry, &ask, 4, &command, &answer, NULL);
        check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    }
    rc = ps_registry_plan_work_done(registry, &ask, 4, &command, NULL);
    check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
}

static void make_principals(ps_registry_db_t *db, ps_registry_t *registry)
{
    static const ps_role_t roles[] = {PS_ROLE_ADMIN, PS_ROLE_JOB, PS_ROLE_READER};

    for (uint32_t i = 0; i < 3; i++) {
        ps_principal_t principal = {.uid = i, .denied = i == 2, .n_rules = 2};
        ps_command_t command = {0};
        psd_status_t rc = PSD_OK;

        (void)snprintf(principal.name, sizeof principal.name, "p%u", i);
        for (uint32_t j = 0; j < 2; j++) {
            principal.rules[j] = (ps_rule_t){roles[(i + j) % 3], "*", "*"};
        }
        rc = ps_registry_plan_principal(registry, &principal, 4, &command, NULL);
        check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    }
}

static void make_model(ps_registry_db_t *db, ps_registry_t *registry)
{
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 7, 2, shards);
    ps_id_t uuid = fixture_uuid();
    psd_status_t rc = PSD_OK;

    rc = ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, NULL);
    check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    rc = ps_registry_plan_node(registry, &node, 2, &command, NULL);
    check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
    for (int i = 0; i < 2; i++) {
        ps_table_spec_t spec = fixture_spec(i == 0 ? "w" : "v");

        check(i == 0 || ps_partition_by_parse("list:5,60", &spec, NULL) == PSD_OK);
        rc = ps_registry_plan_table(registry, &spec, 3, &command, NULL);
        check(fixture_do(registry, rc, &command, 1, store_in, db, NULL) == PSD_OK);
        ps_table_spec_done(&spec);
    }
    make_jobs(db, registry);
    make_work(db, registry);
    make_principals(db, registry);
}

static void drop_temp(void)
{
    temp_dir_drop(&temp);
}

/* In memory where there is such a place: each run opens a file that flushes. */
static void set_up(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = new_registry();
    int fd = -1;
    ssize_t size = 0;

    if (access("/dev/shm", W_OK) == 0) {
        check(setenv("TMPDIR", "/dev/shm", 1) == 0);
    }
    check(temp_dir_make(&temp));
    check(atexit(drop_temp) == 0);
    (void)snprintf(dir, sizeof dir, "%s/data", temp.path);
    (void)snprintf(file, sizeof file, "%s/registry.db", dir);
    check(ps_registry_db_open(dir, &db, NULL) == PSD_OK);
    make_model(db, registry);
    ps_registry_db_close(&db);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    size = read(fd, model, sizeof model);
    check(size > 0 && size < FILE_MAX);
    model_size = (size_t)size;
    (void)close(fd);
}

static void write_file(const uint8_t *bytes, size_t size)
{
    static const char *const beside[] = {"-wal", "-shm", "-journal"};
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    check(fd >= 0);
    check(write(fd, bytes, size) == (ssize_t)size);
    (void)close(fd);
    for (size_t i = 0; i < 3; i++) {
        char path[PATH_MAX + 64];

        (void)snprintf(path, sizeof path, "%s%s", file, beside[i]);
        (void)unlink(path);
    }
}

static void edit_bytes(ps_cursor_t *cursor)
{
    static uint8_t bytes[FILE_MAX];

    memcpy(bytes, model, model_size);
    for (int i = 0; i < EDITS_MAX && cursor->rest.size >= 4; i++) {
        uint32_t at = ps_cursor_u16(cursor);

        at = (at << 8 | ps_cursor_u8(cursor)) % (uint32_t)model_size;
        bytes[at] = ps_cursor_u8(cursor);
    }
    if (model_size > 0 && (bytes[model_size - 1] & 1) == 0) {
        ps_page_sums_put(bytes, model_size); /* so that SQLite sees the rest */
    }
    write_file(bytes, model_size);
}

static void bind_value(sqlite3_stmt *stmt, ps_cursor_t *cursor)
{
    uint8_t kind = ps_cursor_u8(cursor);
    uint8_t small = ps_cursor_u8(cursor);
    ps_bytes_t text;

    switch (kind % 5) {
    case 0:
        (void)sqlite3_bind_int64(stmt, 1, (int8_t)small);
        break;
    case 1:
        (void)sqlite3_bind_int64(stmt, 1, ps_cursor_i64(cursor));
        break;
    case 2:
        (void)sqlite3_bind_text(stmt, 1, words[small % N_WORDS], -1, SQLITE_STATIC);
        break;
    case 3:
        text = ps_cursor_take(cursor, small < cursor->rest.size ? small : cursor->rest.size);
        (void)sqlite3_bind_text(stmt, 1, (const char *)text.data, (int)text.size, SQLITE_TRANSIENT);
        break;
    default:
        text = ps_cursor_take(cursor, small < cursor->rest.size ? small : cursor->rest.size);
        (void)sqlite3_bind_blob(stmt, 1, text.data, (int)text.size, SQLITE_TRANSIENT);
        break;
    }
}

/* One edit; SQLite refuses what its types do not allow. */
static void edit_row(sqlite3 *db, ps_cursor_t *cursor)
{
    uint8_t which = ps_cursor_u8(cursor);
    uint8_t row = ps_cursor_u8(cursor);
    size_t column = which % N_COLUMNS;
    bool removes = row >= 240;
    char sql[256];
    sqlite3_stmt *stmt = NULL;

    if (removes) {
        (void)snprintf(sql, sizeof sql, "DELETE FROM %s WHERE %s = ?2", columns[column].table,
                       columns[column].key);
    } else {
        (void)snprintf(sql, sizeof sql, "UPDATE %s SET %s = ?1 WHERE %s = ?2",
                       columns[column].table, columns[column].column, columns[column].key);
    }
    check(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
    bind_value(stmt, cursor);
    (void)sqlite3_bind_int64(stmt, 2, row % 8);
    (void)sqlite3_step(stmt);
    (void)sqlite3_finalize(stmt);
}

static void edit_rows(ps_cursor_t *cursor)
{
    sqlite3 *db = NULL;

    write_file(model, model_size);
    check(sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE,
                          ps_page_sums_vfs()) == SQLITE_OK);
    check(sqlite3_exec(db,
                       "PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints"
                       " = ON",
                       NULL, NULL, NULL) == SQLITE_OK);
    for (int i = 0; i < EDITS_MAX && cursor->rest.size > 0; i++) {
        edit_row(db, cursor);
    }
    check(sqlite3_close(db) == SQLITE_OK);
}

/* What has loaded can be used: a node starts, its jobs are lost, a table is
 * made. */
static void use(ps_registry_db_t *db, ps_registry_t *registry, psd_error_t *err)
{
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 0x1234567, 3, shards);
    ps_table_spec_t spec = fixture_spec("fresh");
    psd_status_t rc = ps_registry_plan_node(registry, &node, 9, &command, err);

    if (fixture_do(registry, rc, &command, 1, store_in, db, err) != PSD_OK) {
        return;
    }
    for (int i = 0; i < 4; i++) {
        rc = ps_registry_plan_loss(registry, 9, &command, err);
        if (fixture_do(registry, rc, &command, 1, store_in, db, err) != PSD_OK) {
            return;
        }
    }
    rc = ps_registry_plan_table(registry, &spec, 9, &command, err);
    (void)fixture_do(registry, rc, &command, 1, store_in, db, err);
}

static void check_same(ps_registry_db_t *db, const ps_registry_t *registry)
{
    PSD_AUTO(ps_registry_destroy) ps_registry_t *again = new_registry();
    PSD_AUTO(ps_free_at) char *first = fixture_dump(registry);
    PSD_AUTO(ps_free_at) char *second = NULL;

    check(ps_registry_db_load(db, again, 1, NULL) == PSD_OK);
    second = fixture_dump(again);
    check(first != NULL && second != NULL && strcmp(first, second) == 0);
}

static void check_refused(psd_status_t rc, const psd_error_t *err)
{
    check(rc == PSD_DAMAGED || rc == PSD_FOREIGN || rc == PSD_IO);
    check(psd_error_status(err) == rc && psd_error_text(err)[0] != '\0');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = new_registry();
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, size});
    psd_status_t rc = PSD_OK;
    bool rows = ps_cursor_u8(&cursor) % 2 == 0;

    if (model_size == 0) {
        set_up();
    }
    if (rows) {
        edit_rows(&cursor);
    } else {
        edit_bytes(&cursor);
    }
    rc = ps_registry_db_open(dir, &db, err);
    if (rc == PSD_OK) {
        rc = ps_registry_db_load(db, registry, 1, err);
    }
    if (rc != PSD_OK) {
        check_refused(rc, err);
        return 0;
    }
    check_same(db, registry);
    use(db, registry, err);
    if (rows) { /* what is damaged below SQL may show late */
        check_same(db, registry);
    }
    return 0;
}
