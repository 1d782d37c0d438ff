/* SPDX-License-Identifier: Apache-2.0 */
/* A greeting between members of every kind, with every field set. */
#ifndef PS_TESTS_GREETING_SAMPLE_H
#define PS_TESTS_GREETING_SAMPLE_H

#include "protocol/quorum/proof.h"

#define SAMPLE_GREETING(NAME, number, word) PS_GREETING_##NAME,
static const ps_greeting_kind_t SAMPLE_GREETINGS[] = {PS_GREETING_MAP(SAMPLE_GREETING)};
#define N_SAMPLE_GREETINGS (sizeof SAMPLE_GREETINGS / sizeof *SAMPLE_GREETINGS)

static inline ps_greeting_t greeting_sample(ps_greeting_kind_t kind)
{
    return (ps_greeting_t){.kind = kind,
                           .node = "north",
                           .build = "0.1.0",
                           .cluster = {{1, 2, 3}},
                           .lineage = {{4, 5, 6}},
                           .from = 11,
                           .to = kind == PS_GREETING_WHO ? 0 : 12,
                           .nonce = {{7, 8, 9}},
                           .proof = {{10, 11, 12}}};
}
#endif
