/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request whose answer was lost together with the process that gave it
 *
 * For each operation that changes something: it is done, the registry is killed
 * with kill -9 and started again, somebody else changes the same thing, and the
 * request comes once more under its id. It is answered as before, with the same
 * numbers, and does nothing.
 */
#include <signal.h>

#include "support/control.h"

#define CONFIG                               \
    "shards: 2\nnode: {name: n1}\nworkers: " \
    "{heartbeat_ms: 1000, lost_after_ms: 60000}\n"

typedef struct asked {
    daemon_t *d;
    control_t c;            /* of the client that asks again */
    char first[REPLY_SIZE]; /* its answer */
    unsigned id;            /* of its request */
    control_t other;        /* of somebody else */
    unsigned clients;
} asked_t;

/* Both have a session in the life that begins. */
static bool meet(asked_t *a)
{
    a->c.fd = zmtp_connect(a->d->control);
    CHECK(a->c.fd >= 0);
    return control_open(&a->other, a->d, 100 + a->clients++);
}

static bool die_and_live(asked_t *a)
{
    control_close(&a->c);
    control_close(&a->other);
    CHECK(daemon_end(a->d, SIGKILL));
    CHECK(daemon_restart(a->d));
    return meet(a);
}

/* The client asks, is answered, and the registry dies. */
static bool ask(asked_t *a, const char *op, const char *fields)
{
    a->id = a->c.id;
    CHECK(control_ask(&a->c, op, fields, "\"status\":\"OK\""));
    memcpy(a->first, a->c.reply, sizeof a->first);
    return die_and_live(a);
}

/* What the first answer and the last one have behind a key must be the same;
 * keys end with NULL. */
static bool same(const asked_t *a, const char *const *keys)
{
    for (; *keys != NULL; keys++) {
        const char *before = strstr(a->first, *keys);
        const char *after = strstr(a->c.reply, *keys);
        size_t size = 0;

        CHECK(before != NULL && after != NULL);
        size = strcspn(before, ",}");
        if (size != strcspn(after, ",}") || strncmp(before, after, size) != 0) {
            (void)fprintf(stderr, "%s differs: %.900s\n%.900s\n", *keys, a->first, a->c.reply);
            return false;
        }
    }
    return true;
}

/* … and asks once more. */
static bool ask_again(asked_t *a, const char *op, const char *fields, const char *const *keys)
{
    char said[80];

    a->c.id = a->id;
    CHECK(control_ask(&a->c, op, fields, "\"status\":\"OK\""));
    CHECK(same(a, keys));
    (void)snprintf(said, sizeof said, "request_repeated op=%s session=%llu id=%u ", op,
                   a->c.session, a->id);
    return log_has(a->d, said);
}

#define KEYS(...) ((const char *const[]){__VA_ARGS__, NULL})

static bool a_table_is_created_once(asked_t *a)
{
    static const char fields[] = ",\"spec\":{\"name\":\"w\",\"rows\":10}";

    CHECK(ask(a, "table_create", fields));
    CHECK(control_ask(&a->other, "table_create", ",\"spec\":{\"name\":\"v\",\"rows\":10}", "OK"));
    CHECK(
        ask_again(a, "table_create", fields, KEYS("\"id\":", "\"name\":\"w\"", "\"partitions\"")));
    CHECK(control_ask(&a->c, "table_create", fields, "\"TABLE_EXISTS\""));
    return true;
}

/* The loss that the request acknowledged is not the next one. */
static bool a_loss_is_acknowledged_once(asked_t *a)
{
    static const char fields[] = ",\"name\":\"w\"";

    CHECK(control_ask(&a->other, "table_inspect", fields, "\"rows_lost\":true"));
    CHECK(ask(a, "table_ack", fields));
    CHECK(
        ask_again(a, "table_ack", fields, KEYS("\"name\":", "\"rows_lost\":", "\"loss_acked\":")));
    return control_ask(&a->other, "table_inspect", fields, "\"loss_acked\":false");
}

static bool a_table_is_dropped_once(asked_t *a)
{
    static const char fields[] = ",\"name\":\"w\"";

    CHECK(ask(a, "table_drop", fields));
    CHECK(control_ask(&a->other, "table_create", ",\"spec\":{\"name\":\"w\",\"rows\":9}", "OK"));
    CHECK(ask_again(a, "table_drop", fields, KEYS("\"id\":", "\"name\":", "\"dropped\":")));
    return control_ask(&a->other, "table_inspect", fields, "\"rows\":9");
}

static bool a_worker_joins_once(asked_t *a)
{
    static const char fields[] = ",\"job\":\"j\",\"worker\":0,\"workers\":1,\"max_delay\":0";
    static const char attach[] = ",\"job\":\"j\",\"worker\":0,\"attach\":true";

    CHECK(ask(a, "job_join", fields));
    CHECK(control_ask(&a->other, "job_join", attach, "\"member\":1"));
    CHECK(ask_again(a, "job_join", fields,
                    KEYS("\"job_id\":", "\"worker\":", "\"member\":", "\"joins\":", "\"clock\":")));
    CHECK(ask(a, "job_join", attach));
    CHECK(control_ask(&a->other, "job_join", attach, "\"member\":3"));
    CHECK(ask_again(a, "job_join", attach, KEYS("\"job_id\":", "\"member\":", "\"joins\":")));
    return control_ask(&a->other, "job_inspect", ",\"job\":\"j\"", "\"members\":4");
}

static bool a_worker_leaves_once(asked_t *a)
{
    static const char join[] = ",\"job\":\"l\",\"worker\":0,\"workers\":1,\"max_delay\":0";
    static const char fields[] = ",\"job\":\"l\",\"worker\":0";

    CHECK(control_ask(&a->c, "job_join", join, "\"joins\":1"));
    CHECK(ask(a, "job_leave", fields));
    CHECK(control_ask(&a->other, "job_join", join, "\"job\":\"l\""));
    CHECK(ask_again(a, "job_leave", fields, KEYS("\"lost\":")));
    return control_ask(&a->other, "job_inspect", fields, "\"state\":\"running\"");
}

static bool a_job_is_stopped_once(asked_t *a)
{
    static const char join[] = ",\"job\":\"s\",\"worker\":0,\"workers\":1,\"max_delay\":0";
    static const char fields[] = ",\"job\":\"s\"";

    CHECK(control_ask(&a->c, "job_join", join, "\"joins\":1"));
    CHECK(ask(a, "job_stop", fields));
    CHECK(control_ask(&a->other, "job_leave", ",\"job\":\"s\",\"worker\":0", "\"v\":1"));
    CHECK(control_ask(&a->other, "job_join", join, "\"joins\":1"));
    CHECK(ask_again(a, "job_stop", fields, KEYS("\"job\":")));
    return control_ask(&a->other, "job_inspect", fields, "\"state\":\"running\"");
}

static bool a_node_is_drained_once(asked_t *a)
{
    static const char drain[] = ",\"name\":\"n1\"";
    static const char stay[] = ",\"name\":\"n1\",\"stay\":true";

    CHECK(ask(a, "node_drain", drain));
    CHECK(control_ask(&a->other, "node_drain", stay, "\"draining\":false"));
    CHECK(ask_again(a, "node_drain", drain, KEYS("\"node\":")));
    CHECK(control_ask(&a->other, "node_list", "", "\"state\":\"up\""));
    CHECK(control_ask(&a->other, "node_drain", drain, "\"draining\":true"));
    CHECK(ask(a, "node_drain", stay));
    CHECK(control_ask(&a->other, "node_drain", drain, "\"draining\":true"));
    CHECK(ask_again(a, "node_drain", stay, KEYS("\"node\":")));
    CHECK(control_ask(&a->other, "node_list", "", "\"state\":\"draining\""));
    return control_ask(&a->other, "node_drain", stay, "\"draining\":false");
}

/* Until the work of that number is done; the last look is the client's. */
static bool look(asked_t *a)
{
    const char *at = strstr(a->c.reply, "\"number\":");
    char fields[64];

    CHECK(at != NULL);
    (void)snprintf(fields, sizeof fields, ",\"number\":%llu", strtoull(at + 9, NULL, 10));
    do {
        a->id = a->c.id;
        CHECK(control_ask(&a->c, "checkpoint_look", fields, "\"status\":\"OK\""));
    } while (strstr(a->c.reply, "\"is_done\":true") == NULL);
    return true;
}

/* Work that was under way ends with the registry: the repetition begins it
 * again. */
static bool a_checkpoint_is_made_and_restored(asked_t *a)
{
    static const char create[] = ",\"name\":\"c1\",\"tables\":[\"w\"]";
    static const char restore[] = ",\"name\":\"c1\",\"table\":\"w\",\"as\":\"r\"";
    char fields[64];
    unsigned long long number = 0;

    CHECK(ask(a, "checkpoint_create", create));
    CHECK(ask_again(a, "checkpoint_create", create, KEYS("\"status\":")));
    CHECK(look(a));
    CHECK(ask(a, "checkpoint_restore", restore));
    CHECK(control_ask(&a->other, "table_list", "", "\"name\":\"w\""));
    CHECK(strstr(a->other.reply, "\"name\":\"r\"") == NULL);
    CHECK(ask_again(a, "checkpoint_restore", restore, KEYS("\"status\":")));
    number = strtoull(strstr(a->c.reply, "\"number\":") + 9, NULL, 10);
    CHECK(look(a));
    memcpy(a->first, a->c.reply, sizeof a->first);
    CHECK(die_and_live(a));
    (void)snprintf(fields, sizeof fields, ",\"number\":%llu", number);
    CHECK(ask_again(a, "checkpoint_look", fields, KEYS("\"is_done\":", "\"row_bytes\":")));
    return control_ask(&a->other, "table_inspect", ",\"name\":\"r\"", "\"name\":\"r\"");
}

static bool start_member(daemon_t *m, const asked_t *a, const char *name)
{
    char config[600];

    (void)snprintf(config, sizeof config,
                   "shards: 1\nnode: {name: %s}\ncluster: {join: [\"%s\"]}\n", name, a->d->control);
    return daemon_start(m, config);
}

/* The first step is stored; the second one waits for a node that does not
 * answer, when the registry dies. */
static bool half_a_join_goes_on(asked_t *a, daemon_t *m)
{
    static const char fields[] = ",\"job\":\"h\",\"worker\":0,\"workers\":1,\"max_delay\":0,"
                                 "\"timeout_ms\":60000";

    CHECK(start_member(m, a, "n2"));
    CHECK(wait_log(a->d, "is in sync on node n2")); /* half of its copies are not yet */
    CHECK(daemon_freeze(m));
    a->id = a->c.id;
    CHECK(control_post(&a->c, "job_join", fields));
    CHECK(wait_log(a->d, "joins job h"));
    CHECK(die_and_live(a));
    (void)snprintf(a->first, sizeof a->first, "%s", "\"worker\":0,\"member\":0,\"joins\":1,");
    return ask_again(a, "job_join", fields, KEYS("\"worker\":", "\"member\":", "\"joins\":"));
}

/* Refused while the registry may still think that it lives. */
static bool a_node_is_removed_once(asked_t *a)
{
    static const char fields[] = ",\"name\":\"n2\",\"force\":true";

    do {
        a->id = a->c.id;
        step();
        CHECK(control_ask(&a->c, "node_remove", fields, "\"v\":1"));
    } while (strstr(a->c.reply, "\"NODE_HELD\"") != NULL);
    CHECK(strstr(a->c.reply, "\"status\":\"OK\"") != NULL);
    memcpy(a->first, a->c.reply, sizeof a->first);
    CHECK(die_and_live(a));
    return ask_again(a, "node_remove", fields, KEYS("\"node\":", "\"removed\":"));
}

int main(void)
{
    static asked_t a;
    daemon_t d = {.pid = 0};
    daemon_t m = {.pid = 0};
    bool good = daemon_start(&d, CONFIG);

    a.d = &d;
    RUN(control_open(&a.c, &d, 50) && control_open(&a.other, &d, 51));
    RUN(a_table_is_created_once(&a));
    RUN(a_loss_is_acknowledged_once(&a));
    RUN(a_table_is_dropped_once(&a));
    RUN(a_worker_joins_once(&a));
    RUN(a_worker_leaves_once(&a));
    RUN(a_job_is_stopped_once(&a));
    RUN(a_node_is_drained_once(&a));
    RUN(a_checkpoint_is_made_and_restored(&a));
    RUN(half_a_join_goes_on(&a, &m));
    RUN(a_node_is_removed_once(&a));
    control_close(&a.c);
    control_close(&a.other);
    daemon_drop(&m, !good);
    RUN(daemon_end(&d, SIGTERM));
    daemon_drop(&d, !good);
    return good ? 0 : 1;
}
