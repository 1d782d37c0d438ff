/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a message between members. What is accepted has one form in bytes,
 * and a member takes it, twice: it says only what another member understands.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/quorum/quorum.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void take_effects(ps_quorum_t *quorum)
{
    ps_quorum_effect_t effect;

    while (ps_quorum_next(quorum, &effect)) {
        if (effect.kind == PS_QUORUM_SEND) {
            PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t said = {0};

            check(ps_quorum_message_decode(effect.bytes, &said, NULL) == PSD_OK);
        }
    }
}

/* A voter of three, long after its start: as a follower, then as a candidate. */
static void try_it(const ps_quorum_message_t *message, ps_bytes_t bytes, psd_error_t *err)
{
    PSD_AUTO(ps_quorum_destroy) ps_quorum_t *quorum = NULL;
    const ps_quorum_snapshot_t snapshot = {
        .index = 2,
        .term = 1,
        .members_index = 1,
        .members = {.n = 3,
                    .at = {{message->to, PS_QUORUM_VOTER, "own"},
                           {message->from, PS_QUORUM_VOTER, "other"},
                           {message->to + message->from, PS_QUORUM_VOTER, "third"}}}};
    const ps_quorum_args_t args = {.member = message->to,
                                   .node = "own",
                                   .cluster = message->cluster,
                                   .lineage = message->lineage,
                                   .life = 1,
                                   .election_ms = 200,
                                   .heartbeat_ms = 40,
                                   .term = 1,
                                   .snapshot = &snapshot,
                                   .first = 3};

    if (ps_quorum_new(&args, &quorum, err) != PSD_OK) {
        return; /* the sum of two ids is none */
    }
    take_effects(quorum);
    for (uint64_t now = 300; now < 2000 && !ps_quorum_is_broken(quorum); now += 600) {
        (void)ps_quorum_receive(quorum, now, bytes, err);
        if (ps_quorum_is_broken(quorum)) {
            break;
        }
        take_effects(quorum);
        check(ps_quorum_flushed(quorum, now, now, err) == PSD_OK);
        take_effects(quorum);
        check(ps_quorum_tick(quorum, now, err) == PSD_OK);
        take_effects(quorum);
    }
    check(!ps_quorum_is_broken(quorum));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t first = {0};
    PSD_AUTO(ps_quorum_message_done) ps_quorum_message_t second = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t bytes = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = ps_quorum_message_decode((ps_bytes_t){data, size}, &first, err);

    if (rc != PSD_OK) {
        check(psd_error_text(err)[0] != '\0');
        return 0;
    }
    check(ps_quorum_message_encode(&first, &bytes));
    check(ps_quorum_message_decode((ps_bytes_t){bytes.data, bytes.size}, &second, err) == PSD_OK);
    check(ps_quorum_message_encode(&second, &again));
    check(bytes.size == again.size && memcmp(bytes.data, again.data, bytes.size) == 0);
    memcpy(first.node, "other", sizeof "other");
    ps_buffer_done(&bytes);
    check(ps_quorum_message_encode(&first, &bytes));
    try_it(&first, (ps_bytes_t){bytes.data, bytes.size}, err);
    return 0;
}
