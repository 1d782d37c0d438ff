/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one record of every kind, record_<number>.hex: they lie on disks
 * and travel between nodes, so a difference is a new version of the record. A
 * new one gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_record
 *
 * Shape: '#' starts a comment; the rest is bytes in hex.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "support/record_sample.h"

#define BYTES_MAX 1024
#define PATH_SIZE 4096

static FILE *open_file(size_t i, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[PATH_SIZE];
    FILE *file = NULL;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    (void)snprintf(path, sizeof path, "%s/record_%zu.hex", dir, i);
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static void write_file(size_t i, const char *kind, const uint8_t *bytes, size_t size)
{
    FILE *file = open_file(i, "w");

    (void)fprintf(file, "# %s", kind);
    for (size_t at = 0; at < size; at++) {
        (void)fprintf(file, "%s%02x", at % 16 == 0 ? "\n" : " ", (unsigned)bytes[at]);
    }
    (void)fprintf(file, "\n");
    cr_assert_eq(fclose(file), 0);
}

static size_t read_file(size_t i, uint8_t bytes[BYTES_MAX])
{
    FILE *file = open_file(i, "r");
    char line[256];
    size_t size = 0;

    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = line;
        unsigned byte = 0;
        int length = 0;

        while (line[0] != '#' && sscanf(at, " %2x%n", &byte, &length) == 1) {
            cr_assert_lt(size, BYTES_MAX);
            bytes[size++] = (uint8_t)byte;
            at += length;
        }
    }
    cr_assert_eq(fclose(file), 0);
    return size;
}

Test(golden_record, every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_RECORDS; i++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        uint8_t bytes[BYTES_MAX];
        uint8_t golden[BYTES_MAX];
        ps_record_t record;
        ps_body_t body = {0};
        size_t size = 0;
        size_t got = 0;

        record_sample(i, &record, &payload);
        size = ps_record_size(&record, payload);
        cr_assert(size > 0 && size <= BYTES_MAX);
        ps_record_write(&record, payload, bytes);
        if (getenv("PSD_GOLDEN_WRITE") != NULL) {
            write_file(i, ps_record_kind_name(record.kind), bytes, size);
        }
        cr_assert_eq(read_file(i, golden), size, "record %zu", i);
        cr_assert_arr_eq(golden, bytes, size, "record %zu has other bytes", i);
        cr_assert_eq(ps_record_read((ps_bytes_t){golden, size}, &got, &record, &body, err), PSD_OK,
                     "%s", psd_error_text(err));
    }
}
