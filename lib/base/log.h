/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_log - `level event key=value …`, one line per event, after a stamp
 *
 * What     Programs write to one sink, and libraries and the core return reasons
 *          instead. A server inside a program has a sink of its own, which its
 *          threads use in place of that one.
 * Shape    A line has at most 4096 bytes; a longer one is cut. Line breaks in
 *          it become spaces.
 * Threads  any; a line is written in one piece.
 */
#ifndef PS_BASE_LOG_H
#define PS_BASE_LOG_H

#include "psd/status.h"

typedef enum ps_log_level {
    PS_LOG_ERROR = 3, /* syslog's numbers */
    PS_LOG_WARN = 4,
    PS_LOG_INFO = 6,
    PS_LOG_DEBUG = 7
} ps_log_level_t;

/* Where lines go; before the first call: warnings and errors to stderr.
 * fd is borrowed for good. journal: prefix "<N>" instead of the level's name,
 * as systemd reads it. */
void ps_log_open(int fd, ps_log_level_t level, _Bool journal);
void ps_log_set_level(ps_log_level_t level);
/* Sets a function that writes the prefix of each line, for example the time;
 * NULL: no prefix. Any thread may call the function. */
#define PS_LOG_STAMP_SIZE 32
typedef void ps_log_stamp_t(char ret[PS_LOG_STAMP_SIZE]);
void ps_log_set_stamp(ps_log_stamp_t *stamp);

/* A sink that some threads use. */
typedef struct ps_log_sink {
    void (*take)(void *user, ps_log_level_t level, const char *line); /* on any of the threads; a
                          line without its line break; NULL: they go to fd */
    void *user;
    int fd;            /* borrowed */
    _Atomic int level; /* the least important that is taken, or PS_LOG_NOTHING */
} ps_log_sink_t;
#define PS_LOG_NOTHING (-1)
/* The calling thread's lines go there from now on, and so do those of threads that it
 * starts by ps_thread_start; ps_log_set_level then sets the sink's level. NULL: to the
 * program's. Borrowed for as long as such a thread runs. */
void ps_log_use(ps_log_sink_t *sink);
/* The sink of the calling thread; NULL: the program's. */
ps_log_sink_t *ps_log_used(void);

/* event is one word. format gives `key=value …` or is "". The caller quotes
 * values that may hold spaces with ps_log_quote. */
void ps_log(ps_log_level_t level, const char *event, const char *format, ...) PSD_PRINTF(3, 4);
/* Writes text as "…" with \" \\ \n escaped, cut to fit the size bytes of ret
 * with closing quote and '\0'; returns ret. With fewer than 3 bytes, ret is
 * empty. */
const char *ps_log_quote(const char *text, char *ret, unsigned long size);
#endif
