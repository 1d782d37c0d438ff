/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A data message from random frames. The first byte says how many; each but
 * the last is a u16 length and its bytes, the last is the rest. What is
 * accepted has to encode to the same bytes, and to mean the same when its body
 * moves from the header's frame to frames of its own or back.
 */
#include <stdlib.h>

#include "base/cursor.h"
#include "support/parcel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void cut_frames(ps_bytes_t input, parcel_t *ret)
{
    ps_cursor_t cursor = ps_cursor_over(input);
    size_t n_frames = ps_cursor_u8(&cursor) % (PS_FRAMES_MAX + 2);

    while (ret->n_frames < n_frames) {
        size_t size = cursor.rest.size;

        if (ret->n_frames + 1 < n_frames) {
            size = ps_cursor_u16(&cursor);
            size = size < cursor.rest.size ? size : cursor.rest.size;
        }
        parcel_add(ret, ps_cursor_take(&cursor, size));
    }
}

static void check_same(const ps_message_t *message, const ps_body_t *body, size_t n_frames)
{
    parcel_t parcel = {0};
    ps_message_t again;
    ps_body_t again_body = {0};

    parcel_pack(&parcel, message, body, n_frames);
    check(ps_message_decode(parcel.frames, parcel.n_frames, &again, &again_body, NULL) == PSD_OK);
    check(parcel_same_message(message, &again));
    check(parcel_same_body(body, &again_body));
    parcel_done(&parcel);
}

static void check_accepted(const parcel_t *parcel, const ps_message_t *message,
                           const ps_body_t *body)
{
    uint8_t header[PS_HEADER_MAX];
    size_t size = ps_message_encode(message, header);
    size_t body_size = body->keys.size + body->index.size + body->values.size;
    size_t sum = 0;

    check(size <= parcel->frames[0].size);
    check(memcmp(header, parcel->frames[0].data, size) == 0);
    for (size_t i = 0; i < parcel->n_frames; i++) {
        sum += parcel->frames[i].size;
    }
    check(sum == size + body_size);
    check_same(message, body, 1);
    if (message->kind == PS_KIND_MOVED || ps_message_is_one_part(message)) {
        check_same(message, body, 2);
    } else if (message->kind == PS_KIND_PUSH || message->kind == PS_KIND_PULL ||
               message->kind == PS_KIND_VALUES) {
        check_same(message, body, 4);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    psd_error_t *err = psd_error_new();
    parcel_t parcel = {0};
    ps_message_t message;
    ps_body_t body = {0};
    psd_status_t rc = PSD_OK;

    cut_frames((ps_bytes_t){data, size}, &parcel);
    rc = ps_message_decode(parcel.frames, parcel.n_frames, &message, &body, err);
    if (rc == PSD_OK) {
        check_accepted(&parcel, &message, &body);
    } else {
        check(rc == PSD_PROTO || rc == PSD_VERSION);
        check(psd_error_text(err)[0] != '\0');
    }
    parcel_done(&parcel);
    psd_error_destroy(&err);
    return 0;
}
