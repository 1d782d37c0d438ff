/* SPDX-License-Identifier: Apache-2.0 */
/* The psd of a run: the one that is there, or private nodes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/jobs/run.h"
#include "cli/output/interrupt.h"

#define PROBE_MS 1000 /* timeout to find out whether a psd runs at all */
#define LOOK_NS 50000000L
#define PLAINTEXT "PSD_SECURITY_ALLOW_PLAINTEXT"

/* The address at which workers reach a psd of this host. */
static psd_status_t find_address(const ps_cli_t *cli, const ps_launch_t *launch,
                                 char ret_address[PS_ADDRESS_SIZE], psd_error_t *err)
{
    const char *given = ps_args_text(&cli->args, "address");
    const char *other = "";
    psd_status_t rc = PSD_OK;

    if (given != NULL) {
        (void)snprintf(ret_address, PS_ADDRESS_SIZE, "%s", given);
        return PSD_OK;
    }
    rc = ps_address_to(&launch->hosts, ret_address, &other, err);
    if (rc == PSD_OK && other[0] != '\0') {
        ps_say(&cli->out,
               "host %s is reached by another address than %s; --address names one that all reach",
               other, ret_address);
    }
    return rc;
}

static bool is_on(const char *name)
{
    const char *text = getenv(name);

    return text != NULL && strcmp(text, "true") == 0;
}

static psd_status_t check_open(const ps_cli_t *cli, const char *address, psd_error_t *err)
{
    if (ps_address_is_local(address)) {
        return PSD_OK;
    }
    if (!is_on(PLAINTEXT)) {
        return psd_error_set(err, PSD_USAGE,
                             "a private psd for other hosts would listen at %s, open to all who "
                             "reach it; on a network that you trust set " PLAINTEXT "=true, else "
                             "start psd yourself and name it with --endpoint",
                             address);
    }
    ps_say(&cli->out,
           "the private psd listens at %s: all who reach it can read and write (" PLAINTEXT ")",
           address);
    return PSD_OK;
}

/* An endpoint that other hosts would take for themselves. */
static bool is_here(const char *endpoint)
{
    static const char *const LOCAL[] = {"tcp://127.", "tcp://localhost", "tcp://[::1]", "ipc://"};

    for (size_t i = 0; i < sizeof LOCAL / sizeof LOCAL[0]; i++) {
        if (strncmp(endpoint, LOCAL[i], strlen(LOCAL[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Names of hosts that only ssh knows need no address here, unless the endpoint is one. */
static psd_status_t check_reach(const ps_cli_t *cli, const ps_launch_t *launch, psd_error_t *err)
{
    char address[PS_ADDRESS_SIZE];
    const char *other = "";
    psd_status_t rc = PSD_OK;

    if (!is_here(cli->endpoint)) {
        return PSD_OK;
    }
    rc = ps_address_to(&launch->hosts, address, &other, err);
    if (rc == PSD_OK && !ps_address_is_local(address)) {
        rc = psd_error_set(err, PSD_USAGE,
                           "%s is a psd that only this host reaches; let it listen at %s, or "
                           "name another one with --endpoint",
                           cli->endpoint, address);
    }
    return rc;
}

/* Until all of them serve, so that tables are spread over all. */
static psd_status_t wait_until_up(ps_cli_t *cli, uint32_t n, psd_error_t *err)
{
    const double end_s = ps_cli_now_s() + (double)cli->timeout_ms / 1000;
    uint32_t n_up = 0;

    while (n_up < n) {
        const struct timespec nap = {.tv_nsec = LOOK_NS};
        PSD_AUTO(ps_json_unref) json_t *reply = NULL;
        const json_t *node = NULL;
        size_t i = 0;
        psd_status_t rc = ps_cli_request(cli, "node_list", NULL, NULL, &reply, err);

        if (rc != PSD_OK) {
            return rc;
        }
        n_up = 0;
        json_array_foreach(ps_json_at(reply, "nodes"), i, node)
        {
            n_up += strcmp(ps_json_text(node, "state"), "up") == 0 ? 1 : 0;
        }
        if (n_up < n && ps_interrupt_came()) {
            return psd_error_set(err, PSD_INTERRUPTED, "interrupted");
        }
        if (n_up < n && ps_cli_now_s() > end_s) {
            return psd_error_set(err, PSD_DEADLINE,
                                 "%" PRIu32 " of %" PRIu32 " private nodes are up after %" PRIu32
                                 " ms",
                                 n_up, n, cli->timeout_ms);
        }
        if (n_up < n) {
            (void)nanosleep(&nap, NULL);
        }
    }
    return PSD_OK;
}

static psd_status_t start_private(ps_cli_t *cli, const ps_launch_t *launch, ps_private_nodes_t *own,
                                  psd_error_t *err)
{
    const uint32_t n = launch->embeds ? 1 : launch->n_servers;
    char address[PS_ADDRESS_SIZE] = "127.0.0.1";
    const ps_private_args_t args = {.program = ps_args_text(&cli->args, "psd"),
                                    .host = address,
                                    .timeout_ms = cli->timeout_ms,
                                    .has_registry = launch->embeds};
    psd_status_t rc = find_address(cli, launch, address, err);

    if (rc == PSD_OK) {
        rc = check_open(cli, address, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_interrupt_hold(); /* so that its directory does not stay */
    if (launch->embeds) {
        ps_say(&cli->out, "%" PRIu32 " workers serve; their registry starts here",
               launch->n_servers);
    } else if (n == 1) {
        ps_say(&cli->out, "no psd at %s; starting a private one", cli->endpoint);
    } else {
        ps_say(&cli->out, "no psd at %s; starting a private one of %" PRIu32 " nodes",
               cli->endpoint, n);
    }
    rc = ps_private_nodes_start(own, n, &args, err);
    if (rc == PSD_OK) {
        cli->endpoint = own->items[0].endpoint;
        rc = n == 1 ? PSD_OK : wait_until_up(cli, n, err);
    }
    return rc == PSD_OK && launch->embeds ? ps_run_servers_found(cli, err) : rc;
}

/* With --servers private nodes start only when nobody listens: beside a slow psd the job
 * would get an empty private one. */
psd_status_t ps_run_find_psd(ps_cli_t *cli, const ps_launch_t *launch, ps_private_nodes_t *own,
                             psd_error_t *err)
{
    bool may_start = launch->n_servers > 0;
    uint32_t timeout_ms = may_start && cli->timeout_ms > PROBE_MS ? PROBE_MS : cli->timeout_ms;
    psd_status_t rc = PSD_OK;

    if (launch->embeds) {
        return start_private(cli, launch, own, err);
    }
    rc = ps_cli_connect_by(cli, NULL, timeout_ms, &cli->client, err);
    if (rc == PSD_CONNECT && may_start && ps_cli_is_listened(cli, PROBE_MS)) {
        may_start = false;
        if (timeout_ms < cli->timeout_ms) {
            psd_error_clear(err);
            rc = ps_cli_connect_by(cli, NULL, cli->timeout_ms - timeout_ms, &cli->client, err);
        }
    }
    if (rc == PSD_OK) {
        return check_reach(cli, launch, err);
    }
    if (rc != PSD_CONNECT || !may_start) {
        return rc;
    }
    psd_error_clear(err);
    return start_private(cli, launch, own, err);
}
