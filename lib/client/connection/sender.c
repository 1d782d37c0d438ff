/* SPDX-License-Identifier: Apache-2.0 */
/* While its client is busy the thread looks every millisecond, which costs less
 * than a wakeup for every message. After LOOKS_IN_VAIN looks without work it
 * sleeps until the client wakes it. */
#include "client/connection/sender.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "transport/threads/fork.h"
#include "transport/threads/thread.h"

#define LOOK_EVERY_NS 1000000
#define LOOKS_IN_VAIN 20 /* before it sleeps */

enum { KEPT, LENT, BUSY };

struct ps_sender {
    pthread_t thread;
    unsigned n_forks; /* before it was started */
    sem_t wake;
    void (*send_all)(void *owner);
    void *owner;
    atomic_int state;
    atomic_uint n_lent; /* how often; the thread only looks for a change */
    atomic_bool asleep;
    atomic_bool stopping;
};

/* True when there was something to do. */
static bool do_work(ps_sender_t *self)
{
    int lent = LENT;

    if (!atomic_compare_exchange_strong(&self->state, &lent, BUSY)) {
        return false;
    }
    ps_handover_take(self->owner);
    self->send_all(self->owner);
    ps_handover_give(self->owner);
    atomic_store(&self->state, KEPT);
    return true;
}

static void sleep_until_woken(ps_sender_t *self)
{
    atomic_store(&self->asleep, true);
    /* ps_sender_lend writes the state, then reads `asleep`; here the order is
     * the reverse. */
    if (atomic_load(&self->state) == LENT || atomic_load(&self->stopping)) {
        atomic_store(&self->asleep, false);
        return;
    }
    while (sem_wait(&self->wake) != 0 && errno == EINTR) {
    }
}

static void *run(void *arg)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_NS};
    ps_sender_t *self = arg;
    unsigned n_lent = 0;
    int in_vain = 0;

    while (!atomic_load(&self->stopping)) {
        unsigned n_now = 0;

        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
        n_now = atomic_load(&self->n_lent);
        in_vain = do_work(self) || n_now != n_lent ? 0 : in_vain + 1;
        n_lent = n_now;
        if (in_vain >= LOOKS_IN_VAIN) {
            sleep_until_woken(self);
            in_vain = 0;
        }
    }
    return NULL;
}

psd_status_t ps_sender_start(void (*send_all)(void *owner), void *owner, ps_sender_t **ret_sender,
                             psd_error_t *err)
{
    ps_sender_t *self = ps_alloc(1, sizeof *self);
    int failure = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a sender");
    }
    self->n_forks = ps_fork_count();
    self->send_all = send_all;
    self->owner = owner;
    atomic_init(&self->state, KEPT);
    atomic_init(&self->n_lent, 0);
    atomic_init(&self->asleep, false);
    atomic_init(&self->stopping, false);
    if (sem_init(&self->wake, 0, 0) != 0) {
        ps_free(self);
        return psd_error_set(err, PSD_IO, "no semaphore for a sender");
    }
    failure = ps_thread_start(&self->thread, run, self);
    if (failure != 0) {
        (void)sem_destroy(&self->wake);
        ps_free(self);
        return psd_error_set(err, PSD_IO, "start a thread: error %d", failure);
    }
    *ret_sender = self;
    return PSD_OK;
}

/* Wakes it if it sleeps. */
static void wake(ps_sender_t *self)
{
    if (atomic_load(&self->asleep) && atomic_exchange(&self->asleep, false)) {
        (void)sem_post(&self->wake);
    }
}

void ps_sender_lend(ps_sender_t *self)
{
    (void)atomic_fetch_add_explicit(&self->n_lent, 1, memory_order_relaxed);
    ps_handover_give(self->owner);
    atomic_store(&self->state, LENT);
    wake(self);
}

void ps_sender_take_back(ps_sender_t *self)
{
    int state = LENT;

    if (self == NULL || atomic_load(&self->state) == KEPT) {
        return;
    }
    while (!atomic_compare_exchange_weak(&self->state, &state, KEPT) && state != KEPT) {
        state = LENT;
        (void)sched_yield(); /* it never waits for anything */
    }
    ps_handover_take(self->owner);
}

bool ps_sender_stop(ps_sender_t **self_p)
{
    ps_sender_t *self = *self_p;

    *self_p = NULL;
    if (self == NULL) {
        return true;
    }
    if (ps_fork_is_since(self->n_forks)) { /* there is no such thread here */
        bool was_idle = atomic_load(&self->state) != BUSY;

        ps_free(self);
        return was_idle;
    }
    ps_sender_take_back(self);
    atomic_store(&self->stopping, true);
    wake(self);
    (void)pthread_join(self->thread, NULL);
    (void)sem_destroy(&self->wake);
    ps_free(self);
    return true;
}
