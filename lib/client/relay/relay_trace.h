/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_trace - a file of what a relay gets and sends, for people
 *
 * What     Chrome's trace events (JSON array format), one a line, which chrome://tracing and
 *          Perfetto show: bundles sent, with what became of them, and taken; deltas of the own
 *          worker; rows asked for, got and given; what is given back. The array is closed when
 *          the relay ends; a process that dies leaves it open, which both programs take.
 * Shape    Process: the worker's rank. Threads: 1 deltas, 2 rows. A bundle to another relay or to
 *          the nodes is an async event, from sending to its end, with its number as id.
 * Units    Microseconds of the machine's monotonic clock; bytes.
 * Cost     A line is printed into memory and written later: at a turn PS_RELAY_TRACE_LATE_US after
 *          the last time, and when PS_RELAY_TRACE_BUFFER bytes are there. A file that cannot be
 *          written, or has PS_RELAY_TRACE_MOST bytes, ends the trace, which the log says; the
 *          relay goes on.
 * Owner    The relay's thread; ps_relay_trace_close. Zeroed: there is none, and nothing is done.
 * Threads  One at a time.
 */
#ifndef PS_CLIENT_RELAY_TRACE_H
#define PS_CLIENT_RELAY_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/relay/relay.h"
#include "psd/status.h"

#define PS_RELAY_TRACE_PATH 1280
#define PS_RELAY_TRACE_BUFFER 65536
#define PS_RELAY_TRACE_MOST (UINT64_C(1) << 30)
#define PS_RELAY_TRACE_LATE_US 200000

typedef struct ps_relay_trace {
    bool is_open;
    bool runs; /* it has begun */
    int fd;    /* owned */
    uint32_t worker;
    char path[PS_RELAY_TRACE_PATH];
    char *lines; /* owned; not written yet … */
    size_t size; /* … and its bytes */
    uint64_t written;
    uint64_t written_us; /* when it was written to */
} ps_relay_trace_t;

typedef enum ps_relay_trace_kind {
    PS_TRACE_LENT = 0,    /* a delta of the own worker */
    PS_TRACE_SENT,        /* a bundle, to `worker` or the nodes; begins */
    PS_TRACE_TAKEN,       /* … the next relay has it */
    PS_TRACE_DONE,        /* … the server has it; ends */
    PS_TRACE_RETURNED,    /* … it came back; ends */
    PS_TRACE_GOT,         /* a bundle of `worker` */
    PS_TRACE_GAVE_BACK,   /* a delta or bundle, to `worker`, with the reason */
    PS_TRACE_ROWS_ASKED,  /* of `worker` */
    PS_TRACE_ROWS_GOT,    /* for the own worker */
    PS_TRACE_ROWS_MISSED, /* they are not to be had */
    PS_TRACE_ROWS_GAVE    /* to `worker` */
} ps_relay_trace_kind_t;

typedef struct ps_relay_trace_event {
    ps_relay_trace_kind_t kind;
    uint32_t worker; /* PS_OVERLAY_NODES: the nodes */
    uint64_t number; /* of SENT … RETURNED */
    uint32_t table;
    uint32_t partition;
    uint64_t clock;
    uint64_t bytes;
    size_t n_from;      /* contributors of a bundle */
    const char *reason; /* a literal; NULL: none */
} ps_relay_trace_event_t;

/* pattern: a path; %r in it is the worker's rank, which is put after it where there is no %r. The
 * file is made, with mode 0600; one that is there stays as it is until the trace begins. Another
 * one that was open is closed. Errors: PSD_INVALID a path that is too long, or leads to no file;
 * PSD_IO it cannot be opened, or is a symbolic link; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_trace_open(ps_relay_trace_t *self, const char *pattern,
                                                uint32_t worker, psd_error_t *err);
/* Empties the file, and says which worker it is of. */
void ps_relay_trace_begin(ps_relay_trace_t *self);
void ps_relay_trace_note(ps_relay_trace_t *self, const ps_relay_trace_event_t *event);
/* A bundle is on its way, to another relay or to the nodes. */
void ps_relay_trace_sent(ps_relay_trace_t *self, const ps_relay_deed_t *deed, uint64_t bytes);
/* What became of it; signs of life are no events. */
void ps_relay_trace_news(ps_relay_trace_t *self, uint32_t from, uint64_t number,
                         ps_relay_news_t news);
/* To be called now and then: writes what has waited. */
void ps_relay_trace_turn(ps_relay_trace_t *self);
/* Closes the array and the file; takes what open left in any case. */
void ps_relay_trace_close(ps_relay_trace_t *self);
#endif
