/* SPDX-License-Identifier: Apache-2.0 */
/* pscli bench push, pull, pushpull: goodput by size, transport and keys. */
#include "cli/cli.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/interrupt.h"
#include "cli/json_text.h"

#define LIST_MAX 32
#define TABLE_BYTES (UINT64_C(64) << 20) /* of rows that pushes go round */
#define ROWS_MAX 64
#define ROWS_PER_KEY                                        \
    2 /* a table has so many rows for each key of a request \
       */

static const ps_column_t FIGURES[] = {
    {"WHAT", "what", PS_UNIT_NONE, false},
    {"TRANSPORT", "transport", PS_UNIT_NONE, false},
    {"KEYS", "keys", PS_UNIT_NONE, false},
    {"FLOATS", "floats", PS_UNIT_NONE, false},
    {"BYTES", "bytes", PS_UNIT_BYTES, false},
    {"GOODPUT", "goodput_bytes_s", PS_UNIT_RATE, false},
    {"KEYS/S", "keys_s", PS_UNIT_NONE, false},
    {"REQUESTS/S", "requests_s", PS_UNIT_NONE, false},
    {"LOW", "min_bytes_s", PS_UNIT_RATE, true},
    {"HIGH", "max_bytes_s", PS_UNIT_RATE, true},
    {"IN_FLIGHT", "in_flight", PS_UNIT_NONE, true},
    {"REPEATS", "repeats", PS_UNIT_NONE, true},
    {NULL, NULL, PS_UNIT_NONE, false}};

typedef struct bench {
    ps_cli_t *cli;
    ps_bench_shape_t shape;
    psd_client_t *client; /* owned; of the transport */
    const char *transport;
    json_t *figures; /* borrowed */
} bench_t;

/* "4k,64k" or "1,64" to numbers. */
static psd_status_t
read_list(const char *text,
          const char *what,
          uint64_t max,
          uint64_t ret_numbers[LIST_MAX],
          size_t *ret_n,
          psd_error_t *err)
{
    *ret_n = 0;
    if (strcmp(text, "none") == 0) {
        return PSD_OK;
    }
    for (bool more = true; more;) {
        size_t length = strcspn(text, ",");
        char part[32] = "";
        uint64_t number = 0;

        if (length < sizeof part) {
            memcpy(part, text, length);
        }
        if (*ret_n == LIST_MAX || !ps_text_size(part, &number) || number == 0 ||
            number > max) {
            return psd_error_set(err, PSD_USAGE,
                                 "%s has \"%.*s\"; allowed: up to %d of 1 to "
                                 "%" PRIu64 ", like 4k,1M",
                                 what, (int)(length < 40 ? length : 40), text,
                                 LIST_MAX, max);
        }
        ret_numbers[(*ret_n)++] = number;
        more = text[length] == ',';
        text += length + 1;
    }
    return PSD_OK;
}

/* Four digits are more than a measurement gives. */
static json_t *
rounded(double value)
{
    return value < 100 ? json_real((double)(int64_t)(value * 100) / 100)
                       : json_integer((json_int_t)value);
}

static psd_status_t
add_figure(bench_t *self,
           const char *what,
           const ps_bench_result_t *result,
           psd_error_t *err)
{
    const ps_bench_shape_t *shape = &self->shape;
    double bytes = (double)shape->n_keys * (double)shape->n_cols * 4;
    json_t *figure = json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:o,s:o,s:o}", "what", what, "transport",
        self->transport, "keys", (json_int_t)shape->n_keys, "floats",
        (json_int_t)shape->n_cols, "bytes", (json_int_t)bytes,
        "goodput_bytes_s", rounded(result->requests_s * bytes), "keys_s",
        rounded(result->requests_s * (double)shape->n_keys), "requests_s",
        rounded(result->requests_s));

    if (figure == NULL ||
        json_object_set_new(figure, "min_bytes_s",
                            rounded(result->min_requests_s * bytes)) != 0 ||
        json_object_set_new(figure, "max_bytes_s",
                            rounded(result->max_requests_s * bytes)) != 0 ||
        json_object_set_new(figure, "in_flight",
                            json_integer(shape->in_flight)) != 0 ||
        json_object_set_new(figure, "repeats", json_integer(shape->repeats)) !=
            0 ||
        json_array_append_new(self->figures, figure) != 0) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a figure");
    }
    return PSD_OK;
}

/* One line of the result: table, measurement, table gone. */
static psd_status_t
measure(bench_t *self, psd_error_t *err)
{
    const char *what = self->cli->args.cmd->verb;
    psd_table_t *table = NULL;
    ps_bench_result_t result;
    psd_status_t rc = ps_bench_table(self->client, self->shape.n_rows,
                                     self->shape.n_cols, &table, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_say(&self->cli->out, "%s over %s: %zu keys of %" PRIu64 " floats ...",
           what, self->transport, self->shape.n_keys, self->shape.n_cols);
    rc = ps_bench_throughput(self->cli, self->client, table, &self->shape,
                             &result, err);
    ps_bench_drop(self->client, &table);
    return rc != PSD_OK ? rc : add_figure(self, what, &result, err);
}

static psd_status_t
measure_sizes(bench_t *self, psd_error_t *err)
{
    uint64_t sizes[LIST_MAX];
    size_t n = 0;
    psd_status_t rc = read_list(ps_args_text(&self->cli->args, "sizes"),
                                "--sizes", UINT64_C(1) << 33, sizes, &n, err);

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        uint64_t rows = TABLE_BYTES / sizes[i];

        self->shape.n_cols = sizes[i] < 4 ? 1 : sizes[i] / 4;
        self->shape.n_rows = rows == 0 ? 1 : rows < ROWS_MAX ? rows : ROWS_MAX;
        self->shape.keys = NULL;
        self->shape.n_keys = 1;
        rc = measure(self, err);
    }
    return rc;
}

/* Ascending keys, one of every ROWS_PER_KEY rows at random. */
static void
fill_keys(uint64_t *keys, uint64_t n)
{
    ps_rng_t rng = {.state = 1};

    for (uint64_t i = 0; i < n; i++) {
        keys[i] = i * ROWS_PER_KEY + ps_rng_below(&rng, ROWS_PER_KEY);
    }
}

static psd_status_t
measure_keys(bench_t *self, psd_error_t *err)
{
    uint64_t n_keys = ps_args_u64(&self->cli->args, "keys");
    PSD_AUTO(ps_free_at) uint64_t *keys = ps_alloc(n_keys + 1, sizeof *keys);
    uint64_t floats[LIST_MAX];
    size_t n = 0;
    psd_status_t rc = read_list(ps_args_text(&self->cli->args, "floats"),
                                "--floats", 1 << 20, floats, &n, err);

    if (keys == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for keys");
    }
    fill_keys(keys, n_keys);
    for (size_t i = 0; rc == PSD_OK && n_keys > 0 && i < n; i++) {
        self->shape.n_rows = n_keys * ROWS_PER_KEY;
        self->shape.n_cols = floats[i];
        self->shape.keys = keys;
        self->shape.n_keys = (size_t)n_keys;
        rc = measure(self, err);
    }
    return rc;
}

static psd_status_t
measure_transport(bench_t *self, const char *transport, psd_error_t *err)
{
    const char *wanted = ps_args_text(&self->cli->args, "transport");
    psd_status_t rc = PSD_OK;

    if (strcmp(wanted, "all") != 0 && strcmp(wanted, transport) != 0) {
        return PSD_OK;
    }
    self->transport = transport;
    rc = ps_cli_connect_by(self->cli, transport, self->cli->timeout_ms,
                           &self->client, err);
    if (rc == PSD_OK) {
        rc = measure_sizes(self, err);
    }
    if (rc == PSD_OK) {
        rc = measure_keys(self, err);
    }
    psd_close(&self->client);
    return rc;
}

static psd_status_t
add_machine(const bench_t *self, json_t *doc, psd_error_t *err)
{
    double memory = 0;
    double loopback = 0;
    psd_status_t rc = ps_bench_memcpy(self->shape.repeats, &memory, err);

    if (rc == PSD_OK) {
        rc = ps_bench_loopback(self->shape.repeats, &loopback, err);
    }
    if (rc == PSD_OK) {
        json_t *machine =
            json_pack("{s:o,s:o}", "memcpy_bytes_s", rounded(memory),
                      "tcp_loopback_bytes_s", rounded(loopback));

        (void)json_object_set_new(doc, "machine", machine);
    }
    return rc;
}

static void
show(const ps_cli_t *cli, const json_t *doc)
{
    char text[PS_NUMBER_SIZE];

    ps_out_list(&cli->out, doc, "figures", FIGURES);
    if (cli->out.format == PS_FORMAT_TABLE ||
        cli->out.format == PS_FORMAT_WIDE) {
        ps_rate_format((double)ps_json_u64(doc, "machine.memcpy_bytes_s"),
                       text);
        ps_print(cli->out.out, "\nmachine  memcpy %s", text);
        ps_rate_format((double)ps_json_u64(doc, "machine.tcp_loopback_bytes_s"),
                       text);
        ps_print(cli->out.out, ", one tcp stream over loopback %s\n", text);
    }
}

static ps_bench_kind_t
kind_of(const char *verb)
{
    return strcmp(verb, "push") == 0   ? PS_BENCH_PUSH
           : strcmp(verb, "pull") == 0 ? PS_BENCH_PULL
                                       : PS_BENCH_PUSHPULL;
}

psd_status_t
ps_cmd_bench(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:[]}", "figures");
    uint64_t numbers[LIST_MAX];
    size_t n = 0;
    bench_t self = {
        .cli = cli,
        .shape = {.kind = kind_of(cli->args.cmd->verb),
                  .in_flight = (uint32_t)ps_args_u64(&cli->args, "in-flight"),
                  .repeats = (uint32_t)ps_args_u64(&cli->args, "repeats"),
                  .duration_ms = ps_args_ms(&cli->args, "duration")},
        .figures = json_object_get(doc, "figures")};
    /* Lists are read where they are used; here only so that a wrong one costs
     * no measurement. */
    psd_status_t rc = read_list(ps_args_text(&cli->args, "floats"), "--floats",
                                1 << 20, numbers, &n, err);

    if (rc == PSD_OK) {
        rc = read_list(ps_args_text(&cli->args, "sizes"), "--sizes",
                       UINT64_C(1) << 33, numbers, &n, err);
    }
    ps_interrupt_hold();
    if (rc == PSD_OK) {
        rc = measure_transport(&self, "tcp", err);
    }
    if (rc == PSD_OK) {
        rc = measure_transport(&self, "ipc", err);
    }
    if (rc == PSD_OK) {
        rc = add_machine(&self, doc, err);
    }
    if (rc == PSD_OK) {
        show(cli, doc);
    }
    return rc;
}
