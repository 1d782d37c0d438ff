/* SPDX-License-Identifier: Apache-2.0 */
/* psd_trace: over tcp and over a lane the phases of a request add up to the whole, 100 times of
 * 100; time at a gate counts as GATE. */
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/daemon.h"

#define TIMES 100
#define ROWS 1000
#define GATE_MS 200
#define LONG_MS 60000

/* Within a tenth of the whole. */
static bool adds_up(const psd_trace_t *trace, size_t i)
{
    uint64_t whole_us = psd_trace_us(trace, i, PSD_PHASE_WHOLE);
    uint64_t sum_us = 0;

    for (int phase = PSD_PHASE_CLIENT; phase <= PSD_PHASE_ANSWER; phase++) {
        sum_us += psd_trace_us(trace, i, (psd_phase_t)phase);
    }
    if (sum_us * 10 < whole_us * 9 || sum_us * 10 > whole_us * 11) {
        (void)fprintf(stderr, "request %zu: phases add up to %llu us, the whole is %llu us\n", i,
                      (unsigned long long)sum_us, (unsigned long long)whole_us);
        return false;
    }
    return true;
}

static psd_table_t *make_table(psd_client_t *client, const char *name, psd_error_t *err)
{
    psd_spec_t *spec = psd_spec_new();
    psd_table_t *table = NULL;
    psd_status_t rc = psd_spec_set(spec, "rows", "1000", err);

    if (rc == PSD_OK) {
        rc = psd_spec_set(spec, "partitions", "1", err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_ensure(client, name, spec, &table, err);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "table %s: %s\n", name, psd_error_text(err));
    }
    psd_spec_destroy(&spec);
    return table;
}

/* A push and a pull, one after the other. */
static bool call_once(psd_client_t *client, psd_table_t *table, const psd_call_t *call,
                      psd_error_t *err)
{
    static float values[ROWS];
    psd_select_t *all = psd_select_new();
    psd_ticket_t ticket = 0;

    psd_select_all_rows(all);
    CHECK_OK(psd_push_start(table, all, values, ROWS, call, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, LONG_MS, err), err);
    CHECK_OK(psd_pull_start(table, all, values, ROWS, call, &ticket, err), err);
    CHECK_OK(psd_wait(client, ticket, LONG_MS, err), err);
    psd_select_destroy(&all);
    return true;
}

static bool traces(const char *endpoint, const char *transport)
{
    psd_error_t *err = psd_error_new();
    psd_options_t *options = psd_options_new();
    psd_call_t *call = psd_call_new();
    psd_trace_t *trace = psd_trace_new();
    psd_client_t *client = NULL;
    psd_table_t *table = NULL;

    CHECK_OK(psd_options_set_transport(options, transport, err), err);
    CHECK_OK(psd_connect(endpoint, options, &client, err), err);
    table = make_table(client, "plain", err);
    CHECK(table != NULL);
    psd_call_set_trace(call, trace);
    /* The first requests wait for the connection, and are sent before the shard has said that it
     * tells times. */
    for (int i = 0; i < TIMES / 2; i++) {
        CHECK(call_once(client, table, call, err));
    }
    CHECK(psd_trace_count(trace) == TIMES);
    for (size_t i = 0; i < TIMES; i++) {
        CHECK(adds_up(trace, i));
        CHECK(psd_trace_is_told(trace, i));
        CHECK(psd_trace_us(trace, i, PSD_PHASE_GATE) == 0);
        CHECK(strcmp(psd_trace_kind(trace, i), i % 2 == 0 ? "push" : "pull") == 0);
        CHECK(strncmp(psd_trace_endpoint(trace, i), transport, strlen(transport)) == 0);
        CHECK(i == 0 || psd_trace_start_us(trace, i) >= psd_trace_start_us(trace, i - 1));
    }
    psd_call_set_trace(call, NULL);
    CHECK(call_once(client, table, call, err));
    CHECK(psd_trace_count(trace) == TIMES);
    psd_table_close(&table);
    psd_close(&client);
    psd_trace_destroy(&trace);
    psd_call_destroy(&call);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
    return true;
}

/* Worker 0 waits, as far as the shard says. */
static bool is_held(psd_client_t *client, const char *request, psd_error_t *err)
{
    char *reply = NULL;
    bool held = psd_request(client, request, LONG_MS, &reply, err) == PSD_OK &&
                strstr(reply, "\"waiters\":[{") != NULL;

    psd_free(reply);
    return held;
}

/* Worker 0 pulls in clock 1 while worker 1 is at clock 0: it is held until that one's clock. */
static bool tells_the_gate(const char *endpoint, const char *transport)
{
    psd_error_t *err = psd_error_new();
    psd_options_t *options = psd_options_new();
    psd_call_t *call = psd_call_new();
    psd_trace_t *trace = psd_trace_new();
    psd_select_t *all = psd_select_new();
    psd_client_t *clients[2] = {NULL, NULL};
    psd_table_t *tables[2] = {NULL, NULL};
    float values[ROWS];
    char why[64];
    psd_ticket_t ticket = 0;

    CHECK_OK(psd_options_set_transport(options, transport, err), err);
    (void)snprintf(why, sizeof why, "{\"op\":\"why\",\"job\":\"%s\"}", transport);
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(psd_connect(endpoint, options, &clients[i], err), err);
        CHECK_OK(psd_join(clients[i], transport, i, 2, 0, err), err);
        tables[i] = make_table(clients[i], transport, err);
        CHECK(tables[i] != NULL);
    }
    psd_select_all_rows(all);
    psd_call_set_timeout_ms(call, LONG_MS);
    psd_call_set_trace(call, trace);
    CHECK_OK(psd_clock(clients[0], err), err);
    CHECK_OK(psd_pull_start(tables[0], all, values, ROWS, call, &ticket, err), err);
    do { /* the time that it is held from here on is known */
        CHECK(psd_wait(clients[0], ticket, 1, err) == PSD_DEADLINE);
    } while (!is_held(clients[1], why, err));
    CHECK(psd_wait(clients[0], ticket, GATE_MS, err) == PSD_DEADLINE);
    CHECK_OK(psd_clock(clients[1], err), err);
    CHECK_OK(psd_wait(clients[0], ticket, LONG_MS, err), err);
    CHECK(psd_trace_count(trace) == 1 && adds_up(trace, 0) && psd_trace_is_told(trace, 0));
    CHECK(psd_trace_us(trace, 0, PSD_PHASE_GATE) >= GATE_MS * 1000);
    CHECK(psd_trace_us(trace, 0, PSD_PHASE_QUEUE) == 0);
    for (uint32_t i = 0; i < 2; i++) {
        psd_table_close(&tables[i]);
        psd_close(&clients[i]);
    }
    psd_select_destroy(&all);
    psd_trace_destroy(&trace);
    psd_call_destroy(&call);
    psd_options_destroy(&options);
    psd_error_destroy(&err);
    return true;
}

int main(void)
{
    static const char *const TRANSPORTS[] = {"tcp", "lane"};
    daemon_t daemon;
    bool ok = daemon_start(&daemon, NULL);

    for (size_t i = 0; ok && i < sizeof TRANSPORTS / sizeof *TRANSPORTS; i++) {
        ok = traces(daemon.control, TRANSPORTS[i]) && tells_the_gate(daemon.control, TRANSPORTS[i]);
    }
    ok = ok && daemon_end(&daemon, SIGTERM);
    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
