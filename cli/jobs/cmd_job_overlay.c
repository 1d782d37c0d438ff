/* SPDX-License-Identifier: Apache-2.0 */
/* pscli job inspect --overlay, --matrix, --dot: who sends to whom, and how fast links are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/jobs/jobs.h"
#include "cli/output/json_text.h"

#define UNKNOWN "unknown"
#define NODES "nodes"
#define TO_SIZE 24   /* of "TO_4095", "to.4095" */
#define ENDS_SIZE 48 /* of "0 4095" */

static const ps_column_t OVERVIEW[] = {{"JOB", "job", PS_UNIT_NONE, false},
                                       {"POLICY", "policy", PS_UNIT_NONE, false},
                                       {"USES", "uses", PS_UNIT_NONE, false},
                                       {"WHY", "why", PS_UNIT_NONE, false},
                                       {"PLAN", "plan", PS_UNIT_NONE, false},
                                       {"FROM_CLOCK", "clock", PS_UNIT_NONE, false},
                                       {"CLOCK_TIME", "clock_s", PS_UNIT_SECONDS, false},
                                       {"STAR_TIME", "star_s", PS_UNIT_SECONDS, false},
                                       {"PROMISED", "promised_s", PS_UNIT_SECONDS, false},
                                       {"CLOCK_BYTES", "clock_bytes", PS_UNIT_BYTES, false},
                                       {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t EDGES[] = {
    {"GROUP", "group", PS_UNIT_NONE, false},  {"FROM", "from", PS_UNIT_NONE, false},
    {"TO", "to", PS_UNIT_NONE, false},        {"RATE", "bytes_s", PS_UNIT_RATE, false},
    {"AGE", "age_s", PS_UNIT_SECONDS, false}, {"SENT", "bytes", PS_UNIT_BYTES, false},
    {NULL, NULL, PS_UNIT_NONE, false}};

static const ps_column_t WORKERS[] = {{"WORKER", "worker", PS_UNIT_NONE, false},
                                      {"RELAY", "relay", PS_UNIT_NONE, false},
                                      {"LINK", "link", PS_UNIT_NONE, false},
                                      {"LENT", "lent", PS_UNIT_NONE, false},
                                      {"RETURNED", "returned", PS_UNIT_NONE, false},
                                      {"DIRECT", "direct", PS_UNIT_NONE, false},
                                      {"BUNDLES", "bundles", PS_UNIT_NONE, false},
                                      {"REFUSED", "refused", PS_UNIT_NONE, false},
                                      {NULL, NULL, PS_UNIT_NONE, false}};

static bool is_for_people(const ps_cli_t *cli)
{
    return cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE;
}

/* ---- what was measured ---- */

/* The overlay of a job, and its links by "FROM TO". */
typedef struct view {
    const json_t *overlay; /* borrowed */
    json_t *links;         /* owned */
} view_t;

static void print_ends(json_int_t from, json_int_t to, char ret_text[ENDS_SIZE])
{
    (void)snprintf(ret_text, ENDS_SIZE, "%" JSON_INTEGER_FORMAT " %" JSON_INTEGER_FORMAT, from, to);
}

static void view_init(view_t *self, const json_t *overlay)
{
    const json_t *links = json_object_get(overlay, "links");

    *self = (view_t){.overlay = overlay, .links = json_object()};
    for (size_t i = 0; i < json_array_size(links); i++) {
        json_t *link = json_array_get(links, i);
        const json_t *to = json_object_get(link, "to");
        char ends[ENDS_SIZE];

        print_ends(json_integer_value(json_object_get(link, "from")),
                   to == NULL ? -1 : json_integer_value(to), ends);
        (void)json_object_set(self->links, ends, link);
    }
}

static void view_done(view_t *self)
{
    json_decref(self->links);
}

/* What was measured between two workers; to -1: to the nodes. NULL: nothing was. */
static const json_t *find_link(const view_t *view, json_int_t from, json_int_t to)
{
    char ends[ENDS_SIZE];

    print_ends(from, to, ends);
    return json_object_get(view->links, ends);
}

/* An unknown value is null, and says so to people. */
static json_t *unknown(bool for_people)
{
    return for_people ? json_string(UNKNOWN) : json_null();
}

static json_t *rate_of(const view_t *view, json_int_t from, json_int_t to, bool for_people)
{
    const json_t *link = find_link(view, from, to);

    return link == NULL ? unknown(for_people) : json_incref(json_object_get(link, "bytes_s"));
}

static double age_s(const json_t *link)
{
    return (double)ps_json_u64(link, "age_ms") / 1e3;
}

/* ---- edges ---- */

/* The rank in "worker 3"; -1: the nodes. */
static json_int_t rank_of(const json_t *sends_to)
{
    const char *text = json_string_value(sends_to);
    const char *gap = text == NULL ? NULL : strchr(text, ' ');

    return gap == NULL ? -1 : (json_int_t)strtoll(gap + 1, NULL, 10);
}

static json_t *edge_json(const view_t *view, size_t group, json_int_t from, json_int_t to,
                         bool for_people)
{
    const json_t *link = find_link(view, from, to);
    json_t *edge = json_pack("{s:I,s:I}", "group", (json_int_t)group, "from", from);

    if (to >= 0 || for_people) {
        (void)json_object_set_new(edge, "to", to >= 0 ? json_integer(to) : json_string(NODES));
    }
    (void)json_object_set_new(edge, "bytes_s",
                              link == NULL ? unknown(for_people)
                                           : json_incref(json_object_get(link, "bytes_s")));
    (void)json_object_set_new(edge, "age_s",
                              json_object_get(link, "age_ms") == NULL ? unknown(for_people)
                                                                      : json_real(age_s(link)));
    if (link != NULL) {
        (void)json_object_set(edge, "bytes", json_object_get(link, "bytes"));
    }
    return edge;
}

static size_t count_groups(const json_t *overlay)
{
    const json_t *first = json_array_get(json_object_get(overlay, "workers"), 0);

    return json_array_size(json_object_get(first, "sends_to"));
}

/* By group, then by worker. */
static json_t *edges_json(const view_t *view, bool for_people)
{
    const json_t *workers = json_object_get(view->overlay, "workers");
    size_t n_groups = count_groups(view->overlay);
    json_t *edges = json_array();

    for (size_t group = 0; group < n_groups; group++) {
        for (size_t i = 0; i < json_array_size(workers); i++) {
            const json_t *worker = json_array_get(workers, i);
            json_int_t to = rank_of(json_array_get(json_object_get(worker, "sends_to"), group));

            (void)json_array_append_new(
                edges, edge_json(view, group, json_integer_value(json_object_get(worker, "worker")),
                                 to, for_people));
        }
    }
    return edges;
}

/* ---- all of it ---- */

/* Seconds in place of microseconds; what was not measured is left out. */
static void put_seconds(json_t *doc, const char *from, const char *to)
{
    double us = (double)ps_json_u64(doc, from);

    if (us > 0) {
        (void)json_object_set_new(doc, to, json_real(us / 1e6));
    }
    (void)json_object_del(doc, from);
}

static void show_overlay(const ps_cli_t *cli, const char *job, const view_t *view)
{
    bool for_people = is_for_people(cli);
    PSD_AUTO(ps_json_unref) json_t *edges = edges_json(view, for_people);
    PSD_AUTO(ps_json_unref) json_t *doc = json_pack("{s:s}", "job", job);

    (void)json_object_update(doc, (json_t *)view->overlay);
    put_seconds(doc, "clock_us", "clock_s");
    put_seconds(doc, "star_us", "star_s");
    put_seconds(doc, "promised_us", "promised_s");
    (void)json_object_set(doc, "edges", edges);
    if (for_people && json_object_get(doc, "clock_s") == NULL) {
        (void)json_object_set_new(doc, "clock_s", json_string(UNKNOWN));
    }
    ps_out_object(&cli->out, doc, OVERVIEW);
    if (for_people && json_array_size(edges) > 0) {
        ps_print(cli->out.out, "\n");
        ps_out_table(&cli->out, edges, EDGES);
        ps_print(cli->out.out, "\n");
        ps_out_table(&cli->out, json_object_get(doc, "workers"), WORKERS);
    }
}

/* ---- the matrix ---- */

typedef struct matrix {
    ps_column_t *columns;    /* owned */
    char (*titles)[TO_SIZE]; /* owned; of each worker … */
    char (*paths)[TO_SIZE];  /* owned; … as are these */
    json_t *rows;            /* owned */
} matrix_t;

static void matrix_done(matrix_t *self)
{
    ps_free(self->columns);
    ps_free(self->titles);
    ps_free(self->paths);
    json_decref(self->rows);
}

static psd_status_t make_columns(matrix_t *self, const json_t *workers, psd_error_t *err)
{
    size_t n = json_array_size(workers);

    self->columns = ps_alloc(n + 3, sizeof *self->columns);
    self->titles = ps_alloc(n + 1, sizeof *self->titles);
    self->paths = ps_alloc(n + 1, sizeof *self->paths);
    if (self->columns == NULL || self->titles == NULL || self->paths == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a table of %zu workers", n);
    }
    self->columns[0] = (ps_column_t){"FROM", "from", PS_UNIT_NONE, false};
    for (size_t i = 0; i < n; i++) {
        uint64_t rank = ps_json_u64(json_array_get(workers, i), "worker");

        (void)snprintf(self->titles[i], TO_SIZE, "TO_%" PRIu64, rank);
        (void)snprintf(self->paths[i], TO_SIZE, "to.%" PRIu64, rank);
        self->columns[1 + i] = (ps_column_t){self->titles[i], self->paths[i], PS_UNIT_RATE, false};
    }
    self->columns[1 + n] = (ps_column_t){"TO_NODES", "nodes", PS_UNIT_RATE, false};
    return PSD_OK;
}

static json_t *row_json(const view_t *view, json_int_t from, bool for_people)
{
    const json_t *workers = json_object_get(view->overlay, "workers");
    json_t *to = json_object();

    for (size_t i = 0; i < json_array_size(workers); i++) {
        json_int_t rank = json_integer_value(json_object_get(json_array_get(workers, i), "worker"));
        char key[TO_SIZE];

        (void)snprintf(key, sizeof key, "%" JSON_INTEGER_FORMAT, rank);
        if (rank != from) {
            (void)json_object_set_new(to, key, rate_of(view, from, rank, for_people));
        }
    }
    return json_pack("{s:I,s:o,s:o}", "from", from, "to", to, NODES,
                     rate_of(view, from, -1, for_people));
}

static psd_status_t show_matrix(const ps_cli_t *cli, const char *job, const view_t *view,
                                psd_error_t *err)
{
    PSD_AUTO(matrix_done) matrix_t matrix = {.rows = json_array()};
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    const json_t *workers = json_object_get(view->overlay, "workers");
    size_t n = json_array_size(workers);
    psd_status_t rc = PSD_OK;

    if (n > PS_OUT_COLUMNS_MAX - 2) {
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "--matrix shows up to %d workers; this job has %zu",
                             PS_OUT_COLUMNS_MAX - 2, n);
    }
    rc = make_columns(&matrix, workers, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        json_int_t from = json_integer_value(json_object_get(json_array_get(workers, i), "worker"));

        (void)json_array_append_new(matrix.rows, row_json(view, from, is_for_people(cli)));
    }
    doc = json_pack("{s:s,s:O}", "job", job, "matrix", matrix.rows);
    ps_out_list(&cli->out, doc, "matrix", matrix.columns);
    return PSD_OK;
}

/* ---- the graph ---- */

/* Is it the first group in which that worker sends there? */
static bool is_first(const json_t *sends_to, size_t group, json_int_t to)
{
    for (size_t i = 0; i < group; i++) {
        if (rank_of(json_array_get(sends_to, i)) == to) {
            return false;
        }
    }
    return true;
}

static void write_label(FILE *out, const view_t *view, const json_t *sends_to, json_int_t from,
                        json_int_t to)
{
    const json_t *link = find_link(view, from, to);
    const char *before = "group";
    char rate[PS_NUMBER_SIZE];
    char age[PS_NUMBER_SIZE];

    for (size_t i = 0; i < json_array_size(sends_to); i++) {
        if (rank_of(json_array_get(sends_to, i)) == to) {
            ps_print(out, "%s %zu", before, i);
            before = ",";
        }
    }
    if (link == NULL) {
        ps_print(out, "\\n" UNKNOWN "\", style=dashed");
        return;
    }
    ps_rate_format((double)ps_json_u64(link, "bytes_s"), rate);
    ps_seconds_format(age_s(link), age);
    ps_print(out, "\\n%s, %s ago\"", rate, age);
}

static void write_edges(FILE *out, const view_t *view, const json_t *worker)
{
    const json_t *sends_to = json_object_get(worker, "sends_to");
    json_int_t from = json_integer_value(json_object_get(worker, "worker"));

    for (size_t group = 0; group < json_array_size(sends_to); group++) {
        json_int_t to = rank_of(json_array_get(sends_to, group));

        if (!is_first(sends_to, group, to)) {
            continue;
        }
        ps_print(out, "  w%" JSON_INTEGER_FORMAT " -> ", from);
        if (to < 0) {
            ps_print(out, NODES);
        } else {
            ps_print(out, "w%" JSON_INTEGER_FORMAT, to);
        }
        ps_print(out, " [label=\"");
        write_label(out, view, sends_to, from, to);
        ps_print(out, "];\n");
    }
}

/* One arrow for all groups in which a worker sends to the same one. */
static void show_graph(const ps_cli_t *cli, const char *job, const view_t *view)
{
    const json_t *workers = json_object_get(view->overlay, "workers");
    FILE *out = cli->out.out;

    ps_print(out, "digraph \"%s\" {\n  rankdir=BT;\n  " NODES " [shape=box];\n", job);
    for (size_t i = 0; i < json_array_size(workers); i++) {
        uint64_t rank = ps_json_u64(json_array_get(workers, i), "worker");

        ps_print(out, "  w%" PRIu64 " [label=\"worker %" PRIu64 "\"];\n", rank, rank);
    }
    for (size_t i = 0; i < json_array_size(workers); i++) {
        write_edges(out, view, json_array_get(workers, i));
    }
    ps_print(out, "}\n");
}

/* ---- which of them ---- */

static psd_status_t check_options(const ps_cli_t *cli, psd_error_t *err)
{
    bool has_dot = ps_args_on(&cli->args, "dot");

    if (has_dot && ps_args_on(&cli->args, "matrix")) {
        return psd_error_set(err, PSD_USAGE, "--matrix and --dot: give one of them");
    }
    if (has_dot && !is_for_people(cli)) {
        return psd_error_set(err, PSD_USAGE, "--dot with -o %s; allowed with: table",
                             ps_args_text(&cli->args, "output"));
    }
    return PSD_OK;
}

bool ps_job_wants_overlay(const ps_cli_t *cli)
{
    return ps_args_on(&cli->args, "overlay") || ps_args_on(&cli->args, "matrix") ||
           ps_args_on(&cli->args, "dot");
}

psd_status_t ps_job_show_overlay(ps_cli_t *cli, const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *reply = NULL;
    PSD_AUTO(view_done) view_t view = {.links = NULL};
    const json_t *overlay = NULL;
    const char *job = NULL;
    psd_status_t rc = check_options(cli, err);

    if (rc == PSD_OK) {
        rc = ps_cli_request(cli, "job_inspect", "job", name, &reply, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    job = ps_json_text(reply, "job.name");
    overlay = ps_json_at(reply, "job.overlay");
    if (overlay == NULL) {
        return psd_error_set(err, PSD_INVALID,
                             "job \"%s\" has no overlay: no worker of it has said where its relay "
                             "is. Run its workers with PSD_OVERLAY, or pscli run --overlay",
                             job);
    }
    if (ps_json_u64(overlay, "links_hidden") > 0) {
        ps_say(&cli->out, "%" PRIu64 " links that were measured are not shown",
               ps_json_u64(overlay, "links_hidden"));
    }
    view_init(&view, overlay);
    if (ps_args_on(&cli->args, "matrix")) {
        return show_matrix(cli, job, &view, err);
    }
    if (ps_args_on(&cli->args, "dot")) {
        show_graph(cli, job, &view);
    } else {
        show_overlay(cli, job, &view);
    }
    return PSD_OK;
}
