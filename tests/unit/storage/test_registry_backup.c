/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_backup.h: the registry as bytes, and a registry of bytes. */
#include "storage/registry/registry_backup.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "support/registry_db_test.h"

static ps_buffer_t backup;
static char other[PATH_MAX + 16]; /* a data directory that is not there */

static void begin(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;

    make_temp();
    (void)snprintf(other, sizeof other, "%s/other", temp.path);
    make_data();
    db = open_db();
    cr_assert_eq(ps_registry_backup(db, &backup, err), PSD_OK, "%s", psd_error_text(err));
}

static void end(void)
{
    ps_buffer_done(&backup);
    drop_temp();
}

TestSuite(registry_backup, .init = begin, .fini = end);

static ps_bytes_t bytes(void)
{
    return (ps_bytes_t){backup.data, backup.size};
}

static void assert_refused(ps_bytes_t given, psd_status_t status)
{
    struct stat looked;
    char path[PATH_MAX + 64];

    psd_error_clear(err);
    cr_assert_eq(ps_registry_restore(other, given, 9, err), status, "%s", psd_error_text(err));
    (void)snprintf(path, sizeof path, "%s/registry.db", other);
    cr_assert_neq(stat(path, &looked), 0);
    (void)snprintf(path, sizeof path, "%s/restore", other);
    cr_assert_neq(stat(path, &looked), 0);
}

/* A database without anything becomes what the backup holds, with the same
 * numbers, and stays so. */
Test(registry_backup, a_database_is_replaced_as_it_is)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *from = open_db();
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *wanted = load_db(from);
    PSD_AUTO(ps_registry_destroy) ps_registry_t *got = NULL;
    const ps_applied_t applied = ps_registry_db_applied(from);
    const ps_bytes_t cut = {backup.data, backup.size - 1};

    (void)snprintf(dir, sizeof dir, "%s", other);
    db = open_db();
    cr_assert_eq(ps_registry_db_replace(db, cut, err), PSD_FOREIGN);
    cr_assert_eq(ps_registry_db_replace(db, bytes(), err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(ps_registry_db_applied(db).index, applied.index);
    for (int life = 0; life < 2; life++) {
        ps_registry_destroy(&got);
        got = load_db(db);
        cr_assert_eq(ps_registry_hash(got), ps_registry_hash(wanted));
        ps_registry_db_close(&db);
        db = open_db();
    }
    /* Again, over what is there, and a command after it. */
    cr_assert_eq(ps_registry_db_replace(db, bytes(), err), PSD_OK, "%s", psd_error_text(err));
    ps_registry_destroy(&got);
    got = load_db(db);
    {
        ps_command_t note = ps_registry_plan_note(got, 9, "after it");

        cr_assert_eq(fixture_do(got, PSD_OK, &note, 9, store_in, db, err), PSD_OK);
    }
    cr_assert_eq(ps_registry_db_applied(db).index, applied.index + 1);
}

Test(registry_backup, what_is_restored_goes_on_with_numbers_of_its_own)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    const ps_table_t *table = NULL;
    uint64_t epoch = 0;
    uint64_t sessions = 0;
    size_t n = 0;

    db = open_db();
    registry = load_db(db);
    epoch = ps_registry_epoch(registry);
    sessions = ps_registry_old_sessions(registry);
    ps_registry_destroy(&registry);
    ps_registry_db_close(&db);

    cr_assert_eq(ps_registry_restore(other, bytes(), 9, err), PSD_OK, "%s", psd_error_text(err));
    (void)snprintf(dir, sizeof dir, "%s", other);
    db = open_db();
    registry = load_db(db);
    cr_assert_str_eq(ps_registry_cluster(registry, NULL), "psd");
    cr_assert_not_null(ps_registry_node(registry, "n0"));
    table = ps_registry_table(registry, "w");
    cr_assert_not_null(table);
    cr_assert_geq(ps_registry_epoch(registry), epoch + 1000);
    cr_assert_geq(ps_registry_old_sessions(registry), sessions + UINT32_MAX);
    cr_assert_eq(ps_registry_db_events(db, 0, 1, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 1);
    cr_assert_str_eq(rows[0].kind, "registry_restored");
    cr_assert_eq(rows[0].unix_ms, 9);
}

Test(registry_backup, one_that_is_there_is_kept)
{
    psd_error_clear(err);
    cr_assert_eq(ps_registry_restore(dir, bytes(), 9, err), PSD_INVALID);
    cr_assert(strstr(psd_error_text(err), "registry.db exists"));
    {
        ps_registry_db_t *db = open_db();

        psd_error_clear(err);
        cr_assert_eq(ps_registry_restore(dir, bytes(), 9, err), PSD_HELD);
        ps_registry_db_close(&db);
    }
}

/* SQLite would play the other registry's log into the new one. */
Test(registry_backup, what_is_left_of_another_registry_is_refused)
{
    static const char *const LEFT[] = {"registry.db", "registry.db-wal", "registry.db-shm",
                                       "registry-log"};

    cr_assert_eq(mkdir(other, 0700), 0);
    for (size_t i = 0; i < sizeof LEFT / sizeof LEFT[0]; i++) {
        struct stat looked;
        char path[PATH_MAX + 64];
        FILE *left = NULL;

        (void)snprintf(path, sizeof path, "%s/%s", other, LEFT[i]);
        left = fopen(path, "we");
        cr_assert_not_null(left);
        cr_assert_eq(fclose(left), 0);
        psd_error_clear(err);
        cr_assert_eq(ps_registry_restore(other, bytes(), 9, err), PSD_INVALID);
        cr_assert(strstr(psd_error_text(err), path));
        cr_assert(strstr(psd_error_text(err), "move this one away"));
        cr_assert_eq(unlink(path), 0);
        (void)snprintf(path, sizeof path, "%s/restore", other);
        cr_assert_neq(stat(path, &looked), 0);
    }
    psd_error_clear(err);
    cr_assert_eq(ps_registry_restore(other, bytes(), 9, err), PSD_OK, "%s", psd_error_text(err));
}

static int keep_log(sqlite3 *db, char **text, const void *api)
{
    (void)text;
    (void)api;
    return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* The database alone would be the backup without what was changed in it. */
Test(registry_backup, a_log_that_is_not_emptied_is_an_error)
{
    /* SQLite's own type for what takes arguments. */
    cr_assert_eq(sqlite3_auto_extension((void (*)(void))keep_log), SQLITE_OK);
    assert_refused(bytes(), PSD_IO);
    cr_assert(strstr(psd_error_text(err), "restore/registry.db-wal has"));
    sqlite3_reset_auto_extension();
    psd_error_clear(err);
    cr_assert_eq(ps_registry_restore(other, bytes(), 9, err), PSD_OK, "%s", psd_error_text(err));
}

Test(registry_backup, every_flip_and_every_cut_is_noticed)
{
    ps_rng_t rng = {.state = 7};

    for (int i = 0; i < 200; i++) {
        size_t at = (size_t)ps_rng_below(&rng, backup.size);
        uint8_t bit = (uint8_t)(1U << ps_rng_below(&rng, 8));

        backup.data[at] ^= bit;
        psd_error_clear(err);
        cr_assert_neq(ps_registry_backup_check(bytes(), err), PSD_OK);
        backup.data[at] ^= bit;
        cr_assert_neq(ps_registry_backup_check((ps_bytes_t){backup.data, at}, NULL), PSD_OK);
    }
    cr_assert_eq(ps_registry_backup_check(bytes(), NULL), PSD_OK);
    backup.data[100] ^= 1;
    assert_refused(bytes(), PSD_DAMAGED);
    backup.data[100] ^= 1;
    assert_refused((ps_bytes_t){backup.data, backup.size - 1}, PSD_FOREIGN);
    assert_refused((ps_bytes_t){NULL, 0}, PSD_FOREIGN);
}

Test(registry_backup, a_backup_of_no_cluster_is_none)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t empty = {0};

    (void)snprintf(dir, sizeof dir, "%s/empty", temp.path);
    db = open_db();
    cr_assert_eq(ps_registry_backup(db, &empty, err), PSD_OK);
    assert_refused((ps_bytes_t){empty.data, empty.size}, PSD_FOREIGN);
}

Test(registry_backup, what_an_interrupted_one_left_is_in_nobodys_way)
{
    char path[PATH_MAX + 64];
    FILE *left = NULL;

    (void)snprintf(path, sizeof path, "%s", other);
    cr_assert_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/restore", other);
    cr_assert_eq(mkdir(path, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/restore/registry.db", other);
    left = fopen(path, "we");
    cr_assert_not_null(left);
    (void)fputs("half a file", left);
    cr_assert_eq(fclose(left), 0);
    (void)snprintf(path, sizeof path, "%s/restore/registry.db-wal", other);
    left = fopen(path, "we");
    cr_assert_not_null(left);
    (void)fputs("half a log", left);
    cr_assert_eq(fclose(left), 0);
    cr_assert_eq(ps_registry_restore(other, bytes(), 9, err), PSD_OK, "%s", psd_error_text(err));
}
