/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator is told when something is wrong with nodes: who is silent
 * and who is back, in the history too; what a push waits for that nobody's
 * clock holds; a drain that no other node can take over, and its end; a node
 * that is refused at its join. */
#include <psd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cluster.h"

#define CALL_MS 60000
#define LOOKS_MAX 20000 /* a look takes a millisecond or so */

static const cluster_args_t args = {.n_nodes = 2,
                                    .net = CLUSTER_DIRECT,
                                    .calm = true,
                                    .config = "shards: 1\ncopies:\n  even_out: false\n"};

/* A line for the shell; its exit code, or -1. */
static int run_line(const char *line)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        (void)execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : -1;
}

static bool connect_to(cluster_t *cluster, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(cluster->nodes[0].control, options, ret_client, err), err);
    psd_options_destroy(&options);
    return true;
}

/* Asks until the answer has the part, which is an event to wait for. */
static bool answers_with(psd_client_t *client, const char *request, const char *part)
{
    psd_error_t *err = psd_error_new();
    bool has = false;

    for (int i = 0; i < LOOKS_MAX && !has; i++) {
        char *reply = NULL;

        psd_error_clear(err);
        CHECK_OK(psd_request(client, request, CALL_MS, &reply, err), err);
        has = strstr(reply, part) != NULL;
        if (i == LOOKS_MAX - 1 && !has) {
            (void)fprintf(stderr, "no \"%s\" in %s\n", part, reply);
        }
        psd_free(reply);
    }
    psd_error_destroy(&err);
    return has;
}

static bool make_table(psd_client_t *client, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(psd_spec_set(spec, "rows", "10", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "1", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", "2", err), err);
    CHECK_OK(psd_spec_set(spec, "ack", "replica", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    return true;
}

/* ---- a push that waits for a second copy ---- */

typedef struct pusher {
    psd_client_t *client;
    psd_table_t *table;
    psd_status_t status;
} pusher_t;

static void *push_one(void *arg)
{
    pusher_t *self = arg;
    const uint64_t row = 1;
    const int64_t one = 1;

    self->status = psd_push(self->table, &row, 1, &one, 1, NULL);
    return NULL;
}

#define WHY "{\"op\":\"why\",\"job\":\"lr\"}"
#define CLOCKS "{\"op\":\"clock_inspect\",\"job\":\"lr\"}"
#define STATUS "{\"op\":\"cluster_status\"}"
#define EVENTS "{\"op\":\"cluster_events\"}"
#define NODES "{\"op\":\"node_list\"}"

static bool a_push_without_a_second_copy_says_so(cluster_t *cluster, psd_client_t *admin,
                                                 psd_error_t *err)
{
    pusher_t pusher = {NULL, NULL, PSD_OK};
    pthread_t thread;

    CHECK(connect_to(cluster, &pusher.client, err));
    CHECK_OK(psd_join(pusher.client, "lr", 0, 1, 0, err), err);
    CHECK_OK(psd_table_open(pusher.client, "w", &pusher.table, err), err);
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    CHECK(answers_with(admin, STATUS, "node \\\"n1\\\" is suspect, silent"));
    CHECK(pthread_create(&thread, NULL, push_one, &pusher) == 0);
    CHECK(answers_with(admin, WHY,
                       "(push to table w partition 0): ack level "
                       "replica is not available"));
    CHECK(answers_with(admin, CLOCKS, "ack level replica is not available"));
    CHECK(answers_with(admin, WHY, "is rebuilt elsewhere if that stays away"));
    CHECK(answers_with(admin, EVENTS, "node n1 is suspect, silent for"));
    CHECK(cluster_restart(cluster, 1));
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(pusher.status == PSD_OK);
    CHECK(answers_with(admin, EVENTS, "node n1 is reachable again"));
    CHECK_OK(psd_leave(pusher.client, CALL_MS, err), err);
    psd_table_close(&pusher.table);
    psd_close(&pusher.client);
    return true;
}

/* ---- a drain that nobody can take over ---- */

static bool a_drain_without_another_node_says_so(cluster_t *cluster, psd_client_t *admin)
{
    char command[512];
    int status = 0;

    (void)snprintf(command, sizeof command,
                   "for t in 500ms 5s 50s; do %s --endpoint %s node drain n1 --timeout $t "
                   "2>&1 | grep -q 'have no other node to go to' && exit 0; done; exit 1",
                   getenv("PSCLI_PROGRAM"), cluster->nodes[0].control);
    status = run_line(command);
    CHECK(status == 0);
    CHECK(answers_with(admin, STATUS, "drains, and 1 of its 1 copies have no other node"));
    CHECK(answers_with(admin, STATUS, "\"healthy\":false"));
    CHECK(answers_with(admin, NODES, "\"state\":\"draining\""));
    CHECK(answers_with(admin, "{\"op\":\"node_drain\",\"name\":\"n1\",\"stay\":true}",
                       "\"draining\":false"));
    CHECK(answers_with(admin, STATUS, "\"healthy\":true"));
    return true;
}

/* With a node more it comes to its end. */
static bool a_drain_goes_on_with_a_node_more(cluster_t *cluster, psd_client_t *admin)
{
    CHECK(answers_with(admin, "{\"op\":\"node_drain\",\"name\":\"n1\"}", "\"stuck\":1"));
    CHECK(cluster_add(cluster));
    CHECK(answers_with(admin, "{\"op\":\"node_drain\",\"name\":\"n1\"}", "\"copies\":0"));
    CHECK(answers_with(admin, STATUS, "\"healthy\":true"));
    return true;
}

/* ---- a node that is refused ---- */

/* Its data directory, and with it its secret, is another one. */
static bool a_refused_node_says_so(cluster_t *cluster, psd_client_t *admin)
{
    char command[3 * 4096];
    int status = 0;

    (void)snprintf(command, sizeof command,
                   "%s --data-dir %s/stranger --join %s --listen "
                   "tcp://127.0.0.1:0 --name n1 > %s/refused 2>&1",
                   getenv("PSD_PROGRAM"), cluster->dir.path, cluster->nodes[0].control,
                   cluster->dir.path);
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    CHECK(answers_with(admin, STATUS, "node \\\"n1\\\" is suspect, silent"));
    status = run_line(command);
    CHECK(status == 4);
    (void)snprintf(command, sizeof command,
                   "grep -q 'E3011 .*has another secret.*pscli node "
                   "remove n1 --force' %s/refused",
                   cluster->dir.path);
    status = run_line(command);
    CHECK(status == 0);
    CHECK(answers_with(admin, STATUS,
                       "node \\\"n1\\\" tries to join and was "
                       "refused"));
    CHECK(answers_with(admin, EVENTS, "node n1 was refused: "));
    return true;
}

static bool run(cluster_t *cluster, psd_error_t *err)
{
    psd_client_t *admin = NULL;

    CHECK(connect_to(cluster, &admin, err));
    CHECK(make_table(admin, err));
    CHECK(a_push_without_a_second_copy_says_so(cluster, admin, err));
    CHECK(a_drain_without_another_node_says_so(cluster, admin));
    CHECK(a_drain_goes_on_with_a_node_more(cluster, admin));
    CHECK(a_refused_node_says_so(cluster, admin));
    psd_close(&admin);
    return true;
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    bool ok = cluster_start(&cluster, &args) && run(&cluster, err);

    cluster_drop(&cluster, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
