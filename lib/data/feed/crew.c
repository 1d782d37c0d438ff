/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that do one piece of work together. A round is a number that grows:
 * a member that sees a new one works, and the last to finish wakes the caller.
 */
#include "data/feed/crew.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/alloc.h"
#include "transport/threads/fork.h"
#include "transport/threads/thread.h"

typedef struct member {
    ps_crew_t *crew;
    uint32_t number;
    pthread_t thread;
} member_t;

struct ps_crew {
    unsigned n_forks; /* before it was started */
    pthread_mutex_t lock;
    pthread_cond_t begun; /* a new round, or the end */
    pthread_cond_t done;  /* no member is at work */
    uint64_t round;
    uint32_t n_working;
    bool stopping;
    ps_crew_work_t *work; /* of this round */
    void *task;
    uint32_t n_members; /* the caller's thread among them */
    uint32_t n_started;
    member_t *members; /* owned; n_members - 1 */
};

static void *follow(void *arg)
{
    const member_t *self = arg;
    ps_crew_t *crew = self->crew;
    uint64_t seen = 0;

    pthread_mutex_lock(&crew->lock);
    for (;;) {
        while (crew->round == seen && !crew->stopping) {
            pthread_cond_wait(&crew->begun, &crew->lock);
        }
        if (crew->stopping) {
            break;
        }
        seen = crew->round;
        pthread_mutex_unlock(&crew->lock);
        crew->work(crew->task, self->number, crew->n_members);
        pthread_mutex_lock(&crew->lock);
        if (--crew->n_working == 0) {
            pthread_cond_signal(&crew->done);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static psd_status_t start_members(ps_crew_t *self, psd_error_t *err)
{
    for (uint32_t i = 0; i + 1 < self->n_members; i++) {
        member_t *member = &self->members[i];
        int failed = 0;

        member->crew = self;
        member->number = i + 1;
        failed = ps_thread_start(&member->thread, follow, member);
        if (failed != 0) {
            char reason[128];

            return psd_error_set(err, PSD_IO, "thread %u of %u: %s", i + 2, self->n_members,
                                 strerror_r(failed, reason, sizeof reason));
        }
        self->n_started++;
    }
    return PSD_OK;
}

psd_status_t ps_crew_start(uint32_t n_members, ps_crew_t **ret_crew, psd_error_t *err)
{
    PSD_AUTO(ps_crew_stop) ps_crew_t *self = NULL;
    psd_status_t rc = PSD_OK;

    if (n_members < 1 || n_members > PS_CREW_MAX) {
        return psd_error_set(err, PSD_INVALID, "%u threads; 1 .. %u are allowed", n_members,
                             PS_CREW_MAX);
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for threads");
    }
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->begun, NULL);
    pthread_cond_init(&self->done, NULL);
    self->n_forks = ps_fork_count();
    self->n_members = n_members;
    self->members = ps_alloc(n_members, sizeof *self->members);
    if (self->members == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %u threads", n_members);
    }
    rc = start_members(self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_crew = self;
    self = NULL;
    return PSD_OK;
}

void ps_crew_stop(ps_crew_t **self_p)
{
    ps_crew_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (ps_crew_is_forked(self)) { /* no thread to wait for */
        ps_free(self->members);
        ps_free(self);
        *self_p = NULL;
        return;
    }
    pthread_mutex_lock(&self->lock);
    self->stopping = true;
    pthread_cond_broadcast(&self->begun);
    pthread_mutex_unlock(&self->lock);
    for (uint32_t i = 0; i < self->n_started; i++) {
        pthread_join(self->members[i].thread, NULL);
    }
    pthread_cond_destroy(&self->done);
    pthread_cond_destroy(&self->begun);
    pthread_mutex_destroy(&self->lock);
    ps_free(self->members);
    ps_free(self);
    *self_p = NULL;
}

bool ps_crew_is_forked(const ps_crew_t *self)
{
    return self->n_members > 1 && ps_fork_is_since(self->n_forks);
}

void ps_crew_run(ps_crew_t *self, ps_crew_work_t *work, void *task)
{
    if (self->n_members > 1) {
        pthread_mutex_lock(&self->lock);
        self->work = work;
        self->task = task;
        self->n_working = self->n_members - 1;
        self->round++;
        pthread_cond_broadcast(&self->begun);
        pthread_mutex_unlock(&self->lock);
    }
    work(task, 0, self->n_members);
    if (self->n_members > 1) {
        pthread_mutex_lock(&self->lock);
        while (self->n_working > 0) {
            pthread_cond_wait(&self->done, &self->lock);
        }
        pthread_mutex_unlock(&self->lock);
    }
}

uint32_t ps_crew_size(const ps_crew_t *self)
{
    return self->n_members;
}
