/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one message between members of every kind, quorum_message_<word>.hex:
 * encoding the sample gives the file, decoding the file and encoding that gives it
 * again. A difference is a new PS_QUORUM_FORMAT. A new kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_quorum_message
 *
 * Shape: '#' starts a comment; the rest is bytes in hex.
 */
#include <stdio.h>
#include <stdlib.h>

#include "support/quorum_message_sample.h"

#define BYTES_MAX 1024
#define PATH_SIZE 4096

static FILE *open_file(ps_quorum_message_kind_t kind, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[PATH_SIZE];
    FILE *file = NULL;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    (void)snprintf(path, sizeof path, "%s/quorum_message_%s.hex", dir,
                   ps_quorum_message_name(kind));
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static void write_file(ps_quorum_message_kind_t kind, const ps_buffer_t *bytes)
{
    FILE *file = open_file(kind, "w");

    (void)fprintf(file, "# %s", ps_quorum_message_name(kind));
    for (size_t at = 0; at < bytes->size; at++) {
        (void)fprintf(file, "%s%02x", at % 16 == 0 ? "\n" : " ", (unsigned)bytes->data[at]);
    }
    (void)fprintf(file, "\n");
    cr_assert_eq(fclose(file), 0);
}

static size_t read_file(ps_quorum_message_kind_t kind, uint8_t bytes[BYTES_MAX])
{
    FILE *file = open_file(kind, "r");
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

Test(golden_quorum_message, every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_QUORUM_MESSAGES; i++) {
        ps_quorum_message_kind_t kind = SAMPLE_QUORUM_MESSAGES[i];
        PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t sample = quorum_message_sample(kind);
        PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t got = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        uint8_t golden[BYTES_MAX];
        size_t size = 0;

        cr_assert(ps_quorum_message_encode(&sample, &bytes));
        if (getenv("PSD_GOLDEN_WRITE") != NULL) {
            write_file(kind, &bytes);
        }
        size = read_file(kind, golden);
        cr_assert_eq(size, bytes.size, "%s is of another size", ps_quorum_message_name(kind));
        cr_assert_arr_eq(golden, bytes.data, size, "%s has other bytes",
                         ps_quorum_message_name(kind));
        cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){golden, size}, &got, err), PSD_OK,
                     "%s: %s", ps_quorum_message_name(kind), psd_error_text(err));
        cr_assert_eq(got.kind, kind);
        cr_assert(ps_quorum_message_encode(&got, &again));
        cr_assert_eq(again.size, size);
        cr_assert_arr_eq(again.data, golden, size);
    }
}

/* Words and order of what lies there: the test above would not see a field that
 * is read into another one and written from it. */
Test(golden_quorum_message, fields_come_where_they_belong)
{
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t append = {0};
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t snapshot = {0};
    uint8_t golden[BYTES_MAX];
    size_t size = read_file(PS_QUORUM_APPEND, golden);

    cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){golden, size}, &append, NULL), PSD_OK);
    cr_assert_eq(append.from, 11);
    cr_assert_eq(append.number, 14);
    cr_assert_eq(append.echo, 16);
    cr_assert_eq(append.last_index, 21);
    cr_assert_eq(append.commit, 19);
    cr_assert_eq(append.entries[2].term, 33);
    size = read_file(PS_QUORUM_SNAPSHOT, golden);
    cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){golden, size}, &snapshot, NULL), PSD_OK);
    cr_assert_eq(snapshot.snapshot.members_index, 50);
    cr_assert_str_eq(snapshot.snapshot.members.at[1].node, "south");
}
