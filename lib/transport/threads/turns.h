/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_turns - a page of memory with a liveness timestamp of every thread
 *
 * What     Each thread of a process has its own place in the page and writes
 *          the time there in every turn of its loop: one store, no lock. A
 *          process that maps the page sees which thread hangs, even when the
 *          watched process answers nothing. A thread that waits for work wakes
 *          after PS_TURN_WAIT_MS at the latest, only to write the time.
 * Shape    A file DIR/threads: a head of 1024 bytes, then the places, 64 bytes
 *          (a cache line) each. When DIR is not in memory, a store into the
 *          file could wait for a disk. Then the file has only the head, which
 *          names a descriptor of the process (PROC/PID/fd/N) for the whole
 *          page. turns_look.h reads both.
 * Units    ms of CLOCK_MONOTONIC, which does not count a suspended machine.
 * Owner    The caller; the threads have left it when it is closed.
 * Threads  Any may enter and leave; a place belongs to one thread.
 */
#ifndef PS_TRANSPORT_TURNS_H
#define PS_TRANSPORT_TURNS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>

#include "psd/status.h"

#define PS_TURNS_FILE "threads"
#define PS_TURNS_MAGIC UINT64_C(0x3173646165726874) /* "threads1" */
#define PS_TURNS_VERSION 1
#define PS_TURNS_PLACES_MAX 4096
#define PS_TURNS_LISTENS_SIZE 960
#define PS_TURN_NAME_SIZE 16 /* the kernel's, with its '\0' */
#define PS_TURN_WAIT_MS 500  /* longest wait without a turn */

/* The beginning of the page. All but `listens` is there before the file is. */
typedef struct ps_turns_head {
    uint64_t magic;
    uint32_t version;
    uint32_t n_places;
    int64_t pid;      /* of the process … */
    uint64_t started; /* … and when it began, in ticks since the boot */
    int32_t fd;       /* of the process, that has the page; -1: this file has */
    uint32_t unused;
    char listens[PS_TURNS_LISTENS_SIZE]; /* its endpoints, a blank between */
    uint8_t rest[24];
} ps_turns_head_t;

/* The place of one thread. */
typedef struct ps_turn {
    _Alignas(64) atomic_int tid; /* 0: the place is free. Written last */
    atomic_bool probed;          /* it cannot write: the thread "watch" does, for it */
    atomic_uint_fast64_t name[PS_TURN_NAME_SIZE / 8]; /* ps_turn_name */
    atomic_uint_fast64_t turned;                      /* ms, times 2; + 1: it waits for work */
} ps_turn_t;

_Static_assert(sizeof(ps_turns_head_t) == 1024, "a format");
_Static_assert(sizeof(ps_turn_t) == 64, "a format");

typedef struct ps_turns ps_turns_t;

/* Makes the page and DIR/threads (readable for whom the mode says). n_places: 1
 * .. PS_TURNS_PLACES_MAX. Errors: PSD_IO naming the file, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_turns_open(const char *dir, mode_t mode, uint32_t n_places,
                                          ps_turns_t **ret_turns, psd_error_t *err);
/* The file stays. Takes NULL, nulls *self_p. */
void ps_turns_close(ps_turns_t **self_p);
/* One more endpoint by which the process is found. */
void ps_turns_listen(ps_turns_t *self, const char *endpoint);

/* A place for the calling thread, which gets this name (the first thread keeps
 * its own, which is that of the process). self NULL: only the name. NULL: there
 * is no page, or no place in it. */
ps_turn_t *ps_turns_enter(ps_turns_t *self, const char *name);
/* A place for a thread that has that name, and writes there as soon as it is told of it. */
ps_turn_t *ps_turns_add(ps_turns_t *self, const char *name, pid_t tid);
/* A place for a thread that cannot write itself, under the name `name`, which
 * it also gets. */
ps_turn_t *ps_turns_add_probed(ps_turns_t *self, const char *name, pid_t tid);
/* Gives the place up. Takes NULL, nulls *turn_p. */
void ps_turn_leave(ps_turn_t **turn_p);

static inline uint64_t ps_turn_now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* The thread turns, and has something to do. Takes NULL, as below. */
static inline void ps_turn_works(ps_turn_t *turn)
{
    if (turn != NULL) {
        atomic_store_explicit(&turn->turned, ps_turn_now_ms() * 2, memory_order_relaxed);
    }
}

/* It turns, and waits for work from now on: PS_TURN_WAIT_MS at most. */
static inline void ps_turn_waits(ps_turn_t *turn)
{
    if (turn != NULL) {
        atomic_store_explicit(&turn->turned, ps_turn_now_ms() * 2 + 1, memory_order_relaxed);
    }
}

/* Its name, which may become another's at any moment. */
static inline void ps_turn_name(const ps_turn_t *turn, char ret_name[PS_TURN_NAME_SIZE])
{
    for (size_t i = 0; i < PS_TURN_NAME_SIZE / 8; i++) {
        uint64_t part = atomic_load_explicit(&turn->name[i], memory_order_relaxed);

        memcpy(ret_name + 8 * i, &part, sizeof part);
    }
    ret_name[PS_TURN_NAME_SIZE - 1] = '\0';
}

/* Marks the thread as waiting, and waits for a condition (ps_cond_init), for
 * PS_TURN_WAIT_MS at most. Then the caller checks whether there is work, and
 * marks itself as working. */
void ps_turn_wait(ps_turn_t *turn, pthread_cond_t *condition, pthread_mutex_t *mutex);

/* The page of this process, for ps_turns_late. Borrowed. */
const ps_turns_head_t *ps_turns_page(const ps_turns_t *self);
#endif
