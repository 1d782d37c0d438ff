/* SPDX-License-Identifier: Apache-2.0 */
/* pscli cluster events: what happened, and what happens. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/cluster/cluster.h"
#include "protocol/registry/command_code.h"
#include "transport/threads/clock.h"

#define LOOK_MS 250      /* between two looks */
#define EVENTS_MAX 10000 /* of one answer */
#define KINDS_MAX 256    /* of commands, also those to come */
/* What commands that need no running psd note. */
#define OFFLINE_KINDS "registry_restored,registry_forced,registry_single"

static const ps_column_t EVENTS[] = {
    {"NUMBER", "id", PS_UNIT_NONE, true},  {"TIME", "unix_ms", PS_UNIT_UNIX_MS, false},
    {"KIND", "kind", PS_UNIT_NONE, false}, {"EPOCH", "epoch", PS_UNIT_NONE, true},
    {"WHAT", "text", PS_UNIT_NONE, false}, {NULL, NULL, PS_UNIT_NONE, false}};

typedef struct filter {
    const char *kinds; /* with commas between them; NULL: all */
    uint64_t since_ms; /* since 1970 */
} filter_t;

/* ---- which ---- */

/* Is the word of that length one of a list? */
static bool is_in(const char *list, const char *word, size_t length)
{
    while (*list != '\0') {
        size_t n = strcspn(list, ",");

        if (n == length && memcmp(list, word, n) == 0) {
            return true;
        }
        list += n + (list[n] == ',' ? 1 : 0);
    }
    return false;
}

static bool is_kind(const char *word, size_t length)
{
    for (int kind = 1; kind < KINDS_MAX; kind++) {
        const char *name = ps_command_name((ps_command_kind_t)kind);

        if (strlen(name) == length && memcmp(name, word, length) == 0) {
            return name[0] != '?';
        }
    }
    return is_in(OFFLINE_KINDS, word, length);
}

static psd_status_t read_filter(const ps_cli_t *cli, filter_t *ret_filter, psd_error_t *err)
{
    *ret_filter = (filter_t){.kinds = ps_args_text(&cli->args, "kind")};
    if (ps_args_given(&cli->args, "since")) {
        ret_filter->since_ms = ps_unix_ms() - ps_args_ms(&cli->args, "since");
    }
    for (const char *word = ret_filter->kinds; word != NULL;) {
        size_t n = strcspn(word, ",");

        if (!is_kind(word, n)) {
            return psd_error_set(err, PSD_USAGE,
                                 "--kind has \"%.*s\"; allowed: kinds of events as \"pscli cluster "
                                 "events\" shows them (node, table, job, copies, ...)",
                                 (int)n, word);
        }
        word = word[n] == ',' ? word + n + 1 : NULL;
    }
    return PSD_OK;
}

static bool keeps(const filter_t *filter, const json_t *event)
{
    const char *kind = ps_json_text(event, "kind");

    return (filter->kinds == NULL || is_in(filter->kinds, kind, strlen(kind))) &&
           ps_json_u64(event, "unix_ms") >= filter->since_ms;
}

/* ---- asked and shown ---- */

/* Those after a number that the filter keeps, the last ones; the number moves. */
static psd_status_t ask(ps_cli_t *cli, const filter_t *filter, uint64_t *after_p, uint64_t limit,
                        json_t **ret_reply, psd_error_t *err)
{
    bool filters = filter->kinds != NULL || filter->since_ms > 0;
    PSD_AUTO(ps_json_unref)
    json_t *request =
        json_pack("{s:s,s:I,s:I}", "op", "cluster_events", "limit",
                  (json_int_t)(filters ? EVENTS_MAX : limit), "after", (json_int_t)*after_p);
    psd_status_t rc = ps_cli_ask(cli, request, ret_reply, err);
    json_t *events = json_object_get(*ret_reply, "events");
    uint64_t after = *after_p;

    for (size_t i = 0; rc == PSD_OK && i < json_array_size(events);) {
        const json_t *event = json_array_get(events, i);
        uint64_t id = ps_json_u64(event, "id");

        *after_p = id > *after_p ? id : *after_p;
        /* A psd that knows no `after` sends older ones too. */
        if (id > after && keeps(filter, event)) {
            i++;
        } else {
            (void)json_array_remove(events, i);
        }
    }
    while (rc == PSD_OK && json_array_size(events) > limit) {
        (void)json_array_remove(events, 0);
    }
    return rc;
}

static psd_status_t follow(ps_cli_t *cli, const filter_t *filter, uint64_t after, psd_error_t *err)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    ps_out_t out = cli->out;

    out.no_headers = true;
    while (true) { /* until the reader has gone */
        PSD_AUTO(ps_json_unref) json_t *reply = NULL;
        psd_status_t rc = ps_out_finish(&out, err);

        if (rc != PSD_OK) {
            return rc;
        }
        (void)nanosleep(&gap, NULL);
        rc = ask(cli, filter, &after, EVENTS_MAX, &reply, err);
        if (rc != PSD_OK) {
            return rc;
        }
        if (json_array_size(json_object_get(reply, "events")) > 0) {
            ps_out_list(&out, reply, "events", EVENTS);
        }
    }
}

psd_status_t ps_cmd_cluster_events(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    const bool follows = ps_args_on(&cli->args, "follow");
    filter_t filter = {0};
    uint64_t after = 0;
    psd_status_t rc = read_filter(cli, &filter, err);

    if (rc == PSD_OK && follows &&
        (ps_args_given(&cli->args, "watch") || ps_args_given(&cli->args, "sort"))) {
        rc = psd_error_set(err, PSD_USAGE,
                           "--follow shows events as they happen; it goes without --watch and "
                           "--sort");
    }
    if (rc == PSD_OK) {
        rc = ask(cli, &filter, &after, ps_args_u64(&cli->args, "last"), &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (follows && cli->out.format == PS_FORMAT_JSON) { /* one document has no end */
        cli->out.format = PS_FORMAT_JSONL;
    }
    ps_out_list(&cli->out, reply, "events", EVENTS);
    return follows ? follow(cli, &filter, after, err) : PSD_OK;
}
