/* SPDX-License-Identifier: Apache-2.0 */
/* The workers as they are seen from outside. */
#include "pushers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/netns.h"

#define HANG_MS 60000
#define NUMBER_SIZE 24
#define PAGE_FD 3

static const struct timespec STEP = {.tv_nsec = 2000000};

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- processes ---- */

/* In the child: this program again, as a worker. */
static void become(const pushers_t *self, unsigned worker)
{
    const pushers_args_t *args = &self->args;
    char numbers[4][NUMBER_SIZE];
    const char *argv[] = {"pusher",   "pusher",   args->endpoint, args->transport,
                          numbers[0], numbers[1], numbers[2],     numbers[3],
                          "",         NULL};
    const uint64_t values[4] = {worker, args->n_workers, args->n_rows,
                                args->seed * 1000000 + self->lives[worker] * 100 + worker};

    for (int i = 0; i < 4; i++) {
        (void)snprintf(numbers[i], NUMBER_SIZE, "%" PRIu64, values[i]);
    }
    if (args->hosts[worker] != NULL) {
        char listen[64];

        (void)snprintf(listen, sizeof listen, "tcp://%s:*", args->hosts[worker]);
        (void)setenv("PSD_OVERLAY_LISTEN", listen, 1);
    }
    (void)setenv("PSD_OVERLAY", args->policy, 1);
    if (args->netns[worker] >= 0 && !netns_enter(args->netns[worker])) {
        _exit(126);
    }
    (void)dup2(self->page_fd, PAGE_FD);
    (void)execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
    _exit(127);
}

static bool spawn(pushers_t *self, unsigned worker)
{
    self->lives[worker]++;
    (void)fflush(NULL);
    self->pids[worker] = fork();
    if (self->pids[worker] == 0) {
        become(self, worker);
    }
    CHECK(self->pids[worker] > 0);
    return true;
}

bool pushers_restart(pushers_t *self, unsigned worker)
{
    CHECK(self->pids[worker] == 0);
    return spawn(self, worker);
}

/* What it had under way is there or not. */
bool pushers_kill(pushers_t *self, unsigned worker)
{
    pusher_slot_t *slot = &self->page->each[worker];
    unsigned n = atomic_load(&slot->n_unknown);
    int status = 0;

    CHECK(kill(self->pids[worker], SIGKILL) == 0);
    CHECK(waitpid(self->pids[worker], &status, 0) == self->pids[worker] && WIFSIGNALED(status));
    self->pids[worker] = 0;
    if (atomic_load(&slot->flying) != 0) {
        CHECK(n < PUSHERS_UNKNOWN);
        slot->unknown[n] = atomic_load(&slot->flying);
        atomic_store(&slot->n_unknown, n + 1);
        atomic_store(&slot->flying, 0);
    }
    atomic_store(&slot->began_ms, 0);
    (void)atomic_fetch_add(&slot->n_lost, 1);
    return true;
}

bool pushers_freeze(pushers_t *self, unsigned worker)
{
    pid_t pid = self->pids[worker];
    int status = 0;

    CHECK(kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid);
    CHECK(WIFSTOPPED(status));
    return true;
}

bool pushers_thaw(pushers_t *self, unsigned worker)
{
    pid_t pid = self->pids[worker];
    int status = 0;

    CHECK(kill(pid, SIGCONT) == 0 && waitpid(pid, &status, WCONTINUED) == pid);
    CHECK(WIFCONTINUED(status));
    return true;
}

/* ---- waiting ---- */

typedef bool (*ready_t)(const pushers_t *self, unsigned worker, uint64_t n);

static bool has_clocks(const pushers_t *self, unsigned worker, uint64_t n)
{
    return atomic_load(&self->page->each[worker].n_clocks) >= self->since[worker] + n;
}

static bool has_paused(const pushers_t *self, unsigned worker, uint64_t n)
{
    (void)n;
    return atomic_load(&self->page->each[worker].is_paused);
}

static bool has_ended(const pushers_t *self, unsigned worker, uint64_t n)
{
    (void)n;
    return self->pids[worker] == 0;
}

/* One that has ended by itself is a failure, but for exit code 0 where all may end. */
static bool look_for_ends(pushers_t *self, bool may_end)
{
    bool good = true;

    for (unsigned i = 0; i < self->args.n_workers; i++) {
        int status = 0;

        if (self->pids[i] > 0 && waitpid(self->pids[i], &status, WNOHANG) == self->pids[i]) {
            self->pids[i] = 0;
            if (!may_end || status != 0) {
                (void)fprintf(stderr, "worker %u has ended, status %d\n", i, status);
                good = false;
            }
        }
    }
    return good;
}

static void tell(const pushers_t *self, ready_t is_ready, unsigned but, uint64_t n)
{
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        const pusher_slot_t *slot = &self->page->each[i];
        uint64_t began_ms = atomic_load(&slot->began_ms);

        (void)fprintf(
            stderr, "worker %u: %s, %" PRIu64 " clocks since, in one for %" PRIu64 " ms\n", i,
            i == but               ? "not waited for"
            : is_ready(self, i, n) ? "ready"
                                   : "HANGS",
            atomic_load(&slot->n_clocks) - self->since[i], began_ms == 0 ? 0 : now_ms() - began_ms);
    }
}

static bool wait_all(pushers_t *self, ready_t is_ready, unsigned but, uint64_t n, bool may_end)
{
    uint64_t end_ms = now_ms() + HANG_MS;

    while (now_ms() < end_ms) {
        bool all = true;

        if (!look_for_ends(self, may_end)) {
            break;
        }
        for (unsigned i = 0; i < self->args.n_workers; i++) {
            all = all && (i == but || is_ready(self, i, n));
        }
        if (all) {
            return true;
        }
        (void)nanosleep(&STEP, NULL);
    }
    tell(self, is_ready, but, n);
    return false;
}

void pushers_mark(pushers_t *self)
{
    self->marked_ms = now_ms();
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        pusher_slot_t *slot = &self->page->each[i];

        atomic_store(&slot->longest_ms, 0);
        atomic_store(&slot->n_lost, 0);
    }
}

void pushers_count(pushers_t *self)
{
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        self->since[i] = atomic_load(&self->page->each[i].n_clocks);
    }
}

void pushers_tell(const pushers_t *self)
{
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        const pusher_slot_t *slot = &self->page->each[i];

        (void)fprintf(stderr,
                      "worker %u: %" PRIu64 " ms, of which its push %" PRIu64
                      " ms; it ended %" PRIu64 " ms after the mark\n",
                      i, atomic_load(&slot->longest_ms), atomic_load(&slot->pushed_ms),
                      atomic_load(&slot->ended_ms) - self->marked_ms);
    }
}

bool pushers_wait(pushers_t *self, unsigned but, uint64_t n)
{
    return wait_all(self, has_clocks, but, n, false);
}

uint64_t pushers_longest(const pushers_t *self, unsigned but)
{
    uint64_t longest_ms = 0;

    for (unsigned i = 0; i < self->args.n_workers; i++) {
        uint64_t ms = i == but ? 0 : atomic_load(&self->page->each[i].longest_ms);

        longest_ms = ms > longest_ms ? ms : longest_ms;
    }
    return longest_ms;
}

unsigned pushers_lost(const pushers_t *self, unsigned but)
{
    unsigned n = 0;

    for (unsigned i = 0; i < self->args.n_workers; i++) {
        n += i == but ? 0 : atomic_load(&self->page->each[i].n_lost);
    }
    return n;
}

/* ---- the table ---- */

bool pushers_pause(pushers_t *self)
{
    atomic_store(&self->page->is_wanted, true);
    return wait_all(self, has_paused, PUSHERS_MAX, 0, false);
}

void pushers_go_on(pushers_t *self)
{
    atomic_store(&self->page->is_wanted, false);
    atomic_store(&self->page->pause_at, 0);
}

/* Is it the sum of some of the pushes whose end nobody knows? */
static bool may_be(const pusher_slot_t *slot, int64_t sum)
{
    unsigned n = atomic_load(&slot->n_unknown);
    bool found = false;

    for (unsigned set = 0; set < 1U << n && !found; set++) {
        int64_t some = 0;

        for (unsigned i = 0; i < n; i++) {
            some += (set >> i & 1) != 0 ? slot->unknown[i] : 0;
        }
        found = some == sum;
    }
    return found;
}

static bool check_worker(pushers_t *self, unsigned worker, unsigned partition,
                         const int64_t *values)
{
    pusher_slot_t *slot = &self->page->each[worker];
    int64_t more = values[worker] - slot->base[partition] - atomic_load(&slot->acked);

    if (!may_be(slot, more)) {
        (void)fprintf(stderr,
                      "partition %u of worker %u: acknowledged %" PRId64 ", there %+" PRId64
                      " to it; not known: %u pushes, the first of %" PRId64 "\n",
                      partition, worker, atomic_load(&slot->acked), more,
                      atomic_load(&slot->n_unknown), slot->unknown[0]);
        return false;
    }
    for (uint64_t i = worker; i < self->args.n_rows; i += self->args.n_workers) {
        CHECK(values[i] == values[worker]);
    }
    slot->base[partition] = values[worker];
    return true;
}

bool pushers_check(pushers_t *self, const int64_t *values)
{
    bool good = true;

    for (unsigned i = 0; i < self->args.n_workers; i++) {
        pusher_slot_t *slot = &self->page->each[i];

        for (unsigned k = 0; k < PUSHERS_PARTITIONS; k++) {
            good = check_worker(self, i, k, values + k * self->args.n_rows) && good;
        }
        CHECK(atomic_load(&slot->flying) == 0);
        atomic_store(&slot->acked, 0);
        atomic_store(&slot->n_unknown, 0);
    }
    return good;
}

/* ---- all of them ---- */

bool pushers_start(pushers_t *self, const pushers_args_t *args)
{
    *self = (pushers_t){.args = *args, .page_fd = memfd_create("pushers", MFD_CLOEXEC)};
    CHECK(args->n_workers >= 2 && args->n_workers <= PUSHERS_MAX && self->page_fd >= 0);
    CHECK(ftruncate(self->page_fd, sizeof *self->page) == 0);
    /* Above PAGE_FD, so that dup2 makes another one. */
    self->page_fd = fcntl(self->page_fd, F_DUPFD_CLOEXEC, 10);
    self->page = pusher_page_open(self->page_fd);
    CHECK(self->page != NULL);
    self->page->max_delay = args->max_delay;
    for (unsigned i = 0; i < args->n_workers; i++) {
        CHECK(spawn(self, i));
    }
    return pushers_wait(self, PUSHERS_MAX, 1);
}

bool pushers_finish(pushers_t *self)
{
    atomic_store(&self->page->is_over, true);
    pushers_go_on(self);
    return wait_all(self, has_ended, PUSHERS_MAX, 0, true);
}

void pushers_drop(pushers_t *self)
{
    for (unsigned i = 0; i < self->args.n_workers; i++) {
        if (self->pids[i] > 0) {
            (void)kill(self->pids[i], SIGKILL);
            (void)waitpid(self->pids[i], NULL, 0);
            self->pids[i] = 0;
        }
    }
    if (self->page != NULL) {
        (void)munmap(self->page, sizeof *self->page);
        (void)close(self->page_fd);
        self->page = NULL;
    }
}
