/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster: its state. */
#include "cli/cluster/cluster.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/cluster/cmd_node.h"
#include "cli/run/ask_any.h"
#include "cli/run/silent.h"

#define SOON_MS 500         /* after this time without an answer it looks for the cause … */
#define NAMED_WITHIN_S 0.9  /* … until then */
#define NAMED_WITHIN_MS 400 /* … and asks the members of the registry whether one leads */
#define NOT_HEALTHY_EXIT 1

static const ps_column_t STATUS[] = {{"CLUSTER", "cluster.name", PS_UNIT_NONE, false},
                                     {"UUID", "cluster.uuid", PS_UNIT_NONE, false},
                                     {"EPOCH", "cluster.epoch", PS_UNIT_NONE, false},
                                     {"HEALTHY", "cluster.healthy", PS_UNIT_NONE, false},
                                     {"NODES", "nodes", PS_UNIT_COUNT, false},
                                     {"TABLES", "tables", PS_UNIT_NONE, false},
                                     {"JOBS", "jobs", PS_UNIT_NONE, false},
                                     {"RUNNING", "jobs_running", PS_UNIT_NONE, false},
                                     {"PROBLEMS", "problems", PS_UNIT_COUNT, false},
                                     {"WARNINGS", "warnings", PS_UNIT_COUNT, false},
                                     {NULL, NULL, PS_UNIT_NONE, false}};

static void show_problems(const ps_cli_t *cli, const json_t *problems)
{
    if (json_array_size(problems) == 0) {
        ps_print(cli->out.out, "problems  none\n");
        return;
    }
    ps_print(cli->out.out, "problems\n");
    for (size_t i = 0; i < json_array_size(problems); i++) {
        const json_t *problem = json_array_get(problems, i);
        const char *text = json_string_value(problem);

        ps_print(cli->out.out, "  %s\n", text != NULL ? text : ps_json_text(problem, "text"));
    }
}

/* Shows the warnings; nothing when there are none. */
static void show_warnings(const ps_cli_t *cli, const json_t *warnings)
{
    if (json_array_size(warnings) > 0) {
        ps_print(cli->out.out, "warnings\n");
    }
    for (size_t i = 0; i < json_array_size(warnings); i++) {
        ps_print(cli->out.out, "  %s\n", json_string_value(json_array_get(warnings, i)));
    }
}

/* Nothing for a registry on one node. */
static void show_registry(const ps_cli_t *cli, const json_t *status)
{
    if (json_is_true(ps_json_at(status, "registry.replicated"))) {
        ps_print(cli->out.out, "registry %" PRIu64 " of %" PRIu64 " voters up, %s leads\n",
                 ps_json_u64(status, "registry.voters_up"), ps_json_u64(status, "registry.voters"),
                 ps_json_text(status, "registry.leader"));
    }
}

static void show_screen(const ps_cli_t *cli, const json_t *status)
{
    bool healthy = json_is_true(ps_json_at(status, "cluster.healthy"));

    ps_print(cli->out.out, "cluster  %s  %s  epoch %" PRIu64 "  %s\n",
             ps_json_text(status, "cluster.name"), ps_json_text(status, "cluster.uuid"),
             ps_json_u64(status, "cluster.epoch"), healthy ? "healthy" : "NOT HEALTHY");
    show_registry(cli, status);
    ps_print(cli->out.out, "tables   %" PRIu64 "\njobs     %" PRIu64 ", %" PRIu64 " running\n\n",
             ps_json_u64(status, "tables"), ps_json_u64(status, "jobs"),
             ps_json_u64(status, "jobs_running"));
    ps_out_table(&cli->out, ps_json_at(status, "nodes"), ps_node_columns);
    (void)putc('\n', cli->out.out);
    show_problems(cli, ps_json_at(status, "problems"));
    show_warnings(cli, ps_json_at(status, "warnings"));
}

/* Asks with this timeout, for the connection and the answer together. */
static psd_status_t ask_for(ps_cli_t *cli, uint64_t wait_ms, json_t **ret_status, psd_error_t *err)
{
    const uint32_t timeout_ms = cli->timeout_ms;
    double until_s = ps_cli_now_s() + (double)wait_ms / 1000.0;
    double left_ms = 0;
    psd_status_t rc = PSD_OK;

    cli->timeout_ms = (uint32_t)wait_ms;
    rc = ps_cli_connect(cli, err);
    left_ms = (until_s - ps_cli_now_s()) * 1000.0;
    if (rc == PSD_OK) {
        cli->timeout_ms = left_ms < 1 ? 1 : (uint32_t)left_ms;
        rc = ps_cli_request(cli, "cluster_status", NULL, NULL, ret_status, err);
    }
    cli->timeout_ms = timeout_ms;
    return rc;
}

static bool is_silence(psd_status_t rc)
{
    return rc == PSD_CONNECT || rc == PSD_DEADLINE;
}

/* The request was made in two parts: reports the whole time. */
static psd_status_t say_silence(const ps_cli_t *cli, psd_status_t rc, double waited_ms,
                                psd_error_t *err)
{
    if (rc != PSD_DEADLINE) {
        return psd_error_wrap(err, rc, "waited %.0f ms", waited_ms);
    }
    psd_error_clear(err);
    return psd_error_set(err, rc, "no answer from %s within %" PRIu32 " ms", cli->endpoint,
                         cli->timeout_ms);
}

/* Asks. When no answer comes soon, finds out why and reports it. A psd that
 * is only slow, and nodes that know no registry now, get the whole timeout. */
static psd_status_t ask_status(ps_cli_t *cli, json_t **ret_status, psd_error_t *err)
{
    const uint64_t most_ms = cli->timeout_ms;
    const uint64_t soon_ms = most_ms < SOON_MS ? most_ms : SOON_MS;
    const bool has_time = ps_args_given(&cli->args, "timeout");
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    double began_s = ps_cli_now_s();
    psd_status_t rc = ask_for(cli, soon_ms, ret_status, err);
    ps_silence_t silence = PS_SILENCE_TURNS;
    double waited_ms = 0;

    if (!is_silence(rc) && rc != PSD_NOT_LEADER) {
        return rc;
    }
    if (is_silence(rc) && strchr(cli->endpoint, ',') == NULL) {
        silence = ps_silent_look(cli->endpoint, soon_ms, began_s + NAMED_WITHIN_S, why);
    }
    if (silence == PS_SILENCE_NAMED || (silence == PS_SILENCE_ELSEWHERE && !has_time)) {
        psd_error_clear(err);
        return psd_error_set(err, PSD_FAILED, "%s", psd_error_text(why));
    }
    if (!has_time && silence != PS_SILENCE_NOBODY &&
        ps_cli_is_leaderless(cli, NAMED_WITHIN_MS, why)) {
        psd_error_clear(err);
        return psd_error_set(err, PSD_NOT_LEADER, "%s", psd_error_text(why));
    }
    waited_ms = (ps_cli_now_s() - began_s) * 1000.0;
    if (silence == PS_SILENCE_NOBODY && !ps_args_on(&cli->args, "wait")) {
        return rc;
    }
    if (waited_ms + 1 <= (double)most_ms) {
        psd_error_clear(err);
        rc = ask_for(cli, most_ms - (uint64_t)waited_ms, ret_status, err);
    }
    return is_silence(rc) || rc == PSD_NOT_LEADER
               ? say_silence(cli, rc, (ps_cli_now_s() - began_s) * 1000.0, err)
               : rc;
}

psd_status_t ps_cmd_cluster_status(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *status = NULL;
    psd_status_t rc = ask_status(cli, &status, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE) {
        show_screen(cli, status);
    } else {
        ps_out_object(&cli->out, status, STATUS);
    }
    cli->exit_code = json_is_true(ps_json_at(status, "cluster.healthy")) ? 0 : NOT_HEALTHY_EXIT;
    return PSD_OK;
}
