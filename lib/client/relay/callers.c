/* SPDX-License-Identifier: Apache-2.0 */
/* The relay's port. Who has not proved to be a worker of the job gets an answer to MEET at most,
 * and one of few places. */
#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "client/relay/relay_inner.h"
#include "protocol/relay/relay_verify.h"

static ps_relay_caller_t *find_conn(const ps_relay_thread_t *self, uint64_t conn)
{
    for (size_t i = 0; i < self->n_callers; i++) {
        if (self->callers[i].conn == conn) {
            return &self->callers[i];
        }
    }
    return NULL;
}

static void forget(ps_relay_thread_t *self, const ps_relay_caller_t *caller)
{
    size_t i = (size_t)(caller - self->callers);

    if (self->down != NULL && caller->is_proved) {
        ps_relay_down_without(self->down, caller->asked.worker);
    }
    self->n_callers--;
    for (; i < self->n_callers; i++) {
        self->callers[i] = self->callers[i + 1];
    }
}

/* The oldest ones that have proved nothing give way. */
static void make_place(ps_relay_thread_t *self)
{
    size_t n = 0;
    ps_relay_caller_t *oldest = NULL;

    for (size_t i = 0; i < self->n_callers; i++) {
        if (!self->callers[i].is_proved) {
            oldest = oldest == NULL ? &self->callers[i] : oldest;
            n++;
        }
    }
    if (n >= PS_RELAY_STRANGERS_MAX) {
        forget(self, oldest);
    }
}

/* A worker connects once at a time: what it had before is gone. */
static void forget_worker(ps_relay_thread_t *self, const ps_relay_caller_t *proved)
{
    uint64_t conn = proved->conn;
    uint32_t worker = proved->asked.worker;

    for (size_t i = self->n_callers; i > 0; i--) {
        ps_relay_caller_t *other = &self->callers[i - 1];

        if (other->is_proved && other->conn != conn && other->asked.worker == worker) {
            forget(self, other);
        }
    }
}

static void say(ps_relay_thread_t *self, uint64_t conn, const ps_message_t *message)
{
    psd_status_t rc = ps_socket_send(self->port, conn, message, NULL, NULL);

    (void)rc; /* who does not hear it asks again, or sends to the nodes */
}

/* A worker of the plan, in the life that the plan names, and with its key. */
static bool is_member(const ps_relay_thread_t *self, uint64_t conn, const ps_msg_meet_t *meet)
{
    size_t i = ps_relay_facts_find(&self->facts, meet->worker);

    return i != SIZE_MAX && self->facts.members[i].joins == meet->joins &&
           ps_relay_has_key(self, conn, &self->facts.members[i]);
}

static void on_ask(ps_relay_thread_t *self, uint64_t conn, const ps_msg_meet_t *ask)
{
    ps_relay_caller_t *known = find_conn(self, conn);
    ps_relay_caller_t caller = {.conn = conn};
    ps_message_t answer;
    ps_id_t nonce;

    if (known != NULL) {
        forget(self, known);
    }
    if (!is_member(self, conn, ask) || ps_random(&nonce, sizeof nonce, NULL) != PSD_OK ||
        ps_meet_answer(&self->self, ask, &nonce, &caller.asked, &answer, NULL) != PSD_OK) {
        return;
    }
    make_place(self);
    if (ps_grow(&self->callers, &self->callers_capacity, self->n_callers + 1,
                sizeof *self->callers)) {
        self->callers[self->n_callers++] = caller;
        say(self, conn, &answer);
    }
}

static void on_proof(ps_relay_thread_t *self, uint64_t conn, const ps_msg_meet_t *proof)
{
    ps_relay_caller_t *caller = find_conn(self, conn);

    if (caller == NULL || caller->is_proved) {
        return;
    }
    if (ps_meet_accept(&self->self, &caller->asked, proof, NULL) != PSD_OK) {
        forget(self, caller);
        return;
    }
    caller->is_proved = true;
    forget_worker(self, caller);
}

/* ---- bundles ---- */

/* It goes back, and its workers push themselves. The next one may be right. */
static const char *refuse_wrong(uint32_t worker, const ps_msg_bundle_t *bundle)
{
    ps_log(PS_LOG_WARN, "overlay_wrong_sum",
           "table=%" PRIu32 " partition=%" PRIu32 " relay_of_worker=%" PRIu32 " clock=%" PRIu64,
           bundle->table, bundle->partition, worker, bundle->clock);
    return "its sums are not those of what its contributors pushed";
}

/* NULL: it is taken; else why not. */
static const char *take(ps_relay_thread_t *self, uint32_t worker, const ps_msg_bundle_t *bundle,
                        ps_payload_t *payload, const ps_relay_key_t *key)
{
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t lot = {.from = NULL};
    const ps_relay_giver_t giver = {.worker = worker,
                                    .request = bundle->request,
                                    .plan = bundle->plan,
                                    .is_urgent = bundle->urgent != 0};

    if (ps_relay_lot_read(bundle, payload, &lot, NULL) != PSD_OK) {
        return "it is no bundle";
    }
    if (!ps_relay_lot_is_right(&lot, key->type, key->first_col)) {
        return refuse_wrong(worker, bundle);
    }
    return ps_relay_give(self->relay, self->now_ms, &giver, key, &lot, NULL) == PSD_OK
               ? NULL
               : "it cannot be taken";
}

static void on_bundle(ps_relay_thread_t *self, uint64_t conn, const ps_msg_bundle_t *bundle,
                      ps_payload_t *payload)
{
    const ps_relay_caller_t *caller = find_conn(self, conn);
    ps_relay_deed_t deed = {.kind = PS_RELAY_TELL,
                            .number = bundle->request,
                            .key = {.table = bundle->table, .partition = bundle->partition},
                            .news = PS_RELAY_RETURNED};
    ps_relay_key_t key;

    if (caller == NULL || !caller->is_proved) {
        return;
    }
    deed.to = caller->asked.worker;
    if (bundle->job != self->speaker.job || bundle->worker != caller->asked.worker ||
        payload == NULL) {
        deed.reason = "it is not of this worker and job";
    } else if (!ps_relay_key_of(self, bundle->table, bundle->partition, bundle->clock, &key)) {
        deed.reason = "the table is not known here";
    } else {
        deed.reason = take(self, deed.to, bundle, payload, &key);
        deed.news = deed.reason == NULL ? PS_RELAY_TAKEN : PS_RELAY_RETURNED;
    }
    ps_relay_trace_note(&self->trace,
                        &(ps_relay_trace_event_t){
                            .kind = deed.news == PS_RELAY_TAKEN ? PS_TRACE_GOT : PS_TRACE_GAVE_BACK,
                            .worker = deed.to,
                            .table = bundle->table,
                            .partition = bundle->partition,
                            .clock = bundle->clock,
                            .bytes = payload == NULL ? 0 : ps_payload_size(payload),
                            .reason = deed.reason});
    ps_callers_tell(self, &deed);
}

void ps_callers_tell(ps_relay_thread_t *self, const ps_relay_deed_t *deed)
{
    for (size_t i = 0; i < self->n_callers; i++) {
        const ps_relay_caller_t *caller = &self->callers[i];
        ps_message_t message;

        if (caller->is_proved && caller->asked.worker == deed->to) {
            ps_relay_relayed(deed, &message);
            say(self, caller->conn, &message);
            return;
        }
    }
}

bool ps_callers_send_rows(ps_relay_thread_t *self, uint32_t worker, const ps_message_t *rows,
                          ps_payload_t *payload)
{
    for (size_t i = 0; i < self->n_callers; i++) {
        const ps_relay_caller_t *caller = &self->callers[i];

        if (caller->is_proved && caller->asked.worker == worker) {
            return ps_socket_send(self->port, caller->conn, rows, payload, NULL) == PSD_OK;
        }
    }
    return true; /* it is gone, and what it wanted with it */
}

static void on_want(ps_relay_thread_t *self, uint64_t conn, const ps_msg_want_t *want)
{
    const ps_relay_caller_t *caller = find_conn(self, conn);
    const ps_down_key_t key = {.table = want->table,
                               .partition = want->partition,
                               .first_row = want->first_row,
                               .n_rows = want->n_rows,
                               .clock = want->clock};
    const ps_message_t refusal = {.kind = PS_KIND_ROWS_ON,
                                  .rows_on = {.request = want->request,
                                              .table = want->table,
                                              .partition = want->partition,
                                              .clock = want->clock}};

    if (caller == NULL || !caller->is_proved) {
        return;
    }
    if (self->down != NULL) {
        ps_relay_down_want(self->down, self->now_ms, caller->asked.worker, want->request, &key,
                           want->wait_ms);
    } else {
        say(self, conn, &refusal);
    }
}

static void hear(ps_relay_thread_t *self, uint64_t conn, const ps_message_t *message,
                 ps_payload_t *payload)
{
    if (message->kind == PS_KIND_BUNDLE) {
        on_bundle(self, conn, &message->bundle, payload);
    } else if (message->kind == PS_KIND_WANT) {
        on_want(self, conn, &message->want);
    } else if (message->kind == PS_KIND_MEET && message->meet.step == PS_MEET_ASK) {
        on_ask(self, conn, &message->meet);
    } else if (message->kind == PS_KIND_MEET && message->meet.step == PS_MEET_PROOF) {
        on_proof(self, conn, &message->meet);
    }
}

void ps_callers_plan(ps_relay_thread_t *self)
{
    for (size_t i = self->n_callers; i > 0; i--) {
        ps_relay_caller_t *caller = &self->callers[i - 1];
        size_t place = ps_relay_facts_find(&self->facts, caller->asked.worker);

        if (place == SIZE_MAX || self->facts.members[place].joins != caller->asked.joins) {
            forget(self, caller);
        }
    }
}

/* Whose connection has closed wants nothing. */
static void drain(ps_relay_thread_t *self)
{
    uint64_t conn = 0;
    int n = 0;

    while (n < PS_RELAY_TURN_MAX && ps_socket_next_gone(self->port, &conn)) {
        ps_relay_caller_t *caller = find_conn(self, conn);

        if (caller != NULL) {
            forget(self, caller);
        }
        n++;
    }
}

void ps_callers_receive(ps_relay_thread_t *self)
{
    bool got = true;

    for (int n = 0; got && n < PS_RELAY_TURN_MAX; n++) {
        PSD_AUTO(ps_payload_destroy) ps_payload_t *payload = NULL;
        ps_message_t message;
        ps_room_t room = {NULL, 0};
        uint64_t conn = 0;
        psd_status_t rc =
            ps_socket_receive(self->port, &got, &conn, &message, &payload, &room, NULL);

        if (rc == PSD_OK && got) {
            hear(self, conn, &message, payload);
        } else if (rc == PSD_PROTO || rc == PSD_VERSION || rc == PSD_LIMIT) {
            ps_relay_caller_t *caller = find_conn(self, conn);

            ps_socket_forget(self->port, conn);
            if (caller != NULL) {
                forget(self, caller);
            }
            got = true;
        } else if (rc != PSD_OK) {
            got = rc == PSD_NO_SESSION;
        }
    }
    drain(self);
}
