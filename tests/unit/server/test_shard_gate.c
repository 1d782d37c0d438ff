/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/shards/shard_gate.h: every data message, for every kind of caller, against answers
 * written by hand; and what changes while a connection stands. */
#include "server/shards/shard_gate.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#define TABLE 3    /* "w1" */
#define OTHER 4    /* "v1" */
#define UNKNOWN 99 /* the shard has none */
#define CONN 7

static ps_rights_t *rights;
static ps_shard_gate_t gate;
static psd_error_t *err;
static uint64_t epoch;
static bool stand; /* the answer about connections */

static const char *table_name(const void *of, uint32_t id)
{
    (void)of;
    return id == TABLE ? "w1" : id == OTHER ? "v1" : NULL;
}

static bool stands(const void *of, uint64_t conn)
{
    (void)of;
    return stand || conn == CONN;
}

static const ps_gate_view_t view = {.table = table_name, .stands = stands};

static void make(void)
{
    err = psd_error_new();
    epoch = 0;
    stand = true;
    cr_assert_eq(ps_rights_new(&rights, err), PSD_OK);
    ps_shard_gate_init(&gate, rights, &view);
}

static void drop(void)
{
    ps_shard_gate_done(&gate);
    ps_rights_destroy(&rights);
    psd_error_destroy(&err);
}

TestSuite(shard_gate, .init = make, .fini = drop);

/* The callers, a letter each; the uid is the letter. */
typedef struct caller {
    char letter;
    ps_role_t role; /* 0: no principal */
    const char *tables;
    bool denied;
} caller_t;

static const caller_t callers[] = {
    {'0', 0, "", false},
    {'d', PS_ROLE_ADMIN, "*", true},
    {'r', PS_ROLE_READER, "w*", false},
    {'x', PS_ROLE_JOB, "v*", false},
    {'j', PS_ROLE_JOB, "w*", false},
    {'o', PS_ROLE_OPERATOR, "*", false},
    {'m', PS_ROLE_METRICS, "*", false},
    {'A', PS_ROLE_ADMIN, "*", false},
};
#define N_CALLERS (sizeof callers / sizeof *callers)

/* Who may, of table "w1"; "": nobody. Nobody here is a node. */
static const struct {
    ps_kind_t kind;
    const char *who;
} expected[] = {
    {PS_KIND_HELLO, "rxjoA"}, {PS_KIND_WELCOME, ""},  {PS_KIND_PUSH, "jA"},
    {PS_KIND_PULL, "rjA"},    {PS_KIND_MARK, "jA"},   {PS_KIND_PROBE, "rjoA"},
    {PS_KIND_ACK, ""},        {PS_KIND_VALUES, ""},   {PS_KIND_REFUSED, ""},
    {PS_KIND_PARKED, ""},     {PS_KIND_MOVED, ""},    {PS_KIND_CHUNK, "rxjoA"},
    {PS_KIND_BYE, "rxjoA"},   {PS_KIND_PEER, ""},     {PS_KIND_APPEND, ""},
    {PS_KIND_APPENDED, ""},   {PS_KIND_ROWS, ""},     {PS_KIND_TAKEN, ""},
    {PS_KIND_MEET, ""},       {PS_KIND_BUNDLE, "jA"}, {PS_KIND_RELAYED, ""},
    {PS_KIND_WANT, ""},       {PS_KIND_ROWS_ON, ""},
};
#define N_KINDS (sizeof expected / sizeof *expected)

static ps_principal_t principal_of(const caller_t *caller)
{
    ps_principal_t who = {.id = (uint32_t)caller->letter,
                          .uid = (uint32_t)caller->letter,
                          .denied = caller->denied,
                          .n_rules = 1};

    (void)snprintf(who.name, sizeof who.name, "p%c", caller->letter);
    who.rules[0].role = caller->role;
    (void)snprintf(who.rules[0].tables, sizeof who.rules[0].tables, "%s", caller->tables);
    (void)snprintf(who.rules[0].jobs, sizeof who.rules[0].jobs, "*");
    return who;
}

static void tell(const ps_principal_t *principals, size_t n)
{
    cr_assert(ps_rights_set(rights, principals, n, ++epoch));
}

static void tell_all(void)
{
    ps_principal_t all[N_CALLERS];
    size_t n = 0;

    for (size_t i = 0; i < N_CALLERS; i++) {
        if (callers[i].role != 0) {
            all[n++] = principal_of(&callers[i]);
        }
    }
    tell(all, n);
}

static ps_message_t message_of(ps_kind_t kind, uint32_t table)
{
    ps_message_t message = {.kind = kind};

    switch ((int)kind) {
    case PS_KIND_PUSH:
        message.push.table = table;
        break;
    case PS_KIND_PULL:
        message.pull.table = table;
        break;
    case PS_KIND_MARK:
        message.mark.table = table;
        break;
    case PS_KIND_PROBE:
        message.probe.table = table;
        break;
    case PS_KIND_BUNDLE:
        message.bundle.table = table;
        break;
    default:
        break;
    }
    return message;
}

static void greet(char letter)
{
    const ps_asker_t asker = {.has_uid = true, .uid = (uint32_t)letter};

    ps_shard_gate_greet(&gate, CONN, &asker);
}

static psd_status_t ask(ps_kind_t kind, uint32_t table)
{
    const ps_message_t message = message_of(kind, table);

    psd_error_clear(err);
    return ps_shard_gate_check(&gate, CONN, &message, err);
}

Test(shard_gate, every_message_is_for_those_who_may)
{
    size_t n_kinds = 0;

    tell_all();
#define COUNT(KIND, name, number)                              \
    for (size_t i = 0; i < N_KINDS; i++) {                     \
        n_kinds += expected[i].kind == PS_KIND_##KIND ? 1 : 0; \
    }                                                          \
    n_kinds--; /* each has one row */
    PS_MESSAGE_MAP(COUNT)
#undef COUNT
    cr_assert_eq(n_kinds, 0, "a kind has no row in this test, or two");
    for (size_t i = 0; i < N_KINDS; i++) {
        for (size_t k = 0; k < N_CALLERS; k++) {
            bool may = strchr(expected[i].who, callers[k].letter) != NULL;

            greet(callers[k].letter);
            for (int again = 0; again < 2; again++) { /* from the rules, then from memory */
                psd_status_t got = ask(expected[i].kind, TABLE);

                cr_expect(may ? got == PSD_OK
                              : got == PSD_DENIED || (again == 1 && got == PSD_NO_SESSION),
                          "%s by %c: %s", ps_kind_name(expected[i].kind), callers[k].letter,
                          psd_status_name(got));
            }
        }
    }
}

Test(shard_gate, who_has_said_no_hello_may_nothing)
{
    tell_all();
    for (size_t i = 0; i < N_KINDS; i++) {
        cr_expect_eq(ask(expected[i].kind, TABLE), PSD_NO_SESSION);
    }
    ps_shard_gate_greet(&gate, CONN, NULL);
    cr_assert_eq(ask(PS_KIND_HELLO, 0), PSD_NO_SESSION);
}

Test(shard_gate, before_it_knows_principals_it_asks_to_wait)
{
    greet('A');
    cr_assert_eq(ask(PS_KIND_HELLO, 0), PSD_BUSY);
    tell_all();
    cr_assert_eq(ask(PS_KIND_HELLO, 0), PSD_OK);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
}

Test(shard_gate, a_refusal_names_who_and_what)
{
    tell_all();
    greet('r');
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err),
                     "pr (uid 114) may not write table \"w1\"; an admin can allow it");
    cr_assert_eq(ask(PS_KIND_PULL, OTHER), PSD_DENIED);
    cr_assert_str_eq(
        psd_error_text(err),
        "pr (uid 114) may not read table 4: its rules cover tables \"w*\"; an admin can allow it");
    cr_assert_eq(ask(PS_KIND_PULL, TABLE), PSD_OK);
    greet('d');
    cr_assert_eq(ask(PS_KIND_PULL, TABLE), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "pd (uid 100) is denied");
    greet('0');
    cr_assert_eq(ask(PS_KIND_HELLO, 0), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err),
                     "uid 48 is no principal; an admin lets it in: pscli auth allow");
    cr_assert_eq(ask(PS_KIND_PULL, TABLE), PSD_NO_SESSION, "who may nothing takes no room");
}

/* A table that is not here: the shard says so, but not to whom no table is anything. */
Test(shard_gate, an_unknown_table_is_the_shards_to_refuse)
{
    tell_all();
    greet('j');
    cr_assert_eq(ask(PS_KIND_PUSH, UNKNOWN), PSD_OK);
    cr_assert_eq(ask(PS_KIND_PUSH, 0), PSD_DENIED);
    greet('o');
    cr_assert_eq(ask(PS_KIND_PUSH, UNKNOWN), PSD_DENIED);
}

Test(shard_gate, a_push_that_pulls_reads_too)
{
    caller_t reader = {'q', PS_ROLE_READER, "w*", false};
    ps_principal_t who = principal_of(&reader);
    ps_message_t message = message_of(PS_KIND_PUSH, TABLE);

    message.push.pull = 1;
    tell_all();
    greet('j');
    cr_assert_eq(ps_shard_gate_check(&gate, CONN, &message, err), PSD_OK);
    tell(&who, 1);
    greet('q');
    cr_assert_eq(ps_shard_gate_check(&gate, CONN, &message, err), PSD_DENIED);
}

/* AXPY and DOT read another table, too. */
Test(shard_gate, the_other_table_is_checked)
{
    static const struct {
        char letter;
        ps_kind_t kind;
        uint32_t table;
        uint32_t other;
        psd_status_t rc;
    } CASES[] = {
        {'j', PS_KIND_PUSH, TABLE, OTHER, PSD_DENIED},
        {'j', PS_KIND_PULL, TABLE, OTHER, PSD_DENIED},
        {'r', PS_KIND_PULL, TABLE, OTHER, PSD_DENIED},
        {'x', PS_KIND_PUSH, OTHER, TABLE, PSD_DENIED},
        {'x', PS_KIND_PULL, OTHER, TABLE, PSD_DENIED},
        {'j', PS_KIND_PUSH, TABLE, TABLE, PSD_OK},
        {'j', PS_KIND_PULL, TABLE, TABLE, PSD_OK},
        {'A', PS_KIND_PUSH, TABLE, OTHER, PSD_OK},
        {'A', PS_KIND_PULL, TABLE, OTHER, PSD_OK},
        {'A', PS_KIND_PUSH, TABLE, UNKNOWN, PSD_DENIED},
        {'j', PS_KIND_PULL, TABLE, UNKNOWN, PSD_DENIED},
        {'j', PS_KIND_PULL, UNKNOWN, OTHER, PSD_DENIED},
        {'o', PS_KIND_PULL, TABLE, TABLE, PSD_DENIED},
    };
    ps_message_t dot = message_of(PS_KIND_PULL, TABLE);

    tell_all();
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        ps_message_t message = message_of(CASES[i].kind, CASES[i].table);

        greet(CASES[i].letter);
        if (CASES[i].kind == PS_KIND_PUSH) {
            message.push.op = PS_CHANGE_AXPY;
            message.push.other = CASES[i].other;
        } else {
            message.pull.op = PS_READ_DOT;
            message.pull.other = CASES[i].other;
        }
        for (int again = 0; again < 2; again++) { /* the rights to the first table are kept */
            cr_expect_eq(ps_shard_gate_check(&gate, CONN, &message, err), CASES[i].rc, "case %zu",
                         i);
        }
    }
    greet('j');
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    dot.pull.op = PS_READ_DOT;
    dot.pull.other = OTHER;
    cr_assert_eq(ps_shard_gate_check(&gate, CONN, &dot, err), PSD_DENIED);
    cr_assert_str_eq(
        psd_error_text(err),
        "pj (uid 106) may not read table 4: its rules cover tables \"w*\"; an admin can allow it");
}

/* No uid is the uid of nobody, not that of all who have a key. */
Test(shard_gate, no_uid_is_nobodys)
{
    caller_t caller = {'j', PS_ROLE_JOB, "w*", false};
    ps_principal_t who = principal_of(&caller);
    const ps_asker_t asker = {.has_uid = true, .uid = PS_NO_UID};

    memset(who.key, 'k', PS_PUBLIC_KEY_SIZE);
    who.uid = PS_NO_UID;
    tell(&who, 1);
    ps_shard_gate_greet(&gate, CONN, &asker);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
}

Test(shard_gate, a_denial_counts_from_the_next_message_on)
{
    caller_t caller = {'j', PS_ROLE_JOB, "w*", false};
    ps_principal_t who = principal_of(&caller);

    tell(&who, 1);
    greet('j');
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    who.denied = true;
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    cr_assert_eq(ask(PS_KIND_PULL, UNKNOWN), PSD_DENIED);
    who.denied = false;
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    (void)snprintf(who.rules[0].tables, sizeof who.rules[0].tables, "v*");
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    cr_assert_eq(ask(PS_KIND_PUSH, OTHER), PSD_OK);
    tell(NULL, 0);
    cr_assert_eq(ask(PS_KIND_PUSH, OTHER), PSD_DENIED);
}

/* Two lists of one epoch: the command of the first was rolled back, and another took its number. */
Test(shard_gate, a_list_of_the_same_epoch_counts)
{
    caller_t caller = {'j', PS_ROLE_JOB, "w*", false};
    ps_principal_t who = principal_of(&caller);

    tell(&who, 1);
    tell(&who, 1);
    greet('j');
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    who.denied = true;
    cr_assert(ps_rights_set(rights, &who, 1, epoch));
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    who.denied = false;
    cr_assert(ps_rights_set(rights, &who, 1, epoch - 1), "a lower one, too");
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    cr_assert(ps_rights_set(rights, NULL, 0, 0));
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_BUSY, "the node knows nobody any more");
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
}

/* By the key, and then by that alone: a uid that came with it would not count. */
Test(shard_gate, a_key_is_known)
{
    ps_asker_t asker = {.address = "192.0.2.1"};
    caller_t caller = {'j', PS_ROLE_JOB, "w*", false};
    ps_principal_t who = principal_of(&caller);

    memset(who.key, 'k', PS_PUBLIC_KEY_SIZE);
    memset(asker.key, 'k', PS_PUBLIC_KEY_SIZE);
    tell(&who, 1);
    ps_shard_gate_greet(&gate, CONN, &asker);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    asker.key[0] = 'l';
    asker.has_uid = true;
    asker.uid = who.uid;
    ps_shard_gate_greet(&gate, CONN, &asker);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    ps_shard_gate_greet(&gate, CONN, &(ps_asker_t){.address = "192.0.2.1"});
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED, "nobody is known");
}

/* Both keys of a principal count, on connections that stand, until the old one ends. */
Test(shard_gate, two_keys_are_known_for_a_while)
{
    ps_asker_t asker = {.address = "192.0.2.1"};
    caller_t caller = {'j', PS_ROLE_JOB, "w*", false};
    ps_principal_t who = principal_of(&caller);

    memset(who.key, 'k', PS_PUBLIC_KEY_SIZE);
    memset(asker.key, 'k', PS_PUBLIC_KEY_SIZE);
    tell(&who, 1);
    ps_shard_gate_greet(&gate, CONN, &asker);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    memset(who.old_key, 'k', PS_PUBLIC_KEY_SIZE);
    memset(who.key, 'n', PS_PUBLIC_KEY_SIZE);
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    ps_principal_end_old_key(&who);
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    memset(asker.key, 'n', PS_PUBLIC_KEY_SIZE);
    ps_shard_gate_greet(&gate, CONN, &asker);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    memset(who.old_key, 'k', PS_PUBLIC_KEY_SIZE);
    ps_principal_deny(&who);
    tell(&who, 1);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
    memset(asker.key, 'k', PS_PUBLIC_KEY_SIZE);
    ps_shard_gate_greet(&gate, CONN, &asker);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_DENIED);
}

Test(shard_gate, connections_that_have_ended_take_no_room)
{
    const ps_asker_t asker = {.has_uid = true, .uid = 'A'};

    tell_all();
    greet('A');
    stand = false;
    for (uint64_t conn = 1000; conn < 11000; conn++) {
        ps_shard_gate_greet(&gate, conn, &asker);
        cr_assert_leq(gate.conns.count, 1024);
    }
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    stand = true;
    for (uint64_t conn = 20000; conn < 25000; conn++) {
        ps_shard_gate_greet(&gate, conn, &asker);
    }
    cr_assert_geq(gate.conns.count, 5001);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_OK);
    ps_shard_gate_forget(&gate, CONN);
    cr_assert_eq(ask(PS_KIND_PUSH, TABLE), PSD_NO_SESSION);
}
