/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waits - what each worker waits for now, since when, and what it was told
 *
 * What     A page that a worker writes and the test reads, at any time: a wait
 *          begins with the first call for something and ends when that is done,
 *          however many deadlines pass between. What the last one said is the
 *          client's own reason.
 * Owner    The test makes it; a worker opens what it has inherited.
 * Threads  One writer for each worker; readers anywhere.
 */
#ifndef PS_TESTS_WAITS_H
#define PS_TESTS_WAITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define WAITS_MAX 16
#define WAITS_TEXT 600

typedef struct wait_state {
    uint64_t since_ms;     /* monotonic; 0: it does not wait */
    uint64_t told_ms;      /* of the text; 0: no deadline has passed yet */
    char text[WAITS_TEXT]; /* the last deadline's error */
} wait_state_t;

typedef struct wait_slot {
    atomic_bool taken; /* by who reads or writes it */
    wait_state_t state;
} wait_slot_t;

typedef struct waits {
    wait_slot_t each[WAITS_MAX];
} waits_t;

/* An empty page; *ret_fd is it for a child. NULL: there is no memory. */
waits_t *waits_new(int *ret_fd);
/* The page that this process was started with. */
waits_t *waits_open(int fd);
void waits_destroy(waits_t **self_p);

void waits_begin(waits_t *self, uint32_t worker, uint64_t now_ms);
void waits_tell(waits_t *self, uint32_t worker, uint64_t now_ms, const char *text);
void waits_end(waits_t *self, uint32_t worker);
wait_state_t waits_read(waits_t *self, uint32_t worker);
#endif
