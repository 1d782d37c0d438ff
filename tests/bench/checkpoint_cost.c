/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_cost - what pushes notice of a checkpoint, and how fast it is
 *
 *   checkpoint_cost DIR [MB [ROUNDS]]
 *
 * One node of one shard with a table of f32 that keeps versions (default 2048
 * MB, random values, 8 partitions); a client pushes 16 rows of 4 KB, one push
 * behind the other. Each round (default 3) measures these pushes alone, beside
 * a process that only burns processor time, beside one that does so at the
 * lowest priority, beside one that only writes a file into DIR, and while a
 * checkpoint is made there: what the others cost is the floor of what a
 * checkpoint can. The rows written in a second stand beside what the disk takes
 * of a plain file, written and flushed in the same round. Then, after 1 % of
 * the rows have changed, the bytes of a checkpoint since another, and how fast
 * all rows are read (verify) and restored from files that are not in memory;
 * what was restored is compared bit by bit. DIR is to be empty and on the disk.
 * PSD_PROGRAM names the daemon.
 */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <psd.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plain_disk.h"
#include "support/check.h"
#include "support/cluster.h"

#define COLS 1024
#define ROWS 16 /* of a push */
#define VALUES ((size_t)ROWS * COLS)
#define CALL_MS 60000
#define SPELL_S 1.5 /* each thing that is not a checkpoint */
#define LOOK_S 0.05
#define MOST_S 60.0
#define PUSHES_MAX 2000000
#define ROUNDS_MAX 16

/* What pushes run beside. */
typedef enum beside {
    NOTHING = 0,
    BURNS = 1,
    BURNS_IDLE = 2,
    WRITES = 3,
    CHECKPOINT = 4,
    N_BESIDE = 5
} beside_t;

typedef struct bench {
    psd_client_t *client;
    psd_table_t *table;
    psd_error_t *err;
    uint64_t n_rows;
    uint64_t seed;
    const char *dir;
    double *ms; /* of the pushes at hand */
    size_t n;
    size_t n_rounds;
    double p50[N_BESIDE][ROUNDS_MAX];
    double p99[N_BESIDE][ROUNDS_MAX];
    double disk[ROUNDS_MAX];            /* MB/s of a plain file, written directly */
    double plain[ROUNDS_MAX];           /* … and through the system's memory */
    double speed[ROUNDS_MAX];           /* MB/s of rows */
    double share[ROUNDS_MAX];           /* of the disk */
    double times[N_BESIDE][ROUNDS_MAX]; /* p99, as a multiple of NOTHING's */
} bench_t;

typedef void other_t(const bench_t *self);

static double now_s(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static uint64_t draw(bench_t *self)
{
    self->seed = self->seed * UINT64_C(6364136223846793005) + 1;
    return self->seed >> 33;
}

static int by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;

    return (*a > *b) - (*a < *b);
}

static double median(const double *values, size_t n)
{
    double sorted[ROUNDS_MAX];

    memcpy(sorted, values, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_value);
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* ---- the disk, and others that work ---- */

static void burn(const bench_t *self)
{
    volatile uint64_t n = 0;

    (void)self;
    for (;;) {
        n = n + 1;
    }
}

static void burn_idle(const bench_t *self)
{
    const struct sched_param none = {0};

    (void)sched_setscheduler(0, SCHED_IDLE, &none);
    burn(self);
}

static void write_on(const bench_t *self)
{
    while (plain_disk_write(self->dir, false) > 0) {
    }
}

/* A process beside the client; killed by its number. */
static pid_t start_other(const bench_t *self, other_t *other)
{
    pid_t pid = other == NULL ? 0 : fork();

    if (other != NULL && pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        other(self);
        _exit(1);
    }
    return pid;
}

static void stop_other(pid_t pid)
{
    if (pid > 0) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
    }
}

/* ---- pushes ---- */

static bool push_rows(bench_t *self, uint64_t first, const float *values)
{
    uint64_t rows[ROWS];

    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = first + i;
    }
    CHECK_OK(psd_push(self->table, rows, ROWS, values, VALUES, self->err), self->err);
    return true;
}

static bool push_once(bench_t *self)
{
    static float values[VALUES];
    double from = now_s();

    CHECK(push_rows(self, draw(self) % (self->n_rows - ROWS), values));
    if (self->n < PUSHES_MAX) {
        self->ms[self->n++] = (now_s() - from) * 1e3;
    }
    return true;
}

static bool push_for(bench_t *self, double seconds)
{
    double from = now_s();

    while (now_s() - from < seconds) {
        CHECK(push_once(self));
    }
    return true;
}

/* Takes down how long the pushes took. */
static void note(bench_t *self, beside_t beside, size_t round)
{
    static const char *const names[N_BESIDE] = {"alone", "beside a burner", "beside an idle burner",
                                                "beside a writer", "beside a checkpoint"};

    qsort(self->ms, self->n, sizeof *self->ms, by_value);
    self->p50[beside][round] = self->ms[self->n / 2];
    self->p99[beside][round] = self->ms[self->n * 99 / 100];
    self->times[beside][round] = self->p99[beside][round] / self->p99[NOTHING][round];
    (void)printf("%zu pushes %s: p50 %.3f ms, p90 %.3f, p99 %.3f, p99.9 %.3f, "
                 "longest %.1f\n",
                 self->n, names[beside], self->p50[beside][round], self->ms[self->n * 9 / 10],
                 self->p99[beside][round], self->ms[self->n * 999 / 1000], self->ms[self->n - 1]);
    (void)fflush(stdout);
    self->n = 0;
}

static bool push_beside(bench_t *self, beside_t beside, other_t *other, size_t round)
{
    pid_t pid = start_other(self, other);
    bool good = push_for(self, SPELL_S);

    stop_other(pid);
    note(self, beside, round);
    return good;
}

/* ---- checkpoints ---- */

static uint64_t number_in(const char *reply, const char *key)
{
    const char *at = strstr(reply, key);

    return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 10);
}

/* Does that work, and pushes meanwhile if that is wanted. */
static bool work(bench_t *self, const char *request, bool pushes, uint64_t *ret_bytes)
{
    const struct timespec gap = {.tv_nsec = (long)(LOOK_S * 1e9)};
    char look[100];
    char *reply = NULL;
    double from = now_s();
    bool is_done = false;

    CHECK_OK(psd_request(self->client, request, CALL_MS, &reply, self->err), self->err);
    (void)snprintf(look, sizeof look, "{\"op\":\"checkpoint_look\",\"number\":%" PRIu64 "}",
                   number_in(reply, "\"number\":"));
    psd_free(reply);
    while (!is_done && now_s() - from < MOST_S) {
        if (pushes) {
            CHECK(push_for(self, LOOK_S));
        } else {
            (void)nanosleep(&gap, NULL);
        }
        CHECK_OK(psd_request(self->client, look, CALL_MS, &reply, self->err), self->err);
        is_done = strstr(reply, "\"is_done\":true") != NULL;
        *ret_bytes = number_in(reply, "\"file_bytes\":");
        psd_free(reply);
    }
    return is_done;
}

static bool drop(bench_t *self, const char *name)
{
    char request[100];
    char *reply = NULL;

    (void)snprintf(request, sizeof request, "{\"op\":\"checkpoint_drop\",\"name\":\"%s\"}", name);
    CHECK_OK(psd_request(self->client, request, CALL_MS, &reply, self->err), self->err);
    psd_free(reply);
    return true;
}

static double megabytes(const bench_t *self)
{
    return (double)self->n_rows * COLS * 4 / 1e6;
}

static bool round_of(bench_t *self, size_t i)
{
    uint64_t bytes = 0;
    double from = 0;

    CHECK(push_beside(self, NOTHING, NULL, i));
    CHECK(push_beside(self, BURNS, burn, i));
    CHECK(push_beside(self, BURNS_IDLE, burn_idle, i));
    CHECK(push_beside(self, WRITES, write_on, i));
    self->disk[i] = plain_disk_write(self->dir, true);
    self->plain[i] = plain_disk_write(self->dir, false);
    from = now_s();
    CHECK(work(self, "{\"op\":\"checkpoint_create\",\"name\":\"full\"}", true, &bytes));
    self->speed[i] = megabytes(self) / (now_s() - from);
    note(self, CHECKPOINT, i);
    self->disk[i] = (self->disk[i] + plain_disk_write(self->dir, true)) / 2;
    self->share[i] = 100 * self->speed[i] / self->disk[i];
    (void)printf("rows %.0f MB/s, disk %.0f MB/s, by way of memory %.0f\n", self->speed[i],
                 self->disk[i], self->plain[i]);
    return drop(self, "full");
}

static void print_rounds(const bench_t *self)
{
    size_t n = self->n_rounds;

    (void)printf("medians of %zu: p99 alone %.3f ms; x %.1f beside a burner, x "
                 "%.1f beside an idle one, x %.1f beside a writer, x %.2f "
                 "(%.3f ms) beside a checkpoint; %.0f MB/s of rows, %.0f %% of "
                 "the disk's %.0f (%.0f by way of memory)\n",
                 n, median(self->p99[NOTHING], n), median(self->times[BURNS], n),
                 median(self->times[BURNS_IDLE], n), median(self->times[WRITES], n),
                 median(self->times[CHECKPOINT], n), median(self->p99[CHECKPOINT], n),
                 median(self->speed, n), median(self->share, n), median(self->disk, n),
                 median(self->plain, n));
}

/* ---- what a checkpoint is for ---- */

/* 1 % of the rows, anywhere. */
static bool change_some(bench_t *self)
{
    static float values[COLS];
    uint64_t n = self->n_rows / 100;

    values[0] = 1;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = i * 100 + draw(self) % 100;

        CHECK_OK(psd_push(self->table, &row, 1, values, COLS, self->err), self->err);
    }
    return true;
}

static bool measure_since(bench_t *self)
{
    uint64_t bytes[2] = {0};

    CHECK(work(self, "{\"op\":\"checkpoint_create\",\"name\":\"base\"}", false, &bytes[0]));
    CHECK(change_some(self));
    CHECK(work(self,
               "{\"op\":\"checkpoint_create\",\"name\":\"more\","
               "\"since\":\"base\"}",
               false, &bytes[1]));
    (void)printf("1 %% changed: %.2f %% of %.0f MB\n", 100 * (double)bytes[1] / (double)bytes[0],
                 (double)bytes[0] / 1e6);
    return true;
}

/* The files of a checkpoint leave memory: the next reader goes to the disk. */
static bool forget_files(const bench_t *self, const char *name)
{
    char path[5000];
    DIR *dir = NULL;

    (void)snprintf(path, sizeof path, "%s/checkpoints/%s", self->dir, name);
    dir = opendir(path);
    CHECK(dir != NULL);
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        int fd = openat(dirfd(dir), entry->d_name, O_RDONLY | O_CLOEXEC);

        if (fd >= 0) {
            (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
            (void)close(fd);
        }
    }
    (void)closedir(dir);
    return true;
}

/* Every bit of the two tables. */
static bool is_same(bench_t *self, psd_table_t *other)
{
    static float left[VALUES];
    static float right[VALUES];

    for (uint64_t first = 0; first < self->n_rows; first += ROWS) {
        uint64_t rows[ROWS];

        for (size_t i = 0; i < ROWS; i++) {
            rows[i] = first + i;
        }
        CHECK_OK(psd_pull(self->table, rows, ROWS, left, VALUES, self->err), self->err);
        CHECK_OK(psd_pull(other, rows, ROWS, right, VALUES, self->err), self->err);
        CHECK(memcmp(left, right, sizeof left) == 0);
    }
    return true;
}

static bool measure_restore(bench_t *self)
{
    double disk = plain_disk_read(self->dir);
    psd_table_t *again = NULL;
    uint64_t bytes = 0;
    double verify = 0;
    double restore = 0;
    bool same = false;

    CHECK(forget_files(self, "base") && forget_files(self, "more"));
    verify = now_s();
    CHECK(work(self, "{\"op\":\"checkpoint_verify\",\"name\":\"more\"}", false, &bytes));
    verify = megabytes(self) / (now_s() - verify);
    CHECK(forget_files(self, "base") && forget_files(self, "more"));
    restore = now_s();
    CHECK(work(self,
               "{\"op\":\"checkpoint_restore\",\"name\":\"more\","
               "\"table\":\"big\",\"as\":\"again\"}",
               false, &bytes));
    restore = megabytes(self) / (now_s() - restore);
    disk = (disk + plain_disk_read(self->dir)) / 2;
    CHECK_OK(psd_table_open(self->client, "again", &again, self->err), self->err);
    same = is_same(self, again);
    psd_table_close(&again);
    (void)printf("verify %.0f MB/s, restore %.0f MB/s: %.0f %% and %.0f %% of "
                 "the disk's %.0f MB/s; every bit is %s\n",
                 verify, restore, 100 * verify / disk, 100 * restore / disk, disk,
                 same ? "the same" : "NOT the same");
    return same;
}

/* ---- all of it ---- */

/* Rows that were never pushed to would be left out. Sums of two uniform numbers
 * pack about as well as normal ones. */
static bool fill(bench_t *self)
{
    static float values[VALUES];
    uint64_t x = 88172645463325252U;

    for (uint64_t first = 0; first < self->n_rows; first += ROWS) {
        for (size_t i = 0; i < VALUES; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            values[i] = (float)((double)(int32_t)x + (double)(int32_t)(x >> 32)) * 0x1p-31F;
        }
        CHECK(push_rows(self, first, values));
    }
    return true;
}

static bool measure(bench_t *self)
{
    CHECK(fill(self));
    for (size_t i = 0; i < self->n_rounds; i++) {
        CHECK(round_of(self, i));
    }
    print_rounds(self);
    return measure_since(self) && measure_restore(self);
}

int main(int argc, char **argv)
{
    char config[4300];
    cluster_args_t args = {.n_nodes = 1, .net = CLUSTER_DIRECT, .config = config};
    uint64_t mb = argc > 2 ? strtoull(argv[2], NULL, 10) : 2048;
    cluster_t cluster = {.n_nodes = 0};
    bench_t bench = {.err = psd_error_new(), .n_rows = mb * 256, .seed = 7};
    psd_options_t *options = psd_options_new();
    psd_spec_t *spec = psd_spec_new();
    char rows[32];
    bool good = argc > 1;

    bench.n_rounds = argc > 3 ? strtoul(argv[3], NULL, 10) : 3;
    good = good && bench.n_rounds >= 1 && bench.n_rounds <= ROUNDS_MAX;
    bench.dir = argc > 1 ? argv[1] : "";
    bench.ms = calloc(PUSHES_MAX, sizeof *bench.ms);
    (void)snprintf(config, sizeof config, "shards: 1\ncheckpoint:\n  dir: %s/checkpoints\n",
                   bench.dir);
    good = good && bench.ms != NULL && cluster_start(&cluster, &args);
    psd_options_set_timeout_ms(options, CALL_MS);
    (void)snprintf(rows, sizeof rows, "%" PRIu64, bench.n_rows);
    good =
        good && psd_connect(cluster.nodes[0].control, options, &bench.client, bench.err) == PSD_OK;
    good = good && psd_spec_set(spec, "rows", rows, bench.err) == PSD_OK &&
           psd_spec_set(spec, "cols", "1024", bench.err) == PSD_OK &&
           psd_spec_set(spec, "versions", "true", bench.err) == PSD_OK &&
           psd_spec_set(spec, "partitions", "8", bench.err) == PSD_OK &&
           psd_table_create(bench.client, "big", spec, &bench.table, bench.err) == PSD_OK;
    good = good && measure(&bench);
    if (!good) {
        (void)fprintf(stderr, "checkpoint_cost DIR [MB [ROUNDS]]: %s\n", psd_error_text(bench.err));
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
