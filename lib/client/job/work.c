/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of a job's input. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "client/job/job.h"
#include "client/job/work.h"
#include "client/requests/marks.h"
#include "client/requests/pump.h"
#include "client/requests/wait.h"
#include "protocol/facts/work.h"

/* At the caller's deadline the node names the workers that it waits for; its
 * answer takes one way. */
#define GRACE_MS 1000

struct psd_work {
    psd_client_t *client; /* borrowed; not looked at by psd_work_close */
    char name[PS_NAME_MAX + 1];

    /* the step that is under way */
    ps_client_question_t question;
    bool tries;        /* it only asks whether the worker must wait for a slice */
    bool idle;         /* clocks go on */
    uint64_t until_ms; /* of a step that tries */
    uint64_t epoch;    /* of one that says done */
    uint32_t slice;
};

static ps_known_work_t *find(const ps_membership_t *membership, const char *name)
{
    for (size_t i = 0; i < membership->n_works; i++) {
        if (strcmp(membership->works[i].name, name) == 0) {
            return &membership->works[i];
        }
    }
    return NULL;
}

/* The queue as this worker knows it; NULL: no memory. */
static ps_known_work_t *get(psd_client_t *client, const char *name)
{
    ps_membership_t *membership = client->membership;
    ps_known_work_t *known = find(membership, name);

    if (known != NULL) {
        return known;
    }
    if (!ps_grow(&membership->works, &membership->works_capacity, membership->n_works + 1,
                 sizeof *membership->works)) {
        return NULL;
    }
    known = &membership->works[membership->n_works++];
    *known = (ps_known_work_t){.number = ++client->last_work};
    (void)snprintf(known->name, sizeof known->name, "%s", name);
    return known;
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a question");
}

static psd_status_t check_open(const char *name, uint32_t n_slices, uint64_t n_epochs,
                               psd_error_t *err)
{
    if (name == NULL || !ps_text_is_name(name)) {
        return psd_error_set(err, PSD_INVALID,
                             "queue name is \"%.80s\"; allowed: 1..%d of "
                             "letters, digits, \"_\", \".\", \"-\"",
                             name == NULL ? "" : name, PS_NAME_MAX);
    }
    if (n_slices < 1 || n_slices > PS_WORK_SLICES_MAX) {
        return psd_error_set(err, PSD_INVALID, "n_slices is %" PRIu32 "; allowed: 1..%d", n_slices,
                             PS_WORK_SLICES_MAX);
    }
    if (n_epochs > PS_WORK_EPOCHS_MAX) {
        return psd_error_set(err, PSD_INVALID, "n_epochs is %" PRIu64 "; allowed: 0..%d", n_epochs,
                             PS_WORK_EPOCHS_MAX);
    }
    return PSD_OK;
}

static psd_status_t ask_to_open(psd_client_t *client, const char *name, uint32_t n_slices,
                                uint64_t n_epochs, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = ps_question_new("work_open");

    if (question == NULL || !ps_control_name_job(client, question) ||
        !ps_doc_set_text(question, "queue", name) ||
        !ps_doc_set_u64(question, "slices", n_slices) ||
        !ps_doc_set_u64(question, "epochs", n_epochs)) {
        return no_memory(err);
    }
    return ps_question_ask(client, question, client->options.timeout_ms, 0, NULL, err);
}

psd_status_t psd_work_open(psd_client_t *client, const char *name, uint32_t n_slices,
                           uint64_t n_epochs, psd_work_t **ret_work, psd_error_t *err)
{
    if (ps_client_enter(client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    PSD_AUTO(psd_work_close) psd_work_t *self = NULL;
    psd_status_t rc = ps_worker_check(client, err);

    if (rc == PSD_OK) {
        rc = check_open(name, n_slices, n_epochs, err);
    }
    if (rc == PSD_OK) {
        rc = ask_to_open(client, name, n_slices, n_epochs, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a work queue");
    }
    self->client = client;
    (void)snprintf(self->name, sizeof self->name, "%s", name);
    *ret_work = self;
    self = NULL; /* ownership moves to the caller */
    return PSD_OK;
}

void psd_work_close(psd_work_t **self_p)
{
    if (self_p != NULL) {
        ps_free(*self_p);
        *self_p = NULL;
    }
}

/* A question of this worker about the queue; NULL: no memory. */
static ps_doc_t *new_question(const psd_work_t *self, const char *op)
{
    const ps_op_worker_t *worker = &self->client->worker.stamp;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_question_new(op);
    ps_doc_t *question = NULL;

    if (doc != NULL && ps_control_name_job(self->client, doc) &&
        ps_doc_set_text(doc, "queue", self->name) &&
        ps_doc_set_u64(doc, "worker", worker->worker) &&
        ps_doc_set_u64(doc, "clock", worker->clock) &&
        ps_doc_set_u64(doc, "joins", worker->joins)) {
        question = doc;
        doc = NULL;
    }
    return question;
}

/* The slice in an answer, or that there are no more. */
static psd_status_t read_slice(const ps_doc_t *reply, uint64_t *ret_epoch, uint32_t *ret_slice,
                               psd_error_t *err)
{
    uint64_t epoch = 0;
    uint64_t slice = 0;
    bool over = false;
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(reply, "over")) {
        rc = ps_doc_get_bool(reply, "over", &over, err);
    }
    if (rc == PSD_OK && !over) {
        rc = ps_doc_get_u64(reply, "epoch", 1, UINT64_MAX, &epoch, err);
    }
    if (rc == PSD_OK && !over) {
        rc = ps_doc_get_u64(reply, "slice", 0, PS_WORK_SLICES_MAX - 1, &slice, err);
    }
    if (rc == PSD_OK) {
        *ret_epoch = epoch;
        *ret_slice = (uint32_t)slice;
    }
    return rc;
}

static void hold(ps_known_work_t *known, uint64_t epoch, uint32_t slice)
{
    if (known->n_held < PS_WORK_HOLDS_MAX) {
        known->held[known->n_held].epoch = epoch;
        known->held[known->n_held++].slice = slice;
    }
}

static void let_go(ps_known_work_t *known, uint64_t epoch, uint32_t slice)
{
    for (size_t i = 0; i < known->n_held; i++) {
        if (known->held[i].epoch == epoch && known->held[i].slice == slice) {
            known->held[i] = known->held[--known->n_held];
            return;
        }
    }
}

static bool holds_any(const ps_membership_t *membership)
{
    bool any = false;

    for (size_t i = 0; !any && i < membership->n_works; i++) {
        any = membership->works[i].n_held > 0;
    }
    return any;
}

static psd_status_t ask_for_slice(psd_work_t *self, const ps_known_work_t *known,
                                  uint32_t timeout_ms, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy)
    ps_doc_t *question = new_question(self, "work_next");

    if (question == NULL || !ps_doc_set_u64(question, "number", known->number)) {
        return no_memory(err);
    }
    return ps_question_begin(self->client, question, timeout_ms, GRACE_MS, &self->question, err);
}

static void begin_idle(psd_work_t *self)
{
    self->idle = true;
    ps_idle_begin(self->client);
}

/* Workers that hold the slices may wait for this worker's clocks: while it has
 * no slice it finishes clocks. It first asks whether it must wait, so that a
 * worker that gets its slice at once finishes none. */
psd_status_t ps_work_next_begin(psd_work_t *self, uint32_t timeout_ms, bool waits, psd_error_t *err)
{
    const ps_membership_t *membership = self->client->membership;
    bool may_idle = false;
    ps_known_work_t *known = NULL;
    psd_status_t rc = ps_worker_check(self->client, err);

    if (rc != PSD_OK) {
        return rc;
    }
    known = get(self->client, self->name);
    if (known == NULL) {
        return no_memory(err);
    }
    may_idle = membership->max_delay >= 0 && !holds_any(membership);
    self->tries = may_idle && !waits;
    self->until_ms = ps_now_ms() + timeout_ms;
    rc = ask_for_slice(self, known, self->tries ? 0 : timeout_ms, err);
    if (rc == PSD_OK && may_idle && waits) {
        begin_idle(self);
    }
    return rc;
}

/* It must wait if there is no slice, and time is left. */
static psd_status_t wait_idle(psd_work_t *self, bool *ret_over, psd_error_t *err)
{
    const ps_client_question_t *question = &self->question;
    ps_known_work_t *known = get(self->client, self->name);
    uint64_t now_ms = ps_now_ms();

    self->tries = false;
    if ((question->reply != NULL && ps_reply_status(question->reply, NULL) != PSD_DEADLINE) ||
        now_ms >= self->until_ms || known == NULL) {
        return PSD_OK;
    }
    ps_question_drop(self->client, &self->question);
    *ret_over = false;
    begin_idle(self);
    return ask_for_slice(self, known, (uint32_t)(self->until_ms - now_ms), err);
}

static void end_idle(psd_work_t *self)
{
    if (self->idle) {
        ps_idle_end(self->client);
        self->idle = false;
    }
}

psd_status_t ps_work_look(psd_work_t *self, bool *ret_over, psd_error_t *err)
{
    psd_status_t rc = ps_question_look(self->client, &self->question, ret_over, err);

    if (rc == PSD_OK && *ret_over && self->tries) {
        rc = wait_idle(self, ret_over, err);
    }
    if (rc != PSD_OK) {
        end_idle(self);
    }
    return rc;
}

uint64_t ps_work_wake_ms(const psd_work_t *self)
{
    return ps_question_wake_ms(&self->question);
}

void ps_work_cancel(psd_work_t *self)
{
    end_idle(self);
    ps_question_drop(self->client, &self->question);
}

psd_status_t ps_work_next_end(psd_work_t *self, uint64_t *ret_epoch, uint32_t *ret_slice,
                              psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    ps_known_work_t *known = NULL;
    psd_status_t rc = PSD_OK;

    end_idle(self);
    rc = ps_question_end(self->client, &self->question, &reply, err);
    if (rc == PSD_OK) {
        rc = read_slice(reply, ret_epoch, ret_slice, err);
    }
    known = find(self->client->membership, self->name);
    if (rc == PSD_OK && known != NULL) {
        known->number = ++self->client->last_work;
    }
    if (rc == PSD_OK && known != NULL && *ret_epoch != 0) {
        hold(known, *ret_epoch, *ret_slice);
    }
    return rc;
}

/* Lets the client work until the step is over. */
static psd_status_t wait_for_step(psd_work_t *self, psd_error_t *err)
{
    bool over = false;
    psd_status_t rc = PSD_OK;

    ps_pump(self->client, 0); /* an answer may be there with no time to wait */
    rc = ps_work_look(self, &over, err);
    while (rc == PSD_OK && !over) {
        ps_pump(self->client, ps_work_wake_ms(self));
        rc = ps_work_look(self, &over, err);
    }
    return rc;
}

psd_status_t psd_work_next(psd_work_t *self, uint32_t timeout_ms, uint64_t *ret_epoch,
                           uint32_t *ret_slice, psd_error_t *err)
{
    if (ps_client_enter(self->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = ps_work_next_begin(self, timeout_ms, false, err);

    if (rc == PSD_OK) {
        rc = wait_for_step(self, err);
    }
    return rc == PSD_OK ? ps_work_next_end(self, ret_epoch, ret_slice, err) : rc;
}

psd_status_t ps_work_done_begin(psd_work_t *self, uint64_t epoch, uint32_t slice,
                                uint32_t timeout_ms, psd_error_t *err)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *question = NULL;
    psd_status_t rc = ps_worker_check(self->client, err);

    if (rc != PSD_OK) {
        return rc;
    }
    question = new_question(self, "work_done");
    if (question == NULL || !ps_doc_set_u64(question, "epoch", epoch) ||
        !ps_doc_set_u64(question, "slice", slice)) {
        return no_memory(err);
    }
    self->tries = false;
    self->epoch = epoch;
    self->slice = slice;
    return ps_question_begin(self->client, question, timeout_ms, GRACE_MS, &self->question, err);
}

psd_status_t ps_work_done_end(psd_work_t *self, psd_error_t *err)
{
    psd_status_t rc = ps_question_end(self->client, &self->question, NULL, err);
    ps_known_work_t *known = find(self->client->membership, self->name);

    if (rc == PSD_OK && known != NULL) {
        let_go(known, self->epoch, self->slice);
    }
    return rc;
}

psd_status_t psd_work_done(psd_work_t *self, uint64_t epoch, uint32_t slice, uint32_t timeout_ms,
                           psd_error_t *err)
{
    if (ps_client_enter(self->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint64_t until_ms = ps_now_ms() + timeout_ms;
    uint64_t now_ms = 0;
    psd_status_t rc = ps_worker_check(self->client, err);

    if (rc == PSD_OK) {
        rc = psd_flush(self->client, timeout_ms, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "slice %" PRIu32 " of queue %s", slice, self->name);
    }
    now_ms = ps_now_ms();
    rc = ps_work_done_begin(self, epoch, slice,
                            until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0, err);
    if (rc == PSD_OK) {
        rc = wait_for_step(self, err);
    }
    return rc == PSD_OK ? ps_work_done_end(self, err) : rc;
}
