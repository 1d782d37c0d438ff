/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a record, as they come and with the checksum put right (which
 * no chance would find). What is accepted writes the same bytes again.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"
#include "wire/records/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void check_same(const ps_record_t *record, const ps_body_t *body, ps_bytes_t bytes)
{
    ps_payload_t *payload = ps_payload_copy(body->keys, body->index, body->values);
    uint8_t *again = ps_alloc_raw(bytes.size, 1);

    check(payload != NULL && again != NULL);
    check(ps_record_size(record, payload) == bytes.size);
    ps_record_write(record, payload, again);
    check(memcmp(again, bytes.data, bytes.size) == 0);
    ps_free(again);
    ps_payload_destroy(&payload);
}

static void read_one(ps_bytes_t bytes)
{
    psd_error_t *err = psd_error_new();
    ps_record_t record;
    ps_body_t body = {0};
    size_t size = 0;
    psd_status_t rc = ps_record_read(bytes, &size, &record, &body, err);

    if (rc == PSD_OK) {
        check(size <= bytes.size && size == ps_record_claims(bytes));
        check_same(&record, &body, (ps_bytes_t){bytes.data, size});
    } else {
        check(rc == PSD_DAMAGED);
        check(psd_error_text(err)[0] != '\0');
    }
    psd_error_destroy(&err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *exact = ps_alloc_raw(size, 1);
    size_t claimed = ps_record_claims((ps_bytes_t){data, size});

    check(exact != NULL);
    if (size > 0) {
        memcpy(exact, data, size);
    }
    read_one((ps_bytes_t){exact, size});
    if (claimed > 0 && claimed <= size) {
        memset(exact + 8, 0, 8);
        ps_store_u64(exact + 8, ps_hash_bytes(exact, claimed, 0));
        read_one((ps_bytes_t){exact, size});
    }
    ps_free(exact);
    return 0;
}
