/* SPDX-License-Identifier: Apache-2.0 */
/* A queue, and a thread that flushes what is in it. */
#include "daemon/journal_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

#define RETRY_MS 200 /* after a disk that is full or has failed */
#define QUOTED_SIZE 512

typedef enum work_kind { RECORD = 1, PIECE = 2, DROP = 3 } work_kind_t;

typedef struct work {
    STAILQ_ENTRY(work) next;
    work_kind_t kind;
    ps_payload_t *payload; /* held; may be NULL */
    size_t size;           /* its bytes, as the core counts them */
    union {
        ps_record_t record;
        ps_piece_t piece;
        uint32_t table;
    };
} work_t;

STAILQ_HEAD(works, work);

struct ps_journal_thread {
    pthread_t thread;
    int fd; /* an eventfd */
    uint32_t shard;
    atomic_bool has_news;

    pthread_mutex_t mutex; /* of these */
    pthread_cond_t wake;
    struct works queue;
    bool stopping;
    ps_journal_news_t news;

    /* the thread's own */
    ps_journal_t *journal; /* owned */
    uint64_t unflushed;    /* bytes taken and not told */
    bool in_trouble;
    bool snapshot_failed; /* and not told */
    psd_error_t *err;
};

void
ps_journal_news_done(ps_journal_news_t *self)
{
    ps_free(self->positions);
    *self = (ps_journal_news_t){0};
}

/* ---- the thread ---- */

/* Room for n positions more. */
static bool
reserve(ps_journal_news_t *news, size_t n)
{
    return ps_grow(&news->positions, &news->capacity, news->n_positions + n,
                   sizeof *news->positions);
}

static void
tell(ps_journal_thread_t *self, const ps_position_t *positions, size_t n)
{
    const uint64_t one = 1;

    (void)pthread_mutex_lock(&self->mutex);
    if (n > 0 && !reserve(&self->news, n)) {
        abort(); /* answers would never go */
    }
    if (n > 0) {
        memcpy(self->news.positions + self->news.n_positions, positions,
               n * sizeof *positions);
        self->news.n_positions += n;
    }
    self->news.flushed_bytes += self->in_trouble ? 0 : self->unflushed;
    self->news.log_bytes = ps_journal_log_bytes(self->journal);
    self->news.snapshot_failed |= self->snapshot_failed;
    self->snapshot_failed = false;
    (void)snprintf(self->news.trouble, sizeof self->news.trouble, "%s",
                   self->in_trouble ? psd_error_text(self->err) : "");
    (void)pthread_mutex_unlock(&self->mutex);
    if (!self->in_trouble) {
        self->unflushed = 0;
    }
    atomic_store(&self->has_news, true);
    (void)!write(self->fd, &one, sizeof one); /* full means readable */
}

static void
log_trouble(const ps_journal_thread_t *self, const char *what)
{
    char quoted[QUOTED_SIZE];

    ps_log(PS_LOG_ERROR, what,
           "shard=%" PRIu32
           " reason=%s hint=\"tried again until it works; nothing is "
           "acknowledged at level disk until then\"",
           self->shard,
           ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
}

/* true: it failed. */
static bool
note_failure(ps_journal_thread_t *self, const char *what, psd_status_t rc)
{
    char quoted[QUOTED_SIZE];

    if (rc != PSD_OK) {
        ps_log(PS_LOG_WARN, what,
               "shard=%" PRIu32 " reason=%s hint=\"tried again later\"",
               self->shard,
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
        psd_error_clear(self->err);
    }
    return rc != PSD_OK;
}

static void
flush(ps_journal_thread_t *self)
{
    const ps_position_t *positions = NULL;
    size_t n = 0;
    bool was_in_trouble = self->in_trouble;
    psd_status_t rc = PSD_OK;

    psd_error_clear(self->err);
    rc = ps_journal_flush(self->journal, &positions, &n, self->err);
    self->in_trouble = rc != PSD_OK;
    if (rc != PSD_OK) {
        if (!was_in_trouble) {
            log_trouble(self, rc == PSD_LIMIT ? "disk_full" : "disk_failed");
            tell(self, NULL, 0);
        }
        return;
    }
    if (was_in_trouble) {
        ps_log(PS_LOG_WARN, "disk_works_again", "shard=%" PRIu32, self->shard);
    }
    (void)note_failure(self, "log_not_cut",
                       ps_journal_tidy(self->journal, self->err));
    tell(self, positions, n);
}

static void
append(ps_journal_thread_t *self, const work_t *work)
{
    psd_status_t rc = ps_journal_append(self->journal, &work->record,
                                        work->payload, self->err);

    if (rc != PSD_OK) { /* the log would have a gap */
        log_trouble(self, "record_lost");
        abort();
    }
}

static void
perform(ps_journal_thread_t *self, work_t *work)
{
    static const ps_bytes_t none = {NULL, 0};

    switch (work->kind) {
    case RECORD:
        append(self, work);
        break;
    case PIECE:
        self->snapshot_failed |= note_failure(
            self, "snapshot_failed",
            ps_journal_piece(self->journal, &work->piece,
                             work->payload == NULL ? none : work->payload->span,
                             self->err));
        break;
    case DROP:
        (void)note_failure(
            self, "table_files_stay",
            ps_journal_drop_table(self->journal, work->table, self->err));
        break;
    default:
        break;
    }
    self->unflushed += work->size;
    ps_payload_destroy(&work->payload);
    ps_free(work);
}

/* Waits for work, RETRY_MS at most while the disk has trouble. false: the end
 * was asked for, and there is no more work. */
static bool
take(ps_journal_thread_t *self, struct works *ret)
{
    struct timespec until = {0};
    bool is_over = false;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += RETRY_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    STAILQ_INIT(ret);
    (void)pthread_mutex_lock(&self->mutex);
    while (STAILQ_EMPTY(&self->queue) && !self->stopping && !is_over) {
        if (self->in_trouble) {
            is_over = pthread_cond_timedwait(&self->wake, &self->mutex,
                                             &until) == ETIMEDOUT;
        } else {
            (void)pthread_cond_wait(&self->wake, &self->mutex);
        }
    }
    STAILQ_CONCAT(ret, &self->queue);
    is_over = self->stopping && STAILQ_EMPTY(ret);
    (void)pthread_mutex_unlock(&self->mutex);
    return !is_over;
}

static void *
run(void *arg)
{
    ps_journal_thread_t *self = arg;
    struct works works;

    while (take(self, &works)) {
        while (!STAILQ_EMPTY(&works)) {
            work_t *work = STAILQ_FIRST(&works);

            STAILQ_REMOVE_HEAD(&works, next);
            perform(self, work);
        }
        flush(self);
    }
    return NULL;
}

/* ---- start and stop ---- */

/* Signals are the program's business: the thread gets none. */
static int
start_thread(ps_journal_thread_t *self)
{
    sigset_t all;
    sigset_t before;
    int rc = 0;

    (void)sigfillset(&all);
    rc = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (rc == 0) {
        rc = pthread_create(&self->thread, NULL, run, self);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return rc;
}

static void
free_all(ps_journal_thread_t *self)
{
    while (!STAILQ_EMPTY(&self->queue)) {
        work_t *work = STAILQ_FIRST(&self->queue);

        STAILQ_REMOVE_HEAD(&self->queue, next);
        ps_payload_destroy(&work->payload);
        ps_free(work);
    }
    ps_journal_news_done(&self->news);
    (void)pthread_cond_destroy(&self->wake);
    (void)pthread_mutex_destroy(&self->mutex);
    if (self->fd >= 0) {
        (void)close(self->fd);
    }
    psd_error_destroy(&self->err);
    ps_journal_close(&self->journal);
    ps_free(self);
}

psd_status_t
ps_journal_thread_start(ps_journal_t **journal_p,
                        uint32_t shard,
                        ps_journal_thread_t **ret_thread,
                        psd_error_t *err)
{
    ps_journal_thread_t *self = ps_alloc(1, sizeof *self);
    pthread_condattr_t attributes;
    int rc = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
    }
    STAILQ_INIT(&self->queue);
    self->shard = shard;
    self->err = psd_error_new();
    atomic_init(&self->has_news, false);
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&self->wake, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->journal = *journal_p;
    rc = self->fd < 0 ? errno : start_thread(self);
    if (rc != 0) {
        self->journal = NULL; /* the caller's still */
        free_all(self);
        return psd_error_set(err, PSD_IO, "start a thread: error %d", rc);
    }
    *journal_p = NULL;
    *ret_thread = self;
    return PSD_OK;
}

void
ps_journal_thread_stop(ps_journal_thread_t **self_p)
{
    ps_journal_thread_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->mutex);
    self->stopping = true;
    (void)pthread_cond_signal(&self->wake);
    (void)pthread_mutex_unlock(&self->mutex);
    (void)pthread_join(self->thread, NULL);
    free_all(self);
    *self_p = NULL;
}

int
ps_journal_thread_fd(const ps_journal_thread_t *self)
{
    return self->fd;
}

/* ---- the shard's side ---- */

psd_status_t
ps_journal_thread_settle(ps_journal_thread_t *self, psd_error_t *err)
{
    return ps_journal_settle(self->journal, err);
}

psd_status_t
ps_journal_thread_put_table(ps_journal_thread_t *self,
                            uint32_t table,
                            const ps_table_spec_t *spec,
                            psd_error_t *err)
{
    return ps_journal_put_table(self->journal, table, spec, err);
}

static void
give(ps_journal_thread_t *self, const work_t *like)
{
    work_t *work = ps_alloc_raw(1, sizeof *work);

    if (work == NULL) {
        ps_log(PS_LOG_ERROR, "record_lost",
               "shard=%" PRIu32
               " reason=no_memory hint=\"the log would have a gap; start psd "
               "again\"",
               self->shard);
        abort();
    }
    *work = *like;
    (void)pthread_mutex_lock(&self->mutex);
    if (STAILQ_EMPTY(&self->queue)) {
        (void)pthread_cond_signal(&self->wake);
    }
    STAILQ_INSERT_TAIL(&self->queue, work, next);
    (void)pthread_mutex_unlock(&self->mutex);
}

void
ps_journal_thread_record(ps_journal_thread_t *self,
                         const ps_record_t *record,
                         ps_payload_t *payload)
{
    give(self,
         &(work_t){.kind = RECORD,
                   .payload = payload == NULL ? NULL : ps_payload_keep(payload),
                   .size = ps_record_size(record, payload),
                   .record = *record});
}

void
ps_journal_thread_piece(ps_journal_thread_t *self,
                        const ps_piece_t *piece,
                        ps_payload_t *payload)
{
    give(self, &(work_t){.kind = PIECE,
                         .payload = ps_payload_keep(payload),
                         .size = ps_payload_size(payload),
                         .piece = *piece});
}

void
ps_journal_thread_drop(ps_journal_thread_t *self, uint32_t table)
{
    give(self, &(work_t){.kind = DROP, .table = table});
}

bool
ps_journal_thread_take(ps_journal_thread_t *self, ps_journal_news_t *news)
{
    uint64_t n = 0;
    ps_journal_news_t spare = *news;

    if (!atomic_load_explicit(&self->has_news, memory_order_acquire)) {
        return false;
    }
    (void)!read(self->fd, &n, sizeof n); /* not readable any more */
    (void)pthread_mutex_lock(&self->mutex);
    atomic_store(&self->has_news, false);
    *news = self->news;
    spare.n_positions = 0;
    spare.flushed_bytes = 0;
    spare.snapshot_failed = false;
    self->news = spare;
    self->news.log_bytes = news->log_bytes;
    memcpy(self->news.trouble, news->trouble, sizeof news->trouble);
    (void)pthread_mutex_unlock(&self->mutex);
    return true;
}
