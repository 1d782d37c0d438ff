/* SPDX-License-Identifier: Apache-2.0 */
/* registry_db_test - shared by the Criterion tests of the registry's
 * database: a data directory for a test, opened, loaded, and spoilt. */
#ifndef PS_TESTS_REGISTRY_DB_TEST_H
#define PS_TESTS_REGISTRY_DB_TEST_H

#include <criterion/criterion.h>
#include <sqlite3.h>

#include "storage/disk/page_sums.h"
#include "storage/registry/registry_db.h"
#include "support/registry_fixture.h"
#include "support/temp_dir.h"

static psd_error_t *err;
static temp_dir_t temp;
static char dir[PATH_MAX + 16];  /* the data directory, not there yet */
static char file[PATH_MAX + 32]; /* its registry.db */

static inline void make_temp(void)
{
    err = psd_error_new();
    cr_assert_not_null(err);
    cr_assert(temp_dir_make(&temp));
    (void)snprintf(dir, sizeof dir, "%s/data", temp.path);
    (void)snprintf(file, sizeof file, "%s/registry.db", dir);
}

static inline void drop_temp(void)
{
    temp_dir_drop(&temp);
    psd_error_destroy(&err);
}

static inline psd_status_t store_in(void *context, const ps_registry_t *registry,
                                    const ps_command_t *command, psd_error_t *error)
{
    return ps_registry_db_store(context, registry, command, ps_registry_db_next(context), error);
}

static inline ps_registry_db_t *open_db(void)
{
    ps_registry_db_t *db = NULL;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_db_open(dir, &db, err), PSD_OK, "%s", psd_error_text(err));
    return db;
}

static inline ps_registry_t *load_db(ps_registry_db_t *db)
{
    ps_registry_t *registry = NULL;
    ps_registry_args_t args = fixture_args();

    args.copies_max = FIXTURE_COPIES_MAX;
    psd_error_clear(err);
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    cr_assert_eq(ps_registry_db_load(db, registry, 1, err), PSD_OK, "%s", psd_error_text(err));
    return registry;
}

/* Makes a cluster with node n0, and a table when it has a name. */
static inline void make_cluster(ps_registry_db_t *db, ps_registry_t *registry, const char *table)
{
    ps_command_t command = {0};
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("n0", 7, 2, shards);
    ps_id_t uuid = fixture_uuid();
    psd_status_t rc = PSD_OK;

    rc = ps_registry_plan_cluster(registry, "psd", &uuid, 1, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    rc = ps_registry_plan_node(registry, &node, 2, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    if (table != NULL) {
        ps_table_spec_t spec = fixture_spec(table);

        rc = ps_registry_plan_table(registry, &spec, 3, &command, err);
        cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    }
}

/* A data directory with a cluster and table w, closed again. */
static inline void make_data(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

    make_cluster(db, registry, "w");
}

/* Does what psd would never do to its file; also resets the number of
 * commits. */
static inline void run_sql(const char *sql)
{
    sqlite3 *db = NULL;
    char *text = NULL;
    char note[PATH_MAX + 64];

    (void)snprintf(note, sizeof note, "%s/registry.commits", dir);
    (void)unlink(note);

    cr_assert_eq(
        sqlite3_open_v2(file, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, ps_page_sums_vfs()),
        SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, &text), SQLITE_OK, "%s: %s", sql, text);
    cr_assert_eq(sqlite3_close(db), SQLITE_OK);
}

static inline void assert_open_fails(psd_status_t status, const char *says)
{
    ps_registry_db_t *db = NULL;

    psd_error_clear(err);
    cr_assert_eq(ps_registry_db_open(dir, &db, err), status, "%s: %s", says, psd_error_text(err));
    cr_assert_eq(psd_error_status(err), status);
    cr_assert_null(db);
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s", psd_error_text(err));
}

static inline void assert_load_fails(const char *sql, const char *says)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_registry_args_t args = fixture_args();

    run_sql(sql);
    db = open_db();
    cr_assert_eq(ps_registry_new(&args, &registry, err), PSD_OK);
    cr_assert_eq(ps_registry_db_load(db, registry, 1, err), PSD_DAMAGED, "%s", sql);
    cr_assert_eq(psd_error_status(err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), says), "%s: %s", sql, psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), "registry.db: table "), "%s",
                       psd_error_text(err));
}
#endif
