/* SPDX-License-Identifier: Apache-2.0 */
/* storage/registry/registry_db.h: the place of each command is stored with it,
 * as are the members and what requests have changed. */
#include <unistd.h>

#include "protocol/registry/registry_rows.h"
#include "storage/disk/commit_note.h"
#include "support/registry_db_test.h"

TestSuite(registry_db_place, .init = make_temp, .fini = drop_temp);

static psd_status_t store_at(ps_registry_db_t *db, ps_registry_t *registry, ps_command_t *command,
                             ps_applied_t at)
{
    psd_status_t rc = ps_registry_try(registry, command, 1, err);

    cr_assert_eq(rc, PSD_OK);
    psd_error_clear(err);
    rc = ps_registry_db_store(db, registry, command, at, err);
    if (rc == PSD_OK) {
        ps_registry_keep(registry);
    } else {
        ps_registry_undo(registry);
    }
    return rc;
}

static void assert_applied(const ps_registry_db_t *db, uint64_t index, uint64_t term)
{
    ps_applied_t at = ps_registry_db_applied(db);

    cr_assert_eq(at.index, index);
    cr_assert_eq(at.term, term);
}

Test(registry_db_place, a_single_registry_counts)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();

    assert_applied(db, 0, 0);
    ps_registry_db_close(&db);
    make_data();
    db = open_db();
    assert_applied(db, 3, 0);
    cr_assert_eq(ps_registry_db_next(db).index, 4);
}

Test(registry_db_place, only_what_comes_after_is_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_free_at) ps_event_row_t *rows = NULL;
    static const ps_applied_t bad[] = {{3, 0}, {2, 9}, {0, 0}, {UINT64_MAX, 1}, {9, UINT64_MAX}};
    ps_command_t note = {0};
    uint64_t hash = 0;
    size_t n = 0;

    make_cluster(db, registry, "w");
    note = ps_registry_plan_note(registry, 1, "a note");
    hash = ps_registry_hash(registry);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_assert_eq(store_at(db, registry, &note, bad[i]), PSD_INVALID);
        cr_assert_not_null(strstr(psd_error_text(err), "does not come after index 3 of term 0"));
    }
    assert_applied(db, 3, 0);
    cr_assert_eq(store_at(db, registry, &note, (ps_applied_t){17, 4}), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(store_at(db, registry, &note, (ps_applied_t){18, 3}), PSD_INVALID, "a lower term");
    cr_assert_eq(ps_registry_hash(registry), hash);
    ps_registry_db_close(&db);
    db = open_db();
    assert_applied(db, 17, 4);
    cr_assert_eq(ps_registry_db_events(db, 0, 10, &rows, &n, err), PSD_OK);
    cr_assert_eq(n, 4);
}

/* What a database that is opened now has. */
static uint64_t stored_hash(void)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

    return ps_registry_hash(registry);
}

static ps_command_t outcome(const ps_registry_t *registry, uint64_t request)
{
    ps_command_t note = ps_registry_plan_note(registry, 1, "a note");

    note.session = 2;
    note.request = request;
    return note;
}

Test(registry_db_place, a_group_is_stored_as_one)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    uint64_t before = 0;
    uint64_t after = 0;

    make_cluster(db, registry, "w");
    before = ps_registry_hash(registry);
    cr_assert_eq(ps_registry_db_group(db, err), PSD_OK);
    cr_assert_eq(ps_registry_db_group(db, err), PSD_INVALID, "there is one");
    psd_error_clear(err);
    for (uint64_t i = 4; i < 7; i++) {
        ps_command_t note = outcome(registry, i);

        cr_assert_eq(store_at(db, registry, &note, (ps_applied_t){i, 1}), PSD_OK);
    }
    assert_applied(db, 6, 1);
    after = ps_registry_hash(registry);
    cr_assert_neq(after, before);
    cr_assert_eq(ps_registry_db_group_keep(db, err), PSD_OK);
    cr_assert_not(ps_registry_db_is_group(db));
    ps_registry_db_close(&db);
    cr_assert_eq(stored_hash(), after);
    db = open_db();
    assert_applied(db, 6, 1);
}

/* It is dropped, or psd ends, or one of its commands does not get in. */
Test(registry_db_place, a_group_is_stored_as_a_whole_or_not)
{
    for (int end = 0; end < 3; end++) {
        PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
        PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
        ps_command_t note = {0};
        uint64_t before = 0;

        if (end == 0) {
            make_cluster(db, registry, "w");
        }
        before = ps_registry_hash(registry);
        cr_assert_eq(ps_registry_db_group(db, err), PSD_OK);
        for (uint64_t i = 4; i < 7; i++) {
            note = outcome(registry, i);
            cr_assert_eq(store_at(db, registry, &note, (ps_applied_t){i, 1}), PSD_OK);
        }
        note = outcome(registry, 7);
        if (end == 0) {
            ps_registry_db_group_drop(db);
        } else if (end == 1) {
            cr_assert_eq(store_at(db, registry, &note, (ps_applied_t){6, 1}), PSD_INVALID);
            psd_error_clear(err);
        } else {
            ps_registry_db_close(&db);
            db = open_db();
        }
        cr_assert_not(ps_registry_db_is_group(db));
        assert_applied(db, 3, 0);
        ps_registry_destroy(&registry);
        registry = load_db(db);
        cr_assert_eq(ps_registry_hash(registry), before, "end %d", end);
        ps_registry_db_close(&db);
        cr_assert_eq(stored_hash(), before, "end %d", end);
    }
}

Test(registry_db_place, members_have_a_place_of_their_own)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    ps_registry_member_t members[PS_REGISTRY_MEMBERS_MAX] = {{9, "b", PS_ROLE_STANDBY, 5},
                                                             {INT64_MAX, "a", PS_ROLE_VOTER, 5}};
    ps_registry_member_t got[PS_REGISTRY_MEMBERS_MAX];
    size_t n = 7;

    cr_assert_eq(ps_registry_db_store_members(db, members, 2, (ps_applied_t){1, 1}, err),
                 PSD_DAMAGED, "there is no cluster");
    psd_error_clear(err);
    make_cluster(db, registry, "w");
    cr_assert_eq(ps_registry_db_members(db, got, &n, err), PSD_OK);
    cr_assert_eq(n, 0);
    cr_assert_eq(ps_registry_db_store_members(db, members, 2, (ps_applied_t){5, 1}, err), PSD_OK,
                 "%s", psd_error_text(err));
    cr_assert_eq(ps_registry_db_store_members(db, NULL, 0, (ps_applied_t){6, 2}, err), PSD_OK);
    ps_registry_db_close(&db);
    db = open_db();
    assert_applied(db, 6, 2);
    cr_assert_eq(ps_registry_db_members(db, got, &n, err), PSD_OK);
    cr_assert_eq(n, 2);
    for (size_t i = 0; i < 2; i++) {
        cr_assert_eq(got[i].id, members[i].id);
        cr_assert_str_eq(got[i].node, members[i].node);
        cr_assert_eq(got[i].role, members[i].role);
        cr_assert_eq(got[i].index, 5);
    }
    members[1].role = (ps_registry_role_t)7;
    cr_assert_eq(ps_registry_db_store_members(db, members, 2, (ps_applied_t){7, 2}, err),
                 PSD_INVALID);
    psd_error_clear(err);
    members[1] = members[0]; /* one id twice: nothing is stored */
    cr_assert_neq(ps_registry_db_store_members(db, members, 2, (ps_applied_t){7, 2}, err), PSD_OK);
    psd_error_clear(err);
    assert_applied(db, 6, 2);
    cr_assert_eq(ps_registry_db_members(db, got, &n, err), PSD_OK);
    cr_assert_eq(n, 2);
    cr_assert_eq(ps_registry_db_store_members(db, members, 0, (ps_applied_t){7, 2}, err), PSD_OK);
    cr_assert_eq(ps_registry_db_members(db, got, &n, err), PSD_OK);
    cr_assert_eq(n, 0);
    ps_registry_db_close(&db);
    run_sql("INSERT INTO members VALUES(3, 'c', 'king', 1)");
    db = open_db();
    cr_assert_eq(ps_registry_db_members(db, got, &n, err), PSD_DAMAGED);
    cr_assert_not_null(strstr(psd_error_text(err), "table members"), "%s", psd_error_text(err));
}

/* Outcomes beyond those that are kept go from the file, too. */
Test(registry_db_place, the_last_outcomes_are_loaded)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
    PSD_AUTO(ps_registry_destroy) ps_registry_t *loaded = NULL;
    ps_command_t note = {0};

    make_cluster(db, registry, "w");
    ps_registry_destroy(&registry);
    ps_registry_db_close(&db);
    run_sql("WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 4098) "
            "INSERT INTO answers SELECT i, 1, i, 12, 0, 0 FROM n");
    db = open_db();
    registry = load_db(db);
    cr_assert_not_null(ps_registry_answer(registry, 1, 3));
    note = ps_registry_plan_note(registry, 1, "a note");
    note.session = 2;
    note.request = 4;
    cr_assert_eq(store_at(db, registry, &note, ps_registry_db_next(db)), PSD_OK);
    loaded = load_db(db);
    cr_assert_eq(ps_registry_hash(loaded), ps_registry_hash(registry));
    cr_assert_null(ps_registry_answer(loaded, 1, 3));
    cr_assert_not_null(ps_registry_answer(loaded, 1, 4));
    cr_assert_eq(ps_registry_answer(loaded, 2, 4)->id, 4099);
}

Test(registry_db_place, outcomes_out_of_order_are_damage)
{
    make_data();
    assert_load_fails("INSERT INTO answers VALUES(1, 1, 1, 99, 0, 0)", "is out of order, or none");
    assert_load_fails("UPDATE answers SET kind = 12; INSERT INTO answers VALUES(3, 1, 1, 12, 0, 0)",
                      "outcome 3");
    assert_load_fails("DELETE FROM answers; UPDATE cluster SET sm_version = 7", "sm_version 7");
}

/* What an older psd has stored begins a history: its commits were the commands. */
Test(registry_db_place, an_old_file_has_a_lineage_and_a_place)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_id_t uuid = fixture_uuid();

    make_data();
    run_sql("DROP TABLE rules; DROP TABLE principals; ALTER TABLE nodes DROP COLUMN held;"
            "ALTER TABLE tables DROP COLUMN combine;"
            "DROP TABLE settings; DROP TABLE members; DROP TABLE answers;"
            "ALTER TABLE cluster DROP COLUMN lineage; ALTER TABLE cluster DROP COLUMN sm_version;"
            "ALTER TABLE cluster DROP COLUMN applied_index;"
            "ALTER TABLE cluster DROP COLUMN applied_term; PRAGMA user_version = 11");
    db = open_db();
    registry = load_db(db);
    assert_applied(db, 3, 0);
    cr_assert(ps_id_equal(ps_registry_lineage(registry), &uuid));
}

/* What the cluster has set is stored, loaded and taken back. */
Test(registry_db_place, settings_are_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    const uint64_t value = 7777;
    ps_command_t command = {0};
    psd_status_t rc = PSD_OK;

    make_data();
    db = open_db();
    registry = load_db(db);
    rc = ps_registry_plan_setting(registry, PS_SETTING_REPAIR_AFTER, &value, "7777", 1, &command,
                                  err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_eq(ps_registry_setting(registry, PS_SETTING_REPAIR_AFTER), value);
    rc = ps_registry_plan_setting(registry, PS_SETTING_REPAIR_AFTER, NULL, "", 1, &command, err);
    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_not(ps_registry_is_set(registry, PS_SETTING_REPAIR_AFTER));
}

static ps_principal_t principal_of(const char *name, uint32_t uid, ps_role_t role)
{
    ps_principal_t principal = {.uid = uid, .n_rules = 2};

    (void)snprintf(principal.name, sizeof principal.name, "%s", name);
    for (uint32_t i = 0; i < 2; i++) {
        principal.rules[i].role = i == 0 ? role : PS_ROLE_READER;
        (void)snprintf(principal.rules[i].tables, PS_NAME_MAX, "%s", i == 0 ? "*" : "w?");
        (void)snprintf(principal.rules[i].jobs, PS_NAME_MAX, "%s", i == 0 ? "*" : "j*");
    }
    return principal;
}

static void store_principal(ps_registry_db_t *db, ps_registry_t *registry,
                            const ps_principal_t *principal)
{
    ps_command_t command = {0};
    psd_status_t rc = ps_registry_plan_principal(registry, principal, 1, &command, err);

    cr_assert_eq(fixture_do(registry, rc, &command, 1, store_in, db, err), PSD_OK, "%s",
                 psd_error_text(err));
}

/* Loaded as they were stored: ids, epochs, rules in their order. The first one changed last, and
 * is the last admin. */
Test(registry_db_place, principals_are_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = NULL;
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = NULL;
    ps_principal_t a = principal_of("a", 1, PS_ROLE_JOB);
    ps_principal_t b = principal_of("b", 2, PS_ROLE_ADMIN);
    uint64_t hash = 0;

    make_data();
    db = open_db();
    registry = load_db(db);
    store_principal(db, registry, &a);
    store_principal(db, registry, &b);
    a.denied = true;
    a.n_rules = 1;
    store_principal(db, registry, &a);
    a.denied = false;
    a.rules[0].role = PS_ROLE_ADMIN;
    store_principal(db, registry, &a);
    b.denied = true;
    store_principal(db, registry, &b);
    hash = ps_registry_hash(registry);
    ps_registry_destroy(&registry);
    registry = load_db(db);
    cr_assert_eq(ps_registry_hash(registry), hash);
    cr_assert_eq(ps_registry_n_principals(registry), 2);
    cr_assert_eq(ps_registry_auth_epoch(registry), 5);
    cr_assert_eq(ps_registry_principal(registry, "a")->n_rules, 1);
    cr_assert(ps_registry_principal(registry, "b")->denied);
    cr_assert_str_eq(ps_registry_principal(registry, "b")->rules[1].tables, "w?");
    b.denied = false;
    store_principal(db, registry, &b);
    cr_assert_eq(ps_registry_auth_epoch(registry), 6);
}

Test(registry_db_place, principals_that_do_not_fit_are_damage)
{
    make_data();
    {
        PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
        PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);
        ps_principal_t a = principal_of("a", 1, PS_ROLE_ADMIN);
        ps_principal_t b = principal_of("b", 2, PS_ROLE_JOB);

        store_principal(db, registry, &a);
        store_principal(db, registry, &b);
    }
    assert_load_fails("UPDATE rules SET role = 'king' WHERE place = 1", "role is \"king\"");
    assert_load_fails("UPDATE rules SET role = 'job' WHERE place = 1; "
                      "UPDATE rules SET place = 7 WHERE place = 2",
                      "table rules: number 2 of principal a is 7");
    assert_load_fails("UPDATE rules SET place = 2 WHERE place = 7; UPDATE principals SET uid = 1",
                      "uid 1 of b is that of a already");
    assert_load_fails("UPDATE principals SET uid = id, epoch = 4", "is of epoch 4");
    assert_load_fails("UPDATE principals SET epoch = id, public_key = 'x'", "key of a");
    assert_load_fails("UPDATE principals SET public_key = ''; PRAGMA foreign_keys = OFF; "
                      "DELETE FROM principals WHERE id = 1; DELETE FROM rules "
                      "WHERE principal_id = 1",
                      "principal 2 after 0");
}

/* ---- flushes ---- */

static uint64_t noted(void)
{
    ps_commit_note_t note = {.fd = -1};
    uint64_t n = 0;

    cr_assert_eq(ps_commit_note_open(&note, dir, &n, err), PSD_OK, "%s", psd_error_text(err));
    ps_commit_note_close(&note);
    return n;
}

static psd_status_t store_note(ps_registry_db_t *db, ps_registry_t *registry, uint64_t index)
{
    ps_command_t note = ps_registry_plan_note(registry, 1, "a note");

    return store_at(db, registry, &note, (ps_applied_t){index, 0});
}

Test(registry_db_place, a_flush_takes_all_that_is_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

    make_cluster(db, registry, "w"); /* three commands */
    cr_assert(ps_registry_db_is_unflushed(db));
    cr_assert_eq(noted(), 0, "the note must not be ahead of the disk");
    cr_assert_eq(ps_registry_db_flush(db, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert(!ps_registry_db_is_unflushed(db));
    cr_assert_eq(noted(), 3);
    cr_assert_eq(store_note(db, registry, 4), PSD_OK);
    cr_assert(ps_registry_db_is_unflushed(db));
    ps_registry_db_close(&db);
    db = open_db(); /* it outlives the process */
    assert_applied(db, 4, 0);
    cr_assert(!ps_registry_db_is_unflushed(db));
}

/* A descriptor that takes no flush, in place of that of SQLite's log. */
static void spoil_wal(void)
{
    char wal[sizeof file + 8];
    char path[PATH_MAX];
    char link[32];
    int n_spoilt = 0;
    int ends[2];

    (void)snprintf(wal, sizeof wal, "%s-wal", file);
    cr_assert_eq(pipe(ends), 0);
    for (int fd = 0; fd < 64; fd++) {
        ssize_t size = 0;

        (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        size = readlink(link, path, sizeof path - 1);
        if (size > 0 && strncmp(path, wal, (size_t)size) == 0 && wal[size] == '\0') {
            cr_assert_eq(dup2(ends[1], fd), fd);
            n_spoilt++;
        }
    }
    cr_assert_eq(n_spoilt, 1);
}

Test(registry_db_place, after_a_failed_flush_nothing_more_is_stored)
{
    PSD_AUTO(ps_registry_db_close) ps_registry_db_t *db = open_db();
    PSD_AUTO(ps_registry_destroy) ps_registry_t *registry = load_db(db);

    make_cluster(db, registry, "w");
    cr_assert(!ps_registry_db_is_broken(db));
    spoil_wal();
    cr_assert_eq(ps_registry_db_flush(db, err), PSD_IO);
    cr_assert(ps_registry_db_is_broken(db));
    psd_error_clear(err);
    cr_assert_eq(store_note(db, registry, 4), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(err), "a flush has failed"));
    psd_error_clear(err);
    cr_assert_eq(ps_registry_db_flush(db, err), PSD_IO, "a later one may succeed without the data");
    assert_applied(db, 3, 0);
    cr_assert_eq(noted(), 0);
}
