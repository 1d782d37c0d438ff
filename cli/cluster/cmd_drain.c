/* SPDX-License-Identifier: Apache-2.0 */
/* pscli node drain, node remove. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"
#include "cli/cluster/moves.h"
#include "cli/output/json_text.h"
#include "cli/run/confirm.h"
#include "cli/run/pace.h"

#define LOOK_MS 200  /* poll interval of a drain */
#define WHY_SIZE 512 /* bytes of the reason why a drain does not go on */
#define WHAT_SIZE (PS_CONFIRM_NAMES_SIZE + 400)

static const ps_column_t DRAINED[] = {{"NODE", "node", PS_UNIT_NONE, false},
                                      {"DRAINING", "draining", PS_UNIT_NONE, false},
                                      {"COPIES", "left.copies", PS_UNIT_NONE, false},
                                      {"PRIMARIES", "left.primaries", PS_UNIT_NONE, false},
                                      {"LAST", "left.last", PS_UNIT_NONE, false},
                                      {"BYTES", "left.bytes", PS_UNIT_BYTES, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t REMOVED[] = {{"NODE", "node", PS_UNIT_NONE, false},
                                      {"REMOVED", "removed", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

static psd_status_t ask_drain(ps_cli_t *cli, const char *name, json_t **ret_reply, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref)
    json_t *request = json_pack("{s:s,s:s,s:b,s:b}", "op", "node_drain", "name", name, "dry_run",
                                ps_args_on(&cli->args, "dry-run") ? 1 : 0, "stay",
                                ps_args_on(&cli->args, "stay") ? 1 : 0);

    return ps_cli_ask(cli, request, ret_reply, err);
}

/* The progress of a drain. */
static void show_drain(const ps_cli_t *cli, ps_pace_t *pace, const char *name, const json_t *reply)
{
    uint64_t left = ps_json_u64(reply, "left.copies");
    char what[PS_PACE_WHAT_SIZE];

    (void)snprintf(what, sizeof what, "%" PRIu64 " copies are left on node \"%s\"", left, name);
    ps_pace_show(pace, &cli->out, what, left,
                 ps_json_u64(reply, "bytes") - ps_json_u64(reply, "bytes_done"));
}

/* Shows why the drain does not go on: once, and again when the reason
 * changes. "" while copies move. */
static void show_why(const ps_cli_t *cli, const json_t *reply, char shown[WHY_SIZE])
{
    const char *why = json_string_value(ps_json_at(reply, "why"));
    bool stuck = why != NULL && ps_json_u64(reply, "left.stuck") > 0;

    if (stuck && strcmp(why, shown) != 0) {
        ps_say(&cli->out, "%s", why);
    }
    (void)snprintf(shown, WHY_SIZE, "%s", stuck ? why : "");
}

/* The copies left have had no node to go to for as long as --timeout says. */
static psd_status_t check_stuck(const ps_cli_t *cli, const json_t *reply, const char *why,
                                double *since_s, psd_error_t *err)
{
    double now_s = ps_cli_now_s();

    if (ps_json_u64(reply, "left.stuck") < ps_json_u64(reply, "left.copies")) {
        *since_s = now_s;
        return PSD_OK;
    }
    return now_s - *since_s < (double)cli->timeout_ms / 1000.0
               ? PSD_OK
               : psd_error_set(err, PSD_DEADLINE, "%s; until then the drain continues", why);
}

/* Asks until nothing is left on the node. Ctrl-C ends the command, not the
 * drain. */
static psd_status_t wait_drained(ps_cli_t *cli, const char *name, json_t **reply_p,
                                 psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    char why[WHY_SIZE] = "";
    double since_s = ps_cli_now_s();
    PSD_AUTO(ps_pace_done) ps_pace_t pace = {0};
    psd_status_t rc = PSD_OK;

    ps_pace_init(&pace, &cli->out, "drain");
    while (rc == PSD_OK && ps_json_u64(*reply_p, "left.copies") > 0) {
        show_drain(cli, &pace, name, *reply_p);
        show_why(cli, *reply_p, why);
        rc = check_stuck(cli, *reply_p, why, &since_s, err);
        if (rc == PSD_OK) {
            (void)nanosleep(&gap, NULL);
            ps_json_unref(reply_p);
            rc = ask_drain(cli, name, reply_p, err);
        }
    }
    ps_pace_done(&pace);
    return rc;
}

static void show_drained(const ps_cli_t *cli, const char *name, const json_t *reply)
{
    uint64_t left = ps_json_u64(reply, "left.copies");

    if (!json_is_true(ps_json_at(reply, "draining"))) {
        ps_out_answer(&cli->out, reply, DRAINED, "node \"%s\" stays, with %" PRIu64 " copies", name,
                      left);
    } else if (left == 0) {
        ps_out_answer(&cli->out, reply, DRAINED, "node \"%s\" is empty: you can stop and remove it",
                      name);
    } else {
        ps_out_answer(&cli->out, reply, DRAINED, "node \"%s\" drains: %" PRIu64 " copies are left",
                      name, left);
    }
}

psd_status_t ps_cmd_node_drain(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const char *name = NULL;
    char why[WHY_SIZE] = "";
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK) {
        rc = ask_drain(cli, name, &reply, err);
    }
    if (rc == PSD_OK && ps_args_on(&cli->args, "dry-run")) {
        ps_moves_show(cli, reply);
        return PSD_OK;
    }
    if (rc == PSD_OK && ps_args_on(&cli->args, "no-wait")) {
        show_why(cli, reply, why);
    } else if (rc == PSD_OK && !ps_args_on(&cli->args, "stay")) {
        rc = wait_drained(cli, name, &reply, err);
    }
    if (rc == PSD_OK) {
        show_drained(cli, name, reply);
    }
    return rc;
}

/* Partitions of all tables in `last`; key "down": those of which nodes that are down have
 * copies. */
static uint64_t count_last(const json_t *last, const char *key)
{
    uint64_t n = 0;

    for (size_t i = 0; i < json_array_size(last); i++) {
        n += ps_json_u64(json_array_get(last, i), key);
    }
    return n;
}

/* Asks when rows would be lost, and says of how many partitions. A node that
 * is up is refused without a question. */
static psd_status_t confirm_loss(ps_cli_t *cli, const char *name, uint64_t *ret_last,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const json_t *last = NULL;
    uint64_t n_down = 0;
    char names[PS_CONFIRM_NAMES_SIZE];
    char down[96] = "";
    char what[WHAT_SIZE];
    psd_status_t rc = ps_cli_request(cli, "node_inspect", "name", name, &reply, err);

    if (rc != PSD_OK) {
        return rc;
    }
    last = ps_json_at(reply, "node.last_copies");
    if (json_array_size(last) == 0 || strcmp(ps_json_text(reply, "node.state"), "up") == 0) {
        return PSD_OK;
    }
    *ret_last = count_last(last, "partitions");
    n_down = count_last(last, "down");
    if (n_down > 0) {
        (void)snprintf(down, sizeof down,
                       "; of %" PRIu64 " of them other nodes that are down have "
                       "copies",
                       n_down);
    }
    ps_confirm_names(last, names);
    (void)snprintf(what, sizeof what,
                   "node \"%s\", with the last copies of %" PRIu64
                   " partitions of table%s %s, whose rows would be lost (restarting the node "
                   "recovers what is on its disk%s),",
                   name, *ret_last, json_array_size(last) == 1 ? "" : "s", names, down);
    return ps_confirm_remove(cli, what, err);
}

psd_status_t ps_cmd_node_remove(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref) json_t *request = NULL;
    const char *name = NULL;
    bool force = ps_args_on(&cli->args, "force");
    uint64_t last = 0;
    psd_status_t rc = ps_cli_name(cli, 0, "NAME", &name, err);

    if (rc == PSD_OK && force) {
        rc = confirm_loss(cli, name, &last, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    request = json_pack("{s:s,s:s,s:b,s:I}", "op", "node_remove", "name", name, "force",
                        force ? 1 : 0, "last", (json_int_t)last);
    rc = ps_cli_ask(cli, request, &reply, err);
    if (rc == PSD_OK) {
        ps_out_answer(&cli->out, reply, REMOVED, "removed node \"%s\"", name);
    }
    return rc;
}
