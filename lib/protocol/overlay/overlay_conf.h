/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_conf - the settings file of pairs and queue
 *
 * What     The lines of LeMethod's configuration file: which links workers may use, how
 *          many of them are served at once, how long a measurement is good.
 * Shape    One setting a line; blanks between words; empty lines and lines that begin
 *          with # are skipped:
 *              ADD_CONNECTION A B         A may send to B; ranks from 0
 *              REMOVE_CONNECTION A B      it may not, whatever stands above
 *              SET_SCHEDULE_RATIO R       0 .. 1, of all workers; default 0.1
 *              SET_SCHEDULE_NUM N         1 .. workers; wins over the ratio
 *              SET_BANDWIDTH_EXPIRATION K 1 .. 1000000 turns; default 5
 *          Words of later versions (SET_RECEIVING_LIMIT and its like) are checked, and have no
 *          effect.
 * Owner    The caller; ps_overlay_conf_done.
 * Threads  Plain values.
 */
#ifndef PS_PROTOCOL_OVERLAY_CONF_H
#define PS_PROTOCOL_OVERLAY_CONF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/overlay/overlay_rules.h"
#include "psd/status.h"

#define PS_OVERLAY_EDGES_MAX 16384u
#define PS_OVERLAY_CONF_BYTES (1024u * 1024) /* a file is shorter */

/* Ranks of two workers. */
typedef struct ps_overlay_edge {
    uint32_t from;
    uint32_t to;
    bool is_cut; /* REMOVE_CONNECTION */
    uint32_t line;
} ps_overlay_edge_t;

/* The settings that are numbers: name in the file, member, least, most, default. A
 * default of -1 says that none is set. */
#define PS_OVERLAY_NUMBERS(X)                               \
    X("SET_SCHEDULE_RATIO", ratio, 0, 1, 0.1)               \
    X("SET_SCHEDULE_NUM", num, 1, 4096, -1)                 \
    X("SET_BANDWIDTH_EXPIRATION", expiry, 1, 1000000, 5)    \
    X("SET_RECEIVING_LIMIT", fan_in, 1, 4096, -1)           \
    X("SET_MIN_RECEIVING_LIMIT", fan_in_least, 1, 4096, -1) \
    X("SET_MAX_RECEIVING_LIMIT", fan_in_most, 1, 4096, -1)  \
    X("SET_WINDOW_SIZE", window, 1, 1000000, -1)            \
    X("SET_MIN_HISTORY", history, 1, 1000000, -1)           \
    X("SET_ALPHA", alpha, 0, 1, -1)                         \
    X("SET_DELTA", delta, 0, 1000000, -1)                   \
    X("SET_STATIC_DELTA", static_delta, 0, 1000000, -1)     \
    X("MAX_THREAD_NUM", threads, 1, 1000000, -1)

typedef struct ps_overlay_number {
    double value;
    uint32_t line; /* 0: the default */
} ps_overlay_number_t;

typedef struct ps_overlay_conf {
    ps_overlay_edge_t *edges; /* owned, in the order of the file */
    size_t n_edges;
#define X(name, member, least, most, otherwise) ps_overlay_number_t member;
    PS_OVERLAY_NUMBERS(X)
#undef X
} ps_overlay_conf_t;

/* The defaults. */
void ps_overlay_conf_init(ps_overlay_conf_t *self);
void ps_overlay_conf_done(ps_overlay_conf_t *self);
/* Reads a whole file. place: its name, for errors. n_workers: ranks must be below it;
 * 0: it is not known yet. Errors: PSD_INVALID naming file, line, word and what is
 * allowed; PSD_NOMEM. *self is unchanged then. */
PSD_MUST_CHECK psd_status_t ps_overlay_conf_read(ps_overlay_conf_t *self, const char *text,
                                                 size_t length, const char *place,
                                                 uint32_t n_workers, psd_error_t *err);

/* To whom a worker may send, by this file's edges. The last edge that names both decides; none:
 * no. */
void ps_overlay_conf_may(const ps_overlay_conf_t *self, uint32_t from, ps_may_t *ret_may);
/* Sets the numbers that the file says, or their defaults. */
void ps_overlay_conf_fill(const ps_overlay_conf_t *self, ps_overlay_rules_t *rules);
#endif
