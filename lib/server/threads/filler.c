/* SPDX-License-Identifier: Apache-2.0 */
/* A short list, and a thread that takes from it. */
#include "server/threads/filler.h"

#include <pthread.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "transport/threads/thread.h"

#define WAITING_MAX 256 /* entries of the list */
/* Bytes of a piece; after each the thread checks whether it must end. */
#define PIECE_BYTES ((size_t)2 << 20)
/* The smallest pages; where pages are larger the kernel refuses. */
#define PAGE_BYTES 4096

struct ps_filler {
    pthread_t thread;
    ps_turns_t *turns;     /* borrowed; NULL: not watched */
    pthread_mutex_t mutex; /* of all below */
    pthread_cond_t wake;
    ps_soon_t waiting[WAITING_MAX]; /* a ring */
    size_t first;
    size_t n;
    bool stopping;
};

/* Waits for something to do. false: the end. */
static bool take(ps_filler_t *self, ps_turn_t *turn, ps_soon_t *ret_soon)
{
    bool is_end = false;

    (void)pthread_mutex_lock(&self->mutex);
    while (self->n == 0 && !self->stopping) {
        ps_turn_wait(turn, &self->wake, &self->mutex);
    }
    ps_turn_works(turn);
    is_end = self->stopping;
    if (!is_end) {
        ps_soon_t *at = &self->waiting[self->first];
        size_t size = at->size < PIECE_BYTES ? at->size : PIECE_BYTES;

        *ret_soon = (ps_soon_t){.data = at->data, .size = size};
        at->data = (uint8_t *)at->data + size;
        at->size -= size;
        if (at->size == 0) {
            self->first = (self->first + 1) % WAITING_MAX;
            self->n--;
        }
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return !is_end;
}

/* A kernel without this call returns an error, and pushes fault the memory in. */
static void fill(const ps_soon_t *soon)
{
#ifdef MADV_POPULATE_WRITE
    size_t past = (uintptr_t)soon->data % PAGE_BYTES;

    (void)madvise((uint8_t *)soon->data - past, soon->size + past, MADV_POPULATE_WRITE);
#else
    (void)soon;
#endif
}

static void *run(void *arg)
{
    ps_filler_t *self = arg;
    ps_turn_t *turn = ps_turns_enter(self->turns, "filler");
    ps_soon_t soon;

    while (take(self, turn, &soon)) {
        fill(&soon);
    }
    ps_turn_leave(&turn);
    return NULL;
}

psd_status_t ps_filler_new(ps_turns_t *turns, ps_filler_t **ret_filler, psd_error_t *err)
{
    ps_filler_t *self = ps_alloc(1, sizeof *self);
    int rc = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a filler");
    }
    self->turns = turns;
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    (void)ps_cond_init(&self->wake);
    rc = ps_thread_start(&self->thread, run, self);
    if (rc != 0) {
        (void)pthread_cond_destroy(&self->wake);
        (void)pthread_mutex_destroy(&self->mutex);
        ps_free(self);
        return psd_error_set(err, PSD_IO, "start a thread: error %d", rc);
    }
    *ret_filler = self;
    return PSD_OK;
}

void ps_filler_destroy(ps_filler_t **self_p)
{
    ps_filler_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->mutex);
    self->stopping = true;
    (void)pthread_cond_signal(&self->wake);
    (void)pthread_mutex_unlock(&self->mutex);
    (void)pthread_join(self->thread, NULL);
    (void)pthread_cond_destroy(&self->wake);
    (void)pthread_mutex_destroy(&self->mutex);
    ps_free(self);
    *self_p = NULL;
}

void ps_filler_add(ps_filler_t *self, const ps_soon_t *soon)
{
    (void)pthread_mutex_lock(&self->mutex);
    if (soon->size > 0 && self->n < WAITING_MAX) {
        self->waiting[(self->first + self->n) % WAITING_MAX] = *soon;
        self->n++;
        (void)pthread_cond_signal(&self->wake);
    }
    (void)pthread_mutex_unlock(&self->mutex);
}
