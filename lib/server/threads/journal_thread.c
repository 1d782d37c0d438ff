/* SPDX-License-Identifier: Apache-2.0 */
/* A queue, and a thread that flushes what is in it. */
#include "server/threads/journal_thread.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/metrics/meter.h"
#include "transport/threads/clock.h"
#include "transport/threads/thread.h"

#define DISK_EVERY_MS 10000 /* between two looks at its free space */
#define RETRY_MS 200        /* after a disk that is full or has failed */
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
    const char *dir;             /* borrowed; of the log */
    ps_turns_t *turns;           /* borrowed; may be NULL */
    ps_journal_counts_t *counts; /* borrowed; NULL: nothing is counted */
    atomic_bool has_news;
    bool has_given; /* the shard's own: the journal is the thread's since the first work */

    pthread_mutex_t mutex; /* of these */
    pthread_cond_t wake;
    struct works queue;
    bool stopping;
    bool has_gap; /* something found no memory: nothing after it is written */
    ps_journal_news_t news;

    /* the thread's own */
    ps_turn_t *turn;
    ps_journal_t *journal;       /* owned */
    struct works taken;          /* not performed yet */
    uint64_t unflushed;          /* bytes performed and not reported */
    const ps_position_t *untold; /* the journal's; flushed, but there was no */
    size_t n_untold;             /* memory to tell of it */
    uint64_t disk_ms;            /* when its free space is looked at next */
    bool only_looks;             /* there is nothing to write, only that to look at */
    bool in_trouble;
    bool snapshot_failed; /* and not reported */
    psd_error_t *err;
};

void ps_journal_news_done(ps_journal_news_t *self)
{
    ps_free(self->positions);
    *self = (ps_journal_news_t){0};
}

/* ---- the thread ---- */

/* Room for n positions more. */
static bool reserve(ps_journal_news_t *news, size_t n)
{
    return ps_grow(&news->positions, &news->capacity, news->n_positions + n,
                   sizeof *news->positions);
}

/* The log's bytes. From the thread, this comes after a write only: until the first one
 * the journal is the shard's, which settles it. */
static uint64_t count_log(const ps_journal_thread_t *self)
{
    uint64_t bytes = ps_journal_log_bytes(self->journal);

    if (self->counts != NULL) {
        ps_count_set(self->counts->log_bytes, bytes);
    }
    return bytes;
}

/* Updates the state of the disk and reports what is flushed. Without memory
 * for the report it keeps it for later; that counts as trouble too. */
static void tell(ps_journal_thread_t *self, bool is_flushed)
{
    const uint64_t one = 1;
    size_t n = self->n_untold;

    (void)pthread_mutex_lock(&self->mutex);
    if (n > 0 && !reserve(&self->news, n)) {
        self->in_trouble = true;
        (void)psd_error_set(self->err, PSD_NOMEM, "no memory to say what is flushed");
        is_flushed = false;
    } else if (n > 0) {
        memcpy(self->news.positions + self->news.n_positions, self->untold,
               n * sizeof *self->untold);
        self->news.n_positions += n;
        self->n_untold = 0;
    }
    self->news.flushed_bytes += is_flushed ? self->unflushed : 0;
    self->news.log_bytes = count_log(self);
    self->news.snapshot_failed |= self->snapshot_failed;
    self->snapshot_failed = false;
    (void)snprintf(self->news.trouble, sizeof self->news.trouble, "%s",
                   self->in_trouble ? psd_error_text(self->err) : "");
    (void)pthread_mutex_unlock(&self->mutex);
    self->unflushed = is_flushed ? 0 : self->unflushed;
    atomic_store(&self->has_news, true);
    (void)!write(self->fd, &one, sizeof one); /* full means readable */
}

static void log_trouble(const ps_journal_thread_t *self, const char *what)
{
    char quoted[QUOTED_SIZE];

    ps_log(PS_LOG_ERROR, what,
           "shard=%" PRIu32 " reason=%s hint=\"retrying until it works; nothing is acknowledged at "
           "level disk until then\"",
           self->shard, ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
}

/* true: it failed. */
static bool note_failure(ps_journal_thread_t *self, const char *what, psd_status_t rc)
{
    char quoted[QUOTED_SIZE];

    if (rc != PSD_OK) {
        ps_log(PS_LOG_WARN, what, "shard=%" PRIu32 " reason=%s hint=\"retrying later\"",
               self->shard, ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
        psd_error_clear(self->err);
    }
    return rc != PSD_OK;
}

static const char *trouble_name(psd_status_t rc)
{
    return rc == PSD_LIMIT ? "disk_full" : rc == PSD_NOMEM ? "disk_without_memory" : "disk_failed";
}

/* Free space, for those who want to know. This may wait for the disk, as all that
 * this thread does. It leaves the journal alone, which may not be settled yet. */
static void look_at_disk(ps_journal_thread_t *self)
{
    uint64_t now_ms = ps_now_ms();
    struct statvfs disk;

    if (self->counts == NULL || now_ms < self->disk_ms) {
        return;
    }
    self->disk_ms = now_ms + DISK_EVERY_MS;
    if (statvfs(self->dir, &disk) == 0) {
        ps_count_set(self->counts->disk_free_bytes, (uint64_t)disk.f_bavail * disk.f_frsize);
        ps_count_set(self->counts->disk_bytes, (uint64_t)disk.f_blocks * disk.f_frsize);
    }
}

static bool is_look_due(const ps_journal_thread_t *self)
{
    return self->counts != NULL && ps_now_ms() >= self->disk_ms;
}

/* One flush, with the writes before it, has ended. */
static void count_flush(ps_journal_thread_t *self, uint64_t since_ns, uint64_t bytes)
{
    if (self->counts == NULL) {
        return;
    }
    if (self->in_trouble) {
        ps_count_add(self->counts->failures, 1);
        return;
    }
    ps_count_add(self->counts->flushes, 1);
    ps_histogram_add(self->counts->flush, ps_meter_now_ns() - since_ns);
    ps_count_add(self->counts->written_bytes, bytes);
    ps_count_set(self->counts->log_bytes, ps_journal_log_bytes(self->journal));
}

/* performed: whether everything taken was performed. */
static void flush(ps_journal_thread_t *self, psd_status_t performed)
{
    bool was_in_trouble = self->in_trouble;
    psd_status_t rc = self->n_untold > 0 ? PSD_OK
                                         : ps_journal_flush(self->journal, &self->untold,
                                                            &self->n_untold, self->err);
    psd_status_t worst = rc == PSD_OK ? performed : rc;

    self->in_trouble = worst != PSD_OK;
    if (!self->in_trouble) {
        (void)note_failure(self, "log_not_cut", ps_journal_tidy(self->journal, self->err));
    }
    if (rc == PSD_OK || !was_in_trouble) {
        tell(self, rc == PSD_OK);
    }
    if (self->in_trouble && !was_in_trouble) {
        log_trouble(self, trouble_name(worst == PSD_OK ? PSD_NOMEM : worst));
    } else if (was_in_trouble && !self->in_trouble) {
        ps_log(PS_LOG_WARN, "disk_works_again", "shard=%" PRIu32, self->shard);
    }
}

/* Errors: PSD_NOMEM: nothing was done; perform it again. */
static psd_status_t perform(ps_journal_thread_t *self, const work_t *work)
{
    static const ps_bytes_t none = {NULL, 0};
    psd_status_t rc = PSD_OK;

    switch (work->kind) {
    case RECORD:
        return ps_journal_append(self->journal, &work->record, work->payload, self->err);
    case PIECE:
        self->snapshot_failed |= note_failure(
            self, "snapshot_failed",
            ps_journal_piece(self->journal, &work->piece,
                             work->payload == NULL ? none : work->payload->span, self->err));
        return PSD_OK;
    case DROP:
        rc = ps_journal_drop_table(self->journal, work->table, self->err);
        if (rc != PSD_NOMEM) {
            (void)note_failure(self, "table_files_stay", rc);
            rc = PSD_OK;
        }
        return rc;
    default:
        return PSD_OK;
    }
}

static void free_work(struct works *works)
{
    work_t *work = STAILQ_FIRST(works);

    STAILQ_REMOVE_HEAD(works, next);
    ps_payload_destroy(&work->payload);
    ps_free(work);
}

/* In their order; what cannot be performed, and everything after it, stays. */
static psd_status_t perform_taken(ps_journal_thread_t *self)
{
    psd_status_t rc = PSD_OK;

    psd_error_clear(self->err);
    while (self->n_untold == 0 && !STAILQ_EMPTY(&self->taken)) {
        const work_t *work = STAILQ_FIRST(&self->taken);

        ps_turn_works(self->turn);
        rc = perform(self, work);
        if (rc != PSD_OK) {
            return rc;
        }
        self->unflushed += work->size;
        free_work(&self->taken);
    }
    return rc;
}

/* Waits for work, RETRY_MS at most while there is trouble. false: the thread
 * must end, and no more work can be done. */
static bool take(ps_journal_thread_t *self)
{
    struct timespec until = ps_cond_end_in(RETRY_MS);
    bool is_over = false;
    bool goes_on = true;

    (void)pthread_mutex_lock(&self->mutex);
    while (STAILQ_EMPTY(&self->queue) && !self->stopping && !is_over &&
           (self->in_trouble ||
            (STAILQ_EMPTY(&self->taken) && !self->has_gap && !is_look_due(self)))) {
        if (self->in_trouble) {
            ps_turn_waits(self->turn);
            is_over = pthread_cond_timedwait(&self->wake, &self->mutex, &until) == ETIMEDOUT;
        } else {
            ps_turn_wait(self->turn, &self->wake, &self->mutex);
        }
    }
    ps_turn_works(self->turn);
    goes_on = !self->stopping || !STAILQ_EMPTY(&self->queue);
    STAILQ_CONCAT(&self->taken, &self->queue);
    goes_on = goes_on || (!self->in_trouble && !STAILQ_EMPTY(&self->taken));
    self->only_looks = STAILQ_EMPTY(&self->taken) && !self->in_trouble && !self->has_gap;
    (void)pthread_mutex_unlock(&self->mutex);
    return goes_on;
}

/* Writes nothing after a gap, and never reports success past it. */
static psd_status_t check_gap(ps_journal_thread_t *self)
{
    bool has_gap = false;

    (void)pthread_mutex_lock(&self->mutex);
    has_gap = self->has_gap;
    (void)pthread_mutex_unlock(&self->mutex);
    return has_gap ? psd_error_set(self->err, PSD_NOMEM,
                                   "there was no memory for a record; restart psd")
                   : PSD_OK;
}

static void write_taken(ps_journal_thread_t *self)
{
    uint64_t since_ns = ps_meter_now_ns();
    psd_status_t rc = perform_taken(self);
    uint64_t bytes = self->unflushed;

    flush(self, rc == PSD_OK ? check_gap(self) : rc);
    count_flush(self, since_ns, bytes);
}

static void *run(void *arg)
{
    ps_journal_thread_t *self = arg;
    char name[PS_TURN_NAME_SIZE];

    (void)snprintf(name, sizeof name, "journal-%" PRIu32, self->shard);
    self->turn = ps_turns_enter(self->turns, name);
    while (take(self)) {
        look_at_disk(self);
        if (!self->only_looks) {
            write_taken(self);
        }
    }
    ps_turn_leave(&self->turn);
    return NULL;
}

/* ---- start and stop ---- */

static void free_all(ps_journal_thread_t *self)
{
    STAILQ_CONCAT(&self->taken, &self->queue);
    while (!STAILQ_EMPTY(&self->taken)) {
        free_work(&self->taken);
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

psd_status_t ps_journal_thread_start(ps_journal_t **journal_p, const ps_journal_args_t *args,
                                     ps_turns_t *turns, ps_journal_thread_t **ret_thread,
                                     psd_error_t *err)
{
    ps_journal_thread_t *self = ps_alloc(1, sizeof *self);
    int rc = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a journal");
    }
    STAILQ_INIT(&self->queue);
    STAILQ_INIT(&self->taken);
    self->shard = args->shard;
    self->dir = args->dir;
    self->counts = args->counts;
    self->turns = turns;
    self->err = psd_error_new();
    atomic_init(&self->has_news, false);
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    (void)ps_cond_init(&self->wake);
    self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->journal = *journal_p;
    rc = self->fd < 0 ? errno : ps_thread_start(&self->thread, run, self);
    if (rc != 0) {
        self->journal = NULL; /* still the caller's */
        free_all(self);
        return psd_error_set(err, PSD_IO, "start a thread: error %d", rc);
    }
    *journal_p = NULL;
    *ret_thread = self;
    return PSD_OK;
}

void ps_journal_thread_stop(ps_journal_thread_t **self_p)
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

int ps_journal_thread_fd(const ps_journal_thread_t *self)
{
    return self->fd;
}

/* ---- the shard's side ---- */

psd_status_t ps_journal_thread_settle(ps_journal_thread_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_journal_settle(self->journal, err);

    if (!self->has_given) {
        (void)count_log(self);
    }
    return rc;
}

psd_status_t ps_journal_thread_put_table(ps_journal_thread_t *self, uint32_t table,
                                         const ps_table_spec_t *spec, psd_error_t *err)
{
    return ps_journal_put_table(self->journal, table, spec, err);
}

/* Takes the payload of `like`. Without memory for it the log ends before it,
 * with the reason. */
static void give(ps_journal_thread_t *self, const work_t *like)
{
    work_t *work = ps_alloc_raw(1, sizeof *work);
    ps_payload_t *payload = like->payload;
    bool is_first_gap = false;

    self->has_given = true;
    if (work != NULL) {
        *work = *like;
    }
    (void)pthread_mutex_lock(&self->mutex);
    if (STAILQ_EMPTY(&self->queue)) {
        (void)pthread_cond_signal(&self->wake);
    }
    is_first_gap = work == NULL && !self->has_gap;
    self->has_gap = self->has_gap || work == NULL;
    if (!self->has_gap) {
        STAILQ_INSERT_TAIL(&self->queue, work, next);
        payload = NULL;
        work = NULL;
    }
    (void)pthread_mutex_unlock(&self->mutex);
    ps_payload_destroy(&payload);
    ps_free(work);
    if (is_first_gap) {
        ps_log(PS_LOG_ERROR, "record_lost",
               "shard=%" PRIu32 " reason=no_memory hint=\"the log ends here; restart psd\"",
               self->shard);
    }
}

void ps_journal_thread_record(ps_journal_thread_t *self, const ps_record_t *record,
                              ps_payload_t *payload)
{
    give(self, &(work_t){.kind = RECORD,
                         .payload = payload == NULL ? NULL : ps_payload_keep(payload),
                         .size = ps_record_size(record, payload),
                         .record = *record});
}

void ps_journal_thread_piece(ps_journal_thread_t *self, const ps_piece_t *piece,
                             ps_payload_t *payload)
{
    give(self, &(work_t){.kind = PIECE,
                         .payload = ps_payload_keep(payload),
                         .size = ps_payload_size(payload),
                         .piece = *piece});
}

void ps_journal_thread_drop(ps_journal_thread_t *self, uint32_t table)
{
    give(self, &(work_t){.kind = DROP, .table = table});
}

bool ps_journal_thread_take(ps_journal_thread_t *self, ps_journal_news_t *news)
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
