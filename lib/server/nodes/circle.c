/* SPDX-License-Identifier: Apache-2.0 */
#include "server/nodes/circle.h"

#include <inttypes.h>

#include "base/alloc.h"

#define SURE_MS 50  /* a mark may be in flight for that long */
#define NAMED_MAX 8 /* circles */

typedef enum mark { MARK_NEW = 0, MARK_ON_PATH = 1, MARK_DONE = 2 } mark_t;

/* A walk from waiter to waiter. */
typedef struct walk {
    const ps_job_view_t *view;
    uint8_t *marks; /* owned; mark_t of each worker */
    size_t *path;   /* owned; indices of workers */
    size_t *next;   /* owned; for each on the path: the next worker to look at */
    size_t n_path;
} walk_t;

static void walk_done(walk_t *self)
{
    ps_free(self->marks);
    ps_free(self->path);
    ps_free(self->next);
}

static bool is_stuck(const walk_t *self, size_t i)
{
    const ps_worker_view_t *worker = &self->view->workers[i];

    return ps_worker_is_live(worker->is) && worker->wait != PS_WAIT_NONE &&
           worker->is->n_members == 1 && self->view->now_ms - worker->since_ms >= SURE_MS;
}

/* It holds slices of the queue that it waits for. */
static bool has_own(const walk_t *self, const ps_worker_view_t *worker)
{
    uint32_t slice = 0;

    return ps_registry_queue_given(self->view->registry, self->view->job->id, worker->queue,
                                   worker->is->worker, &slice) > 0;
}

static bool waits_for(const walk_t *self, size_t i, size_t other)
{
    const ps_worker_view_t *waiter = &self->view->workers[i];
    const ps_worker_view_t *holder = &self->view->workers[other];
    bool by_clock = waiter->wait == PS_WAIT_PULL || waiter->wait == PS_WAIT_PUSH;
    uint64_t clock = 0;

    if (!is_stuck(self, other) || (by_clock && i == other) ||
        (by_clock && holder->wait == PS_WAIT_SLICE && !has_own(self, holder))) {
        return false;
    }
    return ps_job_view_holds(self->view, waiter, other, &clock);
}

static bool is_of_clocks(const walk_t *self, size_t from)
{
    bool only = true;

    for (size_t k = from; only && k < self->n_path; k++) {
        ps_wait_kind_t wait = self->view->workers[self->path[k]].wait;

        only = wait == PS_WAIT_PULL || wait == PS_WAIT_PUSH;
    }
    return only;
}

/* "circle: worker 0 (barrier) waits for worker 1, worker 1 (slice of queue q)
 * for worker 0: none of them can go on" */
static bool print(const walk_t *self, size_t from, ps_buffer_t *line)
{
    const ps_worker_view_t *workers = self->view->workers;
    bool done = ps_buffer_print(line, "circle: ");

    for (size_t k = from; done && k < self->n_path; k++) {
        size_t next = k + 1 < self->n_path ? k + 1 : from;
        const ps_worker_view_t *waiter = &workers[self->path[k]];
        char where[PS_WHERE_SIZE];

        ps_job_view_where(self->view, waiter, where);
        done = ps_buffer_print(line, "%sworker %" PRIu32 " (%s) %sfor ", k == from ? "" : ", ",
                               waiter->is->worker, where, k == from ? "waits " : "") &&
               (next == k ? ps_buffer_print(line, "itself, which has slices of it")
                          : ps_buffer_print(line, "worker %" PRIu32,
                                            workers[self->path[next]].is->worker));
    }
    return done && ps_buffer_print(line, self->n_path - from == 1 ? ": it cannot continue"
                                                                  : ": none of them can continue");
}

static bool report(const walk_t *self, size_t from, ps_doc_t *circles, ps_doc_t *text)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t line = {0};
    ps_doc_t *circle = ps_doc_append_object(circles);
    ps_doc_t *ranks = circle == NULL ? NULL : ps_doc_add_array(circle, "workers");
    bool done = ranks != NULL && print(self, from, &line);

    for (size_t k = from; done && k < self->n_path; k++) {
        done = ps_doc_append_u64(ranks, self->view->workers[self->path[k]].is->worker);
    }
    return done && ps_doc_set_text(circle, "text", (const char *)line.data) &&
           ps_doc_append_text(text, (const char *)line.data);
}

static void enter(walk_t *self, size_t i)
{
    self->marks[i] = MARK_ON_PATH;
    self->path[self->n_path] = i;
    self->next[self->n_path++] = 0;
}

/* The position of that worker on the path. */
static size_t place_of(const walk_t *self, size_t worker)
{
    size_t k = 0;

    while (self->path[k] != worker) {
        k++;
    }
    return k;
}

static bool follow(walk_t *self, size_t start, ps_doc_t *circles, ps_doc_t *text)
{
    bool done = true;

    enter(self, start);
    while (done && self->n_path > 0) {
        size_t i = self->path[self->n_path - 1];
        size_t other = self->next[self->n_path - 1]++;
        size_t from = 0;

        if (other >= self->view->job->n_workers) {
            self->marks[i] = MARK_DONE;
            self->n_path--;
        } else if (self->marks[other] != MARK_DONE && waits_for(self, i, other)) {
            if (self->marks[other] == MARK_NEW) {
                enter(self, other);
                continue;
            }
            from = place_of(self, other);
            done = is_of_clocks(self, from) || ps_doc_count(circles) >= NAMED_MAX ||
                   report(self, from, circles, text);
        }
    }
    return done;
}

bool ps_circles_add(const ps_job_view_t *view, ps_doc_t *circles, ps_doc_t *text)
{
    PSD_AUTO(walk_done) walk_t walk = {.view = view};
    size_t n = view->job->n_workers;
    bool done = true;

    walk.marks = ps_alloc(n, sizeof *walk.marks);
    walk.path = ps_alloc(n, sizeof *walk.path);
    walk.next = ps_alloc(n, sizeof *walk.next);
    if (walk.marks == NULL || walk.path == NULL || walk.next == NULL) {
        return false;
    }
    for (size_t i = 0; done && i < n; i++) {
        if (walk.marks[i] == MARK_NEW && is_stuck(&walk, i)) {
            done = follow(&walk, i, circles, text);
        }
    }
    return done;
}
