/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/trust/trust.h: every kind of request and message, for every kind of caller, against
 * answers written by hand. */
#include "protocol/trust/trust.h"

#include <criterion/criterion.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"

/* The callers, a letter each. The small ones have tables "w*" and jobs "lr*", or "v*" and "x*". */
typedef struct caller {
    char letter;
    const char *is;
    ps_role_t role; /* 0: no rule */
    const char *tables;
    const char *jobs;
    bool denied;
} caller_t;

static const caller_t callers[] = {
    {'0', "a principal without a rule", 0, "", "", false},
    {'d', "an admin that was denied", PS_ROLE_ADMIN, "*", "*", true},
    {'r', "a reader of w*", PS_ROLE_READER, "w*", "lr*", false},
    {'R', "a reader", PS_ROLE_READER, "*", "*", false},
    {'x', "a job of other globs", PS_ROLE_JOB, "v*", "x*", false},
    {'j', "a job", PS_ROLE_JOB, "w*", "lr*", false},
    {'J', "a job of all", PS_ROLE_JOB, "*", "*", false},
    {'o', "an operator of w*", PS_ROLE_OPERATOR, "w*", "lr*", false},
    {'O', "an operator", PS_ROLE_OPERATOR, "*", "*", false},
    {'n', "a node", PS_ROLE_NODE, "*", "*", false},
    {'m', "metrics", PS_ROLE_METRICS, "*", "*", false},
    {'A', "an admin", PS_ROLE_ADMIN, "*", "*", false},
};
#define N_CALLERS (sizeof callers / sizeof *callers)

/* Who may, of table "w1" and job "lr": all others, and nobody known, may not. */
typedef struct expected {
    const char *kind;
    const char *who;
} expected_t;

static const expected_t of_ops[] = {
    {"hello", "rRxjJoOnA"},
    {"table_create", "jJoOA"},
    {"table_open", "rRjJoOA"},
    {"routes", "rRjJoOA"},
    {"table_list", "rRxjJoOA"},
    {"table_inspect", "rRjJoOA"},
    {"table_drop", "jJoOA"},
    {"table_ack", "jJoOA"},
    {"table_set", "jJoOA"},
    {"job_join", "jJA"},
    {"job_leave", "jJA"},
    {"heartbeat", "jJA"},
    {"job_tables", "jJA"},
    {"job_state", "rRjJoOA"},
    {"barrier", "jJA"},
    {"work_open", "jJA"},
    {"work_next", "jJA"},
    {"work_done", "jJA"},
    {"work_idle", "jJA"},
    {"job_list", "rRxjJoOA"},
    {"job_inspect", "rRjJoOA"},
    {"job_stop", "jJoOA"},
    {"worker_list", "rRjJoOA"},
    {"clock_list", "rRxjJoOA"},
    {"clock_inspect", "rRjJoOA"},
    {"why", "rRjJoOA"},
    {"slow", "rRxjJoOA"},
    {"cluster_status", "ROA"},
    {"cluster_events", "ROA"},
    {"cluster_backup", "A"},
    {"registry_unknown", "ROnA"},
    {"registry_accept", "OA"},
    {"registry_discard", "OA"},
    {"checkpoint_create", "JOA"},
    {"checkpoint_restore", "OA"},
    {"checkpoint_verify", "RJOA"},
    {"checkpoint_look", "RJOA"},
    {"checkpoint_list", "RJOA"},
    {"checkpoint_inspect", "RJOA"},
    {"checkpoint_drop", "OA"},
    {"node_list", "ROA"},
    {"node_inspect", "ROA"},
    {"node_drain", "OA"},
    {"node_remove", "OA"},
    {"cluster_rebalance", "OA"},
    {"cluster_repair", "ROA"},
    {"registry_list", "ROnA"},
    {"registry_set", "OA"},
    {"settings", "ROA"},
    {"setting_set", "OA"},
    {"registry_transfer", "OA"},
    {"auth_list", "A"},
    {"auth_allow", "A"},
    {"auth_deny", "A"},
    {"auth_rotate", "rRxjJoOnmA"},
    {"auth_can", "rRxjJoOnmA"},
    {"auth_whoami", "rRxjJoOnmA"},
    {"auth_audit", "A"},
    {"auth_invite", "A"},
    {"auth_accept", "rRxjJoOnmA"},
    {"node_invite", "A"},
    {"node_rights", "n"},
    {"node_join", "n"},
    {"node_announce", "n"},
    {"node_beat", "n"},
    {"node_answer", "n"},
    {"node_report", "n"},
    {"node_end", "n"},
};

static const expected_t of_messages[] = {
    {"HELLO", "rRxjJoOnA"}, {"WELCOME", "n"},     {"PUSH", "jJA"},  {"PULL", "rRjJA"},
    {"MARK", "jJA"},        {"PROBE", "rRjJoOA"}, {"ACK", "n"},     {"VALUES", "n"},
    {"REFUSED", "n"},       {"PARKED", "n"},      {"MOVED", "n"},   {"CHUNK", "rRxjJoOnA"},
    {"BYE", "rRxjJoOnA"},   {"PEER", "n"},        {"APPEND", "n"},  {"APPENDED", "n"},
    {"ROWS", "n"},          {"TAKEN", "n"},       {"MEET", "n"},    {"BUNDLE", "jJA"},
    {"RELAYED", "n"},       {"WANT", "n"},        {"ROWS_ON", "n"},
};

static const expected_t of_node_messages[] = {
    {"ANNOUNCE", "n"}, {"BEAT", "n"},   {"ANSWER", "n"}, {"REPORT", "n"}, {"END", "n"},
    {"MEMBER", "n"},   {"GOT", "n"},    {"HEARD", "n"},  {"KNOWN", "n"},  {"SESSIONS", "n"},
    {"TABLE", "n"},    {"PLACES", "n"}, {"DROP", "n"},   {"JOB", "n"},    {"ASK", "n"},
    {"FENCE", "n"},    {"INVITE", "n"}, {"PIECE", "n"},  {"RANKS", "n"},
};

static const expected_t of_quorum_messages[] = {
    {"VOTE", "n"},  {"VOTED", "n"}, {"APPEND", "n"},    {"APPENDED", "n"}, {"SNAPSHOT", "n"},
    {"STAND", "n"}, {"GREET", "n"}, {"CHALLENGE", "n"}, {"PROVE", "n"},    {"WHO", "n"},
};

#define NEED(KIND, VERB, OBJECT, SCOPE) \
    {#KIND, PS_VERB_##VERB, PS_OBJECT_##OBJECT, PS_SCOPE_##SCOPE, false},
static const ps_need_t node_needs[] = {PS_TRUST_NODE_MESSAGES(NEED)};
static const ps_need_t quorum_needs[] = {PS_TRUST_QUORUM_MESSAGES(NEED)};
#undef NEED
#define N(array) (sizeof(array) / sizeof *(array))

static void set_text(char text[PS_NAME_MAX + 1], const char *to)
{
    (void)snprintf(text, PS_NAME_MAX + 1, "%s", to);
}

static ps_principal_t principal_of(const caller_t *caller)
{
    ps_principal_t who = {.id = 1, .name = "who", .uid = 1000, .denied = caller->denied};

    if (caller->role != 0) {
        who.n_rules = 1;
        who.rules[0].role = caller->role;
        set_text(who.rules[0].tables, caller->tables);
        set_text(who.rules[0].jobs, caller->jobs);
    }
    return who;
}

static const char *name_for(const ps_need_t *need)
{
    return need->scope == PS_SCOPE_EACH      ? NULL
           : need->object == PS_OBJECT_TABLE ? "w1"
           : need->object == PS_OBJECT_JOB   ? "lr"
                                             : NULL;
}

/* Returns the number of questions. */
static size_t ask_all(const ps_need_t *need, const expected_t *table, size_t n_table)
{
    const char *who = NULL;

    for (size_t i = 0; i < n_table; i++) {
        who = strcmp(table[i].kind, need->kind) == 0 ? table[i].who : who;
    }
    cr_assert_not_null(who, "%s has no row in this test", need->kind);
    for (size_t i = 0; i < N_CALLERS; i++) {
        ps_principal_t caller = principal_of(&callers[i]);
        bool may = ps_trust_may(&caller, need->verb, need->object, name_for(need));

        cr_expect_eq(may, strchr(who, callers[i].letter) != NULL, "%s, %s: %s", need->kind,
                     callers[i].is, may ? "may" : "may not");
    }
    cr_expect_not(ps_trust_may(NULL, need->verb, need->object, name_for(need)), "%s, nobody",
                  need->kind);
    return N_CALLERS + 1;
}

Test(trust, every_kind_is_for_those_who_may)
{
    size_t n_kinds = 0;
    size_t n_asked = 0;

    for (int op = 0; op < PS_TRUST_OPS_COUNT; op++, n_kinds++) {
        n_asked += ask_all(ps_need_of_op((ps_trust_op_t)op), of_ops, N(of_ops));
    }
#define ASK(KIND, name, number) \
    n_kinds++;                  \
    n_asked += ask_all(ps_need_of_message(PS_KIND_##KIND), of_messages, N(of_messages));
    PS_MESSAGE_MAP(ASK)
#undef ASK
    for (size_t i = 0; i < N(node_needs); i++, n_kinds++) {
        n_asked += ask_all(&node_needs[i], of_node_messages, N(of_node_messages));
    }
    for (size_t i = 0; i < N(quorum_needs); i++, n_kinds++) {
        n_asked += ask_all(&quorum_needs[i], of_quorum_messages, N(of_quorum_messages));
    }
    cr_expect_eq(n_kinds, N(of_ops) + N(of_messages) + N(of_node_messages) + N(of_quorum_messages),
                 "a row of this test is of no kind");
    cr_expect_geq(n_kinds, 60);
    cr_log_info("%zu kinds, %zu questions", n_kinds, n_asked);
}

Test(trust, what_is_no_kind_has_no_need)
{
    cr_expect_null(ps_need_of_message((ps_kind_t)0));
    cr_expect_null(ps_need_of_message((ps_kind_t)14));
    cr_expect_null(ps_need_of_message((ps_kind_t)255));
    cr_expect_null(ps_need_of_request("table_grow"));
    cr_assert_not_null(ps_need_of_request("table_drop"));
    cr_expect_eq(ps_need_of_request("table_drop")->verb, PS_VERB_DROP);
}

Test(trust, what_is_no_verb_or_object_is_refused)
{
    const ps_principal_t admin = principal_of(&callers[N_CALLERS - 1]);

    cr_assert(ps_trust_may(&admin, PS_VERB_BACKUP, PS_OBJECT_CLUSTER, NULL));
    cr_expect_not(ps_trust_may(&admin, PS_VERB_END, PS_OBJECT_CLUSTER, NULL));
    cr_expect_not(ps_trust_may(&admin, PS_VERB_LOOK, PS_OBJECT_END, NULL));
    cr_expect_not(ps_trust_may(&admin, PS_VERB_BACKUP, PS_OBJECT_JOB, "lr"), "a pair without row");
}

Test(trust, rules_add_up)
{
    ps_principal_t who = {.id = 1, .name = "who", .uid = 1, .n_rules = 2};

    who.rules[0] = (ps_rule_t){.role = PS_ROLE_JOB, .tables = "a.*", .jobs = "a"};
    who.rules[1] = (ps_rule_t){.role = PS_ROLE_READER, .tables = "*", .jobs = "*"};
    cr_expect(ps_trust_may(&who, PS_VERB_WRITE, PS_OBJECT_TABLE, "a.w"));
    cr_expect(ps_trust_may(&who, PS_VERB_READ, PS_OBJECT_TABLE, "b"));
    cr_expect(ps_trust_may(&who, PS_VERB_LOOK, PS_OBJECT_CLUSTER, NULL));
    cr_expect_not(ps_trust_may(&who, PS_VERB_WRITE, PS_OBJECT_TABLE, "b"));
    cr_expect_not(ps_trust_may(&who, PS_VERB_CREATE, PS_OBJECT_CHECKPOINT, NULL),
                  "the rule that is for all is the reader's");
}

Test(trust, a_refusal_says_what_the_rules_cover)
{
    char text[PS_REACH_TEXT_SIZE];
    ps_principal_t who = {.n_rules = 3,
                          .rules = {{.role = PS_ROLE_JOB, .tables = "a.*", .jobs = "a-*"},
                                    {.role = PS_ROLE_READER, .tables = "b?", .jobs = "*"},
                                    {.role = PS_ROLE_METRICS, .tables = "m", .jobs = "m"}}};

    cr_assert_str_eq(ps_trust_print_reach(&who, PS_VERB_READ, PS_OBJECT_TABLE, text),
                     ": its rules cover tables \"a.*\", \"b?\"");
    cr_assert_str_eq(ps_trust_print_reach(&who, PS_VERB_WRITE, PS_OBJECT_TABLE, text),
                     ": its rules cover tables \"a.*\"");
    cr_assert_str_eq(ps_trust_print_reach(&who, PS_VERB_STOP, PS_OBJECT_JOB, text),
                     ": its rules cover jobs \"a-*\"");
    cr_assert_str_empty(ps_trust_print_reach(&who, PS_VERB_LOOK, PS_OBJECT_CLUSTER, text));
    cr_assert_str_empty(ps_trust_print_reach(NULL, PS_VERB_READ, PS_OBJECT_TABLE, text));
    who.n_rules = PS_RULES_MAX;
    for (uint32_t i = 0; i < PS_RULES_MAX; i++) {
        who.rules[i].role = PS_ROLE_READER;
        memset(who.rules[i].tables, 'x', PS_NAME_MAX);
    }
    cr_assert_eq(strlen(ps_trust_print_reach(&who, PS_VERB_READ, PS_OBJECT_TABLE, text)),
                 PS_REACH_TEXT_SIZE - 1);
    cr_assert_str_eq(text + strlen(text) - strlen("x…"), "x…");
}

Test(trust, a_rule_gives_what_some_role_of_people_has)
{
    cr_assert(ps_trust_may_give(PS_VERB_WRITE, PS_OBJECT_TABLE));
    cr_assert(ps_trust_may_give(PS_VERB_BACKUP, PS_OBJECT_CLUSTER));
    cr_assert(ps_trust_may_give(PS_VERB_LOOK, PS_OBJECT_REGISTRY));
    cr_assert_not(ps_trust_may_give(PS_VERB_PEER, PS_OBJECT_NODE));
    cr_assert_not(ps_trust_may_give(PS_VERB_PEER, PS_OBJECT_REGISTRY));
    cr_assert_not(ps_trust_may_give(PS_VERB_BACKUP, PS_OBJECT_TABLE));
    cr_assert_not(ps_trust_may_give(PS_VERB_END, PS_OBJECT_TABLE));
}

Test(trust, globs_match_as_in_a_shell)
{
    static const char letters[] = "ab*?";
    ps_rng_t random = {.state = 27};

    for (int i = 0; i < 50000; i++) {
        char glob[8] = "";
        char name[10] = "";
        size_t n_glob = ps_rng_below(&random, sizeof glob);
        size_t n_name = ps_rng_below(&random, sizeof name);

        for (size_t at = 0; at < n_glob; at++) {
            glob[at] = letters[ps_rng_below(&random, 4)];
        }
        for (size_t at = 0; at < n_name; at++) {
            name[at] = letters[ps_rng_below(&random, 2)];
        }
        cr_assert_eq(ps_glob_matches(glob, name), fnmatch(glob, name, 0) == 0, "%s, %s", glob,
                     name);
    }
}

/* ---- what may be stored ---- */

#define KEY "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"

static ps_principal_t alice(void)
{
    ps_principal_t who = {.id = 1, .name = "alice", .key = KEY, .uid = PS_NO_UID, .n_rules = 1};

    who.rules[0] = (ps_rule_t){.role = PS_ROLE_JOB, .tables = "alice.*", .jobs = "alice-?"};
    return who;
}

static void assert_refused(const ps_principal_t *who, const char *why)
{
    psd_error_t *err = psd_error_new();

    cr_assert_eq(ps_principal_check(who, err), PSD_INVALID);
    cr_expect(strstr(psd_error_text(err), why) != NULL, "%s", psd_error_text(err));
    psd_error_destroy(&err);
}

Test(trust, a_principal_has_a_name_a_key_or_uid_and_rules)
{
    ps_principal_t who = alice();

    cr_expect_eq(ps_principal_check(&who, NULL), PSD_OK);
    set_text(who.name, "-");
    assert_refused(&who, "name of the principal");
    who = alice();
    who.key[3] = '"';
    assert_refused(&who, "pscli auth keygen");
    who.key[3] = '\0';
    assert_refused(&who, "pscli auth keygen");
    who.key[0] = '\0';
    assert_refused(&who, "needs a key or a uid");
    who.uid = 0;
    cr_expect_eq(ps_principal_check(&who, NULL), PSD_OK);
    set_text(who.rules[0].tables, "a b");
    assert_refused(&who, "glob of tables");
    who = alice();
    who.rules[0].jobs[0] = '\0';
    assert_refused(&who, "glob of jobs");
    who = alice();
    who.rules[0].role = PS_ROLE_END;
    assert_refused(&who, "role 7");
    who = alice();
    who.n_rules = PS_RULES_MAX + 1;
    assert_refused(&who, "17 rules");
}

Test(trust, a_node_is_one_by_any_of_its_rules)
{
    ps_principal_t who = {.name = "node.a", .n_rules = 2};

    who.rules[0] = (ps_rule_t){.role = PS_ROLE_READER, .tables = "*", .jobs = "*"};
    who.rules[1] = (ps_rule_t){.role = PS_ROLE_NODE, .tables = "*", .jobs = "*"};
    cr_expect(ps_principal_is_node(&who));
    who.denied = true;
    cr_expect(ps_principal_is_node(&who), "it stays one");
    who.n_rules = 1;
    cr_expect_not(ps_principal_is_node(&who));
    who.n_rules = 0;
    cr_expect_not(ps_principal_is_node(&who));
}

Test(trust, equal_is_what_has_the_same_rights)
{
    const ps_principal_t who = alice();
    ps_principal_t other = alice();

    other.id = 7;
    other.epoch = 9;
    cr_expect(ps_principal_equal(&who, &other));
    other.denied = true;
    cr_expect_not(ps_principal_equal(&who, &other));
    other = alice();
    other.rules[0].role = PS_ROLE_READER;
    cr_expect_not(ps_principal_equal(&who, &other));
    other = alice();
    other.n_rules = 0;
    cr_expect_not(ps_principal_equal(&who, &other));
    other = alice();
    other.uid = 3;
    cr_expect_not(ps_principal_equal(&who, &other));
}

Test(trust, words_are_read_back)
{
    ps_role_t role = PS_ROLE_END;
    ps_verb_t verb = PS_VERB_END;
    ps_object_t object = PS_OBJECT_END;

    for (int i = PS_ROLE_ADMIN; i < PS_ROLE_END; i++) {
        cr_expect(ps_role_of_word(ps_role_word((ps_role_t)i), &role));
        cr_expect_eq((int)role, i);
    }
    for (int i = 0; i < PS_VERB_END; i++) {
        cr_expect(ps_verb_of_word(ps_verb_word((ps_verb_t)i), &verb));
        cr_expect_eq((int)verb, i);
    }
    for (int i = 0; i < PS_OBJECT_END; i++) {
        cr_expect(ps_object_of_word(ps_object_word((ps_object_t)i), &object));
        cr_expect_eq((int)object, i);
    }
    cr_expect_not(ps_role_of_word("root", &role));
    cr_expect_str_eq(ps_role_word((ps_role_t)0), "?");
}

/* What looks, connects, works for a job, or comes from nodes changes nothing that the audit has;
 * opening a table may make it, everybody may change their own key, and a join may let in a
 * node. */
Test(trust, the_audit_has_each_kind_of_change)
{
    static const ps_verb_t CHANGES[] = {PS_VERB_CREATE, PS_VERB_CHANGE, PS_VERB_DROP,
                                        PS_VERB_STOP,   PS_VERB_BACKUP, PS_VERB_RESTORE};

    for (int op = 0; op < PS_TRUST_OPS_COUNT; op++) {
        const ps_need_t *need = ps_need_of_op((ps_trust_op_t)op);
        bool changes =
            strcmp(need->kind, "table_open") == 0 || strcmp(need->kind, "auth_rotate") == 0 ||
            strcmp(need->kind, "auth_accept") == 0 || strcmp(need->kind, "node_join") == 0;

        for (size_t i = 0; i < N(CHANGES); i++) {
            changes = changes || need->verb == CHANGES[i];
        }
        cr_assert_eq(need->is_noted, changes, "%s", need->kind);
    }
}
