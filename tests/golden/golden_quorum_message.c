/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one message between members of every kind, quorum_message_<word>.hex:
 * encoding the sample gives the file, decoding the file and encoding that gives it
 * again. A difference is a new PS_QUORUM_FORMAT. A new kind gets its file with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_quorum_message
 */
#include "support/golden_file.h"
#include "support/quorum_message_sample.h"

#define NAME_SIZE 64

static const char *file_of(ps_quorum_message_kind_t kind, char ret_name[NAME_SIZE])
{
    (void)snprintf(ret_name, NAME_SIZE, "quorum_message_%s", ps_quorum_message_name(kind));
    return ret_name;
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
        char name[NAME_SIZE];
        uint8_t golden[GOLDEN_BYTES_MAX];
        ps_bytes_t read = {0};

        cr_assert(ps_quorum_message_encode(&sample, &bytes));
        read = golden_file_check(file_of(kind, name), ps_quorum_message_name(kind),
                                 (ps_bytes_t){bytes.data, bytes.size}, golden);
        cr_assert_eq(ps_quorum_message_decode(read, &got, err), PSD_OK, "%s: %s",
                     ps_quorum_message_name(kind), psd_error_text(err));
        cr_assert_eq(got.kind, kind);
        cr_assert(ps_quorum_message_encode(&got, &again));
        cr_assert_eq(again.size, read.size);
        cr_assert_arr_eq(again.data, golden, read.size);
    }
}

/* Words and order of what lies there: the test above would not see a field that
 * is read into another one and written from it. */
Test(golden_quorum_message, fields_come_where_they_belong)
{
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t append = {0};
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t snapshot = {0};
    char name[NAME_SIZE];
    uint8_t golden[GOLDEN_BYTES_MAX];
    size_t size = golden_file_read(file_of(PS_QUORUM_APPEND, name), golden);

    cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){golden, size}, &append, NULL), PSD_OK);
    cr_assert_eq(append.from, 11);
    cr_assert_eq(append.number, 14);
    cr_assert_eq(append.echo, 16);
    cr_assert_eq(append.last_index, 21);
    cr_assert_eq(append.commit, 19);
    cr_assert_eq(append.entries[2].term, 33);
    size = golden_file_read(file_of(PS_QUORUM_SNAPSHOT, name), golden);
    cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){golden, size}, &snapshot, NULL), PSD_OK);
    cr_assert_eq(snapshot.snapshot.members_index, 50);
    cr_assert_str_eq(snapshot.snapshot.members.at[1].node, "south");
}
