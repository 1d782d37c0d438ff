/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a bundle: the counts of contributors and spans, u16 each, then
 * its bytes. What is accepted writes the same bytes again, and keeps the rules.
 * A shard with a table of its type then gets it as a message, twice: it takes all of it, once,
 * or nothing; and nothing that a relay would find to be wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "protocol/relay/relay_message.h"
#include "protocol/relay/relay_verify.h"
#include "protocol/shard/shard.h"
#include "wire/records/bundle.h"

#define WORKERS 4
#define MEMBERS 2
#define CONN 1

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Each contributor is in the one span that has its worker's position, or in
 * none. */
static void check_rules(const ps_bundle_t *bundle)
{
    for (uint16_t i = 0; i < bundle->n_from; i++) {
        uint32_t worker = bundle->from[i].worker;
        unsigned n = 0;

        for (uint16_t k = 0; k < bundle->n_spans; k++) {
            const ps_bundle_span_t *span = &bundle->spans[k];
            bool is_of = i >= span->from && i - span->from < span->n_from;

            check(is_of == (worker >= span->first && worker - span->first < span->n));
            n += is_of ? 1 : 0;
        }
        check(n <= 1);
    }
}

static void open_shard(ps_type_t type, ps_shard_t **ret_shard, ps_outbox_t *outbox)
{
    const ps_shard_args_t args = {.incarnation = 77,
                                  .credit_requests = 8,
                                  .credit_bytes = 1 << 20,
                                  .chunk_bytes = 1 << 20,
                                  .slice_bytes = 1 << 20,
                                  .held_bytes = 1 << 20,
                                  .sessions_max = 64};
    const ps_route_t route = {.epoch = 5, .incarnation = 77};
    ps_worker_t workers[WORKERS];
    const ps_job_t job = {
        .id = 3, .name = "lr", .version = 1, .workers = workers, .n_workers = WORKERS};
    ps_table_spec_t spec;

    ps_table_spec_init(&spec);
    memcpy(spec.name, "w", 2);
    spec.type = type;
    spec.n_rows = 100;
    spec.n_cols = 4;
    spec.n_partitions = 1;
    spec.n_col_slices = 1;
    spec.combine = PS_COMBINE_CLOCK_SUM;
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = (ps_worker_t){
            .worker = i, .state = PS_WORKER_RUNNING, .n_members = MEMBERS, .joins = 1};
    }
    check(
        ps_shard_new(&args, ret_shard, NULL) == PSD_OK &&
        ps_shard_step(
            *ret_shard,
            &(ps_event_t){
                .kind = PS_EVENT_TABLE, .table = 1, .spec = &spec, .routes = &route, .n_routes = 1},
            outbox, NULL) == PSD_OK &&
        ps_shard_step(*ret_shard, &(ps_event_t){.kind = PS_EVENT_JOB, .job = &job}, outbox, NULL) ==
            PSD_OK);
    for (uint32_t i = 0; i <= WORKERS * MEMBERS; i++) {
        ps_message_t hello = {.kind = PS_KIND_HELLO,
                              .hello = {.version_min = 1,
                                        .version_max = 1,
                                        .client = {{(uint8_t)(i + 1)}},
                                        .incarnation = 77,
                                        .session = i + 1}};

        check(ps_shard_step(
                  *ret_shard,
                  &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN + i, .message = &hello},
                  outbox, NULL) == PSD_OK);
    }
    for (uint32_t i = 0; i < WORKERS * MEMBERS; i++) {
        ps_message_t look = {.kind = PS_KIND_PULL,
                             .pull = {.request = 1,
                                      .table = 1,
                                      .epoch = 5,
                                      .job = 3,
                                      .worker = i / MEMBERS,
                                      .member = i % MEMBERS,
                                      .joins = 1,
                                      .rows = PS_ROWS_RANGE,
                                      .type = (uint8_t)type,
                                      .n_rows = 1,
                                      .n_cols = 4}};

        check(ps_shard_step(
                  *ret_shard,
                  &(ps_event_t){.kind = PS_EVENT_MESSAGE, .conn = CONN + i, .message = &look},
                  outbox, NULL) == PSD_OK);
    }
    ps_outbox_clear(outbox);
}

/* How many answers of that kind the message gets, for its sender or contributors. */
static size_t count(const ps_outbox_t *outbox, ps_kind_t kind, uint64_t request)
{
    size_t n = 0;

    for (size_t i = 0; i < outbox->n_effects; i++) {
        const ps_effect_t *effect = &outbox->effects[i];

        n += effect->kind == PS_EFFECT_SEND && effect->message.kind == kind &&
                     (kind == PS_KIND_REFUSED || effect->message.ack.request == request)
                 ? 1
                 : 0;
    }
    return n;
}

static bool is_right(const ps_msg_bundle_t *message, ps_payload_t *payload, ps_type_t type)
{
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t lot = {.from = NULL};

    check(ps_relay_lot_read(message, payload, &lot, NULL) == PSD_OK);
    return ps_relay_lot_is_right(&lot, type, 0);
}

static void bring(ps_bytes_t bytes, const ps_bundle_t *bundle)
{
    PSD_AUTO(ps_outbox_done) ps_outbox_t outbox = {.n_effects = 0};
    PSD_AUTO(ps_shard_destroy) ps_shard_t *shard = NULL;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *payload = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, bytes);
    const ps_message_t message = {.kind = PS_KIND_BUNDLE,
                                  .bundle = {.request = 9,
                                             .table = 1,
                                             .epoch = 5,
                                             .job = 3,
                                             .joins = 1,
                                             .n_from = bundle->n_from,
                                             .n_spans = bundle->n_spans}};
    const ps_event_t event = {
        .kind = PS_EVENT_MESSAGE, .conn = CONN, .message = &message, .payload = payload};
    const ps_type_t type = bundle->n_spans > 0 ? bundle->spans[0].slice.type : PS_TYPE_F32;
    size_t n_first = 0;

    check(payload != NULL);
    open_shard(type, &shard, &outbox);
    check(ps_shard_step(shard, &event, &outbox, NULL) == PSD_OK);
    check(count(&outbox, PS_KIND_ACK, 9) + count(&outbox, PS_KIND_REFUSED, 9) == 1);
    n_first = count(&outbox, PS_KIND_ACK, 0);
    check((n_first > 0) == (count(&outbox, PS_KIND_ACK, 9) == 1));
    check(n_first == 0 || is_right(&message.bundle, payload, type));
    ps_outbox_clear(&outbox);
    if (n_first > 0) {
        check(ps_shard_step(shard, &event, &outbox, NULL) == PSD_OK);
        check(count(&outbox, PS_KIND_ACK, 9) == 1);
        check(count(&outbox, PS_KIND_ACK, 0) == n_first);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t bundle = {.from = NULL};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t *exact = NULL;
    uint8_t *again = NULL;
    size_t n = 0;

    if (size < 4) {
        return 0;
    }
    exact = ps_alloc_raw(size - 4, 1); /* so that reading beyond is seen */
    check(exact != NULL);
    memcpy(exact, data + 4, size - 4);
    if (ps_bundle_read((ps_bytes_t){exact, size - 4}, ps_load_u16(data), ps_load_u16(data + 2),
                       &bundle, err) == PSD_OK) {
        check(ps_bundle_size(&bundle, &n) && n == size - 4);
        again = ps_alloc_raw(n, 1);
        check(again != NULL);
        ps_bundle_write(&bundle, again);
        check(memcmp(again, exact, n) == 0);
        check_rules(&bundle);
        bring((ps_bytes_t){exact, size - 4}, &bundle);
        ps_free(again);
    } else {
        check(psd_error_text(err)[0] != '\0');
    }
    ps_free(exact);
    return 0;
}
