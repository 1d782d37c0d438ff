/* SPDX-License-Identifier: Apache-2.0 */
/* A cluster of several processes: tables over all of them, jobs across them, a
 * node that dies and comes back, and nodes that are not let in. */
#include <psd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "protocol/agent/node_message.h"
#include "support/control.h"

#define ROWS 1200
#define NODES 3

typedef struct fleet {
    daemon_t nodes[NODES]; /* the first one has the registry */
} fleet_t;

static bool start_member(daemon_t *d, const daemon_t *registry, const char *name)
{
    char config[600];

    (void)snprintf(config, sizeof config,
                   "shards: 2\nnode: {name: %s}\ncluster: {join: [\"%s\"]}\n", name,
                   registry->control);
    return daemon_start(d, config);
}

/* Asks the same until the answer has (or lacks) that. */
static bool wait_answer(control_t *c, const char *op, const char *fields, const char *part,
                        bool has)
{
    for (int i = 0; i < WAIT_STEPS; i++) {
        CHECK(control_ask(c, op, fields, "\"v\":1"));
        if ((strstr(c->reply, part) != NULL) == has) {
            return true;
        }
        step();
    }
    (void)fprintf(stderr, "%s %s: %.3000s\n", has ? "never had" : "kept", part, c->reply);
    return false;
}

static bool all_nodes_are_up(fleet_t *f, unsigned client)
{
    control_t c = {.fd = -1};

    CHECK(control_open(&c, &f->nodes[0], client));
    CHECK(wait_answer(&c, "node_list", "", "\"name\":\"n3\",\"state\":\"up\"", true));
    CHECK(wait_answer(&c, "cluster_status", "", "\"healthy\":true", true));
    CHECK(strstr(c.reply, "\"name\":\"n2\"") != NULL);
    CHECK(control_ask(&c, "node_inspect", ",\"name\":\"n2\"", "\"shard_list\":[{\"shard\":0"));
    control_close(&c);
    return true;
}

/* Every row of a table over all nodes is pushed and pulled. */
static bool rows_live_on_all_nodes(fleet_t *f, psd_error_t *err)
{
    static uint64_t rows[ROWS];
    static int64_t deltas[ROWS];
    static int64_t values[ROWS];
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_spec_t *spec = psd_spec_new();
    control_t c = {.fd = -1};

    CHECK_OK(psd_connect(f->nodes[0].control, NULL, &client, err), err);
    CHECK(control_open(&c, &f->nodes[0], 11));
    /* A node that is suspected gets nothing of a table. */
    CHECK(wait_answer(&c, "cluster_status", "", "\"healthy\":true", true));
    CHECK_OK(psd_spec_set(spec, "rows", "1200", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "12", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    psd_spec_destroy(&spec);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        deltas[i] = (int64_t)i + 1;
    }
    CHECK_OK(psd_push(table, rows, ROWS, deltas, ROWS, err), err);
    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == (int64_t)i + 1);
    }
    CHECK(control_ask(&c, "table_inspect", ",\"name\":\"w\"", "\"rows_pushed\":1200"));
    CHECK(strstr(c.reply, "\"primary\":\"n2/1\"") != NULL);
    CHECK(strstr(c.reply, "\"primary\":\"n3/0\"") != NULL);
    CHECK(strstr(c.reply, "\"lsn\":0,") == NULL);
    control_close(&c);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

/* A worker that has not come holds the other one up at partitions of other
 * nodes; why says who it is. */
static bool a_wait_elsewhere_is_explained(fleet_t *f, psd_error_t *err)
{
    static uint64_t rows[ROWS];
    static int64_t values[ROWS];
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    psd_ticket_t ticket = 0;
    psd_select_t *all = psd_select_new();
    control_t c = {.fd = -1};

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        values[i] = 1;
    }
    CHECK(control_open(&c, &f->nodes[0], 12));
    CHECK_OK(psd_connect(f->nodes[0].control, NULL, &client, err), err);
    CHECK_OK(psd_join(client, "j", 0, 2, 0, err), err);
    CHECK_OK(psd_table_open(client, "w", &table, err), err);
    CHECK_OK(psd_push(table, rows, ROWS, values, ROWS, err), err);
    CHECK_OK(psd_clock(client, err), err);
    psd_select_all_rows(all);
    CHECK_OK(psd_pull_start(table, all, values, ROWS, NULL, &ticket, err), err);
    CHECK(wait_answer(&c, "why", ",\"job\":\"j\"", "for worker 1 (not joined yet)", true));
    CHECK(wait_answer(&c, "clock_inspect", ",\"job\":\"j\"", "\"state\":\"waiting\",\"clock\":1",
                      true));
    /* It comes and goes: nobody holds anybody up any more. */
    CHECK(control_ask(&c, "job_join",
                      ",\"job\":\"j\",\"worker\":1,\"workers\":2,"
                      "\"max_delay\":0",
                      "\"status\":\"OK\""));
    CHECK(control_ask(&c, "job_leave", ",\"job\":\"j\",\"worker\":1,\"member\":0", "\"OK\""));
    CHECK_OK(psd_wait(client, ticket, 60000, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == (int64_t)i + 2);
    }
    CHECK_OK(psd_leave(client, 60000, err), err);
    psd_select_destroy(&all);
    psd_table_close(&table);
    psd_close(&client);
    control_close(&c);
    return true;
}

/* What would move is said, and nothing moves; who is up stays. */
static bool moves_are_planned(fleet_t *f)
{
    control_t c = {.fd = -1};

    CHECK(control_open(&c, &f->nodes[0], 16));
    CHECK(control_ask(&c, "node_drain", ",\"name\":\"n2\",\"dry_run\":true", "\"draining\":false"));
    CHECK(strstr(c.reply, "\"left\":{\"copies\":4,\"primaries\":4,"
                          "\"last\":4,\"bytes\":3200,\"stuck\":0}") != NULL);
    CHECK(strstr(c.reply, "\"partition\":3,\"from\":\"n2\",") != NULL);
    CHECK(control_ask(&c, "cluster_rebalance", "", "\"moves\":[]"));
    CHECK(control_ask(&c, "node_drain", ",\"name\":\"n2\"", "\"draining\":true"));
    CHECK(control_ask(&c, "node_drain", ",\"name\":\"n2\",\"stay\":true", "\"draining\":false"));
    CHECK(control_ask(&c, "node_remove", ",\"name\":\"n2\",\"force\":true",
                      "\"status\":\"NODE_HELD\""));
    CHECK(control_ask(&c, "node_remove", ",\"name\":\"n1\"", "\"status\":\"DENIED\""));
    CHECK(control_ask(&c, "node_drain", ",\"name\":\"n9\"", "\"status\":\"NO_NODE\""));
    /* What went before n2 was to stay has come back. */
    for (unsigned i = 1; i <= NODES; i++) {
        char fields[32];

        (void)snprintf(fields, sizeof fields, ",\"name\":\"n%u\"", i);
        CHECK(wait_answer(&c, "node_inspect", fields,
                          "\"partitions\":{\"primary\":4,\"replica\":0}", true));
    }
    control_close(&c);
    return true;
}

/* What waits for a node that is gone ends when its tables are dropped, all of
 * them. */
static bool a_drop_ends_what_waits(fleet_t *f, psd_error_t *err)
{
    static const char *const NAMES[] = {"d0", "d1", "d2"};
    static uint64_t rows[12];
    static float values[12];
    psd_client_t *client = NULL;
    psd_table_t *tables[3] = {NULL};
    psd_ticket_t tickets[3] = {0};
    psd_spec_t *spec = psd_spec_new();
    psd_select_t *all = psd_select_new();
    control_t c = {.fd = -1};
    char fields[64];

    for (size_t i = 0; i < 12; i++) {
        rows[i] = i;
    }
    CHECK(control_open(&c, &f->nodes[0], 15));
    CHECK_OK(psd_connect(f->nodes[0].control, NULL, &client, err), err);
    CHECK_OK(psd_spec_set(spec, "rows", "12", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "12", err), err);
    /* A node that is suspected gets nothing of a table. */
    CHECK(wait_answer(&c, "cluster_status", "", "\"healthy\":true", true));
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(psd_table_create(client, NAMES[i], spec, &tables[i], err), err);
        CHECK_OK(psd_push(tables[i], rows, 12, values, 12, err), err);
    }
    CHECK(daemon_end(&f->nodes[1], SIGKILL));
    psd_select_all_rows(all);
    for (size_t i = 0; i < 3; i++) {
        CHECK_OK(psd_push_start(tables[i], all, values, 12, NULL, &tickets[i], err), err);
    }
    CHECK(psd_wait(client, tickets[0], 300, err) == PSD_DEADLINE);
    psd_error_clear(err);
    for (size_t i = 0; i < 3; i++) {
        (void)snprintf(fields, sizeof fields, ",\"name\":\"%s\"", NAMES[i]);
        CHECK(control_ask(&c, "table_drop", fields, "\"dropped\":true"));
    }
    for (size_t i = 0; i < 3; i++) {
        CHECK(psd_wait(client, tickets[i], 60000, err) == PSD_NO_TABLE);
        psd_error_clear(err);
        psd_table_close(&tables[i]);
    }
    psd_select_destroy(&all);
    psd_spec_destroy(&spec);
    psd_close(&client);
    control_close(&c);
    return true;
}

/* Killed, it is named; started again, it has its partitions, without rows. */
static bool a_dead_node_is_named_and_comes_back(fleet_t *f)
{
    control_t c = {.fd = -1};

    CHECK(control_open(&c, &f->nodes[0], 13));
    CHECK(wait_answer(&c, "cluster_status", "", "node \\\"n2\\\" is down", true));
    CHECK(strstr(c.reply, " partitions, which have no other copy") != NULL);
    CHECK(strstr(c.reply, "\"healthy\":false") != NULL);
    /* Tables are made on those that are left. */
    CHECK(control_ask(&c, "table_create",
                      ",\"spec\":{\"name\":\"x\",\"rows\":10,"
                      "\"n_partitions\":4}",
                      "\"status\":\"OK\""));
    CHECK(strstr(c.reply, "\"primary\":\"n2/") == NULL);
    CHECK(daemon_restart(&f->nodes[1]));
    CHECK(wait_answer(&c, "cluster_status", "", "node \\\"n2\\\" is", false));
    CHECK(strstr(c.reply, "table \\\"w\\\" lost") != NULL);
    CHECK(wait_answer(&c, "table_inspect", ",\"name\":\"w\"", "\"rows_present\":1200", true));
    control_close(&c);
    return true;
}

/* A psd that is to join, and its end: its code, with `line` in its log. */
static bool is_refused(const daemon_t *registry, daemon_t *d, const char *name, const char *line)
{
    CHECK(!start_member(d, registry, name));
    return log_has(d, line);
}

static bool who_does_not_belong_is_refused(fleet_t *f)
{
    daemon_t twin = {.pid = 0};
    daemon_t other = {.pid = 0};
    control_t c = {.fd = -1};
    char config[PATH_MAX];
    FILE *file = NULL;

    CHECK(is_refused(&f->nodes[0], &twin, "n3", "a node \"n3\" is up at"));
    daemon_drop(&twin, false);
    /* A data directory with a registry of its own. */
    CHECK(daemon_start(&other, "shards: 1\n"));
    CHECK(daemon_end(&other, SIGTERM));
    (void)snprintf(config, sizeof config, "%.3000s/psd.yaml", other.dir.path);
    file = fopen(config, "we");
    CHECK(file != NULL);
    CHECK(fprintf(file, "node: {name: n4}\ncluster: {join: [\"%s\"]}\n", f->nodes[0].control) > 0);
    CHECK(fclose(file) == 0);
    CHECK(!daemon_restart(&other));
    CHECK(log_has(&other, "psd: E5003 data directory"));
    CHECK(log_has(&other, "has a registry of its own"));
    /* A membership that cannot be read is not one that is not there. */
    (void)snprintf(config, sizeof config, "%.3000s/data/member.json", other.dir.path);
    CHECK(unlink(config) == 0);
    CHECK(mkdir(config, 0700) == 0);
    CHECK(!daemon_restart(&other));
    CHECK(log_has(&other, "data/member.json: Is a directory"));
    CHECK(rmdir(config) == 0);
    daemon_drop(&other, false);
    /* Another version: that of builds which had no number, and a later one. */
    CHECK(control_open(&c, &f->nodes[0], 14));
    CHECK(control_ask(&c, "node_join", ",\"versions\":[1,1],\"name\":\"n9\"",
                      "the node speaks node versions 1 .. 1, this psd speaks 9; stop all nodes, "
                      "upgrade all to one build of psd, start them; no row of level disk is lost"));
    CHECK(log_has(&f->nodes[0], "node n9 was refused: the node speaks node versions 1 .. 1, "));
    CHECK(control_ask(&c, "node_join", ",\"versions\":[10,11]", "\"status\":\"VERSION\""));
    control_close(&c);
    return true;
}

static unsigned count_parts(const char *text, const char *part)
{
    unsigned n = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        n++;
    }
    return n;
}

#define DENIED_KEY "\"nodes_denied\":"

/* An announcement under that name is refused. */
static bool is_denied(control_t *c, const ps_id_t *cluster, const char *name, uint64_t incarnation,
                      const ps_id_t *secret)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_node_message_done) ps_node_message_t heard = {0};
    ps_route_t shard = {.tcp = "tcp://127.0.0.1:1"};
    ps_node_message_t announcement = {
        .kind = PS_NODE_ANNOUNCE,
        .serial = 1,
        .cluster = *cluster,
        .incarnation = incarnation,
        .node = {.secret = *secret, .shards = &shard, .n_shards = 1},
    };
    size_t size = 0;

    (void)snprintf(announcement.node.name, sizeof announcement.node.name, "%s", name);
    (void)snprintf(announcement.node.control, sizeof announcement.node.control,
                   "tcp://127.0.0.1:1");
    CHECK(ps_node_message_encode(&announcement, &bytes));
    CHECK(zmtp_send(c->fd, 0, bytes.data, bytes.size));
    CHECK(zmtp_receive(c->fd, c->reply, sizeof c->reply, &size));
    CHECK(ps_node_message_decode((ps_bytes_t){(const uint8_t *)c->reply, size}, &heard, NULL) ==
          PSD_OK);
    CHECK(heard.kind == PS_NODE_HEARD && heard.status == PSD_DENIED);
    return strstr(heard.text, "has another secret") != NULL;
}

/* Who knows a node's name and incarnation, but not its secret, cannot speak for
 * it; nor for the one that has the registry. */
static bool a_stranger_cannot_speak_for_a_node(fleet_t *f)
{
    static const ps_id_t secrets[] = {{{0}}, {{1}}, {{0xff, 0xff}}};
    control_t c = {.fd = -1};
    control_t look = {.fd = -1};
    char fields[600];
    char text[4096];
    ps_id_t cluster = {{0}};
    struct stat info;
    const char *at = NULL;
    unsigned long n_denied = 0; /* somebody was, where n3 was suspected */

    CHECK(control_open(&c, &f->nodes[0], 17));
    at = strstr(c.reply, "\"uuid\":\"");
    CHECK(at != NULL);
    (void)snprintf(text, sizeof text, "%.36s", at + strlen("\"uuid\":\""));
    CHECK(ps_id_parse(text, &cluster));
    CHECK(control_open(&look, &f->nodes[0], 18));
    CHECK(control_ask(&look, "cluster_status", "", DENIED_KEY));
    n_denied = strtoul(strstr(look.reply, DENIED_KEY) + strlen(DENIED_KEY), NULL, 10);
    for (unsigned i = 0; i < 6; i++) {
        const char *name = i % 2 == 0 ? "n3" : "n1";
        char incarnation[32];

        (void)snprintf(fields, sizeof fields, ",\"name\":\"%s\"", name);
        CHECK(control_ask(&look, "node_inspect", fields, "\"incarnation\":"));
        at = strstr(look.reply, "\"incarnation\":") + strlen("\"incarnation\":");
        (void)snprintf(incarnation, sizeof incarnation, "%.*s", (int)strcspn(at, ",}"), at);
        CHECK(is_denied(&c, &cluster, name, strtoull(incarnation, NULL, 10), &secrets[i / 2]));
        /* Nothing has become of it. */
        (void)snprintf(fields, sizeof fields, ",\"name\":\"%s\"", name);
        CHECK(control_ask(&look, "node_inspect", fields, incarnation));
        CHECK(wait_answer(&look, "cluster_status", "", "\"healthy\":true",
                          true)); /* a slow machine may suspect a node */
        at = strstr(look.reply, DENIED_KEY);
        CHECK(at != NULL && strtoul(at + strlen(DENIED_KEY), NULL, 10) == n_denied + i + 1);
    }
    CHECK(log_has(&f->nodes[0], "warn node_denied name=n3 n=1 "));
    CHECK(control_ask(&look, "cluster_events", "", "node n3 was refused: "));
    CHECK(count_parts(look.reply, " was refused: ") == 3); /* n9 of another format, too; it was 6 */
    CHECK(
        control_ask(&look, "cluster_status", "", "node \\\"n3\\\" tries to join and was refused"));
    CHECK(strstr(look.reply, "node \\\"n1\\\" tries to join and was refused") != NULL);
    control_close(&c);
    control_close(&look);
    /* The secret is in the data directory, which is nobody else's to read. */
    CHECK(read_file(&f->nodes[2], "data/member.json", text, sizeof text));
    CHECK(strstr(text, "\"secret\":\"") != NULL);
    (void)snprintf(text, sizeof text, "%.3000s/data/member.json", f->nodes[2].dir.path);
    CHECK(stat(text, &info) == 0 && (info.st_mode & 0777) == 0600);
    return true;
}

/* A table with a copy on each node, while one is silent for a moment: it is
 * made when that is heard again. */
static bool a_table_waits_for_a_node_that_is_suspected(fleet_t *f)
{
    control_t c = {.fd = -1};
    bool made = false;

    CHECK(control_open(&c, &f->nodes[0], 19));
    /* Seen too late on a slow machine, it is down and waited for no more. */
    for (int i = 0; i < 10 && !made; i++) {
        bool waits = false;

        CHECK(wait_answer(&c, "cluster_status", "", "\"healthy\":true", true));
        CHECK(kill(f->nodes[1].pid, SIGSTOP) == 0);
        CHECK(wait_answer(&c, "node_list", "", "\"name\":\"n2\",\"state\":\"up\"", false));
        CHECK(control_post(&c, "table_create",
                           ",\"spec\":{\"name\":\"s\",\"rows\":12,\"replicas\":3}"));
        CHECK(control_ask(&c, "node_list", "", "\"v\":1"));
        waits = strstr(c.reply, "\"nodes\":") != NULL;
        CHECK(waits || answer_has(&c, "\"nodes\":")); /* behind a refusal */
        CHECK(kill(f->nodes[1].pid, SIGCONT) == 0);
        made = waits && answer_has(&c, "\"status\":\"OK\"");
    }
    CHECK(made);
    CHECK(control_ask(&c, "table_drop", ",\"name\":\"s\"", "\"dropped\":true"));
    control_close(&c);
    return true;
}

/* Who opens a table that is not made yet waits; when its maker takes it back,
 * who waits makes it. */
static bool a_table_that_is_taken_back_is_made_again(fleet_t *f)
{
    static const char fields[] = ",\"name\":\"again\",\"spec\":{\"name\":\"again\",\"rows\":12}";
    control_t a = {.fd = -1};
    control_t b = {.fd = -1};
    bool made = false;

    CHECK(control_open(&a, &f->nodes[0], 24));
    CHECK(control_open(&b, &f->nodes[0], 25));
    /* Where a slow machine suspects n3, too, nobody has it. */
    for (int i = 0; i < 10 && !made; i++) {
        CHECK(wait_answer(&a, "cluster_status", "", "\"healthy\":true", true));
        CHECK(kill(f->nodes[1].pid, SIGSTOP) == 0);
        CHECK(control_post(&a, "table_open", fields));
        CHECK(control_post(&b, "table_open", fields));
        /* Either may be heard first, and has no table, unless n2 was suspected
         * already. */
        CHECK(answer_has(&a, "\"status\":") && answer_has(&b, "\"status\":"));
        CHECK(kill(f->nodes[1].pid, SIGCONT) == 0);
        made = strstr(a.reply, "\"status\":\"OK\"") != NULL ||
               strstr(b.reply, "\"status\":\"OK\"") != NULL;
    }
    CHECK(made);
    CHECK(control_ask(&b, "table_inspect", ",\"name\":\"again\"", "\"status\":\"OK\""));
    CHECK(control_ask(&b, "table_drop", ",\"name\":\"again\"", "\"dropped\":true"));
    control_close(&a);
    control_close(&b);
    return true;
}

/* A node's own port says where to ask, and clients ask there. */
static bool a_node_without_a_registry_says_where_it_is(fleet_t *f, psd_error_t *err)
{
    static const char QUESTION[] = "{\"v\":1,\"id\":7,\"op\":\"table_list\",\"session\":1}";
    psd_client_t *client = NULL;
    char leader[400];
    char reply[4096];
    int fd = zmtp_connect(f->nodes[2].control);

    (void)snprintf(leader, sizeof leader, "\"endpoint\":\"%s\"}", f->nodes[0].control);
    CHECK(fd >= 0 && zmtp_ask(fd, QUESTION, reply, sizeof reply));
    (void)close(fd);
    CHECK(strstr(reply, "\"id\":7,\"status\":\"NOT_LEADER\",\"node\":\"n3\"") != NULL);
    CHECK(strstr(reply, "\"leader\":{\"node\":") != NULL && strstr(reply, leader) != NULL);
    CHECK(strstr(reply, "\"members\":[{\"node\":") != NULL);
    CHECK_OK(psd_connect(f->nodes[2].control, NULL, &client, err), err);
    psd_close(&client);
    return true;
}

int main(void)
{
    fleet_t f = {.nodes = {{.pid = 0}}};
    psd_error_t *err = psd_error_new();
    bool good = daemon_start(&f.nodes[0], "shards: 2\nregistry: {voters: 1}\nnode: {name: n1}\n");

    RUN(start_member(&f.nodes[1], &f.nodes[0], "n2"));
    RUN(start_member(&f.nodes[2], &f.nodes[0], "n3"));
    RUN(all_nodes_are_up(&f, 10));
    RUN(rows_live_on_all_nodes(&f, err));
    RUN(a_wait_elsewhere_is_explained(&f, err));
    RUN(a_node_without_a_registry_says_where_it_is(&f, err));
    RUN(who_does_not_belong_is_refused(&f));
    RUN(a_stranger_cannot_speak_for_a_node(&f));
    RUN(a_table_waits_for_a_node_that_is_suspected(&f));
    RUN(moves_are_planned(&f));
    RUN(a_table_that_is_taken_back_is_made_again(&f));
    RUN(a_drop_ends_what_waits(&f, err));
    RUN(a_dead_node_is_named_and_comes_back(&f));
    for (size_t i = NODES; i > 0; i--) {
        RUN(daemon_end(&f.nodes[i - 1], SIGTERM));
    }
    for (size_t i = 0; i < NODES; i++) {
        daemon_drop(&f.nodes[i], !good);
    }
    psd_error_destroy(&err);
    return good ? 0 : 1;
}
