/* SPDX-License-Identifier: Apache-2.0 */
/* pscli slow: the slowest requests, and where their time went. */
#include "base/alloc.h"
#include "cli/watch/watch.h"

static const ps_column_t SLOW[] = {{"AGO", "ago_s", PS_UNIT_SECONDS, false},
                                   {"KIND", "kind", PS_UNIT_NONE, false},
                                   {"TABLE", "table", PS_UNIT_NONE, false},
                                   {"PARTITION", "partition", PS_UNIT_NONE, false},
                                   {"JOB", "job", PS_UNIT_NONE, true},
                                   {"WORKER", "worker", PS_UNIT_NONE, false},
                                   {"CLOCK", "clock", PS_UNIT_NONE, true},
                                   {"TOTAL", "total_s", PS_UNIT_SECONDS, false},
                                   {"GATE", "gate_s", PS_UNIT_SECONDS, false},
                                   {"QUEUE", "queue_s", PS_UNIT_SECONDS, false},
                                   {"WORK", "work_s", PS_UNIT_SECONDS, false},
                                   {"COPIES", "copies_s", PS_UNIT_SECONDS, false},
                                   {"FLUSH", "flush_s", PS_UNIT_SECONDS, false},
                                   {"HELD_FOR", "held_for", PS_UNIT_NONE, true},
                                   {"ROWS", "rows", PS_UNIT_COUNT, true},
                                   {"BYTES", "bytes", PS_UNIT_BYTES, true},
                                   {"NODE", "node", PS_UNIT_NONE, false},
                                   {"SHARD", "shard", PS_UNIT_NONE, true},
                                   {"SESSION", "session", PS_UNIT_NONE, true},
                                   {"REQUEST", "request", PS_UNIT_NONE, true},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

/* A time in seconds in place of one in other units. */
static void put_seconds(json_t *item, const char *from, const char *to, double units)
{
    const json_t *value = json_object_get(item, from);

    if (value != NULL) {
        (void)json_object_set_new(item, to, json_real((double)json_integer_value(value) / units));
        (void)json_object_del(item, from);
    }
}

static void to_seconds(json_t *reply)
{
    static const struct {
        const char *from;
        const char *to;
    } TIMES[] = {{"total_us", "total_s"}, {"gate_us", "gate_s"},     {"queue_us", "queue_s"},
                 {"work_us", "work_s"},   {"copies_us", "copies_s"}, {"flush_us", "flush_s"}};
    json_t *list = json_object_get(reply, "slow");

    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);

        put_seconds(item, "ago_ms", "ago_s", 1e3);
        for (size_t k = 0; k < sizeof TIMES / sizeof TIMES[0]; k++) {
            put_seconds(item, TIMES[k].from, TIMES[k].to, 1e6);
        }
    }
}

psd_status_t ps_cmd_slow(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(ps_json_unref)
    json_t *request =
        json_pack("{s:s,s:I}", "op", "slow", "limit", (json_int_t)ps_args_u64(&cli->args, "limit"));
    const char *missing = NULL;
    psd_status_t rc = PSD_OK;

    if (cli->args.n_words > 0) {
        const char *name = NULL;

        rc = ps_cli_name(cli, 0, "TABLE", &name, err);
        if (rc == PSD_OK) {
            (void)json_object_set_new(request, "name", json_string(name));
        }
    }
    if (rc == PSD_OK) {
        rc = ps_cli_ask(cli, request, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    to_seconds(reply);
    missing = ps_json_text(reply, "missing");
    if (missing[0] != '\0') {
        ps_say(&cli->out, "%s", missing);
    }
    ps_out_list(&cli->out, reply, "slow", SLOW);
    return PSD_OK;
}
