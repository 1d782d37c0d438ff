/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of requests: as a table, for Chrome, and as OTLP. */
#include "cli/tables/trace_out.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/output/json_text.h"
#include "cli/output/new_file.h"
#include "transport/threads/clock.h"

#define US_PER_S 1e6
#define HEX_SIZE 33 /* of 16 bytes */
#define SPAN_HEX 16 /* digits of a span's id */
#define KIND_INTERNAL 1
#define KIND_CLIENT 3

/* In the order in which they are drawn. */
static const struct {
    psd_phase_t phase;
    const char *name;
    const char *key; /* in the table's document */
} PHASES[] = {{PSD_PHASE_CLIENT, "client", "client_s"}, {PSD_PHASE_QUEUE, "queue", "queue_s"},
              {PSD_PHASE_GATE, "gate", "gate_s"},       {PSD_PHASE_WORK, "work", "work_s"},
              {PSD_PHASE_COPIES, "copies", "copies_s"}, {PSD_PHASE_FLUSH, "flush", "flush_s"},
              {PSD_PHASE_ANSWER, "answer", "answer_s"}};
#define N_PHASES (sizeof PHASES / sizeof PHASES[0])

static const ps_column_t TRACE[] = {{"KIND", "kind", PS_UNIT_NONE, false},
                                    {"PARTITION", "partition", PS_UNIT_NONE, false},
                                    {"WHOLE", "whole_s", PS_UNIT_SECONDS, false},
                                    {"CLIENT", "client_s", PS_UNIT_SECONDS, false},
                                    {"QUEUE", "queue_s", PS_UNIT_SECONDS, false},
                                    {"GATE", "gate_s", PS_UNIT_SECONDS, false},
                                    {"WORK", "work_s", PS_UNIT_SECONDS, false},
                                    {"COPIES", "copies_s", PS_UNIT_SECONDS, false},
                                    {"FLUSH", "flush_s", PS_UNIT_SECONDS, false},
                                    {"ANSWER", "answer_s", PS_UNIT_SECONDS, false},
                                    {"TOLD", "told", PS_UNIT_NONE, true},
                                    {"ENDPOINT", "endpoint", PS_UNIT_NONE, true},
                                    {NULL, NULL, PS_UNIT_NONE, false}};

/* What could not be written is said before anything is sent: a push is not to be made twice. */
static psd_status_t check_files(const ps_cli_t *cli, psd_error_t *err)
{
    static const char *const NAMES[] = {"trace-file", "trace-otlp"};

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        PSD_AUTO(ps_new_file_done) ps_new_file_t file = {0};
        const char *path = ps_args_text(&cli->args, NAMES[i]);
        psd_status_t rc = PSD_OK;

        if (path == NULL) {
            continue;
        }
        if (strcmp(path, "-") == 0) {
            return psd_error_set(err, PSD_USAGE, "--%s -; allowed: the name of a file", NAMES[i]);
        }
        rc = ps_new_file_open(&file, path, 0666, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

psd_status_t ps_trace_out_new(const ps_cli_t *cli, psd_trace_t **ret_trace, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!ps_args_on(&cli->args, "trace") && !ps_args_given(&cli->args, "trace-file") &&
        !ps_args_given(&cli->args, "trace-otlp")) {
        return PSD_OK;
    }
    if (ps_args_given(&cli->args, "watch")) {
        return psd_error_set(err, PSD_USAGE, "--watch with --trace: give one of them");
    }
    rc = check_files(cli, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_trace = psd_trace_new();
    return *ret_trace != NULL ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a trace");
}

/* ---- a table ---- */

static json_t *seconds(uint64_t us)
{
    return json_real((double)us / US_PER_S);
}

static void print(const ps_cli_t *cli, const psd_trace_t *trace, const char *table)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:s,s:[]}", "table", table, "trace");
    json_t *list = json_object_get(doc, "trace");
    ps_out_t out = cli->out;

    for (size_t i = 0; i < psd_trace_count(trace); i++) {
        json_t *item =
            json_pack("{s:s,s:I,s:o,s:b,s:s}", "kind", psd_trace_kind(trace, i), "partition",
                      (json_int_t)psd_trace_partition(trace, i), "whole_s",
                      seconds(psd_trace_us(trace, i, PSD_PHASE_WHOLE)), "told",
                      psd_trace_is_told(trace, i), "endpoint", psd_trace_endpoint(trace, i));

        for (size_t k = 0; k < N_PHASES; k++) {
            (void)json_object_set_new(item, PHASES[k].key,
                                      seconds(psd_trace_us(trace, i, PHASES[k].phase)));
        }
        (void)json_array_append_new(list, item);
    }
    out.out = cli->out.err;
    out.columns = NULL;
    out.sort = NULL;
    out.color = false;
    if (!ps_format_is_json(out.format)) {
        out.format = out.format == PS_FORMAT_WIDE ? PS_FORMAT_WIDE : PS_FORMAT_TABLE;
    }
    ps_out_list(&out, doc, "trace", TRACE);
}

/* ---- Chrome ---- */

static json_t *chrome_event(const char *name, uint64_t start_us, uint64_t us, size_t row)
{
    return json_pack("{s:s,s:s,s:s,s:I,s:I,s:i,s:I}", "name", name, "cat", "psd", "ph", "X", "ts",
                     (json_int_t)start_us, "dur", (json_int_t)us, "pid", 1, "tid",
                     (json_int_t)row + 1);
}

/* "pull w, partition 3" */
#define NAME_SIZE 200
static void name_of(const psd_trace_t *trace, size_t i, const char *table, char ret[NAME_SIZE])
{
    (void)snprintf(ret, NAME_SIZE, "%s %.128s, partition %" PRIu32, psd_trace_kind(trace, i), table,
                   psd_trace_partition(trace, i));
}

static void add_chrome(const psd_trace_t *trace, size_t i, const char *table, json_t *events)
{
    uint64_t at_us = psd_trace_start_us(trace, i);
    char name[NAME_SIZE];
    json_t *whole = NULL;

    name_of(trace, i, table, name);
    whole = chrome_event(name, at_us, psd_trace_us(trace, i, PSD_PHASE_WHOLE), i);
    (void)json_object_set_new(whole, "args",
                              json_pack("{s:s}", "endpoint", psd_trace_endpoint(trace, i)));
    (void)json_array_append_new(events, whole);
    for (size_t k = 0; k < N_PHASES; k++) {
        uint64_t us = psd_trace_us(trace, i, PHASES[k].phase);

        if (us > 0) {
            (void)json_array_append_new(events, chrome_event(PHASES[k].name, at_us, us, i));
        }
        at_us += us;
    }
}

static psd_status_t write_chrome(const psd_trace_t *trace, const char *table, const char *path,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "traceEvents");
    PSD_AUTO(ps_new_file_done) ps_new_file_t file = {0};
    uint64_t n_bytes = 0;
    psd_status_t rc = ps_new_file_open(&file, path, 0666, err);

    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < psd_trace_count(trace); i++) {
        add_chrome(trace, i, table, json_object_get(doc, "traceEvents"));
    }
    ps_json_write(file.file, doc, false);
    ps_print(file.file, "\n");
    return ps_new_file_commit(&file, &n_bytes, err);
}

/* ---- OTLP ---- */

static void to_hex(const uint8_t bytes[16], char ret[HEX_SIZE])
{
    for (size_t i = 0; i < 16; i++) {
        (void)snprintf(ret + 2 * i, 3, "%02x", (unsigned)bytes[i]);
    }
}

static json_t *text_attribute(const char *key, const char *text)
{
    return json_pack("{s:s,s:{s:s}}", "key", key, "value", "stringValue", text);
}

static json_t *number_attribute(const char *key, uint64_t number)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return json_pack("{s:s,s:{s:s}}", "key", key, "value", "intValue", text);
}

typedef struct span {
    const char *trace_id;
    const char *id; /* 16 digits */
    const char *parent;
    const char *name;
    uint64_t start_us;
    uint64_t us;
} span_t;

static json_t *otlp_span(const span_t *self)
{
    char start[32];
    char end[32];

    (void)snprintf(start, sizeof start, "%" PRIu64 "000", self->start_us);
    (void)snprintf(end, sizeof end, "%" PRIu64 "000", self->start_us + self->us);
    return json_pack("{s:s,s:s,s:s,s:s,s:i,s:s,s:s}", "traceId", self->trace_id, "spanId", self->id,
                     "parentSpanId", self->parent, "name", self->name, "kind",
                     self->parent[0] == '\0' ? KIND_CLIENT : KIND_INTERNAL, "startTimeUnixNano",
                     start, "endTimeUnixNano", end);
}

/* The ids of spans are the random one, with the number of the span added. */
static void span_id(uint64_t first, uint64_t number, char ret[SPAN_HEX + 1])
{
    (void)snprintf(ret, SPAN_HEX + 1, "%016" PRIx64, first + number);
}

static void add_otlp(const psd_trace_t *trace, size_t i, const char *table, const char *trace_id,
                     uint64_t first_id, json_t *spans)
{
    uint64_t number = i * (N_PHASES + 1);
    uint64_t at_us = psd_trace_start_us(trace, i);
    char name[NAME_SIZE];
    char whole_id[SPAN_HEX + 1];
    char id[SPAN_HEX + 1];
    span_t span = {.trace_id = trace_id,
                   .id = whole_id,
                   .parent = "",
                   .name = name,
                   .start_us = at_us,
                   .us = psd_trace_us(trace, i, PSD_PHASE_WHOLE)};
    json_t *whole = NULL;

    name_of(trace, i, table, name);
    span_id(first_id, number, whole_id);
    whole = otlp_span(&span);
    (void)json_object_set_new(
        whole, "attributes",
        json_pack("[o,o,o]", text_attribute("psd.table", table),
                  number_attribute("psd.partition", psd_trace_partition(trace, i)),
                  text_attribute("psd.endpoint", psd_trace_endpoint(trace, i))));
    (void)json_array_append_new(spans, whole);
    span.id = id;
    span.parent = whole_id;
    for (size_t k = 0; k < N_PHASES; k++) {
        span.name = PHASES[k].name;
        span.start_us = at_us;
        span.us = psd_trace_us(trace, i, PHASES[k].phase);
        span_id(first_id, number + 1 + k, id);
        if (span.us > 0) {
            (void)json_array_append_new(spans, otlp_span(&span));
        }
        at_us += span.us;
    }
}

static psd_status_t append_otlp(const psd_trace_t *trace, const char *table, const char *path,
                                psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    json_t *spans = json_array();
    uint8_t random[24];
    char trace_id[HEX_SIZE];
    uint64_t first_id = 0;
    FILE *file = NULL;
    int failed = 0;
    psd_status_t rc = ps_random(random, sizeof random, err);

    if (rc != PSD_OK) {
        json_decref(spans);
        return rc;
    }
    to_hex(random, trace_id);
    memcpy(&first_id, random + 16, sizeof first_id);
    first_id |= 1; /* no id is 0 */
    for (size_t i = 0; i < psd_trace_count(trace); i++) {
        add_otlp(trace, i, table, trace_id, first_id, spans);
    }
    doc = json_pack("{s:[{s:{s:[o]},s:[{s:{s:s},s:o}]}]}", "resourceSpans", "resource",
                    "attributes", text_attribute("service.name", "pscli"), "scopeSpans", "scope",
                    "name", "psd", "spans", spans);
    file = fopen(path, "ae");
    failed = file == NULL ? errno : 0;
    if (file != NULL) {
        ps_json_write(file, doc, false);
        ps_print(file, "\n");
        failed = ferror(file) != 0 ? EIO : 0;
        if (fclose(file) != 0) {
            failed = errno;
        }
    }
    if (failed != 0) {
        char reason[128] = "";

        return psd_error_set(err, PSD_IO, "%s: %s", path,
                             strerror_r(failed, reason, sizeof reason));
    }
    return PSD_OK;
}

psd_status_t ps_trace_out(const ps_cli_t *cli, const psd_trace_t *trace, const char *table,
                          psd_error_t *err)
{
    const char *chrome = ps_args_text(&cli->args, "trace-file");
    const char *otlp = ps_args_text(&cli->args, "trace-otlp");
    psd_status_t rc = PSD_OK;

    if (trace == NULL || psd_trace_count(trace) == 0) {
        return PSD_OK;
    }
    if (ps_args_on(&cli->args, "trace")) {
        print(cli, trace, table);
    }
    if (chrome != NULL) {
        rc = write_chrome(trace, table, chrome, err);
    }
    if (rc == PSD_OK && otlp != NULL) {
        rc = append_otlp(trace, table, otlp, err);
    }
    return rc;
}
