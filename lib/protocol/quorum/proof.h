/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_proof - how members of the registry prove who they are
 *
 * What     Before a connection of two members carries anything else, each end
 *          proves that it knows the secret of the node that it names, by a digest
 *          over both nonces; the secret itself is never sent. Then each message is
 *          sealed: a number that grows, and a digest over number and bytes.
 *
 *              member that connected      GREET      nonce
 *              the other                  CHALLENGE  nonce, proof
 *              member that connected      PROVE      proof, then sealed messages
 *
 *          ps_caller is the end that connected, on one connection. guard.h has the
 *          other end.
 * Shape    greeting: magic u32 "psGm", format u16 (PS_QUORUM_FORMAT), kind u8, 0
 *          u8, PS_GREETING_FIELDS. Sealed: magic u32 "psSm", format u16, 0 u16,
 *          number u64, digest 16 bytes, the message. Digests and keys have 16
 *          bytes: BLAKE2b, keyed.
 * Owner    plain values, but what ps_caller_take and ps_seal append
 * Threads  Confined to one.
 * Errors   PSD_DENIED a proof or a seal is wrong; PSD_CLUSTER another cluster or
 *          lineage; PSD_VERSION another format, naming node and build of the
 *          other; PSD_PROTO, PSD_INVALID bytes that are none.
 * Limits   Messages are not encrypted. Who knows the secret of a node can speak
 *          for it.
 */
#ifndef PS_PROTOCOL_PROOF_H
#define PS_PROTOCOL_PROOF_H

#include "protocol/quorum/quorum_message.h"

#define PS_BUILD_MAX 31           /* bytes of a release's name */
#define PS_GREETING_BYTES_MAX 512 /* no greeting has more */
#define PS_SEAL_BYTES 32          /* before a sealed message */

#define PS_GREETING_ENUM(NAME, number, word) PS_GREETING_##NAME = number,
typedef enum ps_greeting_kind { PS_GREETING_MAP(PS_GREETING_ENUM) } ps_greeting_kind_t;
#undef PS_GREETING_ENUM

typedef struct ps_greeting {
    ps_greeting_kind_t kind;
    char node[PS_NAME_MAX + 1]; /* of the sender */
    char build[PS_BUILD_MAX + 1];
    ps_id_t cluster;
    ps_id_t lineage;
    uint64_t from; /* members */
    uint64_t to;
    ps_id_t nonce; /* GREET, CHALLENGE */
    ps_id_t proof; /* CHALLENGE, PROVE */
} ps_greeting_t;

/* "greet", …; "?" when it is not a kind. */
const char *ps_greeting_name(ps_greeting_kind_t kind);
/* Appends the bytes. false: no memory. */
PSD_MUST_CHECK bool ps_greeting_encode(const ps_greeting_t *self, ps_buffer_t *buffer);
/* True when it begins as one. */
PSD_MUST_CHECK bool ps_greeting_is(ps_bytes_t bytes);
/* Reads and checks all of the bytes. */
PSD_MUST_CHECK psd_status_t ps_greeting_decode(ps_bytes_t bytes, ps_greeting_t *ret_greeting,
                                               psd_error_t *err);

/* A member that speaks: this one. */
typedef struct ps_speaker {
    ps_id_t cluster;
    ps_id_t lineage;
    uint64_t member;
    char node[PS_NAME_MAX + 1];
    char build[PS_BUILD_MAX + 1];
    ps_id_t key; /* of its node */
} ps_speaker_t;

/* The key that a node proves to have, made of its secret. */
void ps_proof_key(const ps_id_t *secret, const ps_id_t *cluster, const char *node,
                  ps_id_t *ret_key);

/* Who is at the ends of a connection, and what both said. */
typedef struct ps_talk {
    ps_id_t cluster;
    ps_id_t lineage;
    uint64_t caller; /* the member that connected */
    uint64_t callee;
    char caller_node[PS_NAME_MAX + 1];
    char callee_node[PS_NAME_MAX + 1];
    ps_id_t caller_nonce;
    ps_id_t callee_nonce;
} ps_talk_t;

typedef enum ps_proof_of {
    PS_PROOF_CALLEE = 1,
    PS_PROOF_CALLER = 2,
    PS_PROOF_SESSION = 3 /* not said: the key of the seals, by the caller's key */
} ps_proof_of_t;

/* The digest of a talk by the key of that end's node. */
void ps_proof_of(const ps_talk_t *talk, ps_proof_of_t of, const ps_id_t *key, ps_id_t *ret_proof);
/* In constant time. */
bool ps_proof_equal(const ps_id_t *a, const ps_id_t *b);
/* A nonce of its own for each count, by a random seed. */
void ps_proof_nonce(const ps_id_t *seed, uint64_t count, ps_id_t *ret_nonce);
/* That a node with this key has said where its member listens: for messages
 * without a connection of their own. life: of the member, counts its starts. */
void ps_proof_place(const ps_id_t *key, const ps_id_t *cluster, uint64_t member, uint64_t life,
                    const char *node, const char *endpoint, ps_id_t *ret_proof);

/* ---- the end that connected ---- */

typedef struct ps_caller {
    enum { PS_CALLER_SILENT, PS_CALLER_GREETED, PS_CALLER_PROVEN } state;
    ps_talk_t talk;
    ps_id_t session;
    uint64_t number; /* of the last sealed message */
} ps_caller_t;

/* Appends GREET to member `to` of that node, with a nonce that was never used. false: no
 * memory. */
PSD_MUST_CHECK bool ps_caller_greet(ps_caller_t *self, const ps_speaker_t *own, uint64_t to,
                                    const char *node, const ps_id_t *nonce, ps_buffer_t *buffer);
/* Something came from the other end, whose node has that key (NULL: unknown).
 * Appends PROVE, if it proved itself; from then on the state is PROVEN. WHO: the
 * state is SILENT. Returns PSD_OK for messages that it ignores, too. Also PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_caller_take(ps_caller_t *self, const ps_speaker_t *own,
                                           const ps_id_t *key, ps_bytes_t bytes,
                                           ps_buffer_t *buffer, psd_error_t *err);
/* Appends a message, sealed; the state is PROVEN. false: no memory. */
PSD_MUST_CHECK bool ps_caller_seal(ps_caller_t *self, ps_bytes_t message, ps_buffer_t *buffer);

/* ---- sealed messages ---- */

PSD_MUST_CHECK bool ps_seal_is(ps_bytes_t bytes);
/* The message in sealed bytes, borrowed. *number: of the last one, which grows.
 * PSD_DENIED: the digest is wrong, or the number is an old one. */
PSD_MUST_CHECK psd_status_t ps_seal_open(const ps_id_t *session, ps_bytes_t bytes, uint64_t *number,
                                         ps_bytes_t *ret_message, psd_error_t *err);
#endif
