/* SPDX-License-Identifier: Apache-2.0 */
/* One worker of pushers.h: the process that pushes. */
#include <inttypes.h>
#include <psd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/rng.h"
#include "pushers.h"
#include "support/check.h"

#define PAGE_FD 3
#define ARGUMENTS 9
#define DELTA_MAX (INT64_C(1) << 40)
#define CONNECT_MS 2000 /* the link may be cut just then */

static const struct timespec STEP = {.tv_nsec = 1000000};
static const struct timespec AGAIN = {.tv_nsec = 20000000};

typedef struct worker {
    const char *endpoint;
    const char *transport;
    unsigned rank;
    unsigned n_workers;
    uint64_t n_rows; /* of a partition */
    ps_rng_t rng;
    pusher_page_t *page;
    pusher_slot_t *slot;
    int64_t *deltas;
    int64_t *values;
    psd_select_t *all;
    psd_call_t *call; /* with a longer deadline than the client's */
    psd_client_t *client;
    psd_table_t *table;
    psd_error_t *err;
} worker_t;

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- a clock ---- */

static int64_t fill(worker_t *self)
{
    int64_t delta = 1 + (int64_t)ps_rng_below(&self->rng, (uint64_t)DELTA_MAX);

    for (unsigned i = 0; i < PUSHERS_PARTITIONS; i++) {
        for (uint64_t k = self->rank; k < self->n_rows; k += self->n_workers) {
            self->deltas[i * self->n_rows + k] = delta;
        }
    }
    return delta;
}

static psd_status_t push(worker_t *self)
{
    int64_t delta = fill(self);
    psd_ticket_t ticket = 0;
    psd_status_t rc = PSD_OK;

    atomic_store(&self->slot->flying, delta);
    rc = psd_push_start(self->table, self->all, self->deltas, PUSHERS_PARTITIONS * self->n_rows,
                        self->call, &ticket, self->err);
    rc = rc != PSD_OK ? rc : psd_clock(self->client, self->err);
    rc = rc != PSD_OK ? rc : psd_wait(self->client, ticket, PUSHERS_CALL_MS, self->err);
    if (rc == PSD_OK) {
        (void)atomic_fetch_add(&self->slot->acked, delta);
        atomic_store(&self->slot->flying, 0);
    }
    return rc;
}

/* A partition's cells of one worker are the sum of the same pushes; of this one
 * it is known of which. */
static bool check_cells(const worker_t *self, unsigned partition)
{
    const int64_t *values = self->values + partition * self->n_rows;
    const pusher_slot_t *slot = self->slot;
    int64_t own = slot->base[partition] + atomic_load(&slot->acked);

    for (uint64_t i = self->n_workers; i < self->n_rows; i++) {
        CHECK(values[i] == values[i - self->n_workers]);
    }
    if (atomic_load(&slot->n_unknown) == 0 && values[self->rank] != own) {
        (void)fprintf(stderr,
                      "worker %u pulls %" PRId64 " in partition %u; its acknowledged pushes are "
                      "%" PRId64 "\n",
                      self->rank, values[self->rank], partition, own);
        return false;
    }
    return true;
}

static psd_status_t pull(worker_t *self)
{
    psd_ticket_t ticket = 0;
    psd_status_t rc =
        psd_pull_start(self->table, self->all, self->values, PUSHERS_PARTITIONS * self->n_rows,
                       self->call, &ticket, self->err);

    rc = rc != PSD_OK ? rc : psd_wait(self->client, ticket, PUSHERS_CALL_MS, self->err);
    for (unsigned i = 0; i < PUSHERS_PARTITIONS && rc == PSD_OK; i++) {
        rc = check_cells(self, i) ? PSD_OK : PSD_FAILED;
    }
    return rc;
}

static psd_status_t do_clock(worker_t *self)
{
    pusher_slot_t *slot = self->slot;
    uint64_t began_ms = now_ms();
    uint64_t pushed_ms = 0;
    psd_status_t rc = PSD_OK;

    atomic_store(&slot->began_ms, began_ms);
    rc = push(self);
    pushed_ms = now_ms();
    rc = rc != PSD_OK ? rc : pull(self);
    if (rc == PSD_OK) {
        uint64_t ended_ms = now_ms();

        if (ended_ms - began_ms > atomic_load(&slot->longest_ms)) {
            atomic_store(&slot->longest_ms, ended_ms - began_ms);
            atomic_store(&slot->pushed_ms, pushed_ms - began_ms);
            atomic_store(&slot->ended_ms, ended_ms);
        }
        (void)atomic_fetch_add(&slot->n_clocks, 1);
    }
    atomic_store(&slot->began_ms, 0);
    return rc;
}

/* In BSP nobody finishes a clock that this worker has not begun: so who is first to
 * name it has named one that all others see in time. Else who is ahead of it pauses
 * at once, and the others come after. */
static void pause_where_wanted(worker_t *self)
{
    pusher_page_t *page = self->page;
    uint64_t nobody = 0;

    if (atomic_load(&page->is_wanted)) {
        (void)atomic_compare_exchange_strong(&page->pause_at, &nobody,
                                             psd_clock_count(self->client) + 1);
    }
    while (atomic_load(&page->pause_at) != 0 &&
           psd_clock_count(self->client) >= atomic_load(&page->pause_at)) {
        atomic_store(&self->slot->is_paused, true);
        (void)nanosleep(&STEP, NULL);
    }
    atomic_store(&self->slot->is_paused, false);
}

/* ---- a life ---- */

static psd_status_t connect_once(worker_t *self)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    psd_options_set_timeout_ms(options, CONNECT_MS);
    rc = psd_options_set_transport(options, self->transport, self->err);
    if (rc == PSD_OK) {
        rc = psd_connect(self->endpoint, options, &self->client, self->err);
    }
    psd_options_destroy(&options);
    if (rc == PSD_OK) {
        rc = psd_join(self->client, PUSHERS_JOB, self->rank, self->n_workers, self->page->max_delay,
                      self->err);
    }
    return rc != PSD_OK ? rc : psd_table_open(self->client, PUSHERS_JOB, &self->table, self->err);
}

static void disconnect(worker_t *self)
{
    psd_table_close(&self->table);
    psd_close(&self->client);
}

/* The life before is not lost yet, or there is no way to the nodes. */
static psd_status_t connect_at_last(worker_t *self)
{
    uint64_t end_ms = now_ms() + PUSHERS_CALL_MS;
    psd_status_t rc = connect_once(self);

    while ((rc == PSD_WORKER_EXISTS || rc == PSD_DEADLINE || rc == PSD_CONNECT ||
            rc == PSD_WORKER_LOST) &&
           now_ms() < end_ms) {
        disconnect(self);
        psd_error_clear(self->err);
        (void)nanosleep(&AGAIN, NULL);
        rc = connect_once(self);
    }
    return rc;
}

static psd_status_t live(worker_t *self)
{
    psd_status_t rc = connect_at_last(self);

    while (rc == PSD_OK) {
        pause_where_wanted(self);
        if (atomic_load(&self->page->is_over)) {
            return psd_leave(self->client, PUSHERS_CALL_MS, self->err);
        }
        rc = do_clock(self);
    }
    return rc;
}

static bool note_loss(pusher_slot_t *slot)
{
    int64_t flying = atomic_load(&slot->flying);
    unsigned n = atomic_load(&slot->n_unknown);

    (void)atomic_fetch_add(&slot->n_lost, 1);
    if (flying != 0) {
        CHECK(n < PUSHERS_UNKNOWN);
        slot->unknown[n] = flying;
        atomic_store(&slot->n_unknown, n + 1);
        atomic_store(&slot->flying, 0);
    }
    return true;
}

static bool work(worker_t *self)
{
    psd_status_t rc = live(self);

    while (rc == PSD_WORKER_LOST && note_loss(self->slot)) {
        disconnect(self);
        psd_error_clear(self->err);
        rc = live(self);
    }
    if (rc != PSD_OK) {
        (void)fprintf(stderr, "worker %u: %s: %s\n", self->rank, psd_status_name(rc),
                      psd_error_text(self->err));
    }
    disconnect(self);
    return rc == PSD_OK;
}

pusher_page_t *pusher_page_open(int fd)
{
    void *page = mmap(NULL, sizeof(pusher_page_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return page == MAP_FAILED ? NULL : page;
}

bool pusher_main(int argc, char **argv, int *ret_exit_code)
{
    worker_t self = {0};
    size_t n = 0;

    if (argc != ARGUMENTS || strcmp(argv[1], "pusher") != 0) {
        return false;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    self = (worker_t){.endpoint = argv[2],
                      .transport = argv[3],
                      .rank = (unsigned)strtoul(argv[4], NULL, 10),
                      .n_workers = (unsigned)strtoul(argv[5], NULL, 10),
                      .n_rows = strtoull(argv[6], NULL, 10),
                      .rng = {strtoull(argv[7], NULL, 10)},
                      .page = pusher_page_open(PAGE_FD),
                      .all = psd_select_new(),
                      .call = psd_call_new(),
                      .err = psd_error_new()};
    n = PUSHERS_PARTITIONS * self.n_rows;
    self.deltas = calloc(n, sizeof *self.deltas);
    self.values = calloc(n, sizeof *self.values);
    *ret_exit_code = EXIT_FAILURE;
    if (self.page != NULL && self.deltas != NULL && self.values != NULL) {
        self.slot = &self.page->each[self.rank];
        psd_select_all_rows(self.all);
        psd_call_set_timeout_ms(self.call, PUSHERS_CALL_MS);
        *ret_exit_code = work(&self) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    free(self.deltas);
    free(self.values);
    psd_select_destroy(&self.all);
    psd_call_destroy(&self.call);
    psd_error_destroy(&self.err);
    return true;
}
