/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one message between nodes of every kind, node_message_<word>.hex: encoding the
 * sample gives the file, decoding the file and encoding that gives it again. A
 * difference is a new PS_NODE_FORMAT. A new kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_node_message
 *
 * Shape: '#' starts a comment; the rest is bytes in hex.
 */
#include <stdlib.h>

#include "support/node_message_sample.h"

#define BYTES_MAX 1024
#define PATH_SIZE 4096

static FILE *open_file(ps_node_message_kind_t kind, const char *mode)
{
    const char *dir = getenv("PSD_GOLDEN_DIR");
    char path[PATH_SIZE];
    FILE *file = NULL;

    cr_assert_not_null(dir, "PSD_GOLDEN_DIR is not set");
    (void)snprintf(path, sizeof path, "%s/node_message_%s.hex", dir, ps_node_message_name(kind));
    file = fopen(path, mode);
    cr_assert_not_null(file, "cannot open %s", path);
    return file;
}

static void write_file(ps_node_message_kind_t kind, const ps_buffer_t *bytes)
{
    FILE *file = open_file(kind, "w");

    (void)fprintf(file, "# %s", ps_node_message_name(kind));
    for (size_t at = 0; at < bytes->size; at++) {
        (void)fprintf(file, "%s%02x", at % 16 == 0 ? "\n" : " ", (unsigned)bytes->data[at]);
    }
    (void)fprintf(file, "\n");
    cr_assert_eq(fclose(file), 0);
}

static size_t read_file(ps_node_message_kind_t kind, uint8_t bytes[BYTES_MAX])
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

Test(golden_node_message, every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_MESSAGES; i++) {
        ps_node_message_kind_t kind = SAMPLE_MESSAGES[i];
        PSD_AUTO(ps_node_message_done) ps_node_message_t sample = node_message_sample(kind);
        PSD_AUTO(ps_node_message_done) ps_node_message_t got = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
        PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
        uint8_t golden[BYTES_MAX];
        size_t size = 0;

        cr_assert(ps_node_message_encode(&sample, &bytes));
        if (getenv("PSD_GOLDEN_WRITE") != NULL) {
            write_file(kind, &bytes);
        }
        size = read_file(kind, golden);
        cr_assert_eq(size, bytes.size, "%s is of another size", ps_node_message_name(kind));
        cr_assert_arr_eq(golden, bytes.data, size, "%s has other bytes",
                         ps_node_message_name(kind));
        cr_assert_eq(ps_node_message_decode((ps_bytes_t){golden, size}, &got, err), PSD_OK,
                     "%s: %s", ps_node_message_name(kind), psd_error_text(err));
        cr_assert_eq(got.kind, kind);
        cr_assert(ps_node_message_encode(&got, &again));
        cr_assert_eq(again.size, size);
        cr_assert_arr_eq(again.data, golden, size);
    }
}

/* Words and order of what lies there: the test above would not see a field that
 * is read into another one and written from it. */
Test(golden_node_message, fields_come_where_they_belong)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t answer = {0};
    PSD_AUTO(ps_node_message_done) ps_node_message_t table = {0};
    uint8_t golden[BYTES_MAX];
    size_t size = read_file(PS_NODE_ANSWER, golden);

    cr_assert_eq(ps_node_message_decode((ps_bytes_t){golden, size}, &answer, NULL), PSD_OK);
    cr_assert_eq(answer.serial, 90);
    cr_assert_eq(answer.incarnation, 7);
    cr_assert_eq(answer.status, PSD_BUSY);
    cr_assert_eq(answer.answers.n, 2);
    cr_assert_eq(answer.answers.at[1].partitions[0].rows_pulled, 68);
    cr_assert_eq(answer.answers.at[1].lags[0].level_ms, 73);
    cr_assert_str_eq(answer.answers.at[1].waiting[0].reason, "its lease ended");
    cr_assert_eq(answer.answers.at[1].clocks[0].max, 81);
    size = read_file(PS_NODE_TABLE, golden);
    cr_assert_eq(ps_node_message_decode((ps_bytes_t){golden, size}, &table, NULL), PSD_OK);
    cr_assert_eq(table.table.spec.n_partitions, 2);
    cr_assert_eq(table.places[0].copies.at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_str_eq(table.places[1].ipc, "ipc:///run/psd/1");
}
