/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes as a batch: every message in it lies inside of the frame, and
 * those that can be decoded make the same batch again. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "support/parcel.h"
#include "wire/messages/batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* Takes all out; true when every one of them was a message. */
static bool take_all(ps_batch_rest_t *rest, ps_batch_t *again)
{
    bool all = true;

    while (rest->n > 0) {
        ps_bytes_t frame = {NULL, 0};
        ps_message_t message;
        ps_body_t body = {{NULL, 0}, {NULL, 0}, {NULL, 0}};
        ps_payload_t *payload = NULL;

        if (ps_batch_next(rest, &frame, NULL) != PSD_OK) {
            check(rest->n == 0);
            return false;
        }
        if (ps_message_decode(&frame, 1, &message, &body, NULL) != PSD_OK) {
            all = false;
            continue;
        }
        payload = ps_payload_copy(body.keys, body.index, body.values);
        check(payload != NULL && ps_batch_add(again, &message, payload));
        ps_payload_destroy(&payload);
    }
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(parcel_done) parcel_t parcel = {0};
    PSD_AUTO(ps_batch_done) ps_batch_t again = {.n = 0};
    ps_batch_rest_t rest = {{NULL, 0}, 0};

    parcel_add(&parcel, (ps_bytes_t){data, size});
    if (ps_batch_open(parcel.frames[0], &rest, NULL) == PSD_OK && take_all(&rest, &again) &&
        again.n > 1) {
        ps_bytes_t frame = ps_batch_frame(&again);

        check(data[6] != PS_BATCH_KIND ||
              (frame.size == size && memcmp(frame.data, data, size) == 0));
    }
    return 0;
}
