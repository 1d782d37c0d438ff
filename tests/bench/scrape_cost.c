/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a scrape of /metrics costs, with 1000 tables and 64 workers of a job that have
 * series of their own.
 *
 *   scrape_cost [SECONDS]
 *
 * PSD_PROGRAM names psd. Prints the median of 21 scrapes, the size of their text, and
 * the share of a core that psd takes without scrapes and with one a second, over
 * SECONDS (20) each. Ends with 1 when the median is above 50 ms or the difference above
 * 1 % of a core.
 */
#include <psd.h>
#include <stdlib.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/http_get.h"

#define TABLES 1000
#define WORKERS 64
#define SCRAPES 21
#define SECONDS 20
#define MOST_MS 50.0
#define MOST_SHARE 0.01

typedef struct bench {
    daemon_t daemon;
    psd_client_t *clients[WORKERS];
    psd_error_t *err;
    uint16_t port;
} bench_t;

static double now_s(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void sleep_until(double when_s)
{
    double left_s = when_s - now_s();
    struct timespec left = {0};

    if (left_s > 0) {
        left.tv_sec = (time_t)left_s;
        left.tv_nsec = (long)((left_s - (double)left.tv_sec) * 1e9);
        (void)nanosleep(&left, NULL);
    }
}

/* Processor seconds of psd. */
static double used_s(const bench_t *self)
{
    char path[64];
    char text[1024] = "";
    FILE *file = NULL;
    unsigned long user = 0;
    unsigned long kernel = 0;
    const char *after = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", self->daemon.pid);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    after = strrchr(text, ')');
    if (after == NULL || sscanf(after + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                                &user, &kernel) != 2) {
        return 0;
    }
    return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

static bool make_tables(bench_t *self)
{
    psd_spec_t *spec = psd_spec_new();

    CHECK_OK(psd_spec_set(spec, "rows", "1000", self->err), self->err);
    CHECK_OK(psd_spec_set(spec, "partitions", "2", self->err), self->err);
    for (int i = 0; i < TABLES; i++) {
        psd_table_t *table = NULL;
        char name[32];

        (void)snprintf(name, sizeof name, "t%d", i);
        CHECK_OK(psd_table_create(self->clients[0], name, spec, &table, self->err), self->err);
        psd_table_close(&table);
    }
    psd_spec_destroy(&spec);
    return true;
}

/* All are in the job before the first one works. */
static bool join(bench_t *self)
{
    for (int i = 0; i < WORKERS; i++) {
        CHECK_OK(psd_connect(self->daemon.control, NULL, &self->clients[i], self->err), self->err);
        CHECK_OK(psd_join(self->clients[i], "bench", i, WORKERS, -1, self->err), self->err);
    }
    for (int i = 0; i < WORKERS; i++) {
        psd_table_t *table = NULL;

        CHECK_OK(psd_table_open(self->clients[i], "t0", &table, self->err), self->err);
        CHECK_OK(psd_clock(self->clients[i], self->err), self->err);
        psd_table_close(&table);
    }
    return true;
}

static double scrape(const bench_t *self, double *ret_tables, double *ret_workers, size_t *ret_size)
{
    char *answer = NULL;
    double since_s = now_s();
    unsigned status = http_ask(self->port, "GET", "/metrics", &answer);
    double took_s = now_s() - since_s;

    *ret_tables = status == 200 ? http_sum(answer, "psd_table_partitions", "") / 2 : 0;
    *ret_workers = status == 200 ? http_sum(answer, "psd_worker_clock", "") : 0;
    *ret_size = strlen(answer);
    free(answer);
    return took_s * 1000;
}

static int compare(const void *a, const void *b)
{
    const double *left = a;
    const double *right = b;

    return *left < *right ? -1 : *left > *right ? 1 : 0;
}

static bool measure_scrapes(const bench_t *self, double *ret_ms)
{
    double took[SCRAPES];
    double tables = 0;
    double workers = 0;
    size_t size = 0;

    for (int i = 0; i < 600 && (tables < TABLES || workers < WORKERS); i++) {
        (void)scrape(self, &tables, &workers, &size);
        sleep_until(now_s() + 0.1);
    }
    CHECK(tables == TABLES && workers == WORKERS);
    for (int i = 0; i < SCRAPES; i++) {
        took[i] = scrape(self, &tables, &workers, &size);
    }
    qsort(took, SCRAPES, sizeof took[0], compare);
    *ret_ms = took[SCRAPES / 2];
    (void)printf("scrape: %.1f ms (median of %d; least %.1f), %zu bytes\n", *ret_ms, SCRAPES,
                 took[0], size);
    return true;
}

/* The share of a core that psd takes. */
static double measure_share(const bench_t *self, int seconds, bool scrapes)
{
    double since_s = now_s();
    double used = used_s(self);
    double tables = 0;
    double workers = 0;
    size_t size = 0;

    for (int i = 0; i < seconds; i++) {
        if (scrapes) {
            (void)scrape(self, &tables, &workers, &size);
        }
        sleep_until(since_s + i + 1);
    }
    return (used_s(self) - used) / (now_s() - since_s);
}

static bool run(bench_t *self, int seconds)
{
    char data[4096];
    double ms = 0;
    double idle = 0;
    double scraped = 0;

    (void)snprintf(data, sizeof data, "%.4000s/data", self->daemon.dir.path);
    self->port = http_port(data);
    CHECK(self->port != 0);
    CHECK_OK(psd_connect(self->daemon.control, NULL, &self->clients[0], self->err), self->err);
    CHECK(make_tables(self));
    psd_close(&self->clients[0]); /* a worker would open all of them in its job */
    CHECK(join(self) && measure_scrapes(self, &ms));
    idle = measure_share(self, seconds, false);
    scraped = measure_share(self, seconds, true);
    (void)printf("psd takes %.4f of a core, with a scrape a second %.4f: %.4f more\n", idle,
                 scraped, scraped - idle);
    for (int i = 0; i < WORKERS; i++) {
        psd_close(&self->clients[i]);
    }
    return ms <= MOST_MS && scraped - idle <= MOST_SHARE;
}

int main(int argc, char **argv)
{
    bench_t self = {.err = psd_error_new()};
    int seconds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : SECONDS;
    bool good = daemon_start(&self.daemon, "http:\n  series: 1000\n") && run(&self, seconds);

    daemon_drop(&self.daemon, !good);
    psd_error_destroy(&self.err);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
