/* SPDX-License-Identifier: Apache-2.0 */
/* The control conversation: what is answered twice, who waits at a barrier, who
 * is lost. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "support/control.h"

static bool a_repeated_request_is_answered_as_the_first(daemon_t *d)
{
    static char first[REPLY_SIZE];
    control_t c = {.fd = -1};

    CHECK(control_open(&c, d, 50));
    CHECK(control_ask(&c, "table_create", ",\"spec\":{\"name\":\"once\",\"rows\":10}", "\"OK\""));
    memcpy(first, c.reply, sizeof first);
    c.id--;
    CHECK(control_ask(&c, "table_create", ",\"spec\":{\"name\":\"once\",\"rows\":10}", "\"OK\""));
    CHECK(strcmp(first, c.reply) == 0);
    CHECK(control_ask(&c, "table_create", ",\"spec\":{\"name\":\"once\",\"rows\":10}",
                      "\"TABLE_EXISTS\""));
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"r\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":0",
                      "\"joins\":1"));
    memcpy(first, c.reply, sizeof first);
    c.id--;
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"r\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":0",
                      "\"joins\":1"));
    CHECK(strcmp(first, c.reply) == 0);
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"r\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":0",
                      "\"WORKER_EXISTS\""));
    CHECK(control_ask(&c, "job_leave", ",\"job\":\"r\",\"worker\":0,\"member\":0", "\"OK\""));
    CHECK(control_ask(&c, "job_list", "", "\"state\":\"finished\""));
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"once\"", "\"OK\""));
    /* The same client says hello again, as after a lost answer. */
    {
        control_t again = {.fd = -1};

        CHECK(control_open(&again, d, 50));
        CHECK(again.session == c.session);
        control_close(&again);
    }
    control_close(&c);
    return true;
}

static bool what_is_opened_with_a_spec_is_made_and_the_jobs(daemon_t *d)
{
    control_t c = {.fd = -1};

    CHECK(control_open(&c, d, 51));
    CHECK(control_ask(&c, "table_open", ",\"name\":\"new\"", "\"NO_TABLE\""));
    CHECK(control_ask(&c, "table_open",
                      ",\"name\":\"new\",\"spec\":{\"name\":\"other\","
                      "\"rows\":10}",
                      "spec is of"));
    CHECK(control_ask(&c, "table_open",
                      ",\"name\":\"new\",\"job\":\"none\",\"job_id\":99,"
                      "\"spec\":{\"name\":\"new\",\"rows\":10}",
                      "NO_JOB"));
    CHECK(control_ask(&c, "table_open", ",\"name\":\"new\"", "\"NO_TABLE\""));
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"n\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":0",
                      "\"joins\":1"));
    CHECK(control_ask(&c, "table_open",
                      ",\"name\":\"new\",\"job\":\"n\","
                      "\"spec\":{\"name\":\"new\",\"rows\":10}",
                      "\"routes\""));
    CHECK(control_ask(&c, "job_tables", ",\"job\":\"n\"", "\"new\""));
    CHECK(control_ask(&c, "table_create",
                      ",\"job\":\"n\",\"spec\":{\"name\":\"made\","
                      "\"rows\":10}",
                      "\"routes\""));
    CHECK(control_ask(&c, "job_tables", ",\"job\":\"n\"", "\"made\""));
    /* There now: it is opened, whatever spec says. */
    CHECK(control_ask(&c, "table_open",
                      ",\"name\":\"new\",\"job\":\"n\","
                      "\"spec\":{\"name\":\"new\",\"rows\":11}",
                      "\"rows\":10"));
    CHECK(control_ask(&c, "job_leave", ",\"job\":\"n\",\"worker\":0,\"member\":0", "\"OK\""));
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"new\"", "\"OK\""));
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"made\"", "\"OK\""));
    control_close(&c);
    return true;
}

/* Asked before there is the table, the nodes may answer before they have it: a
 * worker that were told of it would mark its clocks where nobody knows it. */
static bool jobs_tables_are_those_that_nodes_had_when_they_were_asked(daemon_t *d)
{
    control_t c = {.fd = -1};

    CHECK(control_open(&c, d, 52));
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"t\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":0",
                      "\"OK\""));
    for (int i = 0; i < 8; i++) {
        char open[128];
        char name[32];

        (void)snprintf(name, sizeof name, "\"late%02d\"", i);
        (void)snprintf(open, sizeof open,
                       ",\"name\":%s,\"job\":\"t\",\"spec\":{\"name\":%s,"
                       "\"rows\":10}",
                       name, name);
        CHECK(control_post(&c, "job_tables", ",\"job\":\"t\""));
        CHECK(control_post(&c, "table_open", open));
        for (int k = 0; k < 2; k++) {
            CHECK(answer_has(&c, "\"OK\""));
            CHECK(strstr(c.reply, "\"tables\"") == NULL || strstr(c.reply, name) == NULL);
        }
        CHECK(control_ask(&c, "job_tables", ",\"job\":\"t\"", name));
    }
    control_close(&c);
    return true;
}

static bool a_barrier_opens_for_all_or_names_who_is_missing(daemon_t *d)
{
    control_t a = {.fd = -1};
    control_t b = {.fd = -1};
    char wanted[80];

    CHECK(control_open(&a, d, 60));
    CHECK(control_open(&b, d, 61));
    CHECK(control_ask(&a, "job_join",
                      ",\"job\":\"b\",\"worker\":0,\"workers\":2,"
                      "\"max_delay\":0",
                      "\"OK\""));
    CHECK(control_ask(&a, "barrier",
                      ",\"job\":\"b\",\"worker\":0,\"number\":1,"
                      "\"timeout_ms\":50",
                      "\"status\":\"DEADLINE\""));
    CHECK(strstr(a.reply, "worker 1 (not joined yet)") != NULL);
    CHECK(control_ask(&b, "job_join",
                      ",\"job\":\"b\",\"worker\":1,\"workers\":2,"
                      "\"max_delay\":0",
                      "\"OK\""));
    CHECK(control_ask(&a, "barrier",
                      ",\"job\":\"b\",\"worker\":0,\"number\":2,"
                      "\"timeout_ms\":50",
                      "worker 1 at clock 0"));
    /* Asked three times, under two ids: one answer, to the last. */
    for (int i = 0; i < 3; i++) {
        a.id -= i == 2 ? 1 : 0;
        CHECK(control_post(&a, "barrier",
                           ",\"job\":\"b\",\"worker\":0,\"number\":3,"
                           "\"timeout_ms\":60000"));
    }
    (void)snprintf(wanted, sizeof wanted, "{\"v\":1,\"id\":%u,\"status\":\"OK\",\"first\":0}",
                   a.id - 1);
    CHECK(control_ask(&a, "job_list", "", "\"jobs\""));
    CHECK(control_ask(&b, "barrier",
                      ",\"job\":\"b\",\"worker\":1,\"number\":1,"
                      "\"timeout_ms\":60000",
                      "\"status\":\"OK\""));
    CHECK(answer_has(&a, wanted));
    /* The answer was lost: the same again. */
    CHECK(control_ask(&b, "barrier",
                      ",\"job\":\"b\",\"worker\":1,\"number\":1,"
                      "\"timeout_ms\":60000",
                      "\"status\":\"OK\",\"first\":0"));
    /* A worker that leaves is waited for no more. */
    CHECK(control_post(&a, "barrier",
                       ",\"job\":\"b\",\"worker\":0,\"number\":4,"
                       "\"timeout_ms\":60000"));
    CHECK(control_ask(&b, "job_leave", ",\"job\":\"b\",\"worker\":1,\"member\":0", "\"OK\""));
    CHECK(answer_has(&a, "\"status\":\"OK\""));
    /* A job that is stopped lets nobody wait. */
    CHECK(control_ask(&a, "job_leave", ",\"job\":\"b\",\"worker\":0,\"member\":0", "\"OK\""));
    control_close(&a);
    control_close(&b);
    return true;
}

static bool a_silent_worker_is_lost_and_named(daemon_t *d)
{
    control_t a = {.fd = -1};
    bool lost = false;

    CHECK(control_open(&a, d, 70));
    CHECK(control_ask(&a, "job_join",
                      ",\"job\":\"s\",\"worker\":0,\"workers\":2,"
                      "\"max_delay\":0",
                      "\"OK\""));
    CHECK(control_ask(&a, "job_join",
                      ",\"job\":\"s\",\"worker\":1,\"workers\":2,"
                      "\"max_delay\":0",
                      "\"OK\""));
    CHECK(control_ask(&a, "heartbeat", ",\"job\":\"s\",\"worker\":1,\"clock\":7", "\"OK\""));
    for (int i = 0; i < WAIT_STEPS && !lost; i++) {
        CHECK(control_ask(&a, "heartbeat", ",\"job\":\"s\",\"worker\":0,\"clock\":3",
                          "\"status\":\"OK\""));
        CHECK(control_ask(&a, "why", ",\"job\":\"s\"", "\"text\""));
        lost = strstr(a.reply, "worker 1 was lost") != NULL;
        step();
    }
    CHECK(lost);
    CHECK(strstr(a.reply, "at clock 7, after ") != NULL);
    CHECK(strstr(a.reply, "nobody waits; worker 0 is computing") != NULL);
    CHECK(log_has(d, "warn worker_lost job=s"));
    CHECK(control_ask(&a, "heartbeat", ",\"job\":\"s\",\"worker\":1,\"clock\":8",
                      "\"status\":\"WORKER_LOST\""));
    CHECK(control_ask(&a, "clock_inspect", ",\"job\":\"s\"", "\"state\":\"lost\""));
    CHECK(control_ask(&a, "job_stop", ",\"job\":\"s\"", "\"OK\""));
    CHECK(control_ask(&a, "heartbeat", ",\"job\":\"s\",\"worker\":0,\"clock\":3",
                      "\"state\":\"stopped\""));
    control_close(&a);
    return true;
}

/* The answer names the plan that the worker has not got, and its key; people see no key. */
static bool who_says_where_its_relay_is_hears_the_plan(daemon_t *d)
{
    control_t a = {.fd = -1};
    control_t b = {.fd = -1};

    CHECK(control_open(&a, d, 95));
    for (int i = 0; i < 2; i++) {
        char fields[80];

        (void)snprintf(fields, sizeof fields,
                       ",\"job\":\"o\",\"worker\":%d,\"workers\":2,\"max_delay\":0", i);
        CHECK(control_ask(&a, "job_join", fields, "\"OK\""));
    }
    CHECK(control_ask(&a, "heartbeat", ",\"job\":\"o\",\"worker\":0,\"clock\":4", "\"OK\""));
    CHECK(strstr(a.reply, "overlay") == NULL);
    CHECK(control_ask(&a, "job_inspect", ",\"job\":\"o\"", "\"OK\""));
    CHECK(strstr(a.reply, "overlay") == NULL);
    CHECK(control_ask(
        &a, "heartbeat",
        ",\"job\":\"o\",\"worker\":0,\"clock\":4,\"joins\":1,\"relay\":\"tcp://127.0.0.1:1\"",
        "\"parents\":[0]"));
    CHECK(strstr(a.reply, "\"key\"") != NULL && strstr(a.reply, "\"clock\":5") != NULL);
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"clock\":4,\"joins\":1,\"plan\":0,"
                      "\"relay\":\"tcp://127.0.0.1:2\"",
                      "\"parents\":[0,1,2,0]"));
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"clock\":4,\"joins\":1,"
                      "\"plan\":9000000000000000000,\"relay\":\"tcp://127.0.0.1:2\"",
                      "\"OK\""));
    CHECK(strstr(a.reply, "parents") == NULL);
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"clock\":4,\"joins\":1,\"relay\":\"ipc://x\"",
                      "\"status\":\"INVALID\""));
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"relay\":\"tcp://127.0.0.1:2\"", "joins"));
    CHECK(strstr(a.reply, "\"status\":\"OK\"") == NULL && strstr(a.reply, "parents") == NULL);
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"joins\":1,\"relay\":\"tcp://10.1.2.3:2\"",
                      "\"relay_refused\":"));
    CHECK(strstr(a.reply, "allow_plaintext") != NULL && strstr(a.reply, "parents") == NULL);
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"joins\":1,\"relay\":\"tcp://127.0.0.1:2#"
                      "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"",
                      "\"relay_refused\":\"it has a key"));
    CHECK(strstr(a.reply, "parents") == NULL);
    CHECK(control_open(&b, d, 96));
    CHECK(control_ask(&b, "heartbeat",
                      ",\"job\":\"o\",\"worker\":1,\"joins\":1,\"relay\":\"tcp://127.0.0.1:3\"",
                      "\"status\":\"DENIED\""));
    CHECK(strstr(b.reply, "\"key\"") == NULL);
    control_close(&b);
    CHECK(
        control_ask(&a, "job_inspect", ",\"job\":\"o\"", "\"sends_to\":[\"worker 0\",\"nodes\"]"));
    CHECK(strstr(a.reply, "\"key\"") == NULL);
    CHECK(control_ask(&a, "job_stop", ",\"job\":\"o\"", "\"OK\""));
    control_close(&a);
    return true;
}

/* A heartbeat of a worker that leaves the overlay to psd: clocks of 4 s, nearly all of which its
 * push of 8 MB takes. */
static bool auto_beat(control_t *c, int worker, int clock, uint64_t plan, const char *part)
{
    char fields[400];

    (void)snprintf(fields, sizeof fields,
                   ",\"job\":\"oa\",\"worker\":%d,\"clock\":%d,\"joins\":1,\"plan\":%" PRIu64
                   ",\"relay\":\"tcp://127.0.0.1:%d\",\"overlay\":{\"policy\":\"auto\","
                   "\"clock\":%d,\"ago_us\":%d,\"bytes\":%d,\"links\":[{\"bytes\":8000000,"
                   "\"us\":3900000}]}",
                   worker, clock, plan, 1 + worker, clock, (5 - clock) * 4000000, clock * 8000000);
    return control_ask(c, "heartbeat", fields, part);
}

/* The version of the plan in an answer; 0: there is none. */
static uint64_t plan_of(const control_t *c)
{
    const char *at = strstr(c->reply, "\"plan\":");

    return at == NULL ? 0 : strtoull(at + strlen("\"plan\":"), NULL, 10);
}

/* Workers that measure get a star first, of nobody, and a tree when it pays. */
static bool workers_that_measure_get_a_tree_when_it_pays(daemon_t *d)
{
    control_t a = {.fd = -1};
    uint64_t plan = 0;
    uint64_t tree = 0;

    CHECK(control_open(&a, d, 97));
    for (int i = 0; i < 2; i++) {
        char fields[80];

        (void)snprintf(fields, sizeof fields,
                       ",\"job\":\"oa\",\"worker\":%d,\"workers\":2,\"max_delay\":0", i);
        CHECK(control_ask(&a, "job_join", fields, "\"OK\""));
    }
    CHECK(auto_beat(&a, 0, 0, 0, "\"parents\":[]"));
    CHECK(auto_beat(&a, 1, 0, 0, "\"parents\":[]"));
    plan = plan_of(&a);
    CHECK(plan != 0);
    CHECK(control_ask(&a, "job_inspect", ",\"job\":\"oa\"", "\"uses\":\"star\""));
    for (int clock = 1; clock < 4; clock++) {
        CHECK(auto_beat(&a, 1, clock, plan, "\"OK\""));
        CHECK(auto_beat(&a, 0, clock, plan, "\"OK\""));
        CHECK(plan_of(&a) == 0);
    }
    CHECK(auto_beat(&a, 0, 4, plan, "\"workers\":[{\"worker\":0,"));
    tree = plan_of(&a);
    CHECK(tree > plan && strstr(a.reply, "\"clock\":5") != NULL);
    CHECK(auto_beat(&a, 1, 4, plan, "\"workers\":[{\"worker\":0,"));
    CHECK(auto_beat(&a, 1, 4, tree, "\"OK\""));
    CHECK(plan_of(&a) == 0);
    CHECK(control_ask(&a, "job_inspect", ",\"job\":\"oa\"", "\"uses\":\"tree\""));
    CHECK(strstr(a.reply, "{\"from\":1,\"bytes\":") != NULL);
    CHECK(control_ask(&a, "heartbeat",
                      ",\"job\":\"oa\",\"worker\":1,\"joins\":1,\"relay\":\"tcp://127.0.0.1:2\","
                      "\"overlay\":{\"policy\":\"auto\",\"clock\":-1}",
                      "\"status\":\"INVALID\""));
    CHECK(control_ask(&a, "job_stop", ",\"job\":\"oa\"", "\"OK\""));
    control_close(&a);
    return true;
}

/* A worker that was silent because psd itself stood still is not lost. */
static bool a_daemon_that_stood_still_hears_its_workers_first(daemon_t *d)
{
    control_t a = {.fd = -1};

    CHECK(control_open(&a, d, 80));
    CHECK(control_ask(&a, "job_join",
                      ",\"job\":\"p\",\"worker\":0,\"workers\":1,"
                      "\"max_delay\":0",
                      "\"OK\""));
    CHECK(control_ask(&a, "heartbeat", ",\"job\":\"p\",\"worker\":0,\"clock\":1", "\"OK\""));
    CHECK(kill(d->pid, SIGSTOP) == 0);
    for (int i = 0; i < 2400; i++) {
        step(); /* 12 s pass, and the worker would be lost after 8 */
    }
    CHECK(control_post(&a, "heartbeat", ",\"job\":\"p\",\"worker\":0,\"clock\":2"));
    CHECK(kill(d->pid, SIGCONT) == 0);
    CHECK(answer_has(&a, "\"status\":\"OK\""));
    CHECK(control_ask(&a, "job_leave", ",\"job\":\"p\",\"worker\":0,\"member\":0", "\"OK\""));
    control_close(&a);
    return true;
}

static bool who_calls_shards_silent_is_understood(daemon_t *d)
{
    control_t a = {.fd = -1};

    CHECK(control_open(&a, d, 90));
    CHECK(control_ask(&a, "routes", ",\"tables\":[99]", "\"gone\":[99]"));
    CHECK(control_ask(&a, "routes", ",\"tables\":[99],\"silent\":[77,1,5000,77,0,10]",
                      "\"gone\":[99]"));
    CHECK(control_ask(&a, "routes", ",\"tables\":[99],\"silent\":[77,1]",
                      "silent: 2 numbers; they come in threes"));
    CHECK(control_ask(&a, "routes", ",\"tables\":[99],\"silent\":[77,\"x\",5000]",
                      "silent[1] is \\\"x\\\"; allowed: "));
    control_close(&a);
    return true;
}

/* Routes are told to those who do not know them: who does, names the sum of
 * their epochs. */
static bool routes_that_are_known_are_not_told(daemon_t *d)
{
    control_t a = {.fd = -1};
    const char *at = NULL;
    uint64_t sum = 0;
    char fields[128];
    char tables[32];

    CHECK(control_open(&a, d, 91));
    CHECK(control_ask(&a, "table_create",
                      ",\"spec\":{\"name\":\"far\",\"rows\":10,"
                      "\"partitions\":3}",
                      "\"routes\""));
    at = strstr(a.reply, "\"table\":{\"name\":\"far\"");
    at = at == NULL ? NULL : strstr(at, "\"id\":");
    CHECK(at != NULL);
    (void)snprintf(tables, sizeof tables, ",\"tables\":[%.*s]", (int)strspn(at + 5, "0123456789"),
                   at + 5);
    CHECK(control_ask(&a, "routes", tables, "\"places\":[{"));
    for (at = strstr(a.reply, "\"epoch\":"); at != NULL; at = strstr(at + 1, "\"epoch\":")) {
        sum += strtoull(at + 8, NULL, 10);
    }
    CHECK(sum > 0);
    (void)snprintf(fields, sizeof fields, "%s,\"known\":[%" PRIu64 "]", tables, sum);
    CHECK(control_ask(&a, "routes", fields, "\"places\":[]"));
    (void)snprintf(fields, sizeof fields, "%s,\"known\":[%" PRIu64 "]", tables, sum - 1);
    CHECK(control_ask(&a, "routes", fields, "\"places\":[{"));
    (void)snprintf(fields, sizeof fields, "%s,\"known\":[]", tables);
    CHECK(control_ask(&a, "routes", fields, "known: 0 numbers for 1 tables"));
    (void)snprintf(fields, sizeof fields, "%s,\"known\":[1,2]", tables);
    CHECK(control_ask(&a, "routes", fields, "known: 2 numbers for 1 tables"));
    (void)snprintf(fields, sizeof fields, "%s,\"known\":[-1]", tables);
    CHECK(control_ask(&a, "routes", fields, "known[0] is -1; allowed: "));
    control_close(&a);
    return true;
}

/* Asks until the checkpoint that the last reply numbers is there. */
static bool wait_checkpoint(control_t *c)
{
    const char *number = strstr(c->reply, "\"number\":");
    char fields[64];

    CHECK(number != NULL);
    (void)snprintf(fields, sizeof fields, ",\"number\":%lu",
                   strtoul(number + strlen("\"number\":"), NULL, 10));
    for (int i = 0; i < WAIT_STEPS; i++) {
        CHECK(control_ask(c, "checkpoint_look", fields, "\"OK\""));
        if (strstr(c->reply, "\"is_done\":true") != NULL) {
            return true;
        }
        step();
    }
    return false;
}

/* A restore that nobody asks for any more took away whatever had its table's
 * name, with pushes that were acknowledged. */
static bool a_restore_given_up_takes_its_own_table_only(daemon_t *d)
{
    static const char spec[] = ",\"name\":\"kept\",\"spec\":{\"name\":\"kept\",\"rows\":10}";
    control_t c = {.fd = -1};

    CHECK(control_open(&c, d, 91));
    CHECK(control_ask(&c, "table_open", spec, "\"OK\""));
    CHECK(control_ask(&c, "checkpoint_create", ",\"name\":\"all\"", "\"number\":"));
    CHECK(wait_checkpoint(&c));
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"kept\"", "\"OK\""));
    CHECK(control_ask(&c, "checkpoint_restore", ",\"name\":\"all\",\"table\":\"kept\"",
                      "\"number\":"));
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"kept\"", "\"OK\""));
    CHECK(control_ask(&c, "table_open", spec, "\"OK\""));
    CHECK(wait_log(d, "checkpoint_given_up"));
    control_close(&c); /* a silent connection does not last so long */
    CHECK(control_open(&c, d, 93));
    CHECK(control_ask(&c, "table_open", ",\"name\":\"kept\"", "\"OK\""));
    control_close(&c);
    return true;
}

/* Nobody else says anything to a psd of its own meanwhile. */
static bool who_opens_a_table_that_is_made_is_answered(daemon_t *d)
{
    control_t a = {.fd = -1};
    control_t b = {.fd = -1};

    CHECK(control_open(&a, d, 48));
    CHECK(control_open(&b, d, 49));
    for (int i = 0; i < 20; i++) {
        char fields[120];

        (void)snprintf(fields, sizeof fields,
                       ",\"name\":\"two\",\"spec\":{\"name\":\"two\","
                       "\"rows\":%d}",
                       i + 1);
        CHECK(control_post(&a, "table_open", fields));
        CHECK(control_post(&b, "table_open", fields));
        CHECK(answer_has(&a, "\"status\":\"OK\""));
        CHECK(answer_has(&b, "\"status\":\"OK\""));
        CHECK(control_ask(&a, "table_drop", ",\"name\":\"two\"", "\"dropped\":true"));
    }
    control_close(&a);
    control_close(&b);
    return true;
}

int main(void)
{
    daemon_t d = {.pid = 0};
    bool good = daemon_start(&d, "shards: 2\nworkers: {heartbeat_ms: 50, lost_after_ms: 8000}\n");

    RUN(who_opens_a_table_that_is_made_is_answered(&d));
    RUN(a_repeated_request_is_answered_as_the_first(&d));
    RUN(what_is_opened_with_a_spec_is_made_and_the_jobs(&d) &&
        jobs_tables_are_those_that_nodes_had_when_they_were_asked(&d));
    RUN(a_barrier_opens_for_all_or_names_who_is_missing(&d));
    RUN(a_silent_worker_is_lost_and_named(&d) && who_says_where_its_relay_is_hears_the_plan(&d) &&
        workers_that_measure_get_a_tree_when_it_pays(&d));
    RUN(a_daemon_that_stood_still_hears_its_workers_first(&d));
    RUN(who_calls_shards_silent_is_understood(&d) && routes_that_are_known_are_not_told(&d));
    RUN(a_restore_given_up_takes_its_own_table_only(&d));
    RUN(daemon_end(&d, SIGTERM));
    daemon_drop(&d, !good);
    return good ? 0 : 1;
}
