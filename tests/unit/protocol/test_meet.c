/* SPDX-License-Identifier: Apache-2.0 */
/* protocol/relay/meet.h: who knows the job's key, and who does not. */
#include "protocol/relay/meet.h"

#include <criterion/criterion.h>
#include <string.h>

#include "base/alloc.h"
#include "wire/messages/formats.h"

typedef struct both {
    ps_meet_self_t child;
    ps_meet_self_t parent;
    ps_id_t mine; /* the child's nonce */
    ps_id_t other;
    ps_meet_asked_t asked;
    ps_message_t ask;
    ps_message_t answer;
    ps_message_t proof;
} both_t;

static ps_id_t id_of(uint8_t byte)
{
    ps_id_t id;

    memset(id.bytes, byte, sizeof id.bytes);
    return id;
}

static both_t two_workers(void)
{
    both_t self = {
        .child = {.cluster = id_of(1), .key = id_of(9), .job = 3, .worker = 5, .joins = 1},
        .parent = {.cluster = id_of(1), .key = id_of(9), .job = 3, .worker = 4, .joins = 2},
        .mine = id_of(0x11),
        .other = id_of(0x22)};

    return self;
}

static psd_status_t meet(both_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_meet_ask(&self->child, &self->mine, &self->ask);
    rc = ps_meet_answer(&self->parent, &self->ask.meet, &self->other, &self->asked, &self->answer,
                        err);
    if (rc == PSD_OK) {
        rc = ps_meet_prove(&self->child, &self->mine, 4, 2, &self->answer.meet, &self->proof, err);
    }
    if (rc == PSD_OK) {
        rc = ps_meet_accept(&self->parent, &self->asked, &self->proof.meet, err);
    }
    return rc;
}

Test(meet, two_workers_of_a_job_know_each_other)
{
    both_t both = two_workers();

    cr_assert_eq(meet(&both, NULL), PSD_OK);
    cr_assert_eq(both.asked.worker, 5);
    cr_assert_eq(both.ask.meet.step, PS_MEET_ASK);
    cr_assert_eq(both.answer.meet.step, PS_MEET_ANSWER);
    cr_assert_eq(both.proof.meet.step, PS_MEET_PROOF);
    cr_assert(memcmp(&both.answer.meet.proof, &both.proof.meet.proof, sizeof(ps_id_t)) != 0);
}

Test(meet, a_stranger_proves_nothing)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    both_t both = two_workers();

    both.child.key = id_of(8);
    cr_assert_eq(meet(&both, err), PSD_DENIED, "it does not believe the answer either");
    cr_assert_str_eq(psd_error_text(err), "worker 4 does not know the job's key");
    both = two_workers();
    cr_assert_eq(meet(&both, NULL), PSD_OK);
    both.proof.meet.proof.bytes[15] ^= 1;
    psd_error_clear(err);
    cr_assert_eq(ps_meet_accept(&both.parent, &both.asked, &both.proof.meet, err), PSD_DENIED);
    cr_assert_str_eq(psd_error_text(err), "worker 5 does not know the job's key");
}

/* What was heard once proves nothing another time. */
Test(meet, proofs_are_of_these_nonces_workers_and_lives)
{
    both_t both = two_workers();
    both_t later = two_workers();

    later.other = id_of(0x23);
    cr_assert_eq(meet(&both, NULL), PSD_OK);
    cr_assert_eq(meet(&later, NULL), PSD_OK);
    cr_assert_eq(ps_meet_accept(&later.parent, &later.asked, &both.proof.meet, NULL), PSD_DENIED);
    cr_assert_eq(ps_meet_prove(&both.child, &both.mine, 4, 3, &both.answer.meet, &both.proof, NULL),
                 PSD_DENIED, "another life of the worker that was meant");
    cr_assert_eq(ps_meet_prove(&both.child, &both.mine, 6, 2, &both.answer.meet, &both.proof, NULL),
                 PSD_DENIED);
    both.proof = later.proof;
    both.proof.meet.worker = 6;
    cr_assert_eq(ps_meet_accept(&later.parent, &later.asked, &both.proof.meet, NULL), PSD_PROTO);
}

Test(meet, its_own_answer_sent_back_is_no_proof)
{
    both_t both = two_workers();

    cr_assert_eq(meet(&both, NULL), PSD_OK);
    both.answer.meet.step = PS_MEET_PROOF;
    both.answer.meet.worker = 5;
    both.answer.meet.joins = 1;
    cr_assert_eq(ps_meet_accept(&both.parent, &both.asked, &both.answer.meet, NULL), PSD_DENIED);
}

Test(meet, others_are_refused_by_name)
{
    both_t both = two_workers();

    both.child.cluster = id_of(2);
    cr_assert_eq(meet(&both, NULL), PSD_DENIED);
    both = two_workers();
    both.child.job = 4;
    cr_assert_eq(meet(&both, NULL), PSD_DENIED);
    both = two_workers();
    ps_meet_ask(&both.child, &both.mine, &both.ask);
    both.ask.meet.version_min = PS_OVERLAY_FORMAT + 1;
    both.ask.meet.version_max = PS_OVERLAY_FORMAT + 1;
    cr_assert_eq(
        ps_meet_answer(&both.parent, &both.ask.meet, &both.other, &both.asked, &both.answer, NULL),
        PSD_VERSION);
    both.ask.meet.version_min = 0;
    both.ask.meet.step = PS_MEET_PROOF;
    cr_assert_eq(
        ps_meet_answer(&both.parent, &both.ask.meet, &both.other, &both.asked, &both.answer, NULL),
        PSD_PROTO);
}
