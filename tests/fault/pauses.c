/* SPDX-License-Identifier: Apache-2.0 */
/* The client that pushes, and its book. */
#include "pauses.h"

#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "support/check.h"

#define LOOK_MS 1      /* for answers, when there was none */
#define CALL_MS 120000 /* longer than any fault */

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- in the client's thread ---- */

static psd_status_t open_client(pauses_t *self, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    psd_options_set_timeout_ms(options, CALL_MS);
    rc = psd_options_set_transport(options, "tcp", err);
    if (rc == PSD_OK) {
        rc = psd_connect(self->endpoint, options, &self->client, err);
    }
    if (rc == PSD_OK) {
        rc = psd_table_open(self->client, PAUSES_TABLE, &self->table, err);
    }
    psd_options_destroy(&options);
    return rc;
}

static void close_client(pauses_t *self)
{
    psd_table_close(&self->table);
    psd_close(&self->client);
}

/* What became of its last pushes is not known: they end, and who waits for one
 * that is acknowledged waits for the next. */
static psd_status_t change_client(pauses_t *self, psd_error_t *err)
{
    psd_error_clear(err);
    close_client(self);
    (void)pthread_mutex_lock(&self->lock);
    self->n_lost++;
    for (unsigned i = 0; i < self->n_partitions; i++) {
        pauses_part_t *part = &self->parts[i];

        part->ticket = 0;
        if (part->n_ended <= part->n_marked) {
            part->n_marked = part->n_begun;
        }
        part->n_ended = part->n_begun;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return open_client(self, err);
}

static psd_status_t push(pauses_t *self, unsigned partition, psd_error_t *err)
{
    pauses_part_t *part = &self->parts[partition];
    psd_select_t *select = psd_select_new();
    int64_t delta = 0;
    psd_status_t rc = PSD_OK;

    (void)pthread_mutex_lock(&self->lock);
    delta = (int64_t)++part->n_begun;
    (void)pthread_mutex_unlock(&self->lock);
    psd_select_row_range(select, (uint64_t)partition * PAUSES_ROWS, 1);
    rc = psd_push_start(self->table, select, &delta, 1, NULL, &part->ticket, err);
    psd_select_destroy(&select);
    return rc;
}

static void note(pauses_t *self, pauses_part_t *part)
{
    uint64_t at_ms = now_ms();

    (void)pthread_mutex_lock(&self->lock);
    part->ticket = 0;
    part->n_ended++;
    if (part->acked_ms != 0 && at_ms - part->acked_ms > part->longest_ms) {
        part->longest_ms = at_ms - part->acked_ms;
    }
    part->acked_ms = at_ms;
    if (part->n_ended == part->n_marked + 1) {
        (void)pthread_cond_signal(&self->news);
    }
    (void)pthread_mutex_unlock(&self->lock);
}

/* Takes the answer if there is one; with `waits` it may take a moment. */
static psd_status_t take(pauses_t *self, pauses_part_t *part, bool waits, psd_error_t *err)
{
    bool done = waits;
    psd_status_t rc = PSD_OK;

    if (!waits) {
        rc = psd_poll(self->client, part->ticket, &done, err);
    }
    if (rc != PSD_OK || !done) {
        return rc;
    }
    rc = psd_wait(self->client, part->ticket, LOOK_MS, err);
    if (rc == PSD_OK) {
        note(self, part);
    } else if (waits && rc == PSD_DEADLINE) {
        psd_error_clear(err); /* pauses_wait says who hangs */
        return PSD_OK;
    }
    return rc;
}

/* A look at every partition. *ret_idle: one that waits, if nothing has come;
 * *ret_left: pushes under way. */
static psd_status_t look(pauses_t *self, bool stop, pauses_part_t **ret_idle, unsigned *ret_left,
                         psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    bool got = false;

    *ret_idle = NULL;
    *ret_left = 0;
    for (unsigned i = 0; i < self->n_partitions && rc == PSD_OK; i++) {
        pauses_part_t *part = &self->parts[i];

        if (part->ticket != 0) {
            rc = take(self, part, false, err);
            got = got || part->ticket == 0;
        }
        if (rc == PSD_OK && part->ticket == 0 && !stop) {
            rc = push(self, i, err);
        }
        if (part->ticket != 0) {
            (*ret_left)++;
            *ret_idle = part;
        }
    }
    *ret_idle = got ? NULL : *ret_idle;
    return rc;
}

static pauses_end_t ask_end(pauses_t *self)
{
    pauses_end_t end = PAUSES_GO_ON;

    (void)pthread_mutex_lock(&self->lock);
    end = self->end;
    (void)pthread_mutex_unlock(&self->lock);
    return end;
}

static void *run(void *arg)
{
    pauses_t *self = arg;
    psd_error_t *err = psd_error_new();
    unsigned n_left = 1;
    pauses_end_t end = PAUSES_GO_ON;
    psd_status_t rc = open_client(self, err);

    while (rc == PSD_OK && n_left > 0 && end != PAUSES_DROP) {
        pauses_part_t *idle = NULL;

        end = ask_end(self);
        rc = look(self, end != PAUSES_GO_ON, &idle, &n_left, err);
        if (rc == PSD_OK && idle != NULL) {
            rc = take(self, idle, true, err);
        }
        if (rc == PSD_ROWS_LOST && self->may_lose) {
            rc = change_client(self, err);
            n_left = 1; /* the next look tells */
        }
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "a push failed: %s: %s\n", psd_status_name(rc), psd_error_text(err));
    }
    (void)pthread_mutex_lock(&self->lock);
    self->failed = rc != PSD_OK;
    (void)pthread_cond_signal(&self->news);
    (void)pthread_mutex_unlock(&self->lock);
    close_client(self);
    psd_error_destroy(&err);
    return NULL;
}

/* ---- for the one who makes faults ---- */

bool pauses_start(pauses_t *self, const char *endpoint, unsigned n_partitions, bool may_lose)
{
    pthread_condattr_t attributes;

    *self = (pauses_t){.n_partitions = n_partitions, .endpoint = endpoint, .may_lose = may_lose};
    CHECK(n_partitions <= PAUSES_MAX);
    CHECK(pthread_mutex_init(&self->lock, NULL) == 0);
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&self->news, &attributes) == 0);
    (void)pthread_condattr_destroy(&attributes);
    self->runs = pthread_create(&self->thread, NULL, run, self) == 0;
    CHECK(self->runs);
    return true;
}

void pauses_mark(pauses_t *self)
{
    (void)pthread_mutex_lock(&self->lock);
    for (unsigned i = 0; i < self->n_partitions; i++) {
        self->parts[i].n_marked = self->parts[i].n_begun;
        self->parts[i].longest_ms = 0;
    }
    (void)pthread_mutex_unlock(&self->lock);
}

/* A partition that has acknowledged nothing begun behind the mark; or
 * PAUSES_MAX. */
static unsigned find_waiting(const pauses_t *self)
{
    for (unsigned i = 0; i < self->n_partitions; i++) {
        if (self->parts[i].n_ended <= self->parts[i].n_marked) {
            return i;
        }
    }
    return PAUSES_MAX;
}

bool pauses_wait(pauses_t *self, uint64_t timeout_ms)
{
    const uint64_t end_ms = now_ms() + timeout_ms;
    const struct timespec end = {.tv_sec = (time_t)(end_ms / 1000),
                                 .tv_nsec = (long)(end_ms % 1000) * 1000000L};
    unsigned waiting = PAUSES_MAX;
    int rc = 0;

    (void)pthread_mutex_lock(&self->lock);
    while ((waiting = find_waiting(self)) != PAUSES_MAX && !self->failed && rc != ETIMEDOUT) {
        rc = pthread_cond_timedwait(&self->news, &self->lock, &end);
    }
    if (waiting != PAUSES_MAX) {
        const pauses_part_t *part = &self->parts[waiting];

        (void)fprintf(stderr,
                      "partition %u stands still: %" PRIu64 " pushes begun, %" PRIu64
                      " acknowledged\n",
                      waiting, part->n_begun, part->n_ended);
    }
    (void)pthread_mutex_unlock(&self->lock);
    return waiting == PAUSES_MAX && !self->failed;
}

uint64_t pauses_of(pauses_t *self, unsigned partition)
{
    uint64_t longest_ms = 0;

    (void)pthread_mutex_lock(&self->lock);
    longest_ms = self->parts[partition].longest_ms;
    (void)pthread_mutex_unlock(&self->lock);
    return longest_ms;
}

bool pauses_stop(pauses_t *self, pauses_end_t end)
{
    if (!self->runs) {
        return false;
    }
    (void)pthread_mutex_lock(&self->lock);
    self->end = end;
    (void)pthread_mutex_unlock(&self->lock);
    (void)pthread_join(self->thread, NULL);
    self->runs = false;
    return !self->failed;
}

/* 1 + 2 + … + n */
static int64_t sum_to(uint64_t n)
{
    return (int64_t)(n * (n + 1) / 2);
}

bool pauses_check(const pauses_t *self, psd_client_t *client)
{
    psd_error_t *err = psd_error_new();
    psd_table_t *table = NULL;
    uint64_t n_pushes = 0;
    bool good = true;

    CHECK_OK(psd_table_open(client, PAUSES_TABLE, &table, err), err);
    for (unsigned i = 0; i < self->n_partitions; i++) {
        const pauses_part_t *part = &self->parts[i];
        const uint64_t row = (uint64_t)i * PAUSES_ROWS;
        int64_t value = 0;

        CHECK_OK(psd_pull(table, &row, 1, &value, 1, err), err);
        n_pushes += part->n_ended;
        if (part->n_ended != part->n_begun || value > sum_to(part->n_ended) ||
            (value != sum_to(part->n_ended) && !self->may_lose)) {
            (void)fprintf(stderr,
                          "partition %u: %" PRIu64 " pushes begun, %" PRIu64 " ended: %" PRId64
                          ", not %" PRId64 "\n",
                          i, part->n_begun, part->n_ended, value, sum_to(part->n_ended));
            good = false;
        }
    }
    (void)fprintf(stderr, "%" PRIu64 " pushes; clients told of a loss: %u\n", n_pushes,
                  self->n_lost);
    psd_table_close(&table);
    psd_error_destroy(&err);
    return good;
}
