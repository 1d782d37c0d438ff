/* SPDX-License-Identifier: Apache-2.0 */
/* lib/server/state/control_may.c: every request of the control port, for every kind of caller,
 * against answers written by hand. */
#include "server/control_ops.h"
#include "server/state/control_inner.h"
#include "support/registry_test.h"
#include "support/sim_disk.h"

static ps_control_t *control;
static ps_rights_t *rights;

/* Known by a uid, which is the letter. */
typedef struct caller {
    char letter;
    ps_role_t role; /* 0: no principal */
    const char *tables;
    const char *jobs;
    bool denied;
} caller_t;

static const caller_t callers[] = {
    {'0', 0, "", "", false},
    {'d', PS_ROLE_OPERATOR, "*", "*", true},
    {'r', PS_ROLE_READER, "w*", "lr*", false},
    {'R', PS_ROLE_READER, "*", "*", false},
    {'x', PS_ROLE_JOB, "v*", "x*", false},
    {'j', PS_ROLE_JOB, "w*", "lr*", false},
    {'o', PS_ROLE_OPERATOR, "*", "*", false},
    {'m', PS_ROLE_METRICS, "*", "*", false},
    {'A', PS_ROLE_ADMIN, "*", "*", false},
};
#define N_CALLERS (sizeof callers / sizeof *callers)

/* Who may, of table "w1" and job "lr"; "": nobody, for there are no nodes. */
static const struct {
    const char *op;
    const char *who;
} expected[] = {
    {"hello", "rRxjoA"},
    {"table_create", "joA"},
    {"table_open", "rRjoA"},
    {"routes", "rRjoA"},
    {"table_list", "rRxjoA"},
    {"table_inspect", "rRjoA"},
    {"table_drop", "joA"},
    {"table_ack", "joA"},
    {"table_set", "joA"},
    {"job_join", "jA"},
    {"job_leave", "jA"},
    {"heartbeat", "jA"},
    {"job_tables", "jA"},
    {"job_state", "rRjoA"},
    {"barrier", "jA"},
    {"work_open", "jA"},
    {"work_next", "jA"},
    {"work_done", "jA"},
    {"work_idle", "jA"},
    {"job_list", "rRxjoA"},
    {"job_inspect", "rRjoA"},
    {"job_stop", "joA"},
    {"worker_list", "rRjoA"},
    {"clock_list", "rRxjoA"},
    {"clock_inspect", "rRjoA"},
    {"why", "rRjoA"},
    {"slow", "rRxjoA"},
    {"cluster_status", "RoA"},
    {"cluster_events", "RoA"},
    {"cluster_backup", "A"},
    {"registry_unknown", "RoA"},
    {"registry_accept", "oA"},
    {"registry_discard", "oA"},
    {"checkpoint_create", "oA"},
    {"checkpoint_restore", "oA"},
    {"checkpoint_verify", "RoA"},
    {"checkpoint_look", "RoA"},
    {"checkpoint_list", "RoA"},
    {"checkpoint_inspect", "RoA"},
    {"checkpoint_drop", "oA"},
    {"node_list", "RoA"},
    {"node_inspect", "RoA"},
    {"node_drain", "oA"},
    {"node_remove", "oA"},
    {"cluster_rebalance", "oA"},
    {"cluster_repair", "RoA"},
    {"registry_list", "RoA"},
    {"registry_set", "oA"},
    {"settings", "RoA"},
    {"setting_set", "oA"},
    {"registry_transfer", "oA"},
    {"auth_list", "A"},
    {"auth_allow", "A"},
    {"auth_deny", "A"},
    {"auth_rotate", "rRxjomA"},
    {"auth_can", "rRxjomA"},
    {"auth_whoami", "rRxjomA"},
    {"auth_audit", "A"},
    {"auth_invite", "A"},
    {"auth_accept", "rRxjomA"},
    {"node_invite", "A"},
    {"node_rights", ""},
    {"node_join", ""},
    {"node_announce", ""},
    {"node_beat", ""},
    {"node_answer", ""},
    {"node_report", ""},
    {"node_end", ""},
};
#define N_EXPECTED (sizeof expected / sizeof *expected)

static void put_text(char text[PS_NAME_MAX + 1], const char *to)
{
    (void)snprintf(text, PS_NAME_MAX + 1, "%s", to);
}

static void allow(const caller_t *caller)
{
    ps_principal_t who = {.uid = (uint32_t)caller->letter, .denied = caller->denied, .n_rules = 1};

    (void)snprintf(who.name, sizeof who.name, "p%c", caller->letter);
    who.rules[0].role = caller->role;
    put_text(who.rules[0].tables, caller->tables);
    put_text(who.rules[0].jobs, caller->jobs);
    do_planned(ps_registry_plan_principal(registry, &who, 1, &command, err));
}

static void make(void)
{
    make_registry();
    make_cluster();
    start_node("a", 1, 1);
    (void)make_table("w1", 1);
    for (size_t i = 0; i < N_CALLERS; i++) {
        if (callers[i].role != 0) {
            allow(&callers[i]);
        }
    }
    cr_assert_eq(ps_rights_new(&rights, err), PSD_OK);
    control = ps_alloc(1, sizeof *control);
    cr_assert_not_null(control);
    control->is.registry = registry;
    control->is.rights = rights;
    control->owners = ps_owners_new();
}

static void drop(void)
{
    ps_owners_destroy(&control->owners);
    ps_free(control);
    ps_rights_destroy(&rights);
    drop_registry();
}

TestSuite(control_may, .init = make, .fini = drop);

static const ps_control_row_t *op_of(const char *name)
{
    for (size_t i = 0; i < ps_control_n_ops; i++) {
        if (strcmp(ps_control_ops[i].name, name) == 0) {
            return &ps_control_ops[i];
        }
    }
    return NULL;
}

static psd_status_t ask(const char *op, char letter, const char *text)
{
    ps_control_request_t request = {.op = op_of(op)};
    psd_status_t rc = ps_doc_parse(
        (ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)}, &request.doc, err);

    cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
    request.caller = (ps_asker_t){.has_uid = true, .uid = (uint32_t)letter};
    psd_error_clear(err);
    rc = ps_control_may(control, &request, err);
    ps_doc_destroy(&request.doc);
    return rc;
}

Test(control_may, every_request_is_for_those_who_may)
{
    static const char OF_ALL[] =
        "{\"name\":\"w1\",\"spec\":{\"name\":\"w1\"},\"job\":\"lr\",\"tables\":[1]}";

    cr_assert_eq(ps_registry_table(registry, "w1")->id, 1);
    cr_assert_eq(N_EXPECTED, ps_control_n_ops, "a request has no row in this test");
    for (size_t i = 0; i < N_EXPECTED; i++) {
        cr_assert_not_null(op_of(expected[i].op), "%s", expected[i].op);
        for (size_t k = 0; k < N_CALLERS; k++) {
            bool may = strchr(expected[i].who, callers[k].letter) != NULL;
            psd_status_t got = ask(expected[i].op, callers[k].letter, OF_ALL);

            cr_expect_eq(got, may ? PSD_OK : PSD_DENIED, "%s by %c: %s %s", expected[i].op,
                         callers[k].letter, psd_status_name(got), psd_error_text(err));
        }
    }
}

/* Whatever else a request says, the objects that it names are those that are checked. */
Test(control_may, an_object_cannot_be_hidden)
{
    cr_assert_eq(ask("table_drop", 'x', "{\"name\":\"v1\"}"), PSD_OK);
    cr_assert_eq(ask("table_drop", 'x', "{\"name\":\"w1\"}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "px (uid 120) may not drop table \"w1\": its rules cover "
                                          "tables \"v*\"; an admin can allow it");
    cr_assert_eq(ask("table_create", 'x', "{\"name\":\"v1\",\"spec\":{\"name\":\"w1\"}}"),
                 PSD_DENIED);
    cr_assert_eq(ask("routes", 'x', "{\"tables\":[9,1]}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "px (uid 120) may not look at table 1: its rules cover "
                                          "tables \"v*\"; an admin can allow it");
    cr_assert_eq(ask("routes", 'x', "{\"tables\":[9]}"), PSD_OK);
    cr_assert_eq(ask("job_stop", 'x', "{\"job\":\"x1\"}"), PSD_OK);
    cr_assert_eq(ask("job_stop", 'x', "{\"job\":\"lr\"}"), PSD_DENIED);
}

Test(control_may, a_job_is_checked_by_name_and_by_number)
{
    ps_join_t join = {.job = "lr", .n_workers = 1};

    do_planned(ps_registry_plan_join(registry, &join, 1, &command, err));
    cr_assert_eq(ask("heartbeat", 'j', "{\"job_id\":1}"), PSD_OK);
    cr_assert_eq(ask("heartbeat", 'x', "{\"job_id\":1}"), PSD_DENIED);
    cr_assert_str_eq(
        psd_error_text(err),
        "px (uid 120) may not work job 1: its rules cover jobs \"x*\"; an admin can allow it");
    cr_assert_eq(ask("heartbeat", 'r', "{\"job_id\":1}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err),
                     "pr (uid 114) may not work job \"lr\"; an admin can allow it");
    cr_assert_eq(ask("heartbeat", 'x', "{\"job_id\":1,\"job\":\"x1\"}"), PSD_DENIED);
    cr_assert_str_eq(
        psd_error_text(err),
        "px (uid 120) may not work job 1: its rules cover jobs \"x*\"; an admin can allow it");
    cr_assert_eq(ask("job_stop", 'x', "{\"job\":\"lr\"}"), PSD_DENIED);
    cr_assert_str_eq(
        psd_error_text(err),
        "px (uid 120) may not stop job \"lr\": its rules cover jobs \"x*\"; an admin can allow it");
    cr_assert_eq(ask("heartbeat", 'j', "{\"job_id\":1,\"job\":\"x1\"}"), PSD_DENIED);
    cr_assert_eq(ask("heartbeat", 'x', "{\"job\":1}"), PSD_DENIED);
}

Test(control_may, a_stranger_hears_how_to_be_let_in)
{
    ps_control_request_t request = {.op = op_of("hello"), .caller = {.address = "192.0.2.1"}};

    cr_assert_eq(ask("hello", '0', "{}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err),
                     "uid 48 is no principal; an admin lets it in: pscli auth allow NAME --role "
                     "ROLE --tables 'GLOB' --jobs 'GLOB' --uid 48");
    cr_assert_eq(ask("hello", 'd', "{}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "pd (uid 100) is denied; an admin can allow it");
    cr_assert_eq(ask("auth_accept", '0', "{}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err),
                     "uid 48 has no token; an admin makes one: pscli auth invite NAME");
    psd_error_clear(err);
    cr_assert_eq(ps_control_may(control, &request, err), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "192.0.2.1 is no principal");
    cr_assert_eq(ask("node_beat", 'A', "{}"), PSD_DENIED); /* no rule can */
    cr_assert_str_eq(psd_error_text(err), "pA (uid 65) may not peer node; only nodes may");
    cr_assert_eq(ask("cluster_backup", 'o', "{}"), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err),
                     "po (uid 111) may not backup cluster; an admin can allow it");
    psd_error_clear(err);
    control->is.rights = NULL; /* level plain */
    cr_assert_eq(ps_control_may(control, &request, NULL), PSD_OK);
}

/* Who made a token has seen its secret key. */
Test(control_may, the_key_of_a_token_lets_nobody_in)
{
    static const char MADE[] = "0123456789012345678901234567890123456789";
    ps_invite_t invite = {.name = "eve", .by = "pA", .rule.role = PS_ROLE_JOB, .until_ms = 1};
    ps_control_request_t request = {.caller = {.has_uid = false}};
    char text[200];

    (void)snprintf(invite.key, sizeof invite.key, "%s", MADE);
    (void)snprintf(request.caller.key, sizeof request.caller.key, "%s", MADE);
    cr_assert(ps_invites_add(&control->invites, &invite, 0));
    (void)snprintf(text, sizeof text, "{\"name\":\"eve\",\"key\":\"%s\"}", MADE);
    cr_assert_eq(ps_doc_parse((ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)},
                              &request.doc, err),
                 PSD_OK);
    cr_assert_eq(ps_control_auth_accept(control, &request, err), PSD_DENIED);
    cr_assert_not_null(strstr(psd_error_text(err), "that is the key of a token"));
    psd_error_clear(err);
    invite.rule.role = PS_ROLE_NODE;
    cr_assert_eq(ps_control_check_token(control, &invite, "eve", MADE, err), PSD_DENIED);
    cr_assert_not_null(strstr(psd_error_text(err), "that is the key of a token"));
    ps_doc_destroy(&request.doc);
}

/* Who asks for a token: {"name":"eve",…}, of that role. */
static psd_status_t invite_eve(const char *token_key, const char *role)
{
    ps_control_request_t request = {.caller = {.has_uid = true, .uid = 'A'}};
    char text[200];
    psd_status_t rc = PSD_OK;

    (void)snprintf(text, sizeof text, "{\"name\":\"eve\",\"key\":\"%s\",\"role\":\"%s\"}",
                   token_key, role);
    cr_assert_eq(ps_doc_parse((ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)},
                              &request.doc, err),
                 PSD_OK);
    cr_assert_eq(
        ps_doc_parse((ps_bytes_t){.data = (const uint8_t *)"{}", .size = 2}, &request.reply, err),
        PSD_OK);
    psd_error_clear(err);
    rc = ps_control_auth_invite(control, &request, err);
    cr_assert_eq(ps_doc_has(request.reply, "endpoint"), rc == PSD_OK);
    ps_doc_destroy(&request.doc);
    ps_doc_destroy(&request.reply);
    return rc;
}

/* Nothing is committed: there is no replica here. */
Test(control_may, a_token_is_asked_for_again_and_not_for_two)
{
    static const char MADE[] = "0123456789012345678901234567890123456789";
    ps_route_t shards[FIXTURE_SHARDS_MAX];
    ps_node_t node = fixture_node("b", 2, 1, shards);
    ps_invite_t invite = {.name = "eve", .by = "pA", .until_ms = UINT64_MAX};

    (void)snprintf(node.control, sizeof node.control, "tcp://127.0.0.1:7171#%s", MADE);
    do_planned(ps_registry_plan_node(registry, &node, 2, &command, err));
    control->is.node = "b";
    invite.rule = (ps_rule_t){.role = PS_ROLE_JOB, .tables = "*", .jobs = "*"};
    (void)snprintf(invite.key, sizeof invite.key, "%s", MADE);
    cr_assert(ps_invites_add(&control->invites, &invite, 0));
    cr_assert_eq(invite_eve(MADE, "job"), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(invite_eve(MADE, "admin"), PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), "key is that of another token"), "%s",
                       psd_error_text(err));
    cr_assert_eq(ps_invites_find(&control->invites, MADE)->rule.role, PS_ROLE_JOB);
}

Test(control_may, a_session_is_of_who_said_hello)
{
    ps_control_request_t request = {.caller = {.has_uid = true, .uid = 'j'}};

    cr_assert_eq(ps_control_own_session(control, &request, 5, err), PSD_OK);
    cr_assert_eq(ps_control_own_session(control, &request, 5, err), PSD_OK);
    request.caller.uid = 'A';
    cr_assert_eq(ps_control_own_session(control, &request, 5, err), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "session 5 is that of somebody else");
}

/* ---- the audit (control_note.c) ---- */

static sim_disk_t *sim;

static void open_audit(void)
{
    const ps_audit_args_t args = {
        .file_bytes = UINT64_C(1) << 24, .files = 1, .dir = "dir", .node = "n0", .release = "1"};
    ps_audit_args_t with_disk = args;
    ps_audit_found_t found;

    sim = sim_disk_new(1);
    with_disk.disk = sim_disk_face(sim);
    cr_assert_eq(ps_audit_log_open(&with_disk, &found, &control->is.audit, err), PSD_OK);
}

static void close_audit(void)
{
    ps_audit_log_close(&control->is.audit, 1);
    sim_disk_destroy(&sim);
}

/* What a request that ends with the status leaves in the audit's last line: has the text. */
static bool noted(ps_control_request_t *request, const char *op, const char *text,
                  psd_status_t status, const char *expected_text)
{
    ps_bytes_t before = sim_disk_content(sim, "dir/audit.jsonl");
    size_t size = before.size;
    ps_bytes_t after;

    request->op = op_of(op);
    cr_assert_eq(ps_doc_parse((ps_bytes_t){.data = (const uint8_t *)text, .size = strlen(text)},
                              &request->doc, err),
                 PSD_OK);
    ps_control_note(control, request, status);
    ps_doc_destroy(&request->doc);
    after = sim_disk_content(sim, "dir/audit.jsonl");
    return memmem(after.data + size, after.size - size, expected_text, strlen(expected_text)) !=
           NULL;
}

Test(control_may, a_dry_run_hides_only_what_did_nothing)
{
    ps_control_request_t request = {.caller = {.has_uid = true, .uid = 'A'}};

    open_audit();
    cr_assert(noted(&request, "auth_allow", "{\"name\":\"eve\",\"dry_run\":true}", PSD_OK,
                    "\"name\":\"eve\""));
    cr_assert(noted(&request, "table_drop", "{\"name\":\"w1\",\"dry_run\":true}", PSD_OK,
                    "\"name\":\"w1\""));
    request.was_dry = true; /* node_drain says so */
    cr_assert_not(noted(&request, "node_drain", "{\"name\":\"a\",\"dry_run\":true}", PSD_OK, "a"));
    close_audit();
}

Test(control_may, the_audit_has_what_a_request_asks_for)
{
    ps_control_request_t request = {.caller = {.has_uid = true, .uid = 'A'}};
    char text[2000] = "{\"name\":\"";

    open_audit();
    cr_assert(noted(&request, "auth_allow",
                    "{\"name\":\"eve\",\"uid\":0,\"add\":true,\"role\":\"a\\nb\",\"junk\":\"x\"}",
                    PSD_OK, "\"detail\":{\"role\":\"a?b\",\"uid\":\"0\",\"add\":\"true\"},"));
    cr_assert(noted(&request, "checkpoint_create", "{\"name\":\"c\",\"tables\":[\"v1\",\"w1\",3]}",
                    PSD_OK, "\"detail\":{\"tables\":\"v1,w1,3\"}"));
    cr_assert(noted(&request, "table_drop", "{\"name\":\"no\",\"key\":\"x\",\"role\":\"y\"}",
                    PSD_NO_TABLE, "\"name\":\"no\",\"result\":\"NO_TABLE\""));
    memset(text + strlen(text), 'x', 1000);
    (void)snprintf(text + strlen(text), 10, "\"}");
    request.caller.uid = '0'; /* nobody known */
    cr_assert(noted(&request, "auth_deny", text, PSD_DENIED, "xxxx…\",\"result\":\"DENIED\""));
    cr_assert_not(noted(&request, "auth_deny", text, PSD_DENIED,
                        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    close_audit();
}

/* Who gives itself another key, or goes, is who asked. */
Test(control_may, the_audit_has_who_asked_before_the_change)
{
    ps_control_request_t request = {.caller = {.has_uid = true, .uid = 'A'}};

    open_audit();
    ps_control_note_who(control, &request);
    request.caller.uid = '0';
    cr_assert(noted(&request, "auth_allow", "{\"name\":\"pA\"}", PSD_OK, "\"who\":\"pA\""));
    close_audit();
}
