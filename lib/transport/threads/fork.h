/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_fork - resources that a forked child must not share with its parent
 *
 * What     A child has the memory and the descriptors of its parent, and none
 *          of its threads: objects made before the fork are of no use there.
 *          Such an object stores the count of forks from when it was made, and
 *          checks whether there were more. The child disconnects lanes at once:
 *          it closes their descriptors, so that the server sees when the parent
 *          ends, and maps private zeros over the shared memory, so that
 *          pointers into it do no harm.
 * Owner    An item is its owner's, which removes it before it is freed.
 * Threads  any
 */
#ifndef PS_TRANSPORT_FORK_H
#define PS_TRANSPORT_FORK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "psd/status.h"

/* What a child gives up; zeroed is nothing. */
typedef struct ps_fork_item {
    LIST_ENTRY(ps_fork_item) in_list;
    int *fd;      /* closed in a child, and -1 then; NULL: none */
    void *mapped; /* private zeros in a child; NULL: none */
    size_t mapped_bytes;
} ps_fork_item_t;

/* How many forks led to this process since libpsd was first used. */
unsigned ps_fork_count(void);
/* True in a child that was forked since. Costs a load. */
bool ps_fork_is_since(unsigned count);
/* PSD_CLOSED, with a text that says "forked" of what. */
psd_status_t ps_fork_error(const char *what, psd_error_t *err);

void ps_fork_add(ps_fork_item_t *item);
void ps_fork_remove(ps_fork_item_t *item);

/* Memory that a child cannot free, for a thread that it does not have may have
 * been at work on it: it stays for good, where leak checkers find it. */
void ps_fork_keep(void *memory);
#endif
