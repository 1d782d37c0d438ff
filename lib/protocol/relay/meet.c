/* SPDX-License-Identifier: Apache-2.0 */
/* Proofs of two workers to each other. */
#include "protocol/relay/meet.h"

#include <sodium.h>
#include <string.h>

#include "wire/messages/formats.h"

/* Who of the two it is a proof of. */
typedef enum role { ANSWERER = 1, ASKER = 2 } role_t;

static void add_u32(crypto_generichash_state *state, uint32_t number)
{
    const uint8_t bytes[4] = {(uint8_t)number, (uint8_t)(number >> 8), (uint8_t)(number >> 16),
                              (uint8_t)(number >> 24)};

    (void)crypto_generichash_update(state, bytes, sizeof bytes);
}

static void add_id(crypto_generichash_state *state, const ps_id_t *id)
{
    (void)crypto_generichash_update(state, id->bytes, sizeof id->bytes);
}

/* answerer: a worker and its life; of the asker the same is in `asked`. */
static ps_id_t proof_of(const ps_meet_self_t *self, role_t role, const ps_meet_asked_t *asked,
                        uint32_t answerer, uint32_t answerer_joins)
{
    crypto_generichash_state state;
    ps_id_t proof = {{0}};

    /* None of these fails with sizes that are constant. */
    (void)crypto_generichash_init(&state, self->key.bytes, sizeof self->key.bytes, sizeof proof);
    add_u32(&state, PS_OVERLAY_FORMAT);
    add_u32(&state, (uint32_t)role);
    add_id(&state, &self->cluster);
    add_u32(&state, self->job);
    add_id(&state, &asked->asked);
    add_id(&state, &asked->answered);
    add_u32(&state, asked->worker);
    add_u32(&state, asked->joins);
    add_u32(&state, answerer);
    add_u32(&state, answerer_joins);
    (void)crypto_generichash_final(&state, proof.bytes, sizeof proof.bytes);
    return proof;
}

static void fill(const ps_meet_self_t *self, ps_meet_step_t step, const ps_id_t *nonce,
                 ps_message_t *message)
{
    message->kind = PS_KIND_MEET;
    message->flags = 0;
    message->meet = (ps_msg_meet_t){.version_min = PS_OVERLAY_FORMAT,
                                    .version_max = PS_OVERLAY_FORMAT,
                                    .cluster = self->cluster,
                                    .job = self->job,
                                    .worker = self->worker,
                                    .joins = self->joins,
                                    .step = (uint8_t)step,
                                    .nonce = *nonce};
}

static psd_status_t check(const ps_meet_self_t *self, const ps_msg_meet_t *meet,
                          ps_meet_step_t step, psd_error_t *err)
{
    if (meet->version_min > PS_OVERLAY_FORMAT || meet->version_max < PS_OVERLAY_FORMAT) {
        return psd_error_set(err, PSD_VERSION, "worker %u speaks versions %u to %u; this one: %d",
                             meet->worker, meet->version_min, meet->version_max, PS_OVERLAY_FORMAT);
    }
    if (memcmp(&meet->cluster, &self->cluster, sizeof meet->cluster) != 0 ||
        meet->job != self->job) {
        return psd_error_set(err, PSD_DENIED, "worker %u is of another cluster or job",
                             meet->worker);
    }
    return meet->step == step ? PSD_OK
                              : psd_error_set(err, PSD_PROTO, "worker %u is at step %u, not %d",
                                              meet->worker, meet->step, (int)step);
}

static psd_status_t compare(const ps_id_t *wanted, const ps_msg_meet_t *meet, psd_error_t *err)
{
    return sodium_memcmp(wanted->bytes, meet->proof.bytes, sizeof wanted->bytes) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED, "worker %u does not know the job's key",
                               meet->worker);
}

void ps_meet_ask(const ps_meet_self_t *self, const ps_id_t *nonce, ps_message_t *ret_message)
{
    fill(self, PS_MEET_ASK, nonce, ret_message);
}

psd_status_t ps_meet_answer(const ps_meet_self_t *self, const ps_msg_meet_t *ask,
                            const ps_id_t *nonce, ps_meet_asked_t *ret_asked,
                            ps_message_t *ret_message, psd_error_t *err)
{
    psd_status_t rc = check(self, ask, PS_MEET_ASK, err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_asked = (ps_meet_asked_t){
        .worker = ask->worker, .joins = ask->joins, .asked = ask->nonce, .answered = *nonce};
    fill(self, PS_MEET_ANSWER, nonce, ret_message);
    ret_message->meet.proof = proof_of(self, ANSWERER, ret_asked, self->worker, self->joins);
    return PSD_OK;
}

psd_status_t ps_meet_prove(const ps_meet_self_t *self, const ps_id_t *nonce, uint32_t worker,
                           uint32_t joins, const ps_msg_meet_t *answer, ps_message_t *ret_message,
                           psd_error_t *err)
{
    const ps_meet_asked_t asked = {
        .worker = self->worker, .joins = self->joins, .asked = *nonce, .answered = answer->nonce};
    ps_id_t wanted = proof_of(self, ANSWERER, &asked, worker, joins);
    psd_status_t rc = check(self, answer, PS_MEET_ANSWER, err);

    if (rc == PSD_OK) {
        rc = compare(&wanted, answer, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    fill(self, PS_MEET_PROOF, nonce, ret_message);
    ret_message->meet.proof = proof_of(self, ASKER, &asked, worker, joins);
    return PSD_OK;
}

psd_status_t ps_meet_accept(const ps_meet_self_t *self, const ps_meet_asked_t *asked,
                            const ps_msg_meet_t *proof, psd_error_t *err)
{
    ps_id_t wanted = proof_of(self, ASKER, asked, self->worker, self->joins);
    psd_status_t rc = check(self, proof, PS_MEET_PROOF, err);

    if (rc == PSD_OK && (proof->worker != asked->worker || proof->joins != asked->joins)) {
        rc = psd_error_set(err, PSD_PROTO, "worker %u asked, and worker %u proves", asked->worker,
                           proof->worker);
    }
    return rc == PSD_OK ? compare(&wanted, proof, err) : rc;
}
