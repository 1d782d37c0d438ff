/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_trace - where the time of requests went
 *
 * What     A call with psd_call_set_trace records each of its requests: one
 *          slice of the call, to one partition. A request's time has phases,
 *          and their sum is the whole:
 *
 *            CLIENT  in this process, before the request was sent and after its
 *                    answer had arrived
 *            QUEUE   the shard held the request: for an earlier push of the same
 *                    client, for room, for a move
 *            GATE    the shard held the request for slower workers of its job
 *            WORK    the shard checked, applied and answered it
 *            COPIES  its answer waited for other copies (ack replica)
 *            FLUSH   its answer waited for the disk (ack disk)
 *            ANSWER  the rest of the round trip: the network in both
 *                    directions, sockets, and whatever was sent again
 *
 *          The shard measures QUEUE, GATE, WORK, COPIES and FLUSH, and says them
 *          in its answer; both clocks are never compared.
 * Units    microseconds
 * Owner    The caller. It stays in place until the tickets of its calls have
 *          ended.
 * Threads  Those of the client.
 */
#ifndef PSD_TRACE_H
#define PSD_TRACE_H

#include "psd/client.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psd_trace psd_trace_t;

typedef enum psd_phase {
    PSD_PHASE_WHOLE = 0,
    PSD_PHASE_CLIENT = 1,
    PSD_PHASE_QUEUE = 2,
    PSD_PHASE_GATE = 3,
    PSD_PHASE_WORK = 4,
    PSD_PHASE_COPIES = 5,
    PSD_PHASE_FLUSH = 6,
    PSD_PHASE_ANSWER = 7
} psd_phase_t;

/* It keeps the first 65536 requests. NULL when there is no memory. */
PSD_EXPORT psd_trace_t *psd_trace_new(void);
/* Takes NULL. */
PSD_EXPORT void psd_trace_destroy(psd_trace_t **self_p);
/* Calls with these options record their requests there; NULL: nowhere, the default. */
PSD_EXPORT void psd_call_set_trace(psd_call_t *self, psd_trace_t *trace);
/* The number of requests recorded, in the order of their start. */
PSD_EXPORT size_t psd_trace_count(const psd_trace_t *self);
/* The time of request i < count in that phase; 0 for a number that is no phase. */
PSD_EXPORT uint64_t psd_trace_us(const psd_trace_t *self, size_t i, psd_phase_t phase);
/* When request i started, since 1970. */
PSD_EXPORT uint64_t psd_trace_start_us(const psd_trace_t *self, size_t i);
/* "push", "pull" or "pushpull"; static. */
PSD_EXPORT const char *psd_trace_kind(const psd_trace_t *self, size_t i);
PSD_EXPORT uint32_t psd_trace_partition(const psd_trace_t *self, size_t i);
/* Where the request was sent last ("lane://…", "tcp://…"); "" when it was not
 * sent. Borrowed until the trace is destroyed. */
PSD_EXPORT const char *psd_trace_endpoint(const psd_trace_t *self, size_t i);
/* The shard said where the time went. false: it was refused, has not ended, went
 * by another worker, or the node is of a build that does not measure it. Its
 * phases are then in ANSWER. */
PSD_EXPORT bool psd_trace_is_told(const psd_trace_t *self, size_t i);

#ifdef __cplusplus
}
#endif
#endif
