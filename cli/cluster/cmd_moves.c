/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster rebalance, cluster repair: moves of copies, and missing copies. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"
#include "cli/cluster/moves.h"
#include "cli/run/pace.h"

#define LOOK_MS 200 /* poll interval of a repair */

static const ps_column_t MOVES[] = {{"TABLE", "table", PS_UNIT_NONE, false},
                                    {"PARTITION", "partition", PS_UNIT_NONE, false},
                                    {"WHAT", "what", PS_UNIT_NONE, false},
                                    {"FROM", "from", PS_UNIT_NONE, false},
                                    {"TO", "to", PS_UNIT_NONE, false},
                                    {"BYTES", "bytes", PS_UNIT_BYTES, false},
                                    {"DONE", "bytes_done", PS_UNIT_BYTES, false},
                                    {NULL, NULL, PS_UNIT_NONE, false}};

/* The target of a copy, in words when it is not known. */
static void name_targets(json_t *moves)
{
    for (size_t i = 0; i < json_array_size(moves); i++) {
        json_t *move = json_array_get(moves, i);

        if (ps_json_text(move, "to")[0] == '\0') {
            (void)json_object_set_new(move, "to", json_string("to be chosen"));
        }
    }
}

/* "measured" … in words. */
static const char *source_of(const json_t *reply)
{
    const char *from = ps_json_text(reply, "rate");

    if (strcmp(from, "limit") == 0) {
        return "copies.bytes_per_s";
    }
    return strcmp(from, "measured") == 0 ? "the rate of the last copies" : "assumed";
}

void ps_moves_show(ps_cli_t *cli, json_t *reply)
{
    double bytes = (double)(ps_json_u64(reply, "bytes") - ps_json_u64(reply, "bytes_done"));
    char size[PS_NUMBER_SIZE];
    char rate[PS_NUMBER_SIZE];
    bool is_text = cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE;

    ps_bytes_format(bytes, size);
    ps_rate_format((double)ps_json_u64(reply, "bytes_per_s"), rate);
    ps_say(&cli->out, "%zu moves, %s, about %.1f s at %s (%s)",
           json_array_size(ps_json_at(reply, "moves")), size,
           json_number_value(ps_json_at(reply, "seconds")), rate, source_of(reply));
    if (is_text) {
        name_targets(json_object_get(reply, "moves"));
    }
    ps_out_list(&cli->out, reply, "moves", MOVES);
}

psd_status_t ps_cmd_cluster_rebalance(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:b}", "op", "cluster_rebalance", "dry_run",
                                ps_args_on(&cli->args, "dry-run") ? 1 : 0);
    psd_status_t rc = ps_cli_ask(cli, request, &reply, err);

    if (rc == PSD_OK) {
        ps_moves_show(cli, reply);
    }
    return rc;
}

/* ---- repair ---- */

/* Copies that are being made. */
static size_t count_under_way(const json_t *reply)
{
    const json_t *moves = ps_json_at(reply, "moves");
    size_t n = 0;

    for (size_t i = 0; i < json_array_size(moves); i++) {
        n += json_is_true(json_object_get(json_array_get(moves, i), "under_way")) ? 1 : 0;
    }
    return n;
}

/* No copy has been under way for as long as --timeout says. */
static psd_status_t check_stuck(const ps_cli_t *cli, const json_t *reply, double *since_s,
                                psd_error_t *err)
{
    double now_s = ps_cli_now_s();

    if (count_under_way(reply) > 0) {
        *since_s = now_s;
        return PSD_OK;
    }
    return now_s - *since_s < (double)cli->timeout_ms / 1000.0
               ? PSD_OK
               : psd_error_set(
                     err, PSD_DEADLINE,
                     "%zu copies are missing and none is being made: psd waits for a silent node, "
                     "or no other node can take them; \"pscli cluster status\" says which",
                     json_array_size(ps_json_at(reply, "moves")));
}

/* Asks until nothing is missing. Ctrl-C ends the command, not the repair. */
static psd_status_t wait_repaired(ps_cli_t *cli, json_t **reply_p, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    PSD_AUTO(ps_pace_done) ps_pace_t pace = {0};
    double since_s = ps_cli_now_s();
    size_t n = json_array_size(ps_json_at(*reply_p, "moves"));
    psd_status_t rc = PSD_OK;

    ps_pace_init(&pace, &cli->out, "repair");
    while (rc == PSD_OK && n > 0) {
        char what[PS_PACE_WHAT_SIZE];

        (void)snprintf(what, sizeof what, "%zu copies are missing", n);
        ps_pace_show(&pace, &cli->out, what, n,
                     ps_json_u64(*reply_p, "bytes") - ps_json_u64(*reply_p, "bytes_done"));
        rc = check_stuck(cli, *reply_p, &since_s, err);
        if (rc == PSD_OK) {
            (void)nanosleep(&gap, NULL);
            ps_json_unref(reply_p);
            rc = ps_cli_request(cli, "cluster_repair", NULL, NULL, reply_p, err);
        }
        n = rc == PSD_OK ? json_array_size(ps_json_at(*reply_p, "moves")) : n;
    }
    ps_pace_done(&pace);
    if (rc == PSD_OK) {
        ps_say(&cli->out, "every partition has all of its copies");
    }
    return rc;
}

psd_status_t ps_cmd_cluster_repair(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "cluster_repair", NULL, NULL, &reply, err);

    if (rc == PSD_OK && ps_args_on(&cli->args, "wait")) {
        rc = wait_repaired(cli, &reply, err);
    }
    if (rc == PSD_OK) {
        ps_moves_show(cli, reply);
    }
    return rc;
}
