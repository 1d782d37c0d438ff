/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill -9 while a log and snapshots are written, 200 times
 *
 * A child appends records, flushes them and says so through a pipe; now and
 * then it writes a snapshot, and cuts the log behind it. It is killed at a
 * random moment, be that while it opens or reads. Then: the log opens, its
 * records are in order without a gap from the newest snapshot on, each as it
 * was appended, none that was said to be flushed is missing, and every snapshot
 * is whole.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "storage/log/shard_log.h"
#include "storage/snapshot/snapshot_file.h"
#include "support/temp_dir.h"

#define ROUNDS 200 /* or as FAULT_KILLS says */
#define ROUNDS_PER_DIR                                                           \
    20                        /* then a fresh one, to be killed while it is made \
                               */
#define LARGE ((size_t)60000) /* bytes of every 5th record */
#define SEGMENT_BYTES 200000
#define SNAPSHOT_EVERY 40 /* records */

typedef struct store {
    const char *dir;
    ps_shard_log_t *log;
    uint64_t snapshot; /* lsn of the newest; 0: there is none */
    uint64_t last;     /* lsn read or appended */
} store_t;

static psd_error_t *err;

static bool complain(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, psd_error_text(err));
    return false;
}

static size_t size_of(uint64_t lsn)
{
    return lsn % 5 == 0 ? LARGE : 8 + 8 * (size_t)(lsn % 3);
}

static uint8_t byte_of(uint64_t lsn, size_t i)
{
    return (uint8_t)(lsn * 13 + i * 5);
}

static ps_payload_t *payload_of(uint64_t lsn)
{
    uint8_t *bytes = NULL;
    ps_payload_t *payload = ps_payload_room(0, 0, size_of(lsn), &bytes);

    for (size_t i = 0; payload != NULL && i < size_of(lsn); i++) {
        bytes[i] = byte_of(lsn, i);
    }
    return payload;
}

static bool is_payload(ps_bytes_t bytes, uint64_t lsn)
{
    bool same = bytes.size == size_of(lsn);

    for (size_t i = 0; same && i < bytes.size; i++) {
        same = bytes.data[i] == byte_of(lsn, i);
    }
    return same;
}

/* ---- what is found ------------------------------------------------------- */

static ps_snapshot_dir_t snapshots_of(const store_t *self)
{
    return (ps_snapshot_dir_t){.disk = ps_disk_real(), .dir = self->dir, .cluster = {{1}}};
}

/* A snapshot holds the payload of its lsn, in two pieces. */
static psd_status_t see_snapshot(void *context, const ps_snapshot_id_t *id, psd_error_t *error)
{
    store_t *self = context;
    ps_snapshot_dir_t dir = snapshots_of(self);
    ps_snapshot_reader_t *reader = NULL;
    ps_snapshot_piece_t piece = {0};
    size_t n = 0;
    psd_status_t rc = ps_snapshot_open(&dir, id, &reader, error);

    while (rc == PSD_OK && !piece.is_end) {
        rc = ps_snapshot_next(reader, &piece, error);
        if (rc == PSD_OK && !piece.is_end && !is_payload(piece.bytes, id->lsn + n++)) {
            rc = psd_error_set(error, PSD_DAMAGED, "a piece is another");
        }
    }
    ps_snapshot_close(&reader);
    if (rc == PSD_OK && n != 2) {
        rc = psd_error_set(error, PSD_DAMAGED, "%zu pieces", n);
    }
    if (rc == PSD_OK && id->lsn > self->snapshot) {
        self->snapshot = id->lsn;
    }
    return rc;
}

/* The first record may lie in front of the snapshot, never behind it. */
static psd_status_t see_record(void *context, const ps_record_t *record, const ps_body_t *body,
                               psd_error_t *error)
{
    store_t *self = context;
    bool first = self->last == 0;

    if ((first ? record->lsn > self->snapshot + 1 : record->lsn != self->last + 1) ||
        !is_payload(body->values, record->lsn)) {
        return psd_error_set(error, PSD_DAMAGED, "lsn %llu behind %llu",
                             (unsigned long long)record->lsn, (unsigned long long)self->last);
    }
    self->last = record->lsn;
    return PSD_OK;
}

static bool open_store(store_t *self, const char *dir)
{
    ps_shard_log_args_t args = {.disk = ps_disk_real(),
                                .dir = dir,
                                .cluster = {{1}},
                                .node = "n",
                                .segment_bytes = SEGMENT_BYTES};
    ps_snapshot_dir_t snapshots = {.disk = ps_disk_real(), .dir = dir, .cluster = {{1}}};
    ps_shard_log_found_t found = {0};

    *self = (store_t){.dir = dir};
    psd_error_clear(err);
    if (ps_shard_log_open(&args, &self->log, err) != PSD_OK ||
        ps_snapshot_list(&snapshots, see_snapshot, self, err) != PSD_OK ||
        ps_shard_log_read(self->log, see_record, self, &found, err) != PSD_OK) {
        return complain("open");
    }
    if (found.note_torn) {
        return complain("log-flushed is torn, and nobody cut the power");
    }
    return true;
}

/* ---- the child ----------------------------------------------------------- */

static bool append_one(store_t *self)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = payload_of(self->last + 1);
    uint64_t n = size_of(self->last + 1) / 8;
    ps_record_t record = {
        .kind = PS_RECORD_PUSH,
        .table = 1,
        .lsn = self->last + 1,
        .seq = 1,
        .slice = {
            .rows = PS_ROWS_RANGE, .type = PS_TYPE_I64, .n_rows = n, .n_cols = 1, .n_values = n}};

    if (payload == NULL || ps_shard_log_append(self->log, &record, payload, err) != PSD_OK) {
        return false;
    }
    self->last++;
    return true;
}

static bool write_snapshot(store_t *self)
{
    ps_snapshot_dir_t dir = snapshots_of(self);
    ps_snapshot_id_t id = {1, 0, self->last, 0};
    ps_snapshot_id_t old = {1, 0, self->snapshot, 0};
    ps_snapshot_writer_t *writer = NULL;
    bool good = ps_snapshot_begin(&dir, &id, 1, &writer, err) == PSD_OK;

    for (uint64_t i = 0; i < 2 && good; i++) {
        PSD_AUTO(ps_payload_destroy)
        ps_payload_t *payload = payload_of(id.lsn + i);

        good = payload != NULL && ps_snapshot_add(writer, id.lsn + i, payload->span, err) == PSD_OK;
    }
    good = good && ps_snapshot_commit(&writer, id.lsn + 1, err) == PSD_OK;
    self->snapshot = good ? id.lsn : self->snapshot;
    return good &&
           ps_shard_log_cut(self->log, ps_shard_log_segment_with(self->log, 1, 0, self->snapshot),
                            err) == PSD_OK &&
           (old.lsn == 0 || ps_snapshot_remove(&dir, &old, err) == PSD_OK);
}

/* Never returns unless something is wrong. */
static int run_child(const char *dir, int pipe_fd, uint64_t seed)
{
    store_t self = {0};
    ps_rng_t rng = {seed};
    bool good = open_store(&self, dir);

    while (good) {
        for (uint64_t i = ps_rng_below(&rng, 6); i > 0 && good; i--) {
            good = append_one(&self);
        }
        good = good && ps_shard_log_flush(self.log, err) == PSD_OK &&
               write(pipe_fd, &self.last, sizeof self.last) == sizeof self.last;
        if (good && self.last >= self.snapshot + SNAPSHOT_EVERY) {
            good = write_snapshot(&self);
        }
    }
    ps_shard_log_close(&self.log);
    (void)complain("child");
    return 1;
}

/* ---- the parent ---------------------------------------------------------- */

/* Waits for some flushes, then a moment more, which is the randomness that is
 * wanted here. */
static void wait_some(int pipe_fd, ps_rng_t *rng, uint64_t *flushed)
{
    uint64_t n = ps_rng_below(rng, 20);
    struct timespec moment = {.tv_nsec = (long)ps_rng_below(rng, 3000000)};

    for (uint64_t i = 0; i < n; i++) {
        struct pollfd ready = {.fd = pipe_fd, .events = POLLIN};

        if (poll(&ready, 1, 60000) != 1 ||
            read(pipe_fd, flushed, sizeof *flushed) != sizeof *flushed) {
            return;
        }
    }
    (void)nanosleep(&moment, NULL);
}

/* Kills the child and takes what it had said until then. */
static bool kill_child(pid_t child, int pipe_fd, uint64_t *flushed)
{
    uint64_t lsn = 0;
    int status = 0;

    (void)kill(child, SIGKILL);
    if (waitpid(child, &status, 0) != child || !WIFSIGNALED(status)) {
        (void)fprintf(stderr, "the child ended by itself\n");
        return false;
    }
    while (read(pipe_fd, &lsn, sizeof lsn) == sizeof lsn) {
        *flushed = lsn;
    }
    return true;
}

static bool run_round(const char *dir, uint64_t seed, uint64_t *flushed)
{
    ps_rng_t rng = {seed};
    store_t self = {0};
    int fds[2] = {-1, -1};
    pid_t child = -1;
    bool good = pipe(fds) == 0;

    child = good ? fork() : -1;
    if (child == 0) {
        (void)close(fds[0]);
        _exit(run_child(dir, fds[1], seed));
    }
    if (child < 0) {
        return complain("fork");
    }
    (void)close(fds[1]);
    wait_some(fds[0], &rng, flushed);
    good = kill_child(child, fds[0], flushed);
    (void)close(fds[0]);
    good = good && open_store(&self, dir);
    ps_shard_log_close(&self.log);
    if (good && self.last < *flushed && self.snapshot < *flushed) {
        (void)fprintf(stderr, "lsn %llu was flushed; %llu was found\n",
                      (unsigned long long)*flushed, (unsigned long long)self.last);
        return false;
    }
    *flushed = self.last;
    return good;
}

int main(void)
{
    temp_dir_t temp = {""};
    bool good = temp_dir_make(&temp);
    uint64_t flushed = 0;
    const char *asked = getenv("FAULT_KILLS");
    uint64_t n_rounds = asked == NULL ? ROUNDS : strtoull(asked, NULL, 10);
    uint64_t round = 0;

    err = psd_error_new();
    for (round = 0; round < n_rounds && good; round++) {
        char dir[PATH_MAX + 32];

        if (round % ROUNDS_PER_DIR == 0) {
            flushed = 0;
        }
        (void)snprintf(dir, sizeof dir, "%s/log%u", temp.path, (unsigned)(round / ROUNDS_PER_DIR));
        good = run_round(dir, round, &flushed);
    }
    (void)fprintf(stderr, "%u of %u kills, %s\n", (unsigned)round, (unsigned)n_rounds,
                  good ? "everything flushed is there" : "failed in the last");
    temp_dir_drop(&temp);
    psd_error_destroy(&err);
    return good && round > 0 ? 0 : 1;
}
