/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_meet - two workers prove to each other that they know their job's key
 *
 * What     The one that connects asks with a nonce; the other answers with a nonce and a proof;
 *          the first one proves itself. A proof is a keyed digest (BLAKE2b, 128 bits) of both
 *          nonces, the cluster, the job and both workers with their lives, and of which of the
 *          two it is, so that no proof is good for anything else.
 * Threads  Pure functions; nonces come from the caller, who must make a new one each time.
 */
#ifndef PS_PROTOCOL_MEET_H
#define PS_PROTOCOL_MEET_H

#include "psd/status.h"
#include "wire/messages/message.h"

typedef struct ps_meet_self {
    ps_id_t cluster;
    ps_id_t key; /* of the job */
    uint32_t job;
    uint32_t worker;
    uint32_t joins;
} ps_meet_self_t;

/* What the one that was asked keeps until the proof comes. */
typedef struct ps_meet_asked {
    uint32_t worker; /* who asks */
    uint32_t joins;
    ps_id_t asked;    /* its nonce */
    ps_id_t answered; /* ours */
} ps_meet_asked_t;

/* ASK. */
void ps_meet_ask(const ps_meet_self_t *self, const ps_id_t *nonce, ps_message_t *ret_message);
/* ASK has come: the ANSWER, and what to keep. Errors, of all that take a message: PSD_VERSION;
 * PSD_DENIED another cluster or job, a wrong proof; PSD_PROTO another step. */
PSD_MUST_CHECK psd_status_t ps_meet_answer(const ps_meet_self_t *self, const ps_msg_meet_t *ask,
                                           const ps_id_t *nonce, ps_meet_asked_t *ret_asked,
                                           ps_message_t *ret_message, psd_error_t *err);
/* ANSWER has come, of the worker that was meant, in the life that was meant: the PROOF. */
PSD_MUST_CHECK psd_status_t ps_meet_prove(const ps_meet_self_t *self, const ps_id_t *nonce,
                                          uint32_t worker, uint32_t joins,
                                          const ps_msg_meet_t *answer, ps_message_t *ret_message,
                                          psd_error_t *err);
/* PROOF has come: it is who it says. */
PSD_MUST_CHECK psd_status_t ps_meet_accept(const ps_meet_self_t *self, const ps_meet_asked_t *asked,
                                           const ps_msg_meet_t *proof, psd_error_t *err);
#endif
