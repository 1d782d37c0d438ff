/* SPDX-License-Identifier: Apache-2.0 */
/* A count of forks, and a list of resources that children give up. It is the
 * only global state of the library: fork has no argument. */
#include "transport/threads/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"

#define KEPT_AT_ONCE 62

/* What was kept, a page or so at a time. */
typedef struct kept {
    struct kept *next;
    size_t n;
    void *memory[KEPT_AT_ONCE];
} kept_t;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_uint n_forks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all below */
static LIST_HEAD(fork_items, ps_fork_item) items = LIST_HEAD_INITIALIZER(items);
static kept_t *kept;

static void before(void)
{
    (void)pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    (void)pthread_mutex_unlock(&lock);
}

/* Where there is no more memory to be had the place is kept without any. */
static void take_apart(ps_fork_item_t *item)
{
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;

    if (item->fd != NULL && *item->fd >= 0) {
        (void)close(*item->fd);
        *item->fd = -1;
    }
    if (item->mapped != NULL && mmap(item->mapped, item->mapped_bytes, PROT_READ | PROT_WRITE,
                                     flags, -1, 0) == MAP_FAILED) {
        (void)mmap(item->mapped, item->mapped_bytes, PROT_NONE, flags, -1, 0);
    }
}

static void in_child(void)
{
    ps_fork_item_t *item = NULL;

    (void)atomic_fetch_add(&n_forks, 1);
    LIST_FOREACH(item, &items, in_list)
    {
        take_apart(item);
    }
    (void)pthread_mutex_unlock(&lock);
}

static void watch(void)
{
    if (pthread_atfork(before, in_parent, in_child) != 0) {
        abort(); /* there was no memory for a few bytes */
    }
}

unsigned ps_fork_count(void)
{
    (void)pthread_once(&once, watch);
    return atomic_load_explicit(&n_forks, memory_order_relaxed);
}

bool ps_fork_is_since(unsigned count)
{
    return atomic_load_explicit(&n_forks, memory_order_relaxed) != count;
}

psd_status_t ps_fork_error(const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_CLOSED,
                         "this process was forked from the one that made the "
                         "%s; make one here",
                         what);
}

void ps_fork_add(ps_fork_item_t *item)
{
    (void)ps_fork_count();
    (void)pthread_mutex_lock(&lock);
    LIST_INSERT_HEAD(&items, item, in_list);
    (void)pthread_mutex_unlock(&lock);
}

void ps_fork_remove(ps_fork_item_t *item)
{
    (void)pthread_mutex_lock(&lock);
    LIST_REMOVE(item, in_list);
    (void)pthread_mutex_unlock(&lock);
}

void ps_fork_keep(void *memory)
{
    (void)pthread_mutex_lock(&lock);
    if (kept == NULL || kept->n == KEPT_AT_ONCE) {
        kept_t *more = ps_alloc(1, sizeof *more);

        if (more != NULL) {
            more->next = kept;
            kept = more;
        }
    }
    if (kept != NULL && kept->n < KEPT_AT_ONCE) {
        kept->memory[kept->n++] = memory;
    }
    (void)pthread_mutex_unlock(&lock);
}
