/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/session/assembly.h: cutting values into pieces and putting them together. */
#include "protocol/session/assembly.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "support/fail_alloc.h"

#define LIMIT 4096

static ps_message_t push_of(uint64_t request, uint64_t n_values)
{
    ps_message_t message = {
        .kind = PS_KIND_PUSH, .flags = PS_FLAG_MORE, .push = {.request = request}};
    ps_slice_t slice = {.rows = PS_ROWS_RANGE,
                        .type = PS_TYPE_I64,
                        .n_rows = n_values,
                        .n_cols = 1,
                        .n_values = n_values};

    ps_message_set_slice(&message, &slice);
    return message;
}

static ps_message_t chunk_of(uint64_t request, uint64_t offset)
{
    return (ps_message_t){.kind = PS_KIND_CHUNK, .chunk = {.request = request, .offset = offset}};
}

static ps_payload_t *bytes_of(uint8_t fill, size_t size)
{
    uint8_t bytes[512];

    cr_assert_leq(size, sizeof bytes);
    memset(bytes, fill, sizeof bytes);
    return ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){bytes, size});
}

/* Adds and expects it to be taken as one piece of many. */
static void add_piece(ps_assembly_t *assembly, ps_message_t message, ps_payload_t *payload)
{
    bool whole = true;

    cr_assert_eq(ps_assembly_add(assembly, &message, &payload, LIMIT, &whole, NULL), PSD_OK);
    cr_assert_not(whole);
    cr_assert_null(payload);
}

static void assert_refused(ps_assembly_t *assembly, ps_message_t message, size_t size,
                           psd_status_t status, const char *wanted)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(1, size);
    bool whole = true;

    cr_assert_eq(ps_assembly_add(assembly, &message, &payload, LIMIT, &whole, err), status);
    cr_assert_str_eq(psd_error_text(err), wanted);
    cr_assert_not_null(payload);
    cr_assert_eq(assembly->n_open, 0);
    cr_assert_eq(assembly->bytes, 0);
    cr_assert_eq(assembly->n_pieces, 0);
}

Test(assembly, message_in_one_piece_is_whole_at_once)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(1, 16);
    const ps_payload_t *same = payload;
    ps_message_t message = push_of(4, 2);
    bool whole = false;

    message.flags = 0;
    cr_assert_eq(ps_assembly_add(&assembly, &message, &payload, 1, &whole, NULL), PSD_OK);
    cr_assert(whole);
    cr_assert_eq(payload, same);
}

Test(assembly, pieces_become_the_spans_of_one_payload)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(3, 8);
    ps_message_t message = chunk_of(4, 24);
    bool whole = false;

    add_piece(&assembly, push_of(4, 4), bytes_of(1, 16));
    add_piece(&assembly, chunk_of(4, 16), bytes_of(2, 8));
    cr_assert_eq(assembly.n_open, 1);
    cr_assert_eq(assembly.bytes, 24);
    cr_assert_eq(ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL), PSD_OK);
    cr_assert(whole);
    cr_assert_eq(message.kind, PS_KIND_PUSH);
    cr_assert_eq(message.flags, 0);
    cr_assert_eq(message.push.request, 4);
    cr_assert_eq(payload->n_spans, 3);
    cr_assert_eq(ps_payload_size(payload), 32);
    cr_assert_eq(payload->spans[0].size, 16);
    cr_assert_eq(payload->spans[1].data[0], 2);
    cr_assert_eq(payload->spans[2].data[7], 3);
    cr_assert_eq(assembly.n_open, 0);
    cr_assert_eq(assembly.bytes, 0);
    cr_assert_eq(assembly.n_pieces, 0);
}

Test(assembly, keys_and_index_are_those_of_the_first_piece)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    static const uint8_t keys[16] = {1};
    static const uint8_t values[8] = {2};
    ps_message_t message = push_of(4, 2);
    ps_payload_t *payload =
        ps_payload_copy((ps_bytes_t){keys, 16}, (ps_bytes_t){0}, (ps_bytes_t){values, 8});
    bool whole = true;

    message.push.rows = PS_ROWS_LIST;
    add_piece(&assembly, message, payload);
    payload = bytes_of(3, 8);
    message = chunk_of(4, 8);
    cr_assert_eq(ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL), PSD_OK);
    cr_assert(whole);
    cr_assert_eq(payload->keys.size, 16);
    cr_assert_eq(payload->keys.data[0], 1);
    cr_assert_eq(payload->n_spans, 2);
    ps_payload_destroy(&payload);
}

Test(assembly, requests_do_not_mix)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    ps_payload_t *payload = bytes_of(5, 8);
    ps_message_t message = chunk_of(2, 8);
    bool whole = false;

    add_piece(&assembly, push_of(1, 2), bytes_of(1, 8));
    add_piece(&assembly, push_of(2, 2), bytes_of(2, 8));
    add_piece(&assembly, push_of(3, 2), NULL); /* no values in the first */
    cr_assert_eq(ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL), PSD_OK);
    cr_assert(whole);
    cr_assert_eq(message.push.request, 2);
    cr_assert_eq(payload->spans[0].data[0], 2);
    cr_assert_eq(assembly.n_open, 2);
    ps_payload_destroy(&payload);
}

Test(assembly, new_first_message_drops_the_old_pieces)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};

    add_piece(&assembly, push_of(1, 4), bytes_of(1, 24));
    add_piece(&assembly, push_of(1, 4), bytes_of(1, 8));
    cr_assert_eq(assembly.n_open, 1);
    cr_assert_eq(assembly.bytes, 8);
}

Test(assembly, bad_pieces_drop_the_request)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    ps_message_t parked = {.kind = PS_KIND_PARKED, .flags = PS_FLAG_MORE};

    add_piece(&assembly, push_of(1, 4), bytes_of(1, 8));
    assert_refused(&assembly, chunk_of(1, 16), 8, PSD_PROTO,
                   "CHUNK of 8 bytes at offset 16; expected at 8, at most 24 "
                   "bytes of whole values");
    add_piece(&assembly, push_of(1, 4), bytes_of(1, 8));
    assert_refused(&assembly, chunk_of(1, 8), 32, PSD_PROTO,
                   "CHUNK of 32 bytes at offset 8; expected at 8, at most 24 "
                   "bytes of whole values");
    add_piece(&assembly, push_of(1, 4), bytes_of(1, 8));
    assert_refused(&assembly, chunk_of(1, 8), 12, PSD_PROTO,
                   "CHUNK of 12 bytes at offset 8; expected at 8, at most 24 "
                   "bytes of whole values");
    add_piece(&assembly, push_of(1, 4), bytes_of(1, 8));
    assert_refused(&assembly, chunk_of(1, 8), 0, PSD_PROTO,
                   "CHUNK of 0 bytes at offset 8; expected at 8, at most 24 "
                   "bytes of whole values");
    assert_refused(&assembly, push_of(1, 1), 8, PSD_PROTO, "PUSH with MORE has no values to come");
    assert_refused(&assembly, parked, 8, PSD_PROTO, "PARKED with MORE has no values");
}

/* Such a CHUNK was PSD_PROTO, which ends a client for good: it comes when a
 * connection broke amid a message and ZeroMQ sent the rest on the next one. */
Test(assembly, chunk_without_a_beginning_is_dropped)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    ps_payload_t *payload = bytes_of(1, 8);
    ps_message_t message = chunk_of(1, 8);
    bool whole = true;

    cr_assert_eq(ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL), PSD_OK);
    cr_assert_not(whole);
    cr_assert_null(payload);
    cr_assert_eq(assembly.n_open, 0);
    cr_assert_eq(assembly.bytes, 0);
}

Test(assembly, what_is_announced_must_fit_before_it_is_kept)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};

    assert_refused(&assembly, push_of(1, 10000), 8, PSD_LIMIT,
                   "80000 bytes of values in pieces; at most 4096 bytes may "
                   "be unfinished");
}

Test(assembly, unfinished_messages_share_one_limit)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    uint64_t request = 1;
    bool whole = true;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK) {
        ps_message_t message = push_of(request++, 100);
        ps_payload_t *payload = bytes_of(1, 512);

        rc = ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL);
        ps_payload_destroy(&payload);
    }
    cr_assert_eq(rc, PSD_LIMIT);
    cr_assert_eq(assembly.bytes, LIMIT);
}

/* Each message in pieces costs memory of ours, however few its bytes are. */
Test(assembly, many_empty_beginnings_are_limited_too)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    psd_status_t rc = PSD_OK;
    bool whole = true;

    for (uint64_t i = 0; i < 100000 && rc == PSD_OK; i++) {
        ps_message_t message = push_of(i, 2);
        ps_payload_t *payload = NULL;

        rc = ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL);
    }
    cr_assert_eq(rc, PSD_LIMIT);
    cr_assert_lt(assembly.n_open, 1000);
}

static psd_status_t assemble(void *fixture)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    bool whole = false;

    (void)fixture;
    for (uint64_t i = 0; i < 8; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = bytes_of(1, 8);
        ps_message_t message = i == 0 ? push_of(1, 8) : chunk_of(1, 8 * i);
        psd_status_t rc = PSD_NOMEM;

        if (payload != NULL) {
            rc = ps_assembly_add(&assembly, &message, &payload, LIMIT, &whole, NULL);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    cr_assert(whole);
    return PSD_OK;
}

Test(assembly, out_of_memory_drops_the_request)
{
    cr_assert_null(fail_alloc_sweep(assemble, NULL));
}

Test(assembly, pieces_are_cut_at_span_ends_and_cache_lines)
{
    static const uint8_t bytes[300];
    ps_bytes_t spans[] = {{bytes, 200}, {bytes + 200, 40}};
    ps_payload_t payload = {.spans = spans, .n_spans = 2};

    cr_assert_eq(ps_piece_at(&payload, 0, 150).size, 128);
    cr_assert_eq(ps_piece_at(&payload, 128, 150).size, 72);
    cr_assert_eq(ps_piece_at(&payload, 200, 150).data, bytes + 200);
    cr_assert_eq(ps_piece_at(&payload, 200, 150).size, 40);
    cr_assert_eq(ps_piece_at(&payload, 240, 150).size, 0);
    cr_assert_eq(ps_piece_at(&payload, 0, 20).size, 16);
    cr_assert_eq(ps_piece_at(&payload, 0, 0).size, 8);
    cr_assert_eq(ps_piece_at(NULL, 0, 64).size, 0);
}

/* Who keeps it has to copy it then. */
Test(assembly, is_shared_when_a_piece_is)
{
    for (int shared = 0; shared < 3; shared++) {
        PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
        ps_message_t message = push_of(3, 16);
        ps_message_t chunk = chunk_of(3, 64);
        ps_payload_t *first = bytes_of(0, 64);
        ps_payload_t *rest = bytes_of(1, 64);
        bool whole = false;

        first->shared = shared == 1;
        rest->shared = shared == 2;
        add_piece(&assembly, message, first);
        cr_assert_eq(ps_assembly_add(&assembly, &chunk, &rest, LIMIT, &whole, NULL), PSD_OK);
        cr_assert(whole);
        cr_assert_eq(rest->shared, shared > 0);
        ps_payload_destroy(&rest);
    }
}

/* How long a coded body is its own head says. */
Test(assembly, coded_bodies_come_in_pieces)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    uint8_t body[128] = {0};
    ps_message_t message = push_of(3, 2);
    ps_message_t chunk = chunk_of(3, 64);
    ps_payload_t *first = NULL;
    ps_payload_t *rest = NULL;
    bool whole = false;

    body[24] = 96; /* bytes of values behind the head */
    message.flags |= PS_FLAG_CODED;
    first = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){body, 64});
    rest = ps_payload_copy((ps_bytes_t){0}, (ps_bytes_t){0}, (ps_bytes_t){body + 64, 64});
    add_piece(&assembly, message, first);
    cr_assert_eq(ps_assembly_add(&assembly, &chunk, &rest, LIMIT, &whole, NULL), PSD_OK);
    cr_assert(whole);
    cr_assert_eq(chunk.kind, PS_KIND_PUSH);
    cr_assert_eq(chunk.flags, PS_FLAG_CODED);
    cr_assert_eq(ps_payload_size(rest), 128);
    ps_payload_destroy(&rest);
}

Test(assembly, coded_piece_without_its_head_is_refused)
{
    PSD_AUTO(ps_assembly_done) ps_assembly_t assembly = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *piece = bytes_of(0, 24);
    ps_message_t message = push_of(3, 2);
    bool whole = false;

    message.flags |= PS_FLAG_CODED;
    cr_assert_eq(ps_assembly_add(&assembly, &message, &piece, LIMIT, &whole, err), PSD_PROTO);
    cr_assert_str_eq(psd_error_text(err), "coded body is 24 bytes; its head needs 32");
}

Test(assembly, names_each_request_of_which_a_piece_came_once)
{
    ps_assembly_t assembly = {0};
    uint64_t request = 0;

    cr_expect_not(ps_assembly_next_fresh(&assembly, &request));
    add_piece(&assembly, push_of(7, 32), bytes_of(1, 64));
    add_piece(&assembly, push_of(8, 32), bytes_of(1, 64));
    cr_expect(ps_assembly_next_fresh(&assembly, &request));
    cr_expect_eq(request, 8);
    cr_expect(ps_assembly_next_fresh(&assembly, &request));
    cr_expect_eq(request, 7);
    cr_expect_not(ps_assembly_next_fresh(&assembly, &request));
    add_piece(&assembly, chunk_of(7, 64), bytes_of(1, 64));
    cr_expect(ps_assembly_next_fresh(&assembly, &request));
    cr_expect_eq(request, 7);
    cr_expect_not(ps_assembly_next_fresh(&assembly, &request));
    ps_assembly_done(&assembly);
}
