/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one message between nodes of every kind, node_message_<word>.hex: encoding the
 * sample gives the file, decoding the file and encoding that gives it again. A
 * difference is a new PS_NODE_FORMAT. A new kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_node_message
 */
#include "support/golden_file.h"
#include "support/node_message_sample.h"

#define NAME_SIZE 64

static const char *file_of(ps_node_message_kind_t kind, char ret_name[NAME_SIZE])
{
    (void)snprintf(ret_name, NAME_SIZE, "node_message_%s", ps_node_message_name(kind));
    return ret_name;
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
        char name[NAME_SIZE];
        uint8_t golden[GOLDEN_BYTES_MAX];
        ps_bytes_t read = {0};

        cr_assert(ps_node_message_encode(&sample, &bytes));
        read = golden_file_check(file_of(kind, name), ps_node_message_name(kind),
                                 (ps_bytes_t){bytes.data, bytes.size}, golden);
        cr_assert_eq(ps_node_message_decode(read, &got, err), PSD_OK, "%s: %s",
                     ps_node_message_name(kind), psd_error_text(err));
        cr_assert_eq(got.kind, kind);
        cr_assert(ps_node_message_encode(&got, &again));
        cr_assert_eq(again.size, read.size);
        cr_assert_arr_eq(again.data, golden, read.size);
    }
}

/* Words and order of what lies there: the test above would not see a field that
 * is read into another one and written from it. */
Test(golden_node_message, fields_come_where_they_belong)
{
    PSD_AUTO(ps_node_message_done) ps_node_message_t answer = {0};
    PSD_AUTO(ps_node_message_done) ps_node_message_t table = {0};
    char name[NAME_SIZE];
    uint8_t golden[GOLDEN_BYTES_MAX];
    size_t size = golden_file_read(file_of(PS_NODE_ANSWER, name), golden);

    cr_assert_eq(ps_node_message_decode((ps_bytes_t){golden, size}, &answer, NULL), PSD_OK);
    cr_assert_eq(answer.serial, 90);
    cr_assert_eq(answer.incarnation, 7);
    cr_assert_eq(answer.status, PSD_BUSY);
    cr_assert_eq(answer.answers.n, 2);
    cr_assert_eq(answer.answers.at[1].partitions[0].rows_pulled, 68);
    cr_assert_eq(answer.answers.at[1].lags[0].level_ms, 73);
    cr_assert_str_eq(answer.answers.at[1].waiting[0].reason, "its lease ended");
    cr_assert_eq(answer.answers.at[1].clocks[0].max, 81);
    size = golden_file_read(file_of(PS_NODE_TABLE, name), golden);
    cr_assert_eq(ps_node_message_decode((ps_bytes_t){golden, size}, &table, NULL), PSD_OK);
    cr_assert_eq(table.table.spec.n_partitions, 2);
    cr_assert_eq(table.places[0].copies.at[1].state, PS_COPY_CATCHING_UP);
    cr_assert_str_eq(table.places[1].ipc, "ipc:///run/psd/1");
}
