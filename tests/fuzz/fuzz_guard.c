/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes on any connections to a member's port, among those of a right caller:
 * nothing of a stranger is taken for a message or a proof, and greetings that are
 * accepted have one form in bytes. Input: a byte for the connection, a byte for the
 * size, so many bytes; again and again. Size 0: the right caller goes on.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/quorum/guard.h"

#define RIGHT 1000 /* its connection */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const ps_speaker_t own = {
    .cluster = {{1}}, .lineage = {{2}}, .member = 12, .node = "s", .build = "b", .key = {{4}}};
static const ps_speaker_t caller_is = {
    .cluster = {{1}}, .lineage = {{2}}, .member = 11, .node = "n", .build = "b", .key = {{3}}};

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static void check_form(ps_bytes_t bytes)
{
    ps_greeting_t greeting;
    PSD_AUTO(ps_buffer_done) ps_buffer_t again = {0};

    if (ps_greeting_decode(bytes, &greeting, NULL) == PSD_OK) {
        check(ps_greeting_encode(&greeting, &again));
        check(again.size == bytes.size && memcmp(again.data, bytes.data, bytes.size) == 0);
    }
}

static ps_guard_word_t give(ps_guard_t *guard, uint64_t now_ms, uint64_t conn, ps_bytes_t bytes,
                            ps_buffer_t *answer)
{
    ps_guard_word_t word;

    ps_buffer_done(answer);
    check(ps_guard_take(guard, now_ms, conn, bytes, &word, answer, NULL) == PSD_OK);
    return word;
}

/* The right caller proves itself, then sends a message. */
static void go_on(ps_guard_t *guard, ps_caller_t *caller, uint64_t now_ms)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t said = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t answer = {0};
    const ps_id_t nonce = {{(uint8_t)now_ms, 1}};

    if (caller->state != PS_CALLER_PROVEN) {
        check(ps_caller_greet(caller, &caller_is, own.member, own.node, &nonce, &said));
        (void)give(guard, now_ms, RIGHT, (ps_bytes_t){said.data, said.size}, &answer);
        ps_buffer_done(&said);
        check(ps_caller_take(caller, &caller_is, &own.key, (ps_bytes_t){answer.data, answer.size},
                             &said, NULL) == PSD_OK);
        check(give(guard, now_ms, RIGHT, (ps_bytes_t){said.data, said.size}, &answer).verdict ==
              PS_GUARD_PROVEN);
        return;
    }
    check(ps_caller_seal(caller, (ps_bytes_t){(const uint8_t *)"m", 1}, &said));
    check(give(guard, now_ms, RIGHT, (ps_bytes_t){said.data, said.size}, &answer).verdict ==
          PS_GUARD_MESSAGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const ps_id_t seed = {{9}};
    const ps_trust_t nodes[] = {{.node = "n", .key = {{3}}}, {.node = "o", .key = {{5}}}};
    PSD_AUTO(ps_guard_destroy) ps_guard_t *guard = NULL;
    PSD_AUTO(ps_buffer_done) ps_buffer_t answer = {0};
    ps_caller_t caller = {.state = PS_CALLER_SILENT};
    ps_caller_t hostile = {.state = PS_CALLER_GREETED, .talk = {.caller = 11, .callee = 12}};
    uint64_t now_ms = 1;

    check(ps_guard_new(&own, &seed, &guard, NULL) == PSD_OK && ps_guard_trust(guard, nodes, 2));
    while (size >= 2) {
        uint64_t conn = data[0];
        size_t n = data[1] < size - 2 ? data[1] : size - 2;
        const ps_bytes_t bytes = {.data = data + 2, .size = n};
        ps_guard_verdict_t verdict = PS_GUARD_NOTHING;

        now_ms += 50;
        data += 2 + n;
        size -= 2 + n;
        if (n == 0) {
            go_on(guard, &caller, now_ms);
            continue;
        }
        check_form(bytes);
        verdict = give(guard, now_ms, conn, bytes, &answer).verdict;
        check(verdict != PS_GUARD_PROVEN && verdict != PS_GUARD_MESSAGE);
        ps_buffer_done(&answer);
        (void)!ps_caller_take(&hostile, &caller_is, &own.key, bytes, &answer, NULL);
        check(hostile.state != PS_CALLER_PROVEN);
    }
    return 0;
}
