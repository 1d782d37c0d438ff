/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/registry/registry.h: principals, as the cluster has them. */
#include "protocol/registry/command_code.h"
#include "protocol/registry/registry_rows.h"
#include "support/registry_test.h"

TestSuite(registry_principal, .init = make_registry, .fini = drop_registry);

#define KEY_A "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
#define KEY_B "Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

static ps_principal_t principal_of(const char *name, const char *key, uint32_t uid, ps_role_t role,
                                   const char *tables)
{
    ps_principal_t principal = {.uid = uid, .n_rules = 1};

    (void)snprintf(principal.name, sizeof principal.name, "%s", name);
    (void)snprintf(principal.key, sizeof principal.key, "%s", key);
    principal.rules[0].role = role;
    (void)snprintf(principal.rules[0].tables, sizeof principal.rules[0].tables, "%s", tables);
    (void)snprintf(principal.rules[0].jobs, sizeof principal.rules[0].jobs, "%s", tables);
    return principal;
}

static psd_status_t plan(const ps_principal_t *principal)
{
    ps_command_done(&command); /* of a plan that was only looked at */
    return ps_registry_plan_principal(registry, principal, 1, &command, err);
}

static void put(const ps_principal_t *principal)
{
    do_planned(plan(principal));
}

Test(registry_principal, one_is_found_by_name_key_and_uid)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 1000, PS_ROLE_JOB, "alice.*");
    const ps_principal_t *found = NULL;

    make_cluster();
    cr_assert_eq(ps_registry_auth_epoch(registry), 0);
    cr_assert_null(ps_registry_principal(registry, "alice"));
    cr_assert_eq(plan(&alice), PSD_OK);
    cr_assert_str_eq(command.text,
                     "principal alice is allowed: job of tables \"alice.*\", jobs \"alice.*\"");
    put(&alice);
    found = ps_registry_principal(registry, "alice");
    cr_assert_not_null(found);
    cr_assert_eq(found->id, 1);
    cr_assert_eq(found->epoch, 1);
    cr_assert_eq(ps_registry_principal_by_key(registry, KEY_A), found);
    cr_assert_eq(ps_registry_principal_by_uid(registry, 1000), found);
    cr_assert(ps_trust_may(found, PS_VERB_WRITE, PS_OBJECT_TABLE, "alice.w"));
    cr_assert_null(ps_registry_principal_by_key(registry, KEY_B));
    cr_assert_null(ps_registry_principal_by_uid(registry, 0));
    cr_assert_eq(ps_registry_auth_epoch(registry), 1);
}

/* Who has no key is not found by an empty one, who has no uid not by "no uid". */
Test(registry_principal, what_one_lacks_does_not_find_it)
{
    ps_principal_t a = principal_of("a", "", 7, PS_ROLE_READER, "*");
    ps_principal_t b = principal_of("b", KEY_B, PS_NO_UID, PS_ROLE_READER, "*");

    make_cluster();
    put(&a);
    put(&b);
    cr_assert_null(ps_registry_principal_by_key(registry, ""));
    cr_assert_null(ps_registry_principal_by_uid(registry, PS_NO_UID));
}

Test(registry_principal, a_change_keeps_the_id_and_raises_the_epoch)
{
    ps_principal_t alice = principal_of("alice", KEY_A, PS_NO_UID, PS_ROLE_JOB, "alice.*");
    ps_principal_t bob = principal_of("bob", KEY_B, PS_NO_UID, PS_ROLE_READER, "*");

    make_cluster();
    put(&alice);
    put(&bob);
    assert_nothing_to_do(plan(&alice));
    alice.denied = true;
    cr_assert_eq(plan(&alice), PSD_OK);
    cr_assert_str_eq(command.text, "principal alice is denied");
    put(&alice);
    cr_assert_eq(ps_registry_n_principals(registry), 2);
    cr_assert_eq(ps_registry_principal(registry, "alice")->id, 1);
    cr_assert_eq(ps_registry_principal(registry, "alice")->epoch, 3);
    cr_assert(ps_registry_principal(registry, "alice")->denied);
    cr_assert_eq(ps_registry_principal(registry, "bob")->epoch, 2);
    cr_assert_eq(ps_registry_auth_epoch(registry), 3);
    alice.denied = false;
    alice.n_rules = 2;
    alice.rules[1] = bob.rules[0];
    put(&alice);
    cr_assert_eq(ps_registry_principal(registry, "alice")->n_rules, 2);
    cr_assert_eq(ps_registry_auth_epoch(registry), 4);
}

Test(registry_principal, a_key_or_uid_is_of_one_only)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 1000, PS_ROLE_JOB, "alice.*");
    ps_principal_t bob = principal_of("bob", KEY_A, PS_NO_UID, PS_ROLE_READER, "*");

    make_cluster();
    put(&alice);
    assert_refused(plan(&bob), PSD_INVALID, "the key of bob is that of alice already");
    bob = principal_of("bob", KEY_B, 1000, PS_ROLE_READER, "*");
    assert_refused(plan(&bob), PSD_INVALID, "uid 1000 of bob is that of alice already");
    bob.uid = PS_NO_UID;
    put(&bob);
    bob.uid = 1000;
    assert_refused(plan(&bob), PSD_INVALID, "uid 1000 of bob is that of alice already");
    /* One that is denied keeps its key: it is known as denied. */
    alice.denied = true;
    put(&alice);
    cr_assert(ps_registry_principal_by_key(registry, KEY_A)->denied);
}

/* The last one cannot be denied, nor given a role or globs that are less. */
Test(registry_principal, somebody_is_left_who_may_change_principals)
{
    const char *why = "root is the last one who may change principals; allow another admin first";
    ps_principal_t root = principal_of("root", "", 0, PS_ROLE_ADMIN, "*");
    ps_principal_t other = principal_of("other", KEY_A, PS_NO_UID, PS_ROLE_ADMIN, "w*");
    ps_principal_t changed;

    make_cluster();
    put(&root);
    put(&other); /* an admin of some tables is none of principals */
    changed = root;
    changed.denied = true;
    assert_refused(plan(&changed), PSD_DENIED, why);
    changed = root;
    changed.rules[0].role = PS_ROLE_OPERATOR;
    assert_refused(plan(&changed), PSD_DENIED, why);
    changed = root;
    changed.n_rules = 0;
    assert_refused(plan(&changed), PSD_DENIED, why);
    changed = root;
    changed.uid = PS_NO_UID;
    (void)snprintf(changed.key, sizeof changed.key, "%s", KEY_B);
    put(&changed); /* another key is no loss */
    other = principal_of("other", KEY_A, PS_NO_UID, PS_ROLE_ADMIN, "*");
    put(&other);
    changed.denied = true;
    put(&changed);
    other.denied = true;
    assert_refused(plan(&other), PSD_DENIED,
                   "other is the last one who may change principals; allow another admin first");
}

/* Where nobody could, nobody is the last. */
Test(registry_principal, without_an_admin_others_come_and_go)
{
    ps_principal_t bob = principal_of("bob", KEY_B, PS_NO_UID, PS_ROLE_READER, "*");

    make_cluster();
    put(&bob);
    bob.denied = true;
    put(&bob);
    cr_assert(ps_registry_principal(registry, "bob")->denied);
}

Test(registry_principal, what_cannot_be_stored_is_refused)
{
    ps_principal_t bad = principal_of("a b", KEY_A, 1, PS_ROLE_ADMIN, "*");

    make_cluster();
    cr_assert_eq(plan(&bad), PSD_INVALID);
    cr_assert_eq(command.kind, 0);
    bad = principal_of("a", "short", 1, PS_ROLE_ADMIN, "*");
    cr_assert_eq(plan(&bad), PSD_INVALID);
    bad = principal_of("a", "", PS_NO_UID, PS_ROLE_ADMIN, "*");
    cr_assert_eq(plan(&bad), PSD_INVALID);
    bad = principal_of("a", KEY_A, 1, PS_ROLE_END, "*");
    cr_assert_eq(plan(&bad), PSD_INVALID);
    bad = principal_of("a", KEY_A, 1, PS_ROLE_ADMIN, "a/b");
    cr_assert_eq(plan(&bad), PSD_INVALID);
    bad = principal_of("a", KEY_A, 1, PS_ROLE_ADMIN, "*");
    bad.n_rules = PS_RULES_MAX + 1;
    cr_assert_eq(plan(&bad), PSD_INVALID);
    cr_assert_eq(ps_registry_n_principals(registry), 0);
}

Test(registry_principal, there_are_not_more_than_the_limit)
{
    make_cluster();
    for (uint32_t i = 0; i < PS_PRINCIPALS_MAX; i++) {
        char name[16];
        ps_principal_t one;

        (void)snprintf(name, sizeof name, "p%u", i);
        one = principal_of(name, "", i, PS_ROLE_READER, "*");
        put(&one);
    }
    {
        ps_principal_t more = principal_of("more", KEY_A, PS_NO_UID, PS_ROLE_READER, "*");

        assert_refused(plan(&more), PSD_LIMIT,
                       "there are 1024 principals already, the most there may be");
    }
}

Test(registry_principal, one_that_cannot_be_stored_is_undone)
{
    ps_principal_t alice = principal_of("alice", KEY_A, PS_NO_UID, PS_ROLE_JOB, "alice.*");
    uint64_t before = 0;

    make_cluster();
    before = ps_registry_hash(registry);
    cr_assert_eq(plan(&alice), PSD_OK);
    cr_assert_eq(ps_registry_try(registry, &command, 1, err), PSD_OK);
    cr_assert_neq(ps_registry_hash(registry), before);
    ps_registry_undo(registry);
    cr_assert_eq(ps_registry_hash(registry), before);
    cr_assert_eq(ps_registry_auth_epoch(registry), 0);
    cr_assert_null(ps_registry_principal(registry, "alice"));
    ps_command_done(&command);
    put(&alice);
    before = ps_registry_hash(registry);
    alice.denied = true;
    alice.n_rules = 0;
    cr_assert_eq(plan(&alice), PSD_OK);
    cr_assert_eq(ps_registry_try(registry, &command, 1, err), PSD_OK);
    cr_assert_neq(ps_registry_hash(registry), before);
    ps_registry_undo(registry);
    cr_assert_eq(ps_registry_hash(registry), before);
    cr_assert_eq(ps_registry_principal(registry, "alice")->n_rules, 1);
}

/* A hash that looked away from a rule would let two members differ unseen. */
Test(registry_principal, the_hash_sees_each_field)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 5, PS_ROLE_JOB, "alice.*");
    uint64_t seen[5] = {0};

    make_cluster();
    for (int i = 0; i < 5; i++) {
        ps_principal_t changed = alice;

        if (i == 1) {
            changed.rules[0].role = PS_ROLE_READER;
        } else if (i == 2) {
            changed.rules[0].jobs[0] = 'b';
        } else if (i == 3) {
            changed.uid = 6;
        } else if (i == 4) {
            changed.denied = true;
        }
        put(&changed);
        seen[i] = ps_registry_hash(registry);
        for (int j = 0; j < i; j++) {
            cr_assert_neq(seen[j], seen[i], "%d, %d", j, i);
        }
    }
}

static void assert_damaged(const ps_principal_t *principal, size_t n)
{
    ps_command_t bad = ps_registry_command(registry, PS_COMMAND_PRINCIPAL, 1);
    ps_principal_t copy = *principal;
    uint64_t before = ps_registry_hash(registry);

    bad.principals = &copy;
    bad.n_principals = n;
    cr_assert_eq(ps_registry_apply(registry, &bad, 1, err), PSD_DAMAGED, "%u", principal->id);
    cr_assert_eq(ps_registry_hash(registry), before);
    psd_error_clear(err);
}

Test(registry_principal, what_does_not_fit_is_refused_before_it_is_used)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 5, PS_ROLE_ADMIN, "*");
    ps_principal_t bad;

    make_cluster();
    put(&alice);
    alice = *ps_registry_principal(registry, "alice");
    alice.epoch = 2;
    assert_damaged(&alice, 0);
    bad = alice;
    bad.id = 0;
    assert_damaged(&bad, 1);
    bad.id = 3;
    assert_damaged(&bad, 1);
    bad.id = UINT32_MAX;
    assert_damaged(&bad, 1);
    bad = alice;
    bad.epoch = 1; /* it is not newer */
    assert_damaged(&bad, 1);
    bad.epoch = 0;
    assert_damaged(&bad, 1);
    bad.epoch = UINT64_MAX;
    assert_damaged(&bad, 1);
    bad = alice;
    bad.name[0] = 'b';
    assert_damaged(&bad, 1);
    bad = alice;
    bad.id = 2; /* the same name, key and uid */
    assert_damaged(&bad, 1);
    bad = principal_of("bob", KEY_A, 6, PS_ROLE_JOB, "*");
    bad.id = 2;
    bad.epoch = 2;
    assert_damaged(&bad, 1);
    bad = alice;
    bad.denied = true; /* the last admin */
    assert_damaged(&bad, 1);
    bad = alice;
    bad.rules[0].role = PS_ROLE_END;
    assert_damaged(&bad, 1);
}

/* ---- two keys ---- */

#define KEY_C "1ne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"

/* `principal` gets another key, and the one that it has counts until 600. */
static ps_principal_t rotated(ps_principal_t principal, const char *key)
{
    (void)snprintf(principal.old_key, sizeof principal.old_key, "%s", principal.key);
    (void)snprintf(principal.key, sizeof principal.key, "%s", key);
    principal.old_until_unix_ms = 600;
    return principal;
}

Test(registry_principal, one_is_found_by_both_of_its_keys)
{
    ps_principal_t alice = principal_of("alice", KEY_A, PS_NO_UID, PS_ROLE_JOB, "alice.*");
    ps_principal_t next = rotated(alice, KEY_B);

    make_cluster();
    put(&alice);
    cr_assert_null(ps_registry_principal_overdue(registry, UINT64_MAX));
    cr_assert_eq(plan(&next), PSD_OK);
    cr_assert_str_eq(command.text, "principal alice has a new key, and the old key for a while");
    put(&next);
    cr_assert_eq(ps_registry_principal_by_key(registry, KEY_A),
                 ps_registry_principal(registry, "alice"));
    cr_assert_eq(ps_registry_principal_by_key(registry, KEY_B),
                 ps_registry_principal(registry, "alice"));
    assert_nothing_to_do(plan(&next));
    cr_assert_null(ps_registry_principal_overdue(registry, 599));
    cr_assert_eq(ps_registry_principal_overdue(registry, 600),
                 ps_registry_principal(registry, "alice"));
    ps_principal_end_old_key(&next);
    cr_assert_eq(plan(&next), PSD_OK);
    cr_assert_str_eq(command.text,
                     "principal alice has its new key alone: the old key does not count any more");
    put(&next);
    cr_assert_null(ps_registry_principal_by_key(registry, KEY_A));
    cr_assert_not_null(ps_registry_principal_by_key(registry, KEY_B));
    cr_assert_null(ps_registry_principal_overdue(registry, UINT64_MAX));
    cr_assert_eq(ps_registry_auth_epoch(registry), 3);
}

Test(registry_principal, one_that_is_denied_has_no_old_key)
{
    ps_principal_t alice = principal_of("alice", KEY_A, PS_NO_UID, PS_ROLE_JOB, "alice.*");
    ps_principal_t next = rotated(alice, KEY_B);

    make_cluster();
    put(&alice);
    put(&next);
    next.denied = true;
    assert_refused(plan(&next), PSD_INVALID, "alice has an old key, and is denied");
    ps_principal_deny(&next);
    put(&next);
    cr_assert_null(ps_registry_principal_by_key(registry, KEY_A));
    cr_assert(ps_registry_principal_by_key(registry, KEY_B)->denied);
}

Test(registry_principal, an_old_key_is_of_one_only_and_another_than_the_key)
{
    ps_principal_t alice = principal_of("alice", KEY_A, PS_NO_UID, PS_ROLE_JOB, "alice.*");
    ps_principal_t bob = principal_of("bob", KEY_A, PS_NO_UID, PS_ROLE_READER, "*");
    ps_principal_t bad;

    make_cluster();
    put(&alice);
    alice = rotated(alice, KEY_B);
    put(&alice);
    assert_refused(plan(&bob), PSD_INVALID, "the key of bob is that of alice already");
    bob = rotated(bob, KEY_C);
    assert_refused(plan(&bob), PSD_INVALID, "the key of bob is that of alice already");
    bad = rotated(alice, KEY_B);
    assert_refused(plan(&bad), PSD_INVALID, "alice has an old key, and it is the same as its key");
    bad = rotated(alice, KEY_C);
    bad.old_until_unix_ms = 0;
    assert_refused(plan(&bad), PSD_INVALID, "the old key of alice ends at 0");
    bad.old_key[0] = ' ';
    bad.old_until_unix_ms = 1;
    assert_refused(plan(&bad), PSD_INVALID, "the old key of alice is no key");
    bad = alice;
    bad.old_key[0] = '\0';
    assert_refused(plan(&bad), PSD_INVALID, "the old key of alice ends at 600");
    bad = alice;
    bad.key[0] = '\0';
    bad.uid = 7;
    assert_refused(plan(&bad), PSD_INVALID, "alice has an old key, and no key");
}

Test(registry_principal, there_is_one_key_each_before_all_members_know_of_two)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 5, PS_ROLE_ADMIN, "*");
    ps_principal_t next = rotated(alice, KEY_B);

    make_cluster();
    registry->cluster.sm_version = 5;
    put(&alice);
    assert_refused(plan(&next), PSD_UNSUPPORTED,
                   "principals cannot have two keys yet: a node that has the registry runs an "
                   "older psd (machine version 5 of 6)");
    next.id = 1;
    next.epoch = 2;
    assert_damaged(&next, 1);
    do_planned(ps_registry_plan_machine(registry, 6, 1, &command, err));
    put(&next);
}

/* Older members could not read the command. */
Test(registry_principal, there_are_none_before_all_members_know_them)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 5, PS_ROLE_ADMIN, "*");

    make_cluster();
    registry->cluster.sm_version = 2;
    assert_refused(plan(&alice), PSD_UNSUPPORTED,
                   "the cluster has no principals yet: its registry is of machine version 2, as a "
                   "node that has a part of it runs an older psd");
    alice.id = 1;
    alice.epoch = 1;
    assert_damaged(&alice, 1);
    do_planned(ps_registry_plan_machine(registry, 3, 1, &command, err));
    put(&alice);
}

/* Bytes with more rules than one may have, or a role that is none. */
Test(registry_principal, bytes_out_of_range_are_refused)
{
    ps_principal_t alice = principal_of("alice", KEY_A, 5, PS_ROLE_ADMIN, "*");
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_command_done) ps_command_t read = {0};
    size_t rule = 0;

    make_cluster();
    cr_assert_eq(plan(&alice), PSD_OK);
    cr_assert(ps_command_encode(&command, &bytes));
    rule = bytes.size - (4 + 1 + 3 + 3); /* count, role, two globs of a letter */
    cr_assert_eq(ps_load_u32(bytes.data + rule), 1);
    ps_store_u32(bytes.data + rule, PS_RULES_MAX + 1);
    cr_assert_eq(ps_command_decode((ps_bytes_t){bytes.data, bytes.size}, &read, err), PSD_PROTO);
    ps_store_u32(bytes.data + rule, 1);
    for (uint8_t role = 0; role < 255; role++) {
        bytes.data[rule + 4] = role;
        cr_assert_eq(ps_command_decode((ps_bytes_t){bytes.data, bytes.size}, &read, err),
                     role >= PS_ROLE_ADMIN && role < PS_ROLE_END ? PSD_OK : PSD_PROTO, "%u", role);
        ps_command_done(&read);
    }
}
