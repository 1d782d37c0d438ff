/* SPDX-License-Identifier: Apache-2.0 */
/* lib/protocol/quorum/quorum_message.h: what is refused, by name. */
#include "support/quorum_message_sample.h"

static psd_status_t decode(const ps_quorum_message_t *message, const char *expected)
{
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t got = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_OK;

    cr_assert(ps_quorum_message_encode(message, &bytes));
    rc = ps_quorum_message_decode((ps_bytes_t){bytes.data, bytes.size}, &got, err);
    cr_assert_not_null(strstr(psd_error_text(err), expected), "%s", psd_error_text(err));
    return rc;
}

Test(quorum_message, bytes_that_are_cut_off_or_too_many_are_refused)
{
    for (size_t i = 0; i < N_SAMPLE_QUORUM_MESSAGES; i++) {
        PSD_AUTO(ps_quorum_message_done)
        ps_quorum_message_t message = quorum_message_sample(SAMPLE_QUORUM_MESSAGES[i]);
        PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t got = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};

        cr_assert(ps_quorum_message_encode(&message, &bytes));
        cr_assert(ps_quorum_message_is((ps_bytes_t){bytes.data, bytes.size}));
        cr_assert_eq(ps_quorum_message_kind((ps_bytes_t){bytes.data, bytes.size}), message.kind);
        for (size_t size = 0; size < bytes.size; size++) {
            cr_assert_neq(ps_quorum_message_decode((ps_bytes_t){bytes.data, size}, &got, NULL),
                          PSD_OK);
        }
        cr_assert(ps_buffer_append(&bytes, "", 1));
        cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){bytes.data, bytes.size}, &got, NULL),
                     PSD_PROTO);
        bytes.data[4]++;
        cr_assert_eq(ps_quorum_message_decode((ps_bytes_t){bytes.data, bytes.size}, &got, NULL),
                     PSD_VERSION);
    }
}

Test(quorum_message, what_libraft_takes_for_granted_is_checked)
{
    PSD_AUTO(ps_quorum_message_done)
    ps_quorum_message_t append = quorum_message_sample(PS_QUORUM_APPEND);
    ps_quorum_message_t vote = quorum_message_sample(PS_QUORUM_VOTE);
    ps_quorum_message_t answer = quorum_message_sample(PS_QUORUM_APPENDED);
    ps_quorum_message_t snapshot = quorum_message_sample(PS_QUORUM_SNAPSHOT);

    append.entries[1].term = 30;
    cr_assert_eq(decode(&append, "term of an entry"), PSD_INVALID);
    append.entries[1].term = 32;
    append.last_term = 0;
    cr_assert_eq(decode(&append, "last_term"), PSD_INVALID);
    append.last_term = 30;
    append.last_index = PS_QUORUM_NUMBER_MAX + 1;
    cr_assert_eq(decode(&append, "last_index"), PSD_INVALID);
    append.last_index = 21;
    append.entries[0].kind = 4;
    cr_assert_eq(decode(&append, "kind of an entry"), PSD_PROTO);
    append.entries[0].kind = PS_QUORUM_COMMAND;
    append.entries[2].bytes.data[0]++;
    cr_assert_eq(decode(&append, "format of the members"), PSD_VERSION);
    vote.for_term = 40;
    cr_assert_eq(decode(&vote, "for_term"), PSD_INVALID);
    vote.for_term = 41;
    vote.to = vote.from;
    cr_assert_eq(decode(&vote, "to is"), PSD_INVALID);
    answer.last_index = answer.rejected;
    cr_assert_eq(decode(&answer, "last_index"), PSD_INVALID);
    snapshot.snapshot.members.at[1].id = 71;
    cr_assert_eq(decode(&snapshot, "there twice"), PSD_INVALID);
    snapshot.snapshot.members.at[1].id = 72;
    snapshot.snapshot.members.at[0].role = PS_QUORUM_STANDBY;
    cr_assert_eq(decode(&snapshot, "no member votes"), PSD_INVALID);
}
