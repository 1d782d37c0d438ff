/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and dumps registries. */
#include "same_rows.h"

#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "storage/registry/registry_shelf.h"
#include "support/check.h"

static const ps_registry_args_t LIMITS = {.default_partitions = 4,
                                          .lost_after_ms = 1000,
                                          .join_within_ms = 1000,
                                          .tables_max = 100000,
                                          .jobs_max = 1000,
                                          .nodes_max = 100};

static bool load(const char *dir, uint64_t *ret_index, uint64_t *ret_hash)
{
    psd_error_t *err = psd_error_new();
    ps_registry_db_t *db = NULL;
    ps_registry_t *registry = NULL;

    CHECK_OK(ps_registry_new(&LIMITS, &registry, err), err);
    CHECK_OK(ps_registry_db_open(dir, &db, err), err);
    CHECK_OK(ps_registry_db_load(db, registry, 1, err), err);
    *ret_index = ps_registry_db_applied(db).index;
    *ret_hash = ps_registry_hash(registry);
    ps_registry_destroy(&registry);
    ps_registry_db_close(&db);
    psd_error_destroy(&err);
    return true;
}

bool same_rows_applied(const char *dir, uint64_t *ret_index)
{
    uint64_t hash = 0;

    return load(dir, ret_index, &hash);
}

/* ---- the same place ---- */

typedef struct part {
    ps_registry_db_t *db;
    ps_registry_t *registry;
    uint64_t until; /* entries up to this one are committed */
} part_t;

static psd_status_t apply(void *context, const ps_registry_entry_t *entry, psd_error_t *err)
{
    part_t *part = context;
    const ps_shelf_t shelf = ps_shelf_of(part->db);

    return entry->index > part->until ? PSD_OK
                                      : ps_shelf_apply(part->registry, &shelf, entry, 1, err);
}

static bool read_rest(part_t *part, const char *other, psd_error_t *err)
{
    char path[4096];
    ps_registry_log_args_t args = {.disk = ps_disk_real(), .dir = path, .segment_bytes = 1 << 20};
    ps_registry_log_t *log = NULL;
    uint64_t next = ps_registry_db_applied(part->db).index + 1;
    psd_status_t rc = PSD_OK;

    (void)snprintf(path, sizeof path, "%.4000s/registry-log", other);
    CHECK(ps_registry_cluster(part->registry, &args.cluster) != NULL);
    CHECK_OK(ps_registry_log_open(&args, &log, err), err);
    CHECK(log != NULL);
    if (next < ps_registry_log_first(log)) {
        (void)fprintf(stderr, "%s begins at entry %" PRIu64 ", and %" PRIu64 " is needed\n", path,
                      ps_registry_log_first(log), next);
        rc = PSD_DAMAGED;
    } else {
        rc = ps_registry_log_read(log, next, apply, part, err);
    }
    ps_registry_log_close(&log);
    CHECK_OK(rc, err);
    return true;
}

bool same_rows_bring(const char *dir, const char *other)
{
    psd_error_t *err = psd_error_new();
    part_t part = {.db = NULL};
    uint64_t hash = 0;
    bool good = load(other, &part.until, &hash);

    CHECK_OK(ps_registry_new(&LIMITS, &part.registry, err), err);
    CHECK_OK(ps_registry_db_open(dir, &part.db, err), err);
    CHECK_OK(ps_registry_db_load(part.db, part.registry, 1, err), err);
    if (good && ps_registry_db_applied(part.db).index < part.until) {
        good = read_rest(&part, other, err);
    }
    ps_registry_destroy(&part.registry);
    ps_registry_db_close(&part.db);
    psd_error_destroy(&err);
    return good;
}

/* ---- the same rows ---- */

/* A line of one row, in a fresh text. */
static char *row_text(sqlite3_stmt *rows)
{
    sqlite3_str *text = sqlite3_str_new(NULL);

    for (int i = 0; i < sqlite3_column_count(rows); i++) {
        const unsigned char *bytes = sqlite3_column_blob(rows, i);
        int n = sqlite3_column_bytes(rows, i);

        if (sqlite3_column_type(rows, i) != SQLITE_BLOB) {
            sqlite3_str_appendf(text, "|%s", sqlite3_column_text(rows, i));
            continue;
        }
        sqlite3_str_appendall(text, "|x");
        for (int k = 0; k < n; k++) {
            sqlite3_str_appendf(text, "%02x", bytes[k]);
        }
    }
    return sqlite3_str_finish(text);
}

/* All rows of a table, in the order of its columns. */
static sqlite3_stmt *open_rows(sqlite3 *db, const char *table)
{
    char *sql = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY 1, 2", table);
    sqlite3_stmt *rows = NULL;

    if (sqlite3_prepare_v2(db, sql, -1, &rows, NULL) != SQLITE_OK) {
        (void)fprintf(stderr, "%s: %s\n", sql, sqlite3_errmsg(db));
    }
    sqlite3_free(sql);
    return rows;
}

static bool compare_table(sqlite3 *first, sqlite3 *second, const char *table)
{
    sqlite3_stmt *rows[2] = {open_rows(first, table), open_rows(second, table)};
    bool same = rows[0] != NULL && rows[1] != NULL;
    bool more = same;

    while (same && more) {
        more = sqlite3_step(rows[0]) == SQLITE_ROW;
        same = (sqlite3_step(rows[1]) == SQLITE_ROW) == more;
        if (same && more) {
            char *one = row_text(rows[0]);
            char *two = row_text(rows[1]);

            same = strcmp(one, two) == 0;
            if (!same) {
                (void)fprintf(stderr, "%s: %s\nis not %s\n", table, one, two);
            }
            sqlite3_free(one);
            sqlite3_free(two);
        }
    }
    if (!same) {
        (void)fprintf(stderr, "table %s of the registry is not the same\n", table);
    }
    (void)sqlite3_finalize(rows[0]);
    (void)sqlite3_finalize(rows[1]);
    return same;
}

static bool open_file(const char *dir, sqlite3 **ret)
{
    char path[4096];

    (void)snprintf(path, sizeof path, "%.4000s/registry.db", dir);
    CHECK(sqlite3_open_v2(path, ret, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
    return true;
}

static bool compare_files(const char *dir, const char *other)
{
    sqlite3 *files[2] = {NULL, NULL};
    sqlite3_stmt *tables = NULL;
    bool same = open_file(dir, &files[0]) && open_file(other, &files[1]);

    CHECK(same && sqlite3_prepare_v2(files[0],
                                     "SELECT name FROM sqlite_master WHERE type = 'table'"
                                     " AND name NOT LIKE 'sqlite_%'",
                                     -1, &tables, NULL) == SQLITE_OK);
    while (sqlite3_step(tables) == SQLITE_ROW) {
        same =
            compare_table(files[0], files[1], (const char *)sqlite3_column_text(tables, 0)) && same;
    }
    (void)sqlite3_finalize(tables);
    (void)sqlite3_close(files[0]);
    (void)sqlite3_close(files[1]);
    return same;
}

bool same_rows_compare(const char *dir, const char *other)
{
    uint64_t index[2] = {0, 0};
    uint64_t hash[2] = {0, 0};

    CHECK(load(dir, &index[0], &hash[0]) && load(other, &index[1], &hash[1]));
    (void)printf("index %" PRIu64 ", hash %016" PRIx64 "; index %" PRIu64 ", hash %016" PRIx64 "\n",
                 index[0], hash[0], index[1], hash[1]);
    CHECK(index[0] == index[1] && hash[0] == hash[1] && hash[0] != 0);
    return compare_files(dir, other);
}
