/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one record of every kind, record_<number>.hex: they lie on disks
 * and travel between nodes, so a difference is a new version of the record. A
 * new one gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_record
 */
#include <criterion/criterion.h>

#include "base/alloc.h"
#include "support/golden_file.h"
#include "support/record_sample.h"

#define NAME_SIZE 32

Test(golden_record, every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_RECORDS; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        uint8_t bytes[GOLDEN_BYTES_MAX];
        uint8_t golden[GOLDEN_BYTES_MAX];
        char name[NAME_SIZE];
        ps_bytes_t read = {0};
        ps_record_t record;
        ps_body_t body = {0};
        size_t size = 0;
        size_t got = 0;

        record_sample(i, &record, &payload);
        size = ps_record_size(&record, payload);
        cr_assert(size > 0 && size <= GOLDEN_BYTES_MAX);
        ps_record_write(&record, payload, bytes);
        (void)snprintf(name, sizeof name, "record_%zu", i);
        read = golden_file_check(name, ps_record_kind_name(record.kind), (ps_bytes_t){bytes, size},
                                 golden);
        cr_assert_eq(ps_record_read(read, &got, &record, &body, err), PSD_OK, "%s",
                     psd_error_text(err));
    }
}
