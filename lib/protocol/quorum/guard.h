/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_guard - what a member takes from whom, at its port
 *
 * What     The end of proof.h that others connect to. Of a connection that has
 *          proved nothing it takes greetings alone: a few, and small ones. A node
 *          proves itself on one connection at a time, its last one.
 * Shape    A conn names a connection, and is never used again.
 * Units    ms of a clock that never goes back
 * Owner    The caller. ps_guard_destroy frees it and nulls the pointer.
 * Threads  Confined to one.
 */
#ifndef PS_PROTOCOL_GUARD_H
#define PS_PROTOCOL_GUARD_H

#include "protocol/quorum/proof.h"

#define PS_GUARD_UNPROVEN_MAX 32   /* connections at a time; the oldest one is forgotten … */
#define PS_GUARD_UNPROVEN_MS 10000 /* … and each after this */
#define PS_GUARD_GREETINGS_MAX 16  /* of such a connection in that time */

typedef struct ps_guard ps_guard_t;

/* A node that may connect. */
typedef struct ps_trust {
    char node[PS_NAME_MAX + 1];
    ps_id_t key;
} ps_trust_t;

/* seed: random. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_guard_new(const ps_speaker_t *own, const ps_id_t *seed,
                                         ps_guard_t **ret_guard, psd_error_t *err);
void ps_guard_destroy(ps_guard_t **self_p);
const ps_speaker_t *ps_guard_own(const ps_guard_t *self);
/* A nonce that was never used. */
void ps_guard_nonce(ps_guard_t *self, ps_id_t *ret_nonce);

/* From here on these nodes may connect, and no other; who has proved itself by the
 * same key stays so. false: no memory, and nothing has changed. */
PSD_MUST_CHECK bool ps_guard_trust(ps_guard_t *self, const ps_trust_t *nodes, size_t n);
/* The key of a node; NULL: it may not connect. Borrowed until the next trust. */
const ps_id_t *ps_guard_key(const ps_guard_t *self, const char *node);

typedef enum ps_guard_verdict {
    PS_GUARD_NOTHING = 0, /* of no use */
    PS_GUARD_ANSWER,      /* answer it on the connection */
    PS_GUARD_PROVEN,      /* that member is at the other end */
    PS_GUARD_MESSAGE,     /* of that member */
    PS_GUARD_REFUSED      /* status says why; text has a name */
} ps_guard_verdict_t;

typedef struct ps_guard_word {
    ps_guard_verdict_t verdict;
    uint64_t member;
    char node[PS_NAME_MAX + 1]; /* of it; REFUSED: "", or one that may connect */
    ps_bytes_t message;         /* MESSAGE: borrowed from the bytes */
    psd_status_t status;        /* REFUSED: PSD_DENIED, PSD_CLUSTER, PSD_VERSION */
    uint64_t n_refused;         /* … so often, of that node or of those without a name */
} ps_guard_word_t;

/* Something came on a connection. ANSWER appends to answer. err: of REFUSED, words
 * for the log. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_guard_take(ps_guard_t *self, uint64_t now_ms, uint64_t conn,
                                          ps_bytes_t bytes, ps_guard_word_t *ret_word,
                                          ps_buffer_t *answer, psd_error_t *err);
/* What was refused so far. */
uint64_t ps_guard_n_refused(const ps_guard_t *self);
#endif
