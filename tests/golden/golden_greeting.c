/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of one greeting between members of every kind, quorum_greeting_<word>.hex,
 * of a sealed message, quorum_sealed.hex, and the digests, quorum_digests.hex. A
 * difference is a new PS_QUORUM_FORMAT. New files with
 *
 *     PSD_GOLDEN_WRITE=1 PSD_GOLDEN_DIR=tests/golden \
 *         build/tests/golden/golden_greeting
 */
#include "base/alloc.h"
#include "support/golden_file.h"
#include "support/greeting_sample.h"

#define NAME_SIZE 64

static const ps_id_t secret = {{0x50, 1, 2, 3}};
static const ps_id_t cluster = {{1, 2, 3}};

Test(golden_greeting, every_kind)
{
    for (size_t i = 0; i < N_SAMPLE_GREETINGS; i++) {
        const ps_greeting_t sample = greeting_sample(SAMPLE_GREETINGS[i]);
        PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
        PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
        ps_greeting_t got;
        char name[NAME_SIZE];
        uint8_t golden[GOLDEN_BYTES_MAX];
        ps_bytes_t read = {0};

        (void)snprintf(name, sizeof name, "quorum_greeting_%s", ps_greeting_name(sample.kind));
        cr_assert(ps_greeting_encode(&sample, &bytes));
        read = golden_file_check(name, name, (ps_bytes_t){bytes.data, bytes.size}, golden);
        cr_assert_eq(ps_greeting_decode(read, &got, NULL), PSD_OK);
        cr_assert_eq(got.kind, sample.kind);
        cr_assert_str_eq(got.build, "0.1.0");
        cr_assert_eq(got.nonce.bytes[0], 7);
        cr_assert_eq(got.proof.bytes[0], 10);
        cr_assert(ps_greeting_encode(&got, &again));
        cr_assert_eq(again.size, read.size);
        cr_assert_arr_eq(again.data, golden, read.size);
    }
}

Test(golden_greeting, a_sealed_message)
{
    ps_caller_t caller = {.state = PS_CALLER_PROVEN, .session = {{0x60}}, .number = 5};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    const ps_bytes_t message = {.data = (const uint8_t *)"command", .size = 7};
    uint8_t golden[GOLDEN_BYTES_MAX];
    ps_bytes_t read = {0};
    ps_bytes_t got = {0};
    uint64_t number = 0;

    cr_assert(ps_caller_seal(&caller, message, &bytes));
    read =
        golden_file_check("quorum_sealed", "sealed", (ps_bytes_t){bytes.data, bytes.size}, golden);
    cr_assert_eq(ps_seal_open(&caller.session, read, &number, &got, NULL), PSD_OK);
    cr_assert_eq(number, 6);
    cr_assert_eq(got.size, 7);
}

Test(golden_greeting, digests)
{
    const ps_talk_t talk = {.cluster = cluster,
                            .lineage = {{4, 5, 6}},
                            .caller = 11,
                            .callee = 12,
                            .caller_node = "north",
                            .callee_node = "south",
                            .caller_nonce = {{7}},
                            .callee_nonce = {{8}}};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    uint8_t golden[GOLDEN_BYTES_MAX];
    ps_id_t all[6];

    ps_proof_key(&secret, &cluster, "north", &all[0]);
    ps_proof_of(&talk, PS_PROOF_CALLEE, &all[0], &all[1]);
    ps_proof_of(&talk, PS_PROOF_CALLER, &all[0], &all[2]);
    ps_proof_of(&talk, PS_PROOF_SESSION, &all[0], &all[3]);
    ps_proof_place(&all[0], &cluster, 11, 2, "north", "tcp://h:1", &all[4]);
    ps_proof_nonce(&secret, 1, &all[5]);
    for (size_t i = 0; i < 6; i++) {
        cr_assert(ps_buffer_append(&bytes, all[i].bytes, sizeof all[i].bytes));
    }
    (void)golden_file_check("quorum_digests", "digests", (ps_bytes_t){bytes.data, bytes.size},
                            golden);
}
