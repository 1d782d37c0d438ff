/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_bench_load - one client that keeps a number of requests in flight
 *
 * What     Requests of one shape, counted and timed. Lists of keys are made
 *          before the clock starts, a different one for each request, so that
 *          no cache helps from an earlier request. Values come from (pulls: go
 *          to) the caller's memory and rotate through a pool that is larger
 *          than a core's caches, so that a request never reuses the values of
 *          the request before or finds them in a cache. Values are borrowed,
 *          not copied.
 * Owner    The caller; client, table and pools are borrowed.
 * Threads  One at a time.
 */
#ifndef PS_CLI_BENCH_LOAD_H
#define PS_CLI_BENCH_LOAD_H

#include "psd.h"

#include "base/rng.h"

typedef enum ps_bench_kind {
    PS_BENCH_PUSH,
    PS_BENCH_PULL,
    PS_BENCH_PUSHPULL,
    PS_BENCH_IN_PLACE /* a push whose values the caller writes where the
                       * shard reads them */
} ps_bench_kind_t;

/* "push" … */
const char *ps_bench_kind_name(ps_bench_kind_t kind);

/* The shape of one request. */
typedef struct ps_bench_shape {
    ps_bench_kind_t kind;
    bool hash;             /* random keys of a hash table; else a range table */
    uint64_t n_rows;       /* of the table */
    uint64_t n_cols;       /* floats of a row */
    size_t n_keys;         /* rows of a request, 1 .. n_rows */
    uint32_t n_partitions; /* of the table; 0: psd's default */
    uint32_t in_flight;
} ps_bench_shape_t;

/* Bytes of values of one request. */
uint64_t ps_bench_bytes(const ps_bench_shape_t *shape);

/* Floats that requests take turns in using; a zeroed one is empty. */
typedef struct ps_bench_pool {
    float *values; /* owned */
    size_t n;
} ps_bench_pool_t;

/* Makes it large enough for the shape, and fills it. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_pool_fit(ps_bench_pool_t *self, const ps_bench_shape_t *shape,
                                              psd_error_t *err);
void ps_bench_pool_done(ps_bench_pool_t *self);

typedef struct ps_bench_load {
    psd_client_t *client;          /* borrowed */
    psd_table_t *table;            /* borrowed */
    const ps_bench_pool_t *from;   /* borrowed; where deltas are */
    const ps_bench_pool_t *to;     /* borrowed; where pulled values go */
    const ps_bench_shape_t *shape; /* borrowed */
    uint32_t timeout_ms;           /* of one request */
    ps_rng_t rng;

    psd_select_t *select;      /* owned */
    psd_call_t *call;          /* owned */
    psd_ticket_t *tickets;     /* owned; ring of in_flight */
    uint64_t *keys;            /* owned; the lists, concatenated */
    double *times;             /* owned; seconds of each request, when it waits */
    size_t n;                  /* requests that are prepared */
    size_t turn;               /* of the pools */
    uint64_t start_ns, end_ns; /* of the last run */
    uint64_t idle_ns;          /* part of it that a worker spends writing
                                * values in place when it waits for each
                                * request: in other pushes the values are
                                * there already */
} ps_bench_load_t;

/* The most requests that ps_bench_load_prepare takes. */
size_t ps_bench_load_most(const ps_bench_shape_t *shape);
/* Makes n lists of keys and the room for n times. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_bench_load_prepare(ps_bench_load_t *self, size_t n,
                                                  psd_error_t *err);
/* Runs all prepared requests and waits for their end. Errors: as
 * psd_push_start and psd_wait; PSD_INTERRUPTED. */
PSD_MUST_CHECK psd_status_t ps_bench_load_run(ps_bench_load_t *self, psd_error_t *err);
/* Frees what it owns; fits PSD_AUTO. */
void ps_bench_load_done(ps_bench_load_t *self);
#endif
