/* SPDX-License-Identifier: Apache-2.0 */
/* A client whose link to the registry goes silent finds the registry at another
 * address, through a node that names it: questions under way are answered, a
 * worker is not lost, and pushes and pulls do not notice. */
#include <psd.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/cluster.h"
#include "support/tcp_proxy.h"

#define CALL_MS 60000
#define LOST_AFTER_MS 8000 /* of silence a worker is lost */

static const cluster_args_t args = {.n_nodes = 2,
                                    .net = CLUSTER_DIRECT,
                                    .config = "shards: 1\nworkers:\n  heartbeat_ms: 100\n"
                                              "  lost_after_ms: 8000\n"};

static const uint64_t rows[] = {0, 1, 2, 3};
static const float ones[] = {1, 1, 1, 1};

static bool connect_to(const char *endpoint, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();

    psd_options_set_timeout_ms(options, CALL_MS);
    CHECK_OK(psd_connect(endpoint, options, ret_client, err), err);
    psd_options_destroy(&options);
    return true;
}

static bool make_table(const char *endpoint, psd_error_t *err)
{
    psd_client_t *client = NULL;
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;

    CHECK(connect_to(endpoint, &client, err));
    CHECK_OK(psd_spec_set(spec, "rows", "4", err), err);
    CHECK_OK(psd_spec_set(spec, "partitions", "4", err), err);
    CHECK_OK(psd_table_create(client, "w", spec, &table, err), err);
    psd_table_close(&table);
    psd_spec_destroy(&spec);
    psd_close(&client);
    return true;
}

/* What needs the registry, and what does not. */
static bool works(psd_client_t *client, psd_table_t *table, psd_error_t *err)
{
    psd_table_t *again = NULL;
    float values[4];

    CHECK_OK(psd_push(table, rows, 4, ones, 4, err), err);
    CHECK_OK(psd_pull(table, rows, 4, values, 4, err), err);
    CHECK_OK(psd_clock(client, err), err);
    CHECK_OK(psd_table_open(client, "w", &again, err), err);
    psd_table_close(&again);
    CHECK_OK(psd_barrier(client, CALL_MS, err), err);
    return true;
}

/* Longer than a worker may be silent. */
static bool outlives_its_silence(psd_client_t *client, psd_table_t *table, psd_error_t *err)
{
    struct timespec from = {0};
    struct timespec now = {0};

    CHECK(clock_gettime(CLOCK_MONOTONIC, &from) == 0);
    do {
        CHECK(works(client, table, err));
        CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    } while (now.tv_sec - from.tv_sec <= LOST_AFTER_MS / 1000 + 1);
    return true;
}

static bool run(cluster_t *cluster, tcp_proxy_t *proxy, psd_error_t *err)
{
    uint16_t port = tcp_proxy_open_door(proxy, 0, "127.0.0.1", cluster->nodes[0].port);
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;
    char list[200];

    CHECK(port != 0);
    (void)snprintf(list, sizeof list, "tcp://127.0.0.1:%u,%s", (unsigned)port,
                   cluster->nodes[1].control);
    CHECK(make_table(cluster->nodes[1].control, err));
    CHECK(connect_to(list, &client, err));
    CHECK_OK(psd_join(client, "lr", 0, 1, 0, err), err);
    CHECK_OK(psd_table_open(client, "w", &table, err), err);
    CHECK(works(client, table, err));
    tcp_proxy_set_flow(proxy, TCP_WAY_IN, TCP_FLOW_HOLD);
    tcp_proxy_set_flow(proxy, TCP_WAY_OUT, TCP_FLOW_HOLD);
    CHECK(outlives_its_silence(client, table, err));
    /* And back to no proxy at all. */
    CHECK(tcp_proxy_accept(proxy, false));
    tcp_proxy_reset(proxy);
    CHECK(works(client, table, err));
    CHECK_OK(psd_leave(client, CALL_MS, err), err);
    psd_table_close(&table);
    psd_close(&client);
    return true;
}

/* The registry is frozen behind a list of three: the error says what each said,
 * and a call that waits for it long enough is answered. */
/* Each node's part of the reason; a busy machine may take longer to hear both. */
static bool is_understood(const psd_error_t *err)
{
    const char *text = psd_error_text(err);

    return strstr(text, "waits for the registry: ") != NULL &&
           strstr(text, " (node n1) says there is no leader, ") != NULL &&
           strstr(text, " (node n0) is silent") != NULL;
}

static bool waits_for_a_frozen_registry(cluster_t *cluster, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_client_t *client = NULL;
    psd_client_t *other = NULL;
    psd_table_t *table = NULL;
    psd_status_t rc = PSD_CONNECT; /* node n1 has not answered in time */
    char *reply = NULL;

    CHECK(connect_to(cluster->nodes[1].control, &client, err));
    CHECK_OK(psd_table_open(client, "w", &table, err), err);
    psd_table_close(&table);
    CHECK(cluster_freeze(cluster, 0));
    while (!cluster_log_has(cluster, 1, "registry_gone")) {
        const struct timespec gap = {.tv_nsec = 1000000};

        (void)nanosleep(&gap, NULL);
    }
    for (uint32_t ms = 4000; !is_understood(err) && ms < CALL_MS; ms *= 3) {
        psd_error_clear(err);
        CHECK(psd_request(client, "{\"op\":\"table_list\"}", ms, &reply, err) == PSD_DEADLINE);
    }
    CHECK(is_understood(err));
    psd_options_set_guest(options, false);
    for (uint32_t ms = 300; rc == PSD_CONNECT && ms < CALL_MS; ms *= 4) {
        psd_options_set_timeout_ms(options, ms);
        rc = psd_connect(cluster->nodes[1].control, options, &other, err);
    }
    CHECK(rc == PSD_NOT_LEADER);
    psd_options_destroy(&options);
    CHECK(cluster_thaw(cluster, 0));
    CHECK_OK(psd_request(client, "{\"op\":\"table_list\"}", CALL_MS, &reply, err), err);
    CHECK(strstr(reply, "\"name\":\"w\"") != NULL);
    psd_free(reply);
    psd_close(&client);
    return true;
}

int main(void)
{
    cluster_t cluster = {.n_nodes = 0};
    psd_error_t *err = psd_error_new();
    tcp_proxy_t *proxy = tcp_proxy_new("127.0.0.1");
    bool ok = proxy != NULL && cluster_start(&cluster, &args) && run(&cluster, proxy, err) &&
              waits_for_a_frozen_registry(&cluster, err);

    cluster_drop(&cluster, !ok);
    tcp_proxy_destroy(&proxy);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
