/* SPDX-License-Identifier: Apache-2.0 */
/* Opened barriers, leaves and losses, by job. */
#include "server/nodes/watch.h"

#include "base/alloc.h"

static void destroy(ps_watch_t *watch)
{
    ps_free(watch->workers);
    ps_overlay_job_done(&watch->overlay);
    ps_free(watch);
}

void ps_watches_done(ps_watches_t *self)
{
    size_t place = 0;
    uint64_t job = 0;
    void *watch = NULL;

    while (ps_map_next(&self->by_job, &place, &job, &watch)) {
        destroy(watch);
    }
    ps_map_done(&self->by_job);
}

ps_watch_t *ps_watches_find(const ps_watches_t *self, uint32_t job)
{
    return ps_map_get(&self->by_job, job);
}

ps_watch_t *ps_watches_get(ps_watches_t *self, uint32_t job)
{
    ps_watch_t *watch = ps_watches_find(self, job);

    if (watch != NULL) {
        return watch;
    }
    watch = ps_alloc(1, sizeof *watch);
    if (watch == NULL || !ps_map_put(&self->by_job, job, watch)) {
        ps_free(watch);
        return NULL;
    }
    watch->job = job;
    return watch;
}

void ps_watches_sweep(ps_watches_t *self, bool (*keeps)(const void *context, uint32_t job),
                      const void *context)
{
    bool found = true;

    while (found) {
        size_t place = 0;
        uint64_t job = 0;
        void *watch = NULL;

        found = false;
        while (!found && ps_map_next(&self->by_job, &place, &job, &watch)) {
            found = !keeps(context, (uint32_t)job);
        }
        if (found) {
            (void)ps_map_remove(&self->by_job, job);
            destroy(watch);
        }
    }
}

ps_watched_t *ps_watch_find(const ps_watch_t *self, uint32_t worker)
{
    for (size_t i = 0; i < self->n_workers; i++) {
        if (self->workers[i].worker == worker) {
            return &self->workers[i];
        }
    }
    return NULL;
}

ps_watched_t *ps_watch_worker(ps_watch_t *self, uint32_t worker, uint32_t joins)
{
    ps_watched_t *watched = ps_watch_find(self, worker);

    if (watched == NULL) {
        if (!ps_grow(&self->workers, &self->workers_capacity, self->n_workers + 1,
                     sizeof *self->workers)) {
            return NULL;
        }
        watched = &self->workers[self->n_workers++];
        *watched = (ps_watched_t){.worker = worker, .joins = joins};
    }
    if (watched->joins != joins) {
        *watched = (ps_watched_t){.worker = worker, .joins = joins};
    }
    return watched;
}

bool ps_watched_leave(ps_watched_t *self, uint32_t member, uint32_t n_members)
{
    uint32_t n_left = 0;

    self->left[member / 64] |= UINT64_C(1) << (member % 64);
    for (size_t i = 0; i < sizeof self->left / sizeof self->left[0]; i++) {
        n_left += (uint32_t)__builtin_popcountll(self->left[i]);
    }
    return n_left >= n_members;
}
