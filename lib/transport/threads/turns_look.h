/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_turns_look - which threads of a process hang
 *
 * What     Reads a page of turns.h, of this process or of another on this host,
 *          and the kernel's states of its threads (/proc).
 *          A thread is late when
 *            it is stopped (by a debugger or a signal), or
 *            it waited for work and has not woken for PS_LATE_WAIT_MS, or
 *            it works, or wants to and gets no processor, and has not turned
 *            for PS_LATE_WORK_MS: a disk or a long step may take a while.
 * Owner    The caller.
 */
#ifndef PS_TRANSPORT_TURNS_LOOK_H
#define PS_TRANSPORT_TURNS_LOOK_H

#include <stddef.h>

#include "transport/threads/turns.h"

#define PS_LATE_WAIT_MS (PS_TURN_WAIT_MS + 300)
#define PS_LATE_WORK_MS 5000
#define PS_TURNS_WATCH "watch" /* the thread that writes for others */

typedef struct ps_late {
    char name[PS_TURN_NAME_SIZE];
    pid_t tid;
    uint64_t silent_ms; /* since it turned last */
    char state;         /* the kernel's letter; '?': it does not say */
    bool is_stopped;    /* by a debugger or a signal */
} ps_late_t;

/* Late threads of the process with that page, the longest silent first; gives
 * how many there are in ret_late. What the thread "watch" writes of others
 * counts only while that one turns. */
size_t ps_turns_late(const ps_turns_head_t *page, ps_late_t *ret_late, size_t most);
/* All threads with a place, in its order, without the kernel's states. */
size_t ps_turns_all(const ps_turns_head_t *page, ps_late_t *ret_all, size_t most);
/* The ms since the last turn of the thread that is silent the longest. A thread
 * that waits for a disk does not count: a flush may take minutes, and a restart
 * would only repeat it. */
uint64_t ps_turns_oldest_ms(const ps_turns_head_t *page);
/* 'thread shard-1 has not turned for 2.3 s', and why, when that is known. */
void ps_late_print(const ps_late_t *late, char *ret_text, size_t size);

/* A page of another process, as it was when it was read last. */
typedef struct ps_turns_view {
    ps_turns_head_t *page; /* owned, with its places; NULL: none */
    size_t size;
    int fd; /* owned */
} ps_turns_view_t;

/* Reads the page whose file PATH is. Errors: PSD_IO, PSD_NOMEM, PSD_DAMAGED it
 * is none, PSD_VERSION, PSD_CLOSED the process that wrote it is gone; each
 * naming the file. */
PSD_MUST_CHECK psd_status_t ps_turns_view_open(const char *path, ps_turns_view_t *ret_view,
                                               psd_error_t *err);
/* The page of the process on this host that listens on the endpoint: beside the
 * socket for ipc://, else in one of the directories (up to NULL), else among
 * the processes that may be looked at. Errors: PSD_CLOSED it was beside the
 * socket, and its process is gone; PSD_NO_NODE there is none that we see. */
PSD_MUST_CHECK psd_status_t ps_turns_view_find(const char *endpoint, const char *const *dirs,
                                               ps_turns_view_t *ret_view, psd_error_t *err);
/* Reads it again. false: it cannot be read any more. */
PSD_MUST_CHECK bool ps_turns_view_read(ps_turns_view_t *self);
/* Closes; takes a zeroed one. */
void ps_turns_view_done(ps_turns_view_t *self);
#endif
