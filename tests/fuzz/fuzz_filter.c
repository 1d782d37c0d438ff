/* SPDX-License-Identifier: Apache-2.0 */
/* Coded bodies from random bytes: the first twelve say what message they belong
 * to. What is accepted has parts of the right sizes, and goes through a filter
 * again without loss. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "wire/filters/filter_code.h"
#include "wire/messages/message_body.h"

#define LIMIT_BYTES (UINT64_C(1) << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Any slice that ps_message_decode lets through. */
static ps_message_t read_message(ps_cursor_t *cursor)
{
    static const ps_kind_t kinds[] = {PS_KIND_PUSH, PS_KIND_PULL, PS_KIND_VALUES};
    ps_message_t message = {.kind = kinds[ps_cursor_u8(cursor) % 3], .flags = PS_FLAG_CODED};
    uint8_t shape = ps_cursor_u8(cursor);
    ps_slice_t slice = {
        .rows = (ps_rows_kind_t)(shape & 3),
        .layout = (ps_layout_t)(shape >> 2 & 1),
        .cols = (ps_cols_kind_t)((shape >> 3 & 3) % 3),
        .type = (ps_type_t)(PS_TYPE_I32 + (shape >> 5 & 3)),
        .n_rows = ps_cursor_u32(cursor),
        .n_cols = ps_cursor_u16(cursor),
        .n_values = ps_cursor_u32(cursor),
    };

    if (slice.layout == PS_LAYOUT_SPARSE) {
        slice.n_cols = 0;
        slice.cols = PS_COLS_ALL;
    }
    if (message.kind == PS_KIND_PULL) {
        slice.n_values = 0;
    }
    ps_message_set_slice(&message, &slice);
    return message;
}

static ps_bytes_t values_of(const ps_payload_t *payload)
{
    return payload == NULL || payload->n_spans == 0 ? (ps_bytes_t){NULL, 0} : payload->spans[0];
}

static void check_sizes(const ps_message_t *message, const ps_payload_t *plain)
{
    uint64_t keys = 0;
    uint64_t index = 0;
    uint64_t values = 0;

    check(ps_message_sizes(message, &keys, &index, &values, NULL) == PSD_OK);
    check(keys + index + values <= LIMIT_BYTES);
    check(plain != NULL || keys + index + values == 0);
    check(plain == NULL || (plain->keys.size == keys && plain->index.size == index &&
                            values_of(plain).size == values));
}

static void check_same(ps_bytes_t a, ps_bytes_t b)
{
    check(a.size == b.size);
    check(a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Without rounding everything comes back. */
static void check_again(ps_coder_t *coder, ps_message_t *message, const ps_payload_t *plain,
                        ps_filter_t filter)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *coded = NULL;
    PSD_AUTO(ps_payload_destroy) ps_payload_t *back = NULL;

    filter.values_as = PS_VALUES_RAW;
    check(ps_coder_encode(coder, &filter, message, plain, &coded, NULL) == PSD_OK);
    if (coded == NULL) {
        return;
    }
    check(ps_coder_decode(coder, message, coded, LIMIT_BYTES, &filter, &back, NULL) == PSD_OK);
    check((back == NULL) == (plain == NULL));
    if (plain != NULL) {
        check_same(back->keys, plain->keys);
        check_same(back->index, plain->index);
        check_same(values_of(back), values_of(plain));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ps_cursor_t cursor = ps_cursor_over((ps_bytes_t){data, size});
    ps_message_t message = read_message(&cursor);
    PSD_AUTO(ps_coder_destroy) ps_coder_t *coder = ps_coder_new(1);
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_payload_destroy) ps_payload_t *plain = NULL;
    PSD_AUTO(ps_payload_destroy)
    ps_payload_t *body = ps_payload_copy((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, cursor.rest);
    ps_filter_t filter = {0};
    psd_status_t rc = ps_coder_decode(coder, &message, body, LIMIT_BYTES, &filter, &plain, err);

    if (rc == PSD_OK) {
        check_sizes(&message, plain);
        check_again(coder, &message, plain, filter);
    } else {
        check(rc == PSD_PROTO || rc == PSD_LIMIT);
        check(plain == NULL && psd_error_text(err)[0] != '\0');
    }
    return 0;
}
