/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of requests went. */
#include "client/requests/trace.h"

#include <stdio.h>

#include "base/alloc.h"
#include "transport/threads/clock.h"

#define TRACED_MAX 65536

/* A pull that is answered in several pieces is several times away; so is one that is sent
 * again, from its first send on. */
typedef struct traced {
    ps_request_kind_t kind;
    uint32_t partition;
    char endpoint[PS_LINK_ENDPOINT_MAX + 1];
    uint64_t start_us;
    uint64_t sent_us; /* it is away since then; 0: it is not */
    uint64_t away_us; /* all round trips */
    uint64_t end_us;  /* 0: it has not ended */
    ps_times_t times; /* of all answers */
    bool is_told;     /* the last answer had times */
} traced_t;

struct psd_trace {
    traced_t *items; /* owned */
    size_t n;
    size_t capacity;
    uint64_t unix_us; /* what must be added to a time for the one since 1970 */
};

psd_trace_t *psd_trace_new(void)
{
    psd_trace_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->unix_us = ps_unix_us() - ps_now_us();
    }
    return self;
}

void psd_trace_destroy(psd_trace_t **self_p)
{
    psd_trace_t *self = self_p == NULL ? NULL : *self_p;

    if (self != NULL) {
        *self_p = NULL;
        ps_free(self->items);
        ps_free(self);
    }
}

/* ---- noted ---- */

psd_status_t ps_trace_begin(psd_trace_t *trace, ps_slice_request_t *request, psd_error_t *err)
{
    if (trace->n >= TRACED_MAX) {
        return PSD_OK;
    }
    if (!ps_grow(&trace->items, &trace->capacity, trace->n + 1, sizeof *trace->items)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a trace");
    }
    request->trace = trace;
    request->traced = trace->n;
    trace->items[trace->n++] = (traced_t){
        .kind = request->kind, .partition = request->queue->partition, .start_us = ps_now_us()};
    return PSD_OK;
}

/* NULL: it is not traced. A push that its ticket did not wait for goes on without its trace, which
 * may be gone. */
static traced_t *traced_of(const ps_slice_request_t *request)
{
    return request->trace == NULL || request->ticket == NULL
               ? NULL
               : &request->trace->items[request->traced];
}

void ps_trace_sent(ps_slice_request_t *request, const char *endpoint)
{
    traced_t *self = traced_of(request);

    if (self != NULL) {
        self->sent_us = self->sent_us == 0 ? ps_now_us() : self->sent_us;
        (void)snprintf(self->endpoint, sizeof self->endpoint, "%s", endpoint);
    }
}

static void add(ps_times_t *self, const ps_times_t *other)
{
#define ADD(type, name) self->name += other->name;
    PS_TIMES_FIELDS(ADD)
#undef ADD
}

void ps_trace_answered(ps_slice_request_t *request, const ps_message_t *message)
{
    traced_t *self = traced_of(request);

    if (self == NULL || self->sent_us == 0) {
        return;
    }
    self->away_us += ps_now_us() - self->sent_us;
    self->sent_us = 0;
    self->is_told = ps_message_has_times(message);
    if (self->is_told) {
        add(&self->times, &message->times);
    }
}

void ps_trace_ended(ps_slice_request_t *request)
{
    traced_t *self = traced_of(request);

    if (self != NULL) {
        self->end_us = ps_now_us();
    }
}

void ps_trace_cut_off(ps_slice_request_t *request)
{
    traced_t *self = traced_of(request);

    if (self != NULL && self->end_us == 0) {
        self->end_us = ps_now_us();
        self->away_us += self->sent_us == 0 ? 0 : self->end_us - self->sent_us;
    }
}

/* ---- read ---- */

size_t psd_trace_count(const psd_trace_t *self)
{
    return self->n;
}

static uint64_t less(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

/* Of its phases at the shard. */
static uint64_t told_us(const ps_times_t *times)
{
#define ADD(type, name) +times->name
    return 0 PS_TIMES_FIELDS(ADD);
#undef ADD
}

uint64_t psd_trace_us(const psd_trace_t *self, size_t i, psd_phase_t phase)
{
    const traced_t *traced = &self->items[i];
    uint64_t whole_us = less(traced->end_us, traced->start_us);

    switch (phase) {
    case PSD_PHASE_WHOLE:
        return whole_us;
    case PSD_PHASE_CLIENT:
        return less(whole_us, traced->away_us);
    case PSD_PHASE_QUEUE:
        return traced->times.queue_us;
    case PSD_PHASE_GATE:
        return traced->times.gate_us;
    case PSD_PHASE_WORK:
        return traced->times.work_us;
    case PSD_PHASE_COPIES:
        return traced->times.copies_us;
    case PSD_PHASE_FLUSH:
        return traced->times.flush_us;
    case PSD_PHASE_ANSWER:
        return less(traced->away_us, told_us(&traced->times));
    default:
        return 0;
    }
}

uint64_t psd_trace_start_us(const psd_trace_t *self, size_t i)
{
    return self->unix_us + self->items[i].start_us;
}

const char *psd_trace_kind(const psd_trace_t *self, size_t i)
{
    ps_request_kind_t kind = self->items[i].kind;

    return kind == PS_REQUEST_PULL ? "pull" : kind == PS_REQUEST_PUSHPULL ? "pushpull" : "push";
}

uint32_t psd_trace_partition(const psd_trace_t *self, size_t i)
{
    return self->items[i].partition;
}

const char *psd_trace_endpoint(const psd_trace_t *self, size_t i)
{
    return self->items[i].endpoint;
}

bool psd_trace_is_told(const psd_trace_t *self, size_t i)
{
    return self->items[i].is_told;
}
