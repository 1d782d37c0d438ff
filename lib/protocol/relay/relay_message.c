/* SPDX-License-Identifier: Apache-2.0 */
/* Lots in bodies of bundles; deeds and news in messages. */
#include "protocol/relay/relay_message.h"

#include <assert.h>
#include <stdio.h>

#include "base/alloc.h"

static_assert((int)PS_RELAYED_TAKEN == (int)PS_RELAY_TAKEN &&
                  (int)PS_RELAYED_WAITS == (int)PS_RELAY_WAITS &&
                  (int)PS_RELAYED_DONE == (int)PS_RELAY_DONE &&
                  (int)PS_RELAYED_RETURNED == (int)PS_RELAY_RETURNED,
              "news have the same numbers everywhere");
static_assert(PS_RELAYED_NODES == PS_OVERLAY_NODES && PS_RELAYED_NOBODY == PS_RELAY_NOBODY,
              "who is waited for, too");

/* ---- lots ---- */

psd_status_t ps_relay_lot_read(const ps_msg_bundle_t *message, ps_payload_t *payload,
                               ps_relay_lot_t *ret_lot, psd_error_t *err)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t lot = {.from = NULL};
    psd_status_t rc = ps_bundle_open(payload, message->n_from, message->n_spans, &bundle, err);

    if (rc != PSD_OK) {
        return rc;
    }
    lot.spans = ps_alloc(bundle.n_spans, sizeof *lot.spans);
    while (lot.spans != NULL && lot.n_spans < bundle.n_spans) {
        const ps_bundle_span_t *span = &bundle.spans[lot.n_spans];
        ps_payload_t *part = ps_bundle_span_payload(span, payload);

        if (part == NULL) {
            break;
        }
        lot.spans[lot.n_spans++] = (ps_relay_span_t){
            .first = span->first, .n = span->n, .slice = span->slice, .payload = part};
    }
    if (lot.spans == NULL || lot.n_spans < bundle.n_spans) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a bundle");
    }
    lot.from = bundle.from;
    lot.n_from = bundle.n_from;
    bundle.from = NULL;
    *ret_lot = lot;
    lot = (ps_relay_lot_t){.from = NULL};
    return PSD_OK;
}

/* Its values may have come in pieces: a bundle has them in one. */
static ps_payload_t *whole_of(ps_payload_t *payload)
{
    return payload->n_spans <= 1 ? ps_payload_keep(payload) : ps_payload_clone(payload);
}

/* The contributors at the span's positions. */
static void find_from(const ps_relay_lot_t *lot, ps_bundle_span_t *span)
{
    for (uint16_t i = 0; i < lot->n_from; i++) {
        uint32_t worker = lot->from[i].worker;

        if (worker >= span->first && worker - span->first < span->n) {
            span->from = span->n_from == 0 ? i : span->from;
            span->n_from++;
        }
    }
}

static psd_status_t write_bundle(const ps_bundle_t *bundle, ps_payload_t **ret_payload,
                                 psd_error_t *err)
{
    uint8_t *bytes = NULL;
    size_t size = 0;

    if (!ps_bundle_size(bundle, &size)) {
        return psd_error_set(err, PSD_LIMIT, "a bundle whose bytes cannot be counted");
    }
    *ret_payload = ps_payload_room(0, 0, size, &bytes);
    if (*ret_payload == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a bundle of %zu bytes", size);
    }
    ps_bundle_write(bundle, bytes);
    return PSD_OK;
}

psd_status_t ps_relay_lot_write(const ps_relay_lot_t *lot, ps_payload_t **ret_payload,
                                psd_error_t *err)
{
    ps_bundle_span_t spans[PS_BUNDLE_SPANS_MAX];
    ps_payload_t *payloads[PS_BUNDLE_SPANS_MAX] = {NULL};
    const ps_bundle_t bundle = {
        .from = lot->from, .spans = spans, .n_from = lot->n_from, .n_spans = lot->n_spans};
    psd_status_t rc = PSD_OK;

    if (lot->n_spans > PS_BUNDLE_SPANS_MAX || lot->n_from > PS_BUNDLE_FROM_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%u spans of %u contributors; a bundle has %d and %d",
                             lot->n_spans, lot->n_from, PS_BUNDLE_SPANS_MAX, PS_BUNDLE_FROM_MAX);
    }
    for (uint16_t i = 0; rc == PSD_OK && i < lot->n_spans; i++) {
        payloads[i] = whole_of(lot->spans[i].payload);
        if (payloads[i] == NULL) {
            rc = psd_error_set(err, PSD_NOMEM, "no memory for a span");
            break;
        }
        spans[i] = (ps_bundle_span_t){
            .first = lot->spans[i].first,
            .n = lot->spans[i].n,
            .slice = lot->spans[i].slice,
            .body = {payloads[i]->keys, payloads[i]->index,
                     payloads[i]->n_spans > 0 ? payloads[i]->spans[0] : (ps_bytes_t){NULL, 0}}};
        find_from(lot, &spans[i]);
    }
    if (rc == PSD_OK) {
        rc = write_bundle(&bundle, ret_payload, err);
    }
    for (uint16_t i = 0; i < lot->n_spans; i++) {
        ps_payload_destroy(&payloads[i]);
    }
    return rc;
}

/* ---- messages ---- */

void ps_relay_bundle(const ps_relay_deed_t *deed, const ps_relay_speaker_t *speaker, uint64_t epoch,
                     ps_message_t *ret_message)
{
    ret_message->kind = PS_KIND_BUNDLE;
    ret_message->flags = 0;
    ret_message->bundle = (ps_msg_bundle_t){.request = deed->number,
                                            .table = deed->key.table,
                                            .partition = deed->key.partition,
                                            .epoch = epoch,
                                            .job = speaker->job,
                                            .worker = speaker->worker,
                                            .member = speaker->member,
                                            .joins = speaker->joins,
                                            .clock = deed->key.clock,
                                            .plan = deed->plan,
                                            .timeout_ms = PS_RELAY_SAY_MS,
                                            .n_from = deed->lot->n_from,
                                            .n_spans = deed->lot->n_spans};
}

void ps_relay_relayed(const ps_relay_deed_t *deed, ps_message_t *ret_message)
{
    const char *text = deed->reason == NULL ? "" : deed->reason;
    ps_msg_relayed_t *relayed = &ret_message->relayed;

    ret_message->kind = PS_KIND_RELAYED;
    ret_message->flags = 0;
    *relayed = (ps_msg_relayed_t){.request = deed->number,
                                  .table = deed->key.table,
                                  .partition = deed->key.partition,
                                  .news = (uint8_t)deed->news,
                                  .waits_for = deed->news == PS_RELAY_WAITS ? deed->waits_for : 0};
    (void)snprintf(relayed->text, sizeof relayed->text, "%s", text);
}

bool ps_relay_news(const ps_message_t *message, uint64_t *ret_number, ps_relay_news_t *ret_news)
{
    switch ((int)message->kind) {
    case PS_KIND_ACK:
        *ret_number = message->ack.request;
        *ret_news = PS_RELAY_DONE;
        break;
    case PS_KIND_PARKED:
        *ret_number = message->parked.request;
        *ret_news = PS_RELAY_WAITS;
        break;
    case PS_KIND_REFUSED:
        *ret_number = message->refused.request;
        *ret_news = PS_RELAY_RETURNED;
        break;
    case PS_KIND_MOVED:
        *ret_number = message->moved.request;
        *ret_news = PS_RELAY_RETURNED;
        break;
    case PS_KIND_RELAYED:
        *ret_number = message->relayed.request;
        *ret_news = (ps_relay_news_t)message->relayed.news;
        break;
    default:
        return false;
    }
    return *ret_number != 0; /* 0: an origin's own answer */
}
