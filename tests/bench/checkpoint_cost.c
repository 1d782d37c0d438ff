/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_cost - what pushes notice of a checkpoint, and how fast it is
 *
 *   checkpoint_cost DIR [MB]
 *
 * One node with a table of f32 that keeps versions (default 2048 MB, random
 * first values, 8 partitions); a client pushes 16 rows of 4 KB, one push behind
 * the other. Prints the p50 and p99 of these pushes before a checkpoint into
 * DIR, which is to be empty and on the disk, and while it is made; the rows
 * written in a second beside what the disk takes of a plain file, written and
 * flushed in the same run before and behind; and, after 1 % of the rows have
 * changed, the bytes of a checkpoint since the first one. PSD_PROGRAM names the
 * daemon.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <psd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/cluster.h"

#define COLS 1024
#define ROWS 16 /* of a push */
#define CALL_MS 60000
#define BEFORE_S 4.0
#define LOOK_S 0.1
#define MOST_S 60.0
#define PUSHES_MAX 1000000
#define PLAIN_BYTES ((size_t)512 << 20)
#define BLOCK_BYTES ((size_t)1 << 20)

typedef struct bench {
    psd_client_t *client;
    psd_table_t *table;
    psd_error_t *err;
    uint64_t n_rows;
    uint64_t seed;
    const char *dir;
    double *ms; /* of the pushes at hand */
    size_t n;
} bench_t;

static double
now_s(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t
draw(bench_t *self)
{
    self->seed = self->seed * UINT64_C(6364136223846793005) + 1;
    return self->seed >> 33;
}

/* ---- the disk ---- */

/* MB/s of a plain file. */
static double
plain_speed(const bench_t *self)
{
    char path[4096];
    static uint8_t block[BLOCK_BYTES];
    double from = now_s();
    bool good = true;
    int fd = -1;

    (void)snprintf(path, sizeof path, "%s/plain", self->dir);
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = (uint8_t)(i * 2654435761U >> 7);
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    for (size_t n = 0; good && fd >= 0 && n < PLAIN_BYTES; n += BLOCK_BYTES) {
        good = write(fd, block, BLOCK_BYTES) == (ssize_t)BLOCK_BYTES;
    }
    good = good && fd >= 0 && fsync(fd) == 0;
    from = now_s() - from;
    if (fd >= 0) {
        (void)close(fd);
    }
    (void)unlink(path);
    return good ? (double)PLAIN_BYTES / 1e6 / from : 0;
}

/* ---- pushes ---- */

static bool
push_once(bench_t *self)
{
    static float values[ROWS * COLS];
    uint64_t rows[ROWS];
    uint64_t first = draw(self) % (self->n_rows - ROWS);
    double from = now_s();

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = first + i;
    }
    CHECK_OK(psd_push(self->table, rows, ROWS, values, (size_t)ROWS * COLS,
                      self->err),
             self->err);
    if (self->n < PUSHES_MAX) {
        self->ms[self->n++] = (now_s() - from) * 1e3;
    }
    return true;
}

static int
by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static double
print_pushes(bench_t *self, const char *when, double seconds)
{
    double p99 = 0;

    qsort(self->ms, self->n, sizeof *self->ms, by_value);
    p99 = self->n == 0 ? 0 : self->ms[self->n * 99 / 100];
    (void)printf("%s: %.0f pushes/s, p50 %.3f ms, p99 %.3f ms, longest %.1f "
                 "ms\n",
                 when, (double)self->n / seconds,
                 self->n == 0 ? 0 : self->ms[self->n / 2], p99,
                 self->n == 0 ? 0 : self->ms[self->n - 1]);
    return p99;
}

/* ---- checkpoints ---- */

static uint64_t
number_in(const char *reply, const char *key)
{
    const char *at = strstr(reply, key);

    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/* Makes one, and pushes meanwhile if that is wanted. */
static bool
make(bench_t *self, const char *request, bool pushes, uint64_t *ret_bytes)
{
    char look[100];
    char *reply = NULL;
    double looked = now_s();
    double from = looked;
    bool is_done = false;

    CHECK_OK(psd_request(self->client, request, CALL_MS, &reply, self->err),
             self->err);
    (void)snprintf(look, sizeof look,
                   "{\"op\":\"checkpoint_look\",\"number\":%" PRIu64 "}",
                   number_in(reply, "\"number\":"));
    psd_free(reply);
    while (!is_done && now_s() - from < MOST_S) {
        if (pushes) {
            CHECK(push_once(self));
        }
        if (now_s() - looked < LOOK_S) {
            continue;
        }
        CHECK_OK(psd_request(self->client, look, CALL_MS, &reply, self->err),
                 self->err);
        looked = now_s();
        is_done = strstr(reply, "\"is_done\":true") != NULL;
        *ret_bytes = number_in(reply, "\"file_bytes\":");
        psd_free(reply);
    }
    return is_done;
}

/* Rows that were never pushed to would be left out. */
static bool
touch_all(bench_t *self)
{
    static float values[ROWS * COLS];

    for (uint64_t first = 0; first < self->n_rows; first += ROWS) {
        uint64_t rows[ROWS];

        for (size_t i = 0; i < ROWS; i++) {
            rows[i] = first + i;
        }
        CHECK_OK(psd_push(self->table, rows, ROWS, values, (size_t)ROWS * COLS,
                          self->err),
                 self->err);
    }
    return true;
}

/* 1 % of the rows, anywhere. */
static bool
change_some(bench_t *self)
{
    static float values[COLS];
    uint64_t n = self->n_rows / 100;

    values[0] = 1;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = i * 100 + draw(self) % 100;

        CHECK_OK(psd_push(self->table, &row, 1, values, COLS, self->err),
                 self->err);
    }
    return true;
}

static bool
measure(bench_t *self)
{
    double mb = (double)self->n_rows * COLS * 4 / 1e6;
    double disk = plain_speed(self);
    double from = 0;
    double p99[2];
    double spent = 0;
    uint64_t bytes[2] = {0};

    CHECK(touch_all(self));
    from = now_s();
    while (now_s() - from < BEFORE_S) {
        CHECK(push_once(self));
    }
    p99[0] = print_pushes(self, "before", now_s() - from);
    self->n = 0;
    from = now_s();
    CHECK(make(self, "{\"op\":\"checkpoint_create\",\"name\":\"full\"}", true,
               &bytes[0]));
    spent = now_s() - from;
    p99[1] = print_pushes(self, "meanwhile", spent);
    disk = (disk + plain_speed(self)) / 2;
    CHECK(make(self,
               "{\"op\":\"checkpoint_create\",\"name\":\"base\","
               "\"since\":\"full\"}",
               false, &bytes[1]));
    CHECK(change_some(self));
    CHECK(make(self,
               "{\"op\":\"checkpoint_create\",\"name\":\"more\","
               "\"since\":\"base\"}",
               false, &bytes[1]));
    (void)printf(
        "p99 x %.2f; %.0f MB of rows in %.2f s: %.0f MB/s, %.0f %% of "
        "the disk's %.0f MB/s; 1 %% changed: %.2f %% of %.0f MB\n",
        p99[1] / p99[0], mb, spent, mb / spent, 100 * mb / spent / disk, disk,
        100 * (double)bytes[1] / (double)bytes[0], (double)bytes[0] / 1e6);
    return true;
}

int
main(int argc, char **argv)
{
    char config[4300];
    cluster_args_t args = {
        .n_nodes = 1, .net = CLUSTER_DIRECT, .config = config};
    uint64_t mb = argc > 2 ? strtoull(argv[2], NULL, 10) : 2048;
    cluster_t cluster = {.n_nodes = 0};
    bench_t bench = {.err = psd_error_new(), .n_rows = mb * 256, .seed = 7};
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();
    char rows[32];
    bool good = argc > 1;

    bench.dir = argc > 1 ? argv[1] : "";
    bench.ms = calloc(PUSHES_MAX, sizeof *bench.ms);
    (void)snprintf(config, sizeof config,
                   "shards: 1\ncheckpoint:\n  dir: %s/checkpoints\n",
                   bench.dir);
    good = good && bench.ms != NULL && cluster_start(&cluster, &args);
    psd_options_set_timeout_ms(options, CALL_MS);
    (void)snprintf(rows, sizeof rows, "%" PRIu64, bench.n_rows);
    good = good && psd_connect(cluster.nodes[0].control, options, &bench.client,
                               bench.err) == PSD_OK;
    good = good && psd_spec_set(spec, "rows", rows, bench.err) == PSD_OK &&
           psd_spec_set(spec, "cols", "1024", bench.err) == PSD_OK &&
           psd_spec_set(spec, "init", "normal:0,1", bench.err) == PSD_OK &&
           psd_spec_set(spec, "versions", "true", bench.err) == PSD_OK &&
           psd_spec_set(spec, "partitions", "8", bench.err) == PSD_OK &&
           psd_table_create(bench.client, "big", spec, &bench.table,
                            bench.err) == PSD_OK;
    good = good && measure(&bench);
    if (!good) {
        (void)fprintf(stderr, "checkpoint_cost DIR [MB]: %s\n",
                      psd_error_text(bench.err));
    }
    free(bench.ms);
    psd_table_close(&bench.table);
    psd_close(&bench.client);
    psd_spec_destroy(&spec);
    psd_options_destroy(&options);
    cluster_drop(&cluster, false);
    psd_error_destroy(&bench.err);
    return good ? 0 : 1;
}
