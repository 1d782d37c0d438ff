/* SPDX-License-Identifier: Apache-2.0 */
/* The text of /metrics: Prometheus' exposition format, version 0.0.4. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "server/metrics/family.h"
#include "server/metrics/metrics_inner.h"
#include "transport/threads/turns_look.h"

#define LABELS_SIZE 128
#define THREADS_MAX 512
#define OTHER "other" /* the label of all tables beyond series_max */

/* A struct of cells, and the labels that all its series have. */
typedef struct instance {
    const void *counts;
    const char *name; /* borrowed; NULL: none */
    char labels[LABELS_SIZE];
} instance_t;

typedef struct instances {
    instance_t *at; /* owned */
    size_t n;
    size_t capacity;
} instances_t;

/* All that one text is made of. */
typedef struct scrape {
    ps_metrics_t *metrics;
    ps_buffer_t *text;
    instances_t of[PS_N_SOURCES];
    ps_looked_table_t *tables; /* owned; of all shards, as the workers */
    size_t n_tables;
    ps_looked_worker_t *workers; /* owned */
    size_t n_workers;
    ps_thread_counts_t *threads; /* owned */
    bool done;                   /* there was memory */
} scrape_t;

/* ---- what there is ---- */

static void add(scrape_t *self, ps_metric_source_t source, const void *counts, const char *name,
                const char *labels)
{
    instances_t *of = &self->of[source];
    instance_t *added = NULL;

    self->done = self->done && ps_grow(&of->at, &of->capacity, of->n + 1, sizeof *of->at);
    if (self->done) {
        added = &of->at[of->n++];
        added->counts = counts;
        added->name = self->metrics->is.names ? name : NULL;
        (void)snprintf(added->labels, sizeof added->labels, "%s", labels);
    }
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b ? 1 : 0;
}

static int compare_tables(const void *a, const void *b)
{
    return compare_u32(((const ps_looked_table_t *)a)->table,
                       ((const ps_looked_table_t *)b)->table);
}

static int compare_workers(const void *a, const void *b)
{
    const ps_looked_worker_t *left = a;
    const ps_looked_worker_t *right = b;
    int order = compare_u32(left->job, right->job);

    return order != 0 ? order : compare_u32(left->worker, right->worker);
}

/* Adds all cells of one to the other. A struct of a table has only single ones. */
static void sum(ps_table_counts_t *to, const ps_table_counts_t *from)
{
    ps_count_t *cells = (ps_count_t *)to;
    const ps_count_t *more = (const ps_count_t *)from;

    for (size_t i = 0; i < sizeof *to / sizeof *cells; i++) {
        ps_count_add(&cells[i], ps_count_get(&more[i]));
    }
}

/* The tables of all shards, in self->tables: each once, ascending. */
static void gather_tables(scrape_t *self)
{
    const ps_metrics_t *metrics = self->metrics;
    size_t n = 0;
    size_t n_kept = 0;

    for (uint32_t i = 0; i < metrics->is.n_shards; i++) {
        n += metrics->looks[i] == NULL ? 0 : metrics->looks[i]->n_tables;
    }
    self->tables = ps_alloc(n + 1, sizeof *self->tables);
    if (self->tables == NULL) {
        self->done = false;
        return;
    }
    n = 0;
    for (uint32_t i = 0; i < metrics->is.n_shards; i++) {
        const ps_shard_look_t *look = metrics->looks[i];

        if (look != NULL && look->n_tables > 0) {
            memcpy(self->tables + n, look->tables, look->n_tables * sizeof *self->tables);
            n += look->n_tables;
        }
    }
    qsort(self->tables, n, sizeof *self->tables, compare_tables);
    for (size_t i = 0; i < n; i++) {
        if (n_kept > 0 && self->tables[n_kept - 1].table == self->tables[i].table) {
            sum(&self->tables[n_kept - 1].counts, &self->tables[i].counts);
        } else {
            self->tables[n_kept++] = self->tables[i];
        }
    }
    self->n_tables = n_kept;
}

static const char *name_of(const ps_looked_name_t *names, size_t n, uint32_t id)
{
    for (size_t low = 0, high = n; low < high;) { /* they ascend by id */
        size_t middle = low + (high - low) / 2;

        if (names[middle].id == id) {
            return names[middle].name;
        }
        if (names[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* The first series_max have series of their own, the others share one. */
static void add_tables(scrape_t *self)
{
    const ps_cluster_look_t *cluster = self->metrics->cluster;
    size_t most = self->metrics->is.series_max;
    size_t n_own = self->n_tables < most ? self->n_tables : most;

    for (size_t i = 0; i < n_own; i++) {
        char labels[LABELS_SIZE];
        ps_looked_table_t *looked = &self->tables[i];

        ps_count_set(looked->counts.is_there, 1);
        (void)snprintf(labels, sizeof labels, "table=\"%" PRIu32 "\"", looked->table);
        add(self, PS_SOURCE_TABLE, &looked->counts,
            cluster == NULL ? NULL : name_of(cluster->tables, cluster->n_tables, looked->table),
            labels);
    }
    for (size_t i = n_own + 1; i < self->n_tables; i++) {
        sum(&self->tables[n_own].counts, &self->tables[i].counts);
    }
    if (n_own < self->n_tables) {
        add(self, PS_SOURCE_TABLE, &self->tables[n_own].counts, NULL, "table=\"" OTHER "\"");
    }
}

/* The workers of all shards, in self->workers: each once, where it is least far. */
static void gather_workers(scrape_t *self)
{
    const ps_metrics_t *metrics = self->metrics;
    size_t n = 0;
    size_t n_kept = 0;

    for (uint32_t i = 0; i < metrics->is.n_shards; i++) {
        n += metrics->looks[i] == NULL ? 0 : metrics->looks[i]->n_workers;
    }
    self->workers = ps_alloc(n + 1, sizeof *self->workers);
    if (self->workers == NULL) {
        self->done = false;
        return;
    }
    n = 0;
    for (uint32_t i = 0; i < metrics->is.n_shards; i++) {
        const ps_shard_look_t *look = metrics->looks[i];

        for (size_t k = 0; look != NULL && k < look->n_workers; k++) {
            if (look->workers[k].is_here) {
                self->workers[n++] = look->workers[k];
            }
        }
    }
    qsort(self->workers, n, sizeof *self->workers, compare_workers);
    for (size_t i = 0; i < n; i++) {
        ps_looked_worker_t *last = n_kept == 0 ? NULL : &self->workers[n_kept - 1];
        uint64_t clock = ps_count_get(self->workers[i].counts.clock);

        if (last == NULL || compare_workers(last, &self->workers[i]) != 0) {
            self->workers[n_kept++] = self->workers[i];
        } else if (clock < ps_count_get(last->counts.clock)) {
            ps_count_set(last->counts.clock, clock);
        }
    }
    self->n_workers = n_kept;
}

static void add_workers(scrape_t *self)
{
    size_t most = self->metrics->is.series_max;
    size_t end = 0;

    for (size_t begin = 0; begin < self->n_workers && begin < most; begin = end) {
        uint64_t fastest = 0;

        for (end = begin;
             end < self->n_workers && self->workers[end].job == self->workers[begin].job; end++) {
            uint64_t clock = ps_count_get(self->workers[end].counts.clock);

            fastest = clock > fastest ? clock : fastest;
        }
        for (size_t i = begin; i < end && i < most; i++) {
            ps_looked_worker_t *looked = &self->workers[i];
            char labels[LABELS_SIZE];

            ps_count_set(looked->counts.behind, fastest - ps_count_get(looked->counts.clock));
            (void)snprintf(labels, sizeof labels, "job=\"%" PRIu32 "\",worker=\"%" PRIu32 "\"",
                           looked->job, looked->worker);
            add(self, PS_SOURCE_WORKER, &looked->counts, NULL, labels);
        }
    }
}

static void add_cluster(scrape_t *self)
{
    const ps_cluster_look_t *cluster = self->metrics->cluster;
    char labels[LABELS_SIZE];

    for (size_t i = 0; cluster != NULL && i < cluster->n_members; i++) {
        (void)snprintf(labels, sizeof labels, "node=\"%" PRIu32 "\"", cluster->members[i].is.id);
        add(self, PS_SOURCE_MEMBER, &cluster->members[i].counts, cluster->members[i].is.name,
            labels);
    }
    for (size_t i = 0; cluster != NULL && i < cluster->n_jobs; i++) {
        (void)snprintf(labels, sizeof labels, "job=\"%" PRIu32 "\"", cluster->jobs[i].is.id);
        add(self, PS_SOURCE_JOB, &cluster->jobs[i].counts, cluster->jobs[i].is.name, labels);
    }
}

/* Threads of one name are named apart by their number. */
static void add_threads(scrape_t *self)
{
    const ps_turns_t *turns = ps_metrics_turns(self->metrics);
    PSD_AUTO(ps_free_at) ps_late_t *all = ps_alloc(THREADS_MAX, sizeof *all);
    size_t n = 0;

    self->threads = ps_alloc(THREADS_MAX, sizeof *self->threads);
    if (all == NULL || self->threads == NULL) {
        self->done = false;
        return;
    }
    if (turns != NULL) {
        ps_count_set(self->metrics->node.late_threads,
                     ps_turns_late(ps_turns_page(turns), all, THREADS_MAX));
        n = ps_turns_all(ps_turns_page(turns), all, THREADS_MAX);
    }
    for (size_t i = 0; i < n; i++) {
        char labels[LABELS_SIZE];

        ps_count_set(self->threads[i].age_ms, all[i].silent_ms);
        (void)snprintf(labels, sizeof labels, "thread=\"%s\",tid=\"%d\"", all[i].name, all[i].tid);
        add(self, PS_SOURCE_THREAD, &self->threads[i], NULL, labels);
    }
}

static void gather(scrape_t *self)
{
    ps_metrics_t *metrics = self->metrics;

    add_threads(self);
    add(self, PS_SOURCE_NODE, &metrics->node, NULL, "");
    for (uint32_t i = 0; i < metrics->is.n_shards; i++) {
        char labels[LABELS_SIZE];

        (void)snprintf(labels, sizeof labels, "shard=\"%" PRIu32 "\"", i);
        add(self, PS_SOURCE_SHARD, &metrics->shards[i].counts, NULL, labels);
        add(self, PS_SOURCE_JOURNAL, &metrics->shards[i].journal, NULL, labels);
    }
    add(self, PS_SOURCE_CONTROL, &metrics->control.counts, NULL, "");
    add_cluster(self);
    gather_tables(self);
    if (self->done) {
        add_tables(self);
    }
    gather_workers(self);
    if (self->done) {
        add_workers(self);
    }
}

/* ---- the text ---- */

static bool print_number(ps_buffer_t *text, uint64_t n, ps_family_unit_t unit)
{
    switch (unit) {
    case PS_UNIT_MS:
        return ps_buffer_print(text, " %" PRIu64 ".%03" PRIu64 "\n", n / 1000, n % 1000);
    case PS_UNIT_NS:
        return ps_buffer_print(text, " %" PRIu64 ".%09" PRIu64 "\n", n / 1000000000,
                               n % 1000000000);
    case PS_UNIT_ONE:
    default:
        return ps_buffer_print(text, " %" PRIu64 "\n", n);
    }
}

/* `{labels}`; nothing when there are none. */
static bool print_labels(ps_buffer_t *text, const char *labels)
{
    return labels[0] == '\0' || ps_buffer_print(text, "{%s}", labels);
}

static bool print_histogram(ps_buffer_t *text, const ps_family_t *family, const char *labels,
                            const ps_histogram_t *cell)
{
    const char *comma = labels[0] == '\0' ? "" : ",";
    uint64_t n = 0;
    bool done = true;

    for (size_t i = 0; done && i <= PS_BUCKETS; i++) {
        char bound[32] = "+Inf";

        n += ps_count_get(&cell->in[i]);
        if (i < PS_BUCKETS) {
            (void)snprintf(bound, sizeof bound, "%.9g", (double)(UINT64_C(1) << i) / 1e6);
        }
        done = ps_buffer_print(text, "%s_bucket{%s%sle=\"%s\"} %" PRIu64 "\n", family->name, labels,
                               comma, bound, n);
    }
    done = done && ps_buffer_print(text, "%s_sum", family->name) && print_labels(text, labels) &&
           print_number(text, ps_count_get(&cell->sum), PS_UNIT_NS);
    return done && ps_buffer_print(text, "%s_count", family->name) && print_labels(text, labels) &&
           print_number(text, n, PS_UNIT_ONE);
}

static bool is_empty(const ps_histogram_t *cell)
{
    for (size_t i = 0; i <= PS_BUCKETS; i++) {
        if (ps_count_get(&cell->in[i]) > 0) {
            return false;
        }
    }
    return true;
}

/* The value of the i-th cell's label; NULL: it is not shown. */
static const char *value_of(const ps_metrics_t *metrics, const ps_family_t *family,
                            const instance_t *instance, size_t i)
{
    if (family->dim == PS_BY_NAME) {
        return instance->name;
    }
    if (family->dim == PS_BY_KIND) {
        return i < metrics->is.n_kinds ? metrics->is.kinds[i] : NULL;
    }
    return ps_dim_value(family->dim, i);
}

static bool print_cell(const scrape_t *self, const ps_family_t *family, const instance_t *instance,
                       size_t i)
{
    const char *label = ps_dim_label(family->dim);
    const uint8_t *cells = (const uint8_t *)instance->counts + family->offset;
    const ps_histogram_t *histogram = (const void *)cells;
    const ps_count_t *counts = (const void *)cells;
    const char *value = value_of(self->metrics, family, instance, i);
    char labels[2 * LABELS_SIZE];

    if (value == NULL || (family->type != PS_TYPE_HISTOGRAM && ps_dim_is_sparse(family->dim) &&
                          ps_count_get(&counts[i]) == 0)) {
        return true;
    }
    if (family->type == PS_TYPE_HISTOGRAM && family->n_cells > 1 && is_empty(&histogram[i])) {
        return true;
    }
    (void)snprintf(labels, sizeof labels, "%s%s", instance->labels,
                   label[0] == '\0' || instance->labels[0] == '\0' ? "" : ",");
    if (label[0] != '\0') {
        size_t used = strlen(labels);

        (void)snprintf(labels + used, sizeof labels - used, "%s=\"%s\"", label, value);
    }
    if (family->type == PS_TYPE_HISTOGRAM) {
        return print_histogram(self->text, family, labels, &histogram[i]);
    }
    return ps_buffer_print(self->text, "%s", family->name) && print_labels(self->text, labels) &&
           print_number(self->text, ps_count_get(&counts[i]), family->unit);
}

static bool print_family(const scrape_t *self, const ps_family_t *family)
{
    static const char *const TYPES[] = {"counter", "gauge", "histogram"};
    const instances_t *of = &self->of[family->source];
    bool done = ps_buffer_print(self->text, "# HELP %s %s\n# TYPE %s %s\n", family->name,
                                family->help, family->name, TYPES[family->type]);

    for (size_t i = 0; done && i < of->n; i++) {
        for (size_t k = 0; done && k < family->n_cells; k++) {
            done = print_cell(self, family, &of->at[i], k);
        }
    }
    return done;
}

bool ps_metrics_print(ps_metrics_t *self, ps_buffer_t *text)
{
    scrape_t scrape = {.metrics = self, .text = text, .done = true};
    ps_buffer_t reasons = {0};
    bool done = true;

    ps_metrics_refresh(self);
    ps_metrics_ask_system(&self->node);
    ps_count_set(self->node.is_ready, ps_metrics_say_ready(self, &reasons, &done) ? 1 : 0);
    ps_buffer_done(&reasons);
    gather(&scrape);
    done = done && scrape.done;
    for (size_t i = 0; done && i < ps_n_families; i++) {
        done = print_family(&scrape, &ps_families[i]);
    }
    for (size_t i = 0; i < PS_N_SOURCES; i++) {
        ps_free(scrape.of[i].at);
    }
    ps_free(scrape.tables);
    ps_free(scrape.workers);
    ps_free(scrape.threads);
    return done;
}
