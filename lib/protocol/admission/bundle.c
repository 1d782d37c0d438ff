/* SPDX-License-Identifier: Apache-2.0 */
/* A bundle at its partition: what several clients pushed and marked in one clock, taken as one
 * record when it is the turn of all of it; else each of them sends its own. In a job with a
 * max_delay other than 0 no clock holds it together: it is one sum of what came. */
#include "base/alloc.h"
#include "model/combine/combine_check.h"
#include "model/store/store_growth.h"
#include "protocol/admission/admission.h"
#include "protocol/partition/answer.h"
#include "protocol/partition/bundle_turn.h"
#include "protocol/partition/replay.h"
#include "protocol/replica/replicas.h"

#define EFFECTS_BESIDE 4 /* two records, the relay's answer, a note */
#define EFFECTS_EACH 3   /* notes of a contributor; and an answer for each seq: */
#define SEQS_MAX 8192    /* of all contributors */
#define UNKNOWN "a contributor is not known here as a client of the job"

/* A bundle that is looked at. */
typedef struct look {
    const ps_request_t *request;
    ps_payload_t *payload; /* owned; not shared */
    ps_bundle_t bundle;    /* owned; its bytes are the payload's */
} look_t;

static void look_done(look_t *self)
{
    ps_bundle_done(&self->bundle);
    ps_payload_destroy(&self->payload);
}

static psd_status_t look_at(const ps_request_t *request, look_t *ret_look, psd_error_t *err)
{
    *ret_look = (look_t){.request = request};
    if (request->payload != NULL) {
        ret_look->payload = ps_payload_own(request->payload);
        if (ret_look->payload == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a bundle");
        }
    }
    return ps_bundle_open(ret_look->payload, request->n_from, request->n_spans, &ret_look->bundle,
                          err);
}

static void split(ps_step_t *step, const ps_request_t *request, size_t n_in, const char *why)
{
    ps_answer_refused(step, request, PSD_SPLIT, n_in, why);
}

/* ---- answers ---- */

static bool has_rows(const ps_bundle_t *bundle, uint16_t i)
{
    for (uint16_t k = 0; k < bundle->n_spans; k++) {
        const ps_bundle_span_t *span = &bundle->spans[k];

        if (i >= span->from && i - span->from < span->n_from) {
            return true;
        }
    }
    return false;
}

/* It was taken, and not refused when it came directly. */
static bool was_taken(const ps_partition_t *self, uint64_t session, uint64_t seq)
{
    const ps_window_t *window = ps_map_get(&self->windows, session);

    return window != NULL && !ps_window_is_unsure(window, seq) &&
           ps_window_refusal(window, seq) == NULL;
}

static void acknowledge(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    size_t n_before = step->outbox->n_effects;

    ps_answer_ack(step, request);
    if (self->replicas != NULL) {
        ps_replicas_withhold(step, self, request, n_before);
    }
}

/* A contributor hears of each of its seqs. One that is not connected asks (PROBE). The answer to
 * what is `again` here has a push's level: the seqs may be pushes that came directly. */
static void acknowledge_one(ps_step_t *step, ps_partition_t *self, const look_t *look, uint16_t i,
                            bool again)
{
    const ps_request_t *request = look->request;
    const ps_bundle_from_t *from = &look->bundle.from[i];
    ps_request_t own = {.kind = again || has_rows(&look->bundle, i) ? PS_KIND_PUSH : PS_KIND_MARK,
                        .table = request->table,
                        .partition = request->partition,
                        .epoch = request->epoch,
                        .job = request->job,
                        .worker = from->worker,
                        .member = from->member,
                        .joins = from->joins,
                        .clock = request->clock,
                        .session = from->session,
                        .peer = ps_peers_of(&step->peers, from->session)};

    for (uint64_t seq = from->first_seq; own.peer != NULL && seq <= from->last_seq; seq++) {
        if (was_taken(self, from->session, seq)) {
            own.seq = seq;
            acknowledge(step, self, &own);
        }
    }
}

static void acknowledge_all(ps_step_t *step, ps_partition_t *self, const look_t *look, bool again)
{
    for (uint16_t i = 0; i < look->bundle.n_from; i++) {
        acknowledge_one(step, self, look, i, again);
    }
    acknowledge(step, self, look->request);
}

/* ---- may it be taken? ---- */

/* Sessions are numbers that a relay names: only those of clients that work for the job here, so
 * that it cannot use up seqs of others. */
static bool is_known(const ps_step_t *step, uint64_t session, uint32_t job)
{
    const ps_peer_t *peer = ps_peers_of(&step->peers, session);

    return peer != NULL && peer->job == job;
}

/* Windows for all; other clients' are evicted for what comes directly only. */
static bool has_windows(const ps_step_t *step, const ps_partition_t *self,
                        const ps_bundle_t *bundle)
{
    size_t n_new = 0;

    for (uint16_t i = 0; i < bundle->n_from; i++) {
        n_new += ps_map_get(&self->windows, bundle->from[i].session) == NULL ? 1 : 0;
    }
    return n_new == 0 || self->windows.count + n_new <= step->args.sessions_max;
}

/* Why a contributor cannot be in a bundle; NULL: it can. */
static const char *bar_of(const ps_step_t *step, const ps_partition_t *self,
                          const ps_job_place_t *place, const ps_bundle_from_t *from, uint64_t clock)
{
    const ps_local_table_t *table = ps_map_get(&step->tables, self->table);

    if (!is_known(step, from->session, ps_gate_job(place->gate))) {
        return UNKNOWN;
    }
    if (table != NULL && from->session <= table->lost_sessions) {
        return "a contributor used rows that are lost";
    }
    if (ps_gate_check(place->gate, from->worker, from->joins, from->member, NULL) != PSD_OK) {
        return "a contributor may not work now";
    }
    if ((from->tail == 0) != ps_gate_is_bsp(place->gate)) {
        return "it is a bundle of a job with another max_delay";
    }
    /* a lower mark would be ignored; a higher one would leap over clocks of which more may come */
    return !ps_gate_is_bsp(place->gate) || from->marks == 0 ||
                   (from->marks == 1 &&
                    ps_gate_is_at(place->gate, from->worker, from->member, clock))
               ? NULL
               : "a contributor that marks is in another clock";
}

/* Bytes that a span would take, of its open clock and in rows. */
static uint64_t cost_of(const ps_step_t *step, const ps_partition_t *self,
                        const ps_bundle_span_t *span, const ps_payload_t *payload)
{
    bool has_limit = step->args.memory_bytes > 0 || self->use->limit_bytes > 0;

    return ps_open_clock_cost(payload, span->n_from) +
           (has_limit ? ps_store_growth(self->store, &span->slice, payload) : 0);
}

/* Why a span cannot be taken as it is, beside those before it, which take *beside bytes. */
static const char *bar_of_span(ps_step_t *step, ps_partition_t *self, const ps_job_place_t *place,
                               const look_t *look, const ps_bundle_span_t *span, uint64_t *beside)
{
    const ps_bundle_from_t *first = &look->bundle.from[span->from];
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_bundle_span_payload(span, look->payload);
    const ps_request_t push = {.kind = PS_KIND_PUSH,
                               .table = self->table,
                               .partition = self->number,
                               .seq = first->last_seq,
                               .job = look->request->job,
                               .worker = first->worker,
                               .member = first->member,
                               .joins = first->joins,
                               .clock = look->request->clock,
                               .session = first->session,
                               .n_from = span->n_from,
                               .beside = *beside,
                               .slice = span->slice,
                               .payload = payload};
    ps_job_place_t *same = NULL;

    if (ps_gate_is_bsp(place->gate) &&
        !ps_bundle_fills(place, &look->bundle, span, look->request->clock)) {
        return "others at a span's positions push by themselves";
    }
    if (payload == NULL || ps_partition_check(step, self, &push, &same, NULL) != PSD_OK) {
        return "rows of a span cannot be taken";
    }
    *beside += cost_of(step, self, span, payload);
    return NULL;
}

/* Why a job without clocks in its bundles cannot bring this one now, or NULL. A checkpoint counts
 * clocks, and the bundle does not say of which its pushes are. */
static const char *bar_of_time(const ps_partition_t *self, const ps_job_place_t *place,
                               const look_t *look)
{
    const ps_partition_image_t *image = &self->image;

    if (look->bundle.n_spans > 1) {
        return "it has more than one sum, and they are applied at once";
    }
    if (image->view.state == PS_IMAGE_PENDING && image->exact && image->job == look->request->job) {
        return "a checkpoint is about to begin";
    }
    return ps_bundle_is_open(place, &look->bundle) ? NULL : "the gate is closed to a contributor";
}

/* Why the sender cannot bring a bundle, or NULL. */
static const char *bar_of_sender(const ps_partition_t *self, const ps_job_place_t *place,
                                 const ps_request_t *request)
{
    if (place == NULL || (ps_gate_is_bsp(place->gate) ? self->spec->combine == PS_COMBINE_EACH
                                                      : !ps_partition_sums_at_once(self))) {
        return "the table does not add up what this job pushes";
    }
    return ps_gate_check(place->gate, request->worker, request->joins, request->member, NULL) ==
                   PSD_OK
               ? NULL
               : "its sender is no worker of the job now";
}

/* Why what is here already is not answered again, or NULL. */
static const char *bar_of_again(const ps_step_t *step, const ps_partition_t *self,
                                const ps_job_place_t *place, const look_t *look)
{
    const ps_request_t push = {.kind = PS_KIND_PUSH};
    const char *bar = bar_of_sender(self, place, look->request);

    for (uint16_t i = 0; bar == NULL && i < look->bundle.n_from; i++) {
        if (!is_known(step, look->bundle.from[i].session, look->request->job)) {
            bar = UNKNOWN;
        }
    }
    return bar == NULL && look->bundle.n_spans == 0 && !ps_partition_reaches_level(self, &push)
               ? "the answers would wait for a level that marks do not need"
               : bar;
}

/* NULL: all of it can be taken. */
static const char *bar_of_all(ps_step_t *step, ps_partition_t *self, const ps_job_place_t *place,
                              const look_t *look)
{
    const char *bar = bar_of_sender(self, place, look->request);
    uint64_t beside = 0;

    if (bar == NULL && self->replicas != NULL &&
        ps_payload_size(look->payload) > step->args.record_bytes - PS_RECORD_BESIDE) {
        bar = "one frame of limits.frame_bytes cannot replicate it";
    }
    if (bar == NULL && !ps_gate_is_bsp(place->gate)) {
        bar = bar_of_time(self, place, look);
    }
    for (uint16_t i = 0; bar == NULL && i < look->bundle.n_from; i++) {
        bar = bar_of(step, self, place, &look->bundle.from[i], look->request->clock);
    }
    for (uint16_t i = 0; bar == NULL && i < look->bundle.n_spans; i++) {
        bar = bar_of_span(step, self, place, look, &look->bundle.spans[i], &beside);
    }
    return bar == NULL && !has_windows(step, self, &look->bundle) ? "too many clients push here"
                                                                  : bar;
}

/* ---- is it the sum of what its contributors have pushed? ---- */

static bool is_span_right(const look_t *look, const ps_bundle_span_t *span)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_bundle_span_payload(span, look->payload);
    uint64_t wanted = 0;

    for (uint16_t i = 0; i < span->n_from; i++) {
        wanted += look->bundle.from[span->from + i].check;
    }
    return payload == NULL || /* then the record cannot be made, either */
           ps_combine_checks_agree(span->slice.type, ps_combine_check(&span->slice, payload, 0),
                                   wanted);
}

/* By its checks, where it has some. Its spans are rows of the partition. */
static bool is_right(const ps_partition_t *self, const look_t *look)
{
    const ps_bundle_t *bundle = &look->bundle;
    bool right = true;

    if (!ps_combine_has_check(self->spec->type) ||
        !ps_bundle_is_checked(bundle->from, bundle->n_from)) {
        return true;
    }
    for (uint16_t i = 0; right && i < bundle->n_from; i++) {
        right = has_rows(bundle, i) ||
                ps_combine_checks_agree(self->spec->type, bundle->from[i].check, 0);
    }
    for (uint16_t i = 0; right && i < bundle->n_spans; i++) {
        right = is_span_right(look, &bundle->spans[i]);
    }
    return right;
}

/* Whoever added it up has dropped, doubled or changed something: the relay that brought it, or one
 * that sent it to that one and was not noticed there. */
static void refuse_wrong(ps_step_t *step, const ps_partition_t *self, const ps_request_t *request)
{
    ps_count_add(step->counts->wrong_bundles, 1);
    ps_note(step, &(ps_note_t){.kind = PS_NOTE_WRONG,
                               .table = self->table,
                               .partition = self->number,
                               .a = request->job,
                               .b = request->worker,
                               .c = request->clock});
    split(step, request, 0, "its sums are not those of what its contributors pushed");
}

/* ---- taking ---- */

static bool put_record(ps_step_t *step, ps_partition_t *self, const look_t *look)
{
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_bundle_unchecked(&look->bundle, look->payload);
    ps_record_t record = {.kind = PS_RECORD_BUNDLE,
                          .session = look->request->session,
                          .job = look->request->job,
                          .worker = look->request->n_from,
                          .member = look->request->n_spans,
                          .joins = look->request->joins,
                          .clock = look->request->clock};

    if (payload == NULL || !ps_replicas_record(step, self, &record, payload)) {
        return false;
    }
    for (uint16_t i = 0; i < look->bundle.n_spans; i++) {
        ps_count_add(step->counts->pushes, look->bundle.spans[i].n_from);
        ps_count_add(step->counts->rows_pushed, look->bundle.spans[i].slice.n_rows);
    }
    return true;
}

/* Seqs of all contributors; SEQS_MAX + 1: more. */
static size_t count_seqs(const ps_bundle_t *bundle)
{
    size_t n = 0;

    for (uint16_t i = 0; i < bundle->n_from; i++) {
        uint64_t more = bundle->from[i].last_seq - bundle->from[i].first_seq;

        if (more >= SEQS_MAX - n) {
            return SEQS_MAX + 1;
        }
        n += (size_t)more + 1;
    }
    return n;
}

/* It need not wait. false: no memory. */
static bool take(ps_step_t *step, ps_partition_t *self, const look_t *look)
{
    ps_job_place_t *place = NULL;
    const char *bar = NULL;

    if (!ps_outbox_reserve(step->outbox, EFFECTS_BESIDE +
                                             EFFECTS_EACH * (size_t)look->bundle.n_from +
                                             count_seqs(&look->bundle)) ||
        ps_partition_place(step, self, look->request->job, &place, NULL) != PSD_OK) {
        return false;
    }
    bar = bar_of_all(step, self, place, look);
    if (bar != NULL) {
        split(step, look->request, 0, bar);
        return true;
    }
    if (!is_right(self, look)) {
        refuse_wrong(step, self, look->request);
        return true;
    }
    if (ps_gate_is_bsp(place->gate) && !ps_partition_settle_combine(step, self, place)) {
        return false;
    }
    if (ps_gate_is_bsp(place->gate) && self->combine == PS_COMBINE_EACH) {
        split(step, look->request, 0, "the table adds up clocks from the next one on");
        return true;
    }
    if (!put_record(step, self, look)) {
        return false;
    }
    acknowledge_all(step, self, look, false);
    return true;
}

/* It is here already, all of it. */
static void take_again(ps_step_t *step, ps_partition_t *self, const look_t *look)
{
    const char *bar =
        bar_of_again(step, self, ps_partition_find_place(self, look->request->job), look);

    if (bar != NULL) {
        split(step, look->request, look->bundle.n_from, bar);
        return;
    }
    ps_count_add(step->counts->repeated, 1);
    if (self->replicas == NULL || !ps_replicas_answer_waits(step, self, look->request)) {
        acknowledge_all(step, self, look, true);
    }
}

/* Answers what is not taken. True: it is its turn. */
static bool is_in_turn(ps_step_t *step, ps_partition_t *self, const look_t *look)
{
    size_t n_in = 0;

    if (count_seqs(&look->bundle) > SEQS_MAX) {
        split(step, look->request, 0, "its contributors have too many pushes");
        return false;
    }
    switch (ps_bundle_turn(self, look->bundle.from, look->bundle.n_from, &n_in)) {
    case PS_BUNDLE_TAKE:
        return true;
    case PS_BUNDLE_AGAIN:
        take_again(step, self, look);
        return false;
    case PS_BUNDLE_SPLIT:
    default:
        split(step, look->request, n_in, "it is not the turn of all its contributors");
        return false;
    }
}

ps_bundle_end_t ps_partition_take_bundle(ps_step_t *step, ps_partition_t *self,
                                         const ps_request_t *request)
{
    PSD_AUTO(look_done) look_t look = {.request = request};

    if (look_at(request, &look, NULL) != PSD_OK) {
        return PS_BUNDLE_LATER;
    }
    /* what waits for its clock may meanwhile have come directly: it would wait for nothing */
    if (!is_in_turn(step, self, &look)) {
        return PS_BUNDLE_ANSWERED;
    }
    if (!ps_partition_is_ready(step, self, request)) {
        return PS_BUNDLE_WAITS;
    }
    return take(step, self, &look) ? PS_BUNDLE_ANSWERED : PS_BUNDLE_LATER;
}

/* The same one waits here. */
static const ps_held_t *find_held(const ps_partition_t *self, const ps_request_t *request)
{
    const ps_held_t *held = ps_held_of(&self->held, request->session);

    while (held != NULL &&
           (held->is.kind != PS_KIND_BUNDLE || held->is.request != request->request)) {
        held = held->next_own;
    }
    return held;
}

void ps_partition_bundle(ps_step_t *step, ps_partition_t *self, const ps_request_t *request)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(look_done) look_t look = {.request = request};
    ps_held_for_t why = PS_HELD_NOT;
    char text[PS_TEXT_MAX + 1];
    psd_status_t rc = PSD_OK;

    if (find_held(self, request) != NULL) {
        ps_partition_reason(step, self, request, text, sizeof text);
        ps_answer_parked(step, request, text);
        return;
    }
    rc = look_at(request, &look, err);
    if (rc != PSD_OK) {
        ps_answer_refused(step, request, rc, 0, psd_error_text(err));
        return;
    }
    if (!is_in_turn(step, self, &look)) {
        return;
    }
    why = ps_partition_why(step, self, request);
    if (why != PS_HELD_NOT) {
        (void)ps_partition_hold(step, self, request, why);
    } else if (!take(step, self, &look)) {
        ps_answer_refused(step, request, PSD_NOMEM, 0, "no memory");
    } else {
        ps_partition_advance(step, self);
    }
}
