/* SPDX-License-Identifier: Apache-2.0 */
/* Three nodes have the registry, two of them are killed: new clients come in at the third one,
 * open tables and pull at once. What changes something waits for a leader, with its deadline and
 * the reason. When there is one again, the same clients push, and each push counts once. */
#include <jansson.h>
#include <psd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"

#define ROWS 20
#define CALL_MS 60000
#define BRIEF_MS 300
#define CONNECT_MS 2000
#define GUESTS 2
#define ROUNDS 10

static const cluster_args_t args = {.n_nodes = 3,
                                    .net = CLUSTER_DIRECT,
                                    .calm = true,
                                    .config = "shards: 1\nregistry:\n  voters: 3\n"};

static uint64_t rows[ROWS];
static int64_t ones[ROWS];

static psd_status_t connect_to(const char *endpoint, uint32_t timeout_ms, bool guest,
                               psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    psd_options_set_timeout_ms(options, timeout_ms);
    psd_options_set_guest(options, guest);
    rc = psd_connect(endpoint, options, ret_client, err);
    psd_options_destroy(&options);
    return rc;
}

/* Answers of the control port, until they say so. */
static bool wait_until(psd_client_t *client, const char *request, bool (*is_so)(const json_t *doc),
                       psd_error_t *err)
{
    bool so = false;

    for (int i = 0; !so && i < 600; i++) {
        const struct timespec gap = {.tv_nsec = 100000000L};
        char *reply = NULL;
        json_t *doc = NULL;

        CHECK_OK(psd_request(client, request, CALL_MS, &reply, err), err);
        doc = json_loads(reply, 0, NULL);
        so = is_so(doc);
        json_decref(doc);
        psd_free(reply);
        if (!so) {
            (void)nanosleep(&gap, NULL);
        }
    }
    return so;
}

static bool has_three(const json_t *doc)
{
    return json_integer_value(json_object_get(doc, "voters_up")) == 3;
}

/* One table on the third node alone, which keeps it. */
static bool prepare(const cluster_t *cluster, psd_error_t *err)
{
    static const char *const DRAINS[] = {"{\"op\":\"node_drain\",\"name\":\"n0\"}",
                                         "{\"op\":\"node_drain\",\"name\":\"n1\"}"};
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK_OK(connect_to(cluster->nodes[0].control, CALL_MS, true, &client, err), err);
    CHECK(wait_until(client, "{\"op\":\"registry_list\"}", has_three, err));
    for (size_t i = 0; i < 2; i++) {
        char *reply = NULL;

        CHECK_OK(psd_request(client, DRAINS[i], CALL_MS, &reply, err), err);
        psd_free(reply);
    }
    CHECK_OK(psd_spec_set(spec, "rows", "20", err), err);
    CHECK_OK(psd_spec_set(spec, "type", "i64", err), err);
    CHECK_OK(psd_spec_set(spec, "replicas", "1", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    CHECK_OK(psd_push(table, rows, ROWS, ones, ROWS, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

static bool has_all(psd_table_t *table, int64_t wanted, psd_error_t *err)
{
    int64_t values[ROWS];

    CHECK_OK(psd_pull(table, rows, ROWS, values, ROWS, err), err);
    for (size_t i = 0; i < ROWS; i++) {
        CHECK(values[i] == wanted);
    }
    return true;
}

static bool push_waits(psd_table_t *table, psd_error_t *err)
{
    psd_select_t *select = psd_select_new();
    psd_call_t *call = psd_call_new();
    psd_ticket_t ticket = 0;

    psd_select_rows(select, rows, ROWS);
    psd_call_set_timeout_ms(call, BRIEF_MS);
    CHECK_ERROR(psd_push_start(table, select, ones, ROWS, call, &ticket, err), PSD_NOT_LEADER,
                "got no session within 300 ms", err);
    psd_call_destroy(&call);
    psd_select_destroy(&select);
    return true;
}

static bool pscli_pulls(const char *endpoint)
{
    char line[2000];
    char printed[200] = "";
    FILE *pipe = NULL;
    size_t n = 0;

    (void)snprintf(line, sizeof line, "'%s' pull w 3 -o csv --endpoint '%s'",
                   getenv("PSCLI_PROGRAM"), endpoint);
    pipe = popen(line, "r");
    CHECK(pipe != NULL);
    n = fread(printed, 1, sizeof printed - 1, pipe);
    printed[n] = '\0';
    CHECK(pclose(pipe) == 0);
    CHECK(strstr(printed, "3,1\n") != NULL);
    return true;
}

static bool run(cluster_t *cluster, psd_error_t *err)
{
    const char *third = cluster->nodes[2].control;
    psd_client_t *clients[GUESTS] = {NULL};
    psd_table_t *tables[GUESTS] = {NULL};
    psd_client_t *none = NULL;
    psd_table_t *fresh = NULL;
    psd_status_t rc = PSD_CONNECT; /* the third node has not answered in time */

    CHECK(prepare(cluster, err));
    CHECK(cluster_kill(cluster, 0, SIGKILL));
    CHECK(cluster_kill(cluster, 1, SIGKILL));
    for (int i = 0; i < GUESTS; i++) {
        CHECK_OK(connect_to(third, CALL_MS, true, &clients[i], err), err);
        CHECK_OK(psd_table_open(clients[i], "w", &tables[i], err), err);
        CHECK(has_all(tables[i], 1, err));
    }
    for (uint32_t ms = CONNECT_MS; rc == PSD_CONNECT && ms < CALL_MS; ms *= 4) {
        rc = connect_to(third, ms, false, &none, err);
    }
    CHECK(rc == PSD_NOT_LEADER);
    CHECK(pscli_pulls(third));
    CHECK(push_waits(tables[0], err));
    CHECK(has_all(tables[0], 1, err));
    CHECK(cluster_restart(cluster, 0));
    for (int k = 0; k < ROUNDS; k++) {
        for (int i = 0; i < GUESTS; i++) {
            CHECK_OK(psd_push(tables[i], rows, ROWS, ones, ROWS, err), err);
        }
    }
    for (int i = 0; i < GUESTS; i++) {
        CHECK(has_all(tables[i], 1 + GUESTS * ROUNDS, err));
        psd_table_close(&tables[i]);
        psd_close(&clients[i]);
    }
    CHECK_OK(connect_to(third, CALL_MS, true, &none, err), err);
    CHECK_OK(psd_table_open(none, "w", &fresh, err), err);
    CHECK(has_all(fresh, 1 + GUESTS * ROUNDS, err));
    psd_table_close(&fresh);
    psd_close(&none);
    return true;
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    bool ok = false;

    for (uint64_t i = 0; i < ROWS; i++) {
        rows[i] = i;
        ones[i] = 1;
    }
    ok = cluster_start(&cluster, &args) && run(&cluster, err);
    cluster_drop(&cluster, !ok);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
