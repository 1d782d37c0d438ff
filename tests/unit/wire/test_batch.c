/* SPDX-License-Identifier: Apache-2.0 */
/* wire/messages/batch.h: messages in one frame, and frames that only look so. */
#include "wire/messages/batch.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "support/fail_alloc.h"
#include "support/message_sample.h"
#include "support/parcel.h"

static const ps_message_t bye_1 = {.kind = PS_KIND_BYE, .bye = {.session = 1}};
static const ps_message_t bye_2 = {.kind = PS_KIND_BYE, .bye = {.session = 2}};

/* The bytes must not drift: two BYE of the sessions 1 and 2. */
static const uint8_t golden[] = {
    0x70, 0x73, 0x64, 0x31, 1,  0, 14, 0, 2, 0, 0, 0, 16, 0, 0,  0, 0x70, 0x73,
    0x64, 0x31, 1,    0,    13, 0, 1,  0, 0, 0, 0, 0, 0,  0, 16, 0, 0,    0,
    0x70, 0x73, 0x64, 0x31, 1,  0, 13, 0, 2, 0, 0, 0, 0,  0, 0,  0};

static psd_status_t read_all(ps_bytes_t frame, uint32_t *ret_n, psd_error_t *err)
{
    ps_batch_rest_t rest = {{NULL, 0}, 0};
    psd_status_t rc = ps_batch_open(frame, &rest, err);

    *ret_n = 0;
    while (rc == PSD_OK && rest.n > 0) {
        ps_bytes_t message = {NULL, 0};

        rc = ps_batch_next(&rest, &message, err);
        *ret_n += rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

Test(batch, bytes_of_two_messages)
{
    PSD_AUTO(ps_batch_done) ps_batch_t batch = {.n = 0};
    ps_bytes_t frame = {NULL, 0};
    uint32_t n = 0;

    cr_assert(ps_batch_add(&batch, &bye_1, NULL));
    cr_assert(ps_batch_add(&batch, &bye_2, NULL));
    frame = ps_batch_frame(&batch);
    cr_assert_eq(frame.size, sizeof golden);
    cr_assert_arr_eq(frame.data, golden, sizeof golden);
    cr_assert(ps_is_batch(frame));
    cr_assert_eq(read_all(frame, &n, NULL), PSD_OK);
    cr_assert_eq(n, 2);
}

Test(batch, one_message_goes_alone)
{
    PSD_AUTO(ps_batch_done) ps_batch_t batch = {.n = 0};
    uint8_t alone[PS_HEADER_MAX];
    size_t size = ps_message_encode(&bye_1, alone);
    ps_bytes_t frame = {NULL, 0};

    cr_assert(ps_batch_add(&batch, &bye_1, NULL));
    frame = ps_batch_frame(&batch);
    cr_assert_not(ps_is_batch(frame));
    cr_assert_eq(frame.size, size);
    cr_assert_arr_eq(frame.data, alone, size);
}

Test(batch, every_kind_comes_out_as_it_went_in)
{
    PSD_AUTO(ps_batch_done) ps_batch_t batch = {.n = 0};
    ps_batch_rest_t rest = {{NULL, 0}, 0};
    size_t n_kinds = sizeof SAMPLE_KINDS / sizeof SAMPLE_KINDS[0];

    for (size_t i = 0; i < n_kinds; i++) {
        ps_message_t message;
        ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;

        message_sample(SAMPLE_KINDS[i], &message, &body);
        payload = ps_payload_copy(body.keys, body.index, body.values);
        cr_assert_not_null(payload);
        cr_assert(ps_batch_add(&batch, &message, payload));
    }
    cr_assert_eq(ps_batch_open(ps_batch_frame(&batch), &rest, NULL), PSD_OK);
    cr_assert_eq(rest.n, n_kinds);
    for (size_t i = 0; i < n_kinds; i++) {
        ps_message_t message;
        ps_message_t got;
        ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
        ps_body_t got_body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
        ps_bytes_t frame = {NULL, 0};

        message_sample(SAMPLE_KINDS[i], &message, &body);
        cr_assert_eq(ps_batch_next(&rest, &frame, NULL), PSD_OK);
        cr_assert_eq(ps_message_decode(&frame, 1, &got, &got_body, NULL), PSD_OK);
        cr_assert(parcel_same_message(&message, &got));
        cr_assert(parcel_same_body(&body, &got_body));
    }
    cr_assert_eq(rest.n, 0);
}

Test(batch, cleared_it_is_empty_and_takes_more)
{
    PSD_AUTO(ps_batch_done) ps_batch_t batch = {.n = 0};

    cr_assert(ps_batch_add(&batch, &bye_1, NULL));
    ps_batch_clear(&batch);
    cr_assert_eq(batch.n, 0);
    cr_assert(ps_batch_add(&batch, &bye_1, NULL));
    cr_assert(ps_batch_add(&batch, &bye_2, NULL));
    cr_assert_arr_eq(ps_batch_frame(&batch).data, golden, sizeof golden);
}

/* Changes one number of the golden batch; what is then said of it. */
static void expect_refused(size_t at, uint8_t value, psd_status_t status, const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    uint8_t bytes[sizeof golden];
    uint32_t n = 0;

    memcpy(bytes, golden, sizeof golden);
    bytes[at] = value;
    cr_assert_eq(read_all((ps_bytes_t){bytes, sizeof bytes}, &n, err), status);
    cr_assert_str_eq(psd_error_text(err), text);
}

Test(batch, refuses_what_is_none_by_name)
{
    expect_refused(0, 0x71, PSD_PROTO, "signature is 0x31647371; allowed: 0x31647370");
    expect_refused(4, 9, PSD_VERSION, "version is 9; allowed: 1..1");
    expect_refused(7, 1, PSD_PROTO, "BATCH.flags is 1; allowed: 0");
    expect_refused(8, 0, PSD_PROTO, "BATCH.n is 0; allowed: 1..3 as 40 bytes follow");
    expect_refused(8, 4, PSD_PROTO, "BATCH.n is 4; allowed: 1..3 as 40 bytes follow");
    expect_refused(8, 1, PSD_PROTO, "BATCH has 20 bytes after its last message");
    expect_refused(8, 3, PSD_PROTO,
                   "a message in a BATCH is 0 bytes; allowed: 8 and up, and 0 "
                   "are left");
    expect_refused(12, 7, PSD_PROTO,
                   "a message in a BATCH is 7 bytes; allowed: 8 and up, and 40 "
                   "are left");
    expect_refused(12, 37, PSD_PROTO,
                   "a message in a BATCH is 37 bytes; allowed: 8 and up, and "
                   "40 are left");
    expect_refused(22, PS_BATCH_KIND, PSD_PROTO, "a BATCH is inside a BATCH");
}

Test(batch, cut_anywhere_is_refused)
{
    for (size_t size = 0; size < sizeof golden; size++) {
        PSD_AUTO(parcel_done) parcel_t parcel = {0};
        uint32_t n = 0;

        parcel_add(&parcel, (ps_bytes_t){golden, size});
        cr_assert_eq(read_all(parcel.frames[0], &n, NULL), PSD_PROTO);
        cr_assert_leq(n, 1);
    }
}

static psd_status_t add_two(void *fixture)
{
    PSD_AUTO(ps_batch_done) ps_batch_t batch = {.n = 0};

    (void)fixture;
    if (!ps_batch_add(&batch, &bye_1, NULL)) {
        cr_assert_eq(batch.n, 0);
        return PSD_NOMEM;
    }
    return ps_batch_add(&batch, &bye_2, NULL) ? PSD_OK : PSD_NOMEM;
}

Test(batch, no_memory_changes_nothing)
{
    const char *complaint = fail_alloc_sweep(add_two, NULL);

    cr_assert_null(complaint, "%s", complaint);
}
