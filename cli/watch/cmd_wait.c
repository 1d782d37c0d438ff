/* SPDX-License-Identifier: Apache-2.0 */
/* pscli wait: until a condition holds. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/watch/watch.h"

#define LOOK_MS 100   /* between two looks */
#define ASK_MS 2000   /* for one of them, at most … */
#define LEAST_MS 200  /* … and at least, also when the time is nearly over */
#define TEXT_SIZE 200 /* of what is so now */

struct goal;
typedef psd_status_t (*look_t)(ps_cli_t *cli, const struct goal *goal, bool *ret_is_so,
                               char ret_now[TEXT_SIZE], psd_error_t *err);

typedef struct goal {
    const char *name; /* of the job, node or table; "" for the cluster */
    const char *condition;
    uint64_t number; /* of clock=N, workers=N, up=N */
    look_t look;
} goal_t;

static psd_status_t look_at_cluster(ps_cli_t *cli, const goal_t *goal, bool *ret_is_so,
                                    char ret_now[TEXT_SIZE], psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *status = NULL;
    psd_status_t rc = ps_cli_request(cli, "cluster_status", NULL, NULL, &status, err);
    const json_t *nodes = ps_json_at(status, "nodes");
    uint64_t n_up = 0;

    for (size_t i = 0; i < json_array_size(nodes); i++) {
        n_up += strcmp(ps_json_text(json_array_get(nodes, i), "state"), "up") == 0 ? 1 : 0;
    }
    if (strcmp(goal->condition, "nodes") == 0) {
        *ret_is_so = rc == PSD_OK && n_up >= goal->number;
        (void)snprintf(ret_now, TEXT_SIZE, "%" PRIu64 " nodes are up", n_up);
    } else {
        const json_t *first = json_array_get(ps_json_at(status, "problems"), 0);
        const char *text = json_string_value(first);

        *ret_is_so = json_is_true(ps_json_at(status, "cluster.healthy"));
        (void)snprintf(ret_now, TEXT_SIZE, "the cluster is not healthy: %.150s",
                       text != NULL ? text : ps_json_text(first, "text"));
    }
    return rc;
}

static psd_status_t look_at_node(ps_cli_t *cli, const goal_t *goal, bool *ret_is_so,
                                 char ret_now[TEXT_SIZE], psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    psd_status_t rc = ps_cli_request(cli, "node_inspect", "name", goal->name, &reply, err);
    const char *state = ps_json_text(reply, "node.state");

    if (rc == PSD_NO_NODE) {
        psd_error_clear(err);
        rc = PSD_OK;
        state = "gone";
    }
    if (strcmp(goal->condition, "empty") == 0) {
        uint64_t n = ps_json_u64(reply, "node.partitions.primary") +
                     ps_json_u64(reply, "node.partitions.replica");

        *ret_is_so = rc == PSD_OK && reply != NULL && n == 0;
        (void)snprintf(ret_now, TEXT_SIZE, "node %s has %" PRIu64 " copies", goal->name, n);
    } else {
        *ret_is_so = rc == PSD_OK && strcmp(state, goal->condition) == 0;
        (void)snprintf(ret_now, TEXT_SIZE, "node %s is %s", goal->name, state);
    }
    return rc;
}

/* Copies that are there and in sync, over all partitions. */
static bool has_all_copies(const json_t *table, char ret_now[TEXT_SIZE])
{
    const json_t *partitions = ps_json_at(table, "table.partitions");
    uint64_t wanted = ps_json_u64(table, "table.replicas");
    size_t n_less = 0;

    for (size_t i = 0; i < json_array_size(partitions); i++) {
        const json_t *in_sync = ps_json_at(json_array_get(partitions, i), "in_sync");

        n_less += json_array_size(in_sync) < wanted ? 1 : 0;
    }
    (void)snprintf(ret_now, TEXT_SIZE,
                   "%zu of %zu partitions of table %s have less than %" PRIu64 " copies in sync",
                   n_less, json_array_size(partitions), ps_json_text(table, "table.name"), wanted);
    return n_less == 0;
}

static psd_status_t look_at_table(ps_cli_t *cli, const goal_t *goal, bool *ret_is_so,
                                  char ret_now[TEXT_SIZE], psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *table = NULL;
    psd_status_t rc = ps_cli_request(cli, "table_inspect", "name", goal->name, &table, err);
    bool is_there = rc == PSD_OK;

    (void)snprintf(ret_now, TEXT_SIZE, "table %s is %s", goal->name,
                   is_there ? "there" : "not there");
    if (rc == PSD_NO_TABLE) {
        psd_error_clear(err);
        rc = PSD_OK;
    }
    if (strcmp(goal->condition, "gone") == 0) {
        *ret_is_so = rc == PSD_OK && !is_there;
    } else {
        *ret_is_so =
            is_there && (strcmp(goal->condition, "there") == 0 || has_all_copies(table, ret_now));
    }
    return rc;
}

static psd_status_t look_at_job(ps_cli_t *cli, const goal_t *goal, bool *ret_is_so,
                                char ret_now[TEXT_SIZE], psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *job = NULL;
    psd_status_t rc = ps_cli_request(cli, "job_inspect", "job", goal->name, &job, err);
    const char *state = ps_json_text(job, "job.state");
    uint64_t min = ps_json_u64(job, "job.min");

    if (rc == PSD_NO_JOB) { /* it may come */
        psd_error_clear(err);
        (void)snprintf(ret_now, TEXT_SIZE, "there is no job %s", goal->name);
        return PSD_OK;
    }
    (void)snprintf(ret_now, TEXT_SIZE, "job %s is %s at clock %" PRIu64, goal->name, state, min);
    if (strcmp(goal->condition, "clock") == 0) {
        *ret_is_so = rc == PSD_OK && min >= goal->number;
    } else if (strcmp(goal->condition, "over") == 0) {
        *ret_is_so = rc == PSD_OK && strcmp(state, "running") != 0;
    } else {
        *ret_is_so = rc == PSD_OK && strcmp(state, goal->condition) == 0;
    }
    return rc;
}

/* What can be waited for. */
static const struct {
    const char *what;
    const char *conditions; /* a space between them; "=" where a number follows */
    look_t look;
} KINDS[] = {{"cluster", "healthy nodes=", look_at_cluster},
             {"node", "up down gone empty", look_at_node},
             {"table", "there gone copies", look_at_table},
             {"job", "running finished stopped lost over clock=", look_at_job}};

/* Is it one of the words? Those that end with "=" take a number. */
static bool read_condition(const char *text, const char *conditions, goal_t *goal,
                           char ret_word[TEXT_SIZE])
{
    size_t size = strcspn(text, "=");
    bool has_number = text[size] == '=';

    (void)snprintf(ret_word, TEXT_SIZE, "%.*s", (int)size, text);
    goal->condition = ret_word;
    for (const char *at = conditions; *at != '\0'; at += strspn(at, " ")) {
        size_t n = strcspn(at, " =");
        bool wants_number = at[n] == '=';

        if (n == size && strncmp(at, text, n) == 0 && wants_number == has_number) {
            return !has_number || ps_text_u64(text + size + 1, &goal->number);
        }
        at += strcspn(at, " ");
    }
    return false;
}

static psd_status_t read_goal(const ps_cli_t *cli, goal_t *goal, char word[TEXT_SIZE],
                              psd_error_t *err)
{
    const char *target = ps_cli_word(cli, 0);
    const char *condition = ps_args_text(&cli->args, "for");
    size_t size = strcspn(target, "/");

    for (size_t i = 0; i < sizeof KINDS / sizeof KINDS[0]; i++) {
        bool has_name = target[size] == '/' && ps_text_is_name(target + size + 1);

        if (strlen(KINDS[i].what) != size || strncmp(KINDS[i].what, target, size) != 0 ||
            has_name == (i == 0) || (i == 0 && target[size] != '\0')) {
            continue;
        }
        goal->name = has_name ? target + size + 1 : "";
        goal->look = KINDS[i].look;
        if (condition == NULL) {
            return psd_error_set(err, PSD_USAGE, "--for is required; allowed of a %s: %s",
                                 KINDS[i].what, KINDS[i].conditions);
        }
        return read_condition(condition, KINDS[i].conditions, goal, word)
                   ? PSD_OK
                   : psd_error_set(err, PSD_USAGE, "--for is \"%s\"; allowed of a %s: %s",
                                   condition, KINDS[i].what, KINDS[i].conditions);
    }
    return psd_error_set(err, PSD_USAGE,
                         "TARGET is \"%s\"; allowed: cluster, node/NAME, table/NAME, job/NAME",
                         target);
}

/* May come right by itself: the cluster starts, or the registry moves. */
static bool may_pass(psd_status_t rc)
{
    return rc == PSD_CONNECT || rc == PSD_DEADLINE || rc == PSD_NOT_LEADER || rc == PSD_CLOSED;
}

static void rest(double left_s)
{
    const long ms = left_s * 1000 < LOOK_MS ? (long)(left_s * 1000) + 1 : LOOK_MS;
    struct timespec left = {.tv_nsec = ms * 1000000L};

    (void)nanosleep(&left, NULL); /* a signal ends pscli */
}

psd_status_t ps_cmd_wait(ps_cli_t *cli, psd_error_t *err)
{
    const uint32_t whole_ms = cli->timeout_ms;
    const double began_s = ps_cli_now_s();
    double left_s = 0;
    char word[TEXT_SIZE];
    char now[TEXT_SIZE] = "nothing was answered";
    goal_t goal = {.name = ""};
    bool is_so = false;
    psd_status_t rc = read_goal(cli, &goal, word, err);

    if (rc != PSD_OK) {
        return rc;
    }
    do {
        left_s = (double)whole_ms / 1000.0 - (ps_cli_now_s() - began_s);
        cli->timeout_ms = left_s * 1000 < LEAST_MS ? LEAST_MS
                          : left_s * 1000 < ASK_MS ? (uint32_t)(left_s * 1000)
                                                   : ASK_MS;
        psd_error_clear(err);
        rc = goal.look(cli, &goal, &is_so, now, err);
        if (may_pass(rc)) {
            (void)snprintf(now, sizeof now, "%s", psd_error_text(err));
        } else if (rc != PSD_OK || is_so) {
            break;
        }
        left_s = (double)whole_ms / 1000.0 - (ps_cli_now_s() - began_s);
        rest(left_s < 0 ? 0 : left_s);
    } while (left_s > 0);
    cli->timeout_ms = whole_ms;
    if (is_so || (rc != PSD_OK && !may_pass(rc))) {
        return rc;
    }
    json_decref(cli->details); /* of a refusal on the way */
    cli->details = NULL;
    psd_error_clear(err);
    return psd_error_set(err, PSD_DEADLINE, "%s is not %s after %g s: %s", ps_cli_word(cli, 0),
                         ps_args_text(&cli->args, "for"), (double)whole_ms / 1000.0, now);
}
