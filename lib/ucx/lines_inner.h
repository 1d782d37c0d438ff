/* SPDX-License-Identifier: Apache-2.0 */
/* Private to lib/ucx: what lines.c, traffic.c and meeting.c share. */
#ifndef PS_UCX_LINES_INNER_H
#define PS_UCX_LINES_INNER_H

#include <netinet/in.h>
#include <sys/queue.h>

/* UCX's headers give pointers to functions that do not say what they take. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <ucp/api/ucp.h>
#pragma GCC diagnostic pop

#include "ucx/lines.h"

#define PS_UCX_MAGIC UINT32_C(0x55445350) /* "PSDU"; of another layout another one */

/* The numbers of active messages. */
enum { PS_UCX_MEETING = 1, PS_UCX_CARGO = 2, PS_UCX_BYE = 3 };

/* Before each parcel, and the whole of BYE. */
typedef struct ps_ucx_head {
    uint64_t number; /* of the parcel, from 1; of BYE: of the last one */
    uint32_t to;     /* the line there … */
    uint32_t of;     /* … and its generation */
} ps_ucx_head_t;

typedef struct ps_ucx_arrival {
    TAILQ_ENTRY(ps_ucx_arrival) in_order;
    ps_ucx_lines_t *lines;
    uint64_t number;
    ps_cargo_t *cargo;
    bool is_done;
    bool is_bad;
    bool is_orphan; /* its line is gone */
} ps_ucx_arrival_t;

typedef struct ps_ucx_line {
    bool is_used;
    bool is_ours;        /* we have connected */
    bool is_lost;        /* UCX says so */
    bool has_met;        /* the other one has said who it is */
    bool is_leaving;     /* BYE went */
    bool has_bye;        /* BYE came … */
    uint64_t bye;        /* … after that parcel */
    uint32_t number;     /* among the lines */
    uint32_t generation; /* of what has that number */
    uint32_t its_line;   /* this line's number there … */
    uint32_t its_generation;
    uint32_t port;     /* of the hall, that it was connected to; 0: is_ours */
    ucp_ep_h endpoint; /* NULL: UCX made none */
    uint64_t n_sent;   /* the last number */
    uint64_t n_taken;
    TAILQ_HEAD(ps_ucx_arrivals, ps_ucx_arrival) arrivals; /* by number */
} ps_ucx_line_t;

/* Where others connect to. */
typedef struct ps_ucx_door {
    SLIST_ENTRY(ps_ucx_door) in_list;
    ps_ucx_lines_t *lines;
    uint32_t port;
    ucp_listener_h listener;
} ps_ucx_door_t;

struct ps_ucx_lines {
    ps_hall_t *hall;
    ucp_context_h context; /* NULL: it has not begun */
    ucp_worker_h worker;   /* likewise */
    ps_ucx_line_t **items; /* owned */
    uint32_t *n_sending;   /* of each line */
    size_t n;
    size_t capacity;
    size_t n_capacity;
    bool has_lost;    /* some line */
    bool has_arrived; /* something, on some line */
    SLIST_HEAD(ps_ucx_doors, ps_ucx_door) doors;
    _Atomic uint64_t sent;
    _Atomic uint64_t received;
};

/* That line, if it is the one that the other side means; else NULL. */
ps_ucx_line_t *ps_ucx_line_of(ps_ucx_lines_t *self, uint32_t number, uint32_t generation);
void ps_ucx_line_lose(ps_ucx_lines_t *self, ps_ucx_line_t *line);

/* ---- meeting.c ---- */

/* The functions below are UCX's call-backs; arg is the lines. */

/* What this process says of itself on a line. */
void ps_ucx_meet(ps_ucx_lines_t *self, ps_ucx_line_t *line);
ucs_status_t ps_ucx_on_meeting(void *arg, const void *header, size_t header_size, void *data,
                               size_t size, const ucp_am_recv_param_t *param);

/* ---- traffic.c ---- */

/* Sends what the hall has. true: it had something. */
bool ps_ucx_send_all(ps_ucx_lines_t *self);
/* Hands on what has come in order. */
void ps_ucx_deliver(ps_ucx_lines_t *self, ps_ucx_line_t *line);
/* Tells the other side that nothing more comes. */
void ps_ucx_send_bye(ps_ucx_lines_t *self, ps_ucx_line_t *line);
/* Drops what came or is coming. */
void ps_ucx_drop_arrivals(ps_ucx_line_t *line);
ucs_status_t ps_ucx_on_cargo(void *arg, const void *header, size_t header_size, void *data,
                             size_t size, const ucp_am_recv_param_t *param);
ucs_status_t ps_ucx_on_bye(void *arg, const void *header, size_t header_size, void *data,
                           size_t size, const ucp_am_recv_param_t *param);
#endif
