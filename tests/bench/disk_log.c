/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a shard and snapshots beside the disk they lie on, in turns:
 *
 *   write    a file of 1 MiB writes, flushed at its end (as dd conv=fdatasync)
 *   log N    records of 1 MiB values appended and flushed N at a time
 *   read     the bytes of that log read plainly in blocks of 1 MiB
 *   recover  the log read as after a restart, every checksum checked
 *   snap     as many pieces of 1 MiB of noise as a snapshot, as they are
 *   snap z   the same, with zstd trying in vain: what compression costs at most
 *   load     the latter read again
 *
 * Prints a median of each in MiB/s, and its share of the plain one. The
 * system's cache forgets the files before they are read.
 *
 *     disk_log DIR [MIB [ROUNDS]]
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "base/text.h"
#include "storage/log/shard_log.h"
#include "storage/snapshot/snapshot_file.h"

#define MIB ((size_t)1 << 20)
#define N_PAYLOADS 16 /* more than the caches of a core hold */
#define ROUNDS_MAX 9
#define SEGMENT_BYTES ((uint64_t)64 << 20)

static const size_t GROUPS[] = {1, 4, 16};
#define N_GROUPS (sizeof GROUPS / sizeof GROUPS[0])

typedef enum figure {
    FIGURE_WRITE = 0,
    FIGURE_LOG = 1, /* one for each group */
    FIGURE_READ = FIGURE_LOG + (int)N_GROUPS,
    FIGURE_RECOVER,
    FIGURE_SNAP,
    FIGURE_SNAP_ZSTD,
    FIGURE_LOAD,
    N_FIGURES
} figure_t;

typedef struct bench {
    char dir[1000];
    uint64_t mib;
    ps_payload_t *payloads[N_PAYLOADS];
    double figures[N_FIGURES][ROUNDS_MAX]; /* MiB/s */
    size_t round;
    psd_error_t *err;
} bench_t;

static double now(void)
{
    struct timespec time;

    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void need(bool good, const bench_t *self, const char *what)
{
    if (!good) {
        (void)fprintf(stderr, "disk_log: %s: %s\n", what, psd_error_text(self->err));
        exit(1);
    }
}

static void note(bench_t *self, int figure, double begin)
{
    self->figures[figure][self->round] = (double)self->mib / (now() - begin);
}

static psd_status_t take_name(void *context, const char *name, psd_error_t *err)
{
    char path[1100];

    (void)err;
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)context, name);
    (void)unlink(path);
    return PSD_OK;
}

static void empty_dir(bench_t *self)
{
    ps_disk_t *disk = ps_disk_real();

    need(disk->list(disk, self->dir, take_name, self->dir, self->err) == PSD_OK, self,
         "empty the directory");
    sync();
}

/* ---- the disk ------------------------------------------------------------ */

static void plain_write(bench_t *self)
{
    char path[1100];
    double begin = 0;
    int fd = -1;

    empty_dir(self);
    (void)snprintf(path, sizeof path, "%s/plain", self->dir);
    begin = now();
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    need(fd >= 0, self, "open the plain file");
    for (uint64_t i = 0; i < self->mib; i++) {
        need(write(fd, self->payloads[i % N_PAYLOADS]->span.data, MIB) == (ssize_t)MIB, self,
             "write the plain file");
    }
    need(fdatasync(fd) == 0, self, "flush the plain file");
    note(self, FIGURE_WRITE, begin);
    (void)close(fd);
}

/* What one file of the log holds is no longer in memory. */
static psd_status_t forget_name(void *context, const char *name, psd_error_t *err)
{
    char path[1100];
    int fd = -1;

    (void)err;
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)context, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fdatasync(fd);
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(fd);
    }
    return PSD_OK;
}

static void forget(bench_t *self)
{
    ps_disk_t *disk = ps_disk_real();

    need(disk->list(disk, self->dir, forget_name, self->dir, self->err) == PSD_OK, self,
         "forget the log");
}

static psd_status_t read_name(void *context, const char *name, psd_error_t *err)
{
    static uint8_t block[MIB];
    char path[1100];
    ssize_t n = 1;
    int fd = -1;

    (void)err;
    (void)snprintf(path, sizeof path, "%s/%s", (const char *)context, name);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return PSD_IO;
    }
    while (n > 0) {
        n = read(fd, block, sizeof block);
    }
    (void)close(fd);
    return n == 0 ? PSD_OK : PSD_IO;
}

static void plain_read(bench_t *self)
{
    ps_disk_t *disk = ps_disk_real();
    double begin = 0;

    forget(self);
    begin = now();
    need(disk->list(disk, self->dir, read_name, self->dir, self->err) == PSD_OK, self,
         "read the log's files");
    note(self, FIGURE_READ, begin);
}

/* ---- the log ------------------------------------------------------------- */

static psd_status_t count_record(void *context, const ps_record_t *record, const ps_body_t *body,
                                 psd_error_t *err)
{
    uint64_t *n = context;

    (void)record;
    (void)err;
    *n += body->values.size == MIB;
    return PSD_OK;
}

static ps_shard_log_t *open_log(bench_t *self, uint64_t *ret_n_records)
{
    ps_shard_log_args_t args = {.disk = ps_disk_real(),
                                .dir = self->dir,
                                .cluster = {{1}},
                                .node = "bench",
                                .segment_bytes = SEGMENT_BYTES};
    ps_shard_log_t *log = NULL;
    ps_shard_log_found_t found = {0};

    need(ps_shard_log_open(&args, &log, self->err) == PSD_OK &&
             ps_shard_log_read(log, count_record, ret_n_records, &found, self->err) == PSD_OK,
         self, "open the log");
    return log;
}

static void write_log(bench_t *self, size_t group)
{
    uint64_t n = 0;
    ps_shard_log_t *log = NULL;
    double begin = 0;

    empty_dir(self);
    log = open_log(self, &n);
    begin = now();
    for (uint64_t i = 1; i <= self->mib; i++) {
        ps_record_t record = {.kind = PS_RECORD_PUSH,
                              .table = 1,
                              .partition = (uint32_t)(i % 8),
                              .lsn = i,
                              .epoch = 1,
                              .session = 1,
                              .seq = i,
                              .slice = {.rows = PS_ROWS_RANGE,
                                        .layout = PS_LAYOUT_DENSE,
                                        .type = PS_TYPE_F32,
                                        .n_rows = MIB / 256,
                                        .n_cols = 64,
                                        .n_values = MIB / 4}};

        need(ps_shard_log_append(log, &record, self->payloads[i % N_PAYLOADS], self->err) == PSD_OK,
             self, "append");
        if (i % group == 0 || i == self->mib) {
            need(ps_shard_log_flush(log, self->err) == PSD_OK, self, "flush");
        }
    }
    for (size_t i = 0; i < N_GROUPS; i++) {
        if (GROUPS[i] == group) {
            note(self, FIGURE_LOG + (int)i, begin);
        }
    }
    ps_shard_log_close(&log);
}

static void recover_log(bench_t *self)
{
    ps_shard_log_t *log = NULL;
    uint64_t n = 0;
    double begin = 0;

    forget(self);
    begin = now();
    log = open_log(self, &n);
    note(self, FIGURE_RECOVER, begin);
    need(n == self->mib, self, "find every record");
    ps_shard_log_close(&log);
}

/* ---- snapshots ----------------------------------------------------------- */

static void write_snapshot(bench_t *self, int figure, int level)
{
    ps_snapshot_dir_t dir = {.disk = ps_disk_real(), .dir = self->dir, .cluster = {{1}}};
    ps_snapshot_id_t id = {1, 0, 1, 0};
    ps_snapshot_writer_t *writer = NULL;
    double begin = 0;

    empty_dir(self);
    begin = now();
    need(ps_snapshot_begin(&dir, &id, level, &writer, self->err) == PSD_OK, self,
         "begin a snapshot");
    for (uint64_t i = 0; i < self->mib; i++) {
        need(ps_snapshot_add(writer, i, self->payloads[i % N_PAYLOADS]->span, self->err) == PSD_OK,
             self, "add a piece");
    }
    need(ps_snapshot_commit(&writer, self->mib, self->err) == PSD_OK, self, "commit a snapshot");
    note(self, figure, begin);
}

static void load_snapshot(bench_t *self)
{
    ps_snapshot_dir_t dir = {.disk = ps_disk_real(), .dir = self->dir, .cluster = {{1}}};
    ps_snapshot_id_t id = {1, 0, 1, 0};
    ps_snapshot_reader_t *reader = NULL;
    ps_snapshot_piece_t piece = {0};
    double begin = 0;

    forget(self);
    begin = now();
    need(ps_snapshot_open(&dir, &id, &reader, self->err) == PSD_OK, self, "open a snapshot");
    while (!piece.is_end) {
        need(ps_snapshot_next(reader, &piece, self->err) == PSD_OK, self, "read a snapshot");
    }
    note(self, FIGURE_LOAD, begin);
    ps_snapshot_close(&reader);
}

/* ---- figures ------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    double x = 0;
    double y = 0;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return (x > y) - (x < y);
}

static void print_figure(bench_t *self, const char *name, int figure, int base)
{
    double *values = self->figures[figure];
    double median = 0;
    double of = 0;

    qsort(values, self->round, sizeof *values, compare);
    qsort(self->figures[base], self->round, sizeof *values, compare);
    median = values[self->round / 2];
    of = self->figures[base][self->round / 2];
    (void)printf("%-8s %8.0f MiB/s (%.0f .. %.0f) %4.0f %%\n", name, median, values[0],
                 values[self->round - 1], 100 * median / of);
}

static void make_payloads(bench_t *self)
{
    ps_rng_t rng = {1};

    for (size_t i = 0; i < N_PAYLOADS; i++) {
        uint8_t *bytes = NULL;

        self->payloads[i] = ps_payload_room(0, 0, MIB, &bytes);
        need(self->payloads[i] != NULL, self, "get memory");
        for (size_t k = 0; k < MIB; k += 8) {
            uint64_t word = ps_rng_u64(&rng);

            memcpy(bytes + k, &word, sizeof word);
        }
    }
}

int main(int argc, char **argv)
{
    bench_t self = {.mib = 256, .err = psd_error_new()};
    uint64_t rounds = 3;

    if (argc < 2 || argc > 4 || strlen(argv[1]) >= sizeof self.dir - 20 ||
        (argc > 2 && (!ps_text_u64(argv[2], &self.mib) || self.mib == 0)) ||
        (argc > 3 && (!ps_text_u64(argv[3], &rounds) || rounds == 0 || rounds > ROUNDS_MAX))) {
        (void)fprintf(stderr, "disk_log DIR [MIB [ROUNDS, 1..%d]]\n", ROUNDS_MAX);
        return 2;
    }
    (void)snprintf(self.dir, sizeof self.dir, "%s/disk-log", argv[1]);
    need(ps_disk_real()->make_dir(ps_disk_real(), self.dir, self.err) == PSD_OK, &self,
         "make the directory");
    make_payloads(&self);
    for (; self.round < rounds; self.round++) {
        plain_write(&self);
        for (size_t i = 0; i < N_GROUPS; i++) {
            write_log(&self, GROUPS[i]);
        }
        plain_read(&self);
        recover_log(&self);
        write_snapshot(&self, FIGURE_SNAP, 0);
        write_snapshot(&self, FIGURE_SNAP_ZSTD, 1);
        load_snapshot(&self);
    }
    print_figure(&self, "write", FIGURE_WRITE, FIGURE_WRITE);
    for (size_t i = 0; i < N_GROUPS; i++) {
        char name[32];

        (void)snprintf(name, sizeof name, "log %zu", GROUPS[i]);
        print_figure(&self, name, FIGURE_LOG + (int)i, FIGURE_WRITE);
    }
    print_figure(&self, "read", FIGURE_READ, FIGURE_READ);
    print_figure(&self, "recover", FIGURE_RECOVER, FIGURE_READ);
    print_figure(&self, "snap", FIGURE_SNAP, FIGURE_WRITE);
    print_figure(&self, "snap z", FIGURE_SNAP_ZSTD, FIGURE_WRITE);
    print_figure(&self, "load", FIGURE_LOAD, FIGURE_READ);
    for (size_t i = 0; i < N_PAYLOADS; i++) {
        ps_payload_destroy(&self.payloads[i]);
    }
    empty_dir(&self);
    (void)rmdir(self.dir);
    psd_error_destroy(&self.err);
    return 0;
}
