/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/control: the operations of the control port
 *
 * It is       One file per noun: sessions, tables, jobs, work queues, barriers, nodes,
 *             settings, principals, the registry's members; and requests that wait.
 *             Lost workers and moves of copies, which time brings.
 * It uses     state, nodes, quorum, config; lib/protocol (registry, placement,
 *             facts), lib/wire/messages, lib/base.
 * It ignores  What a command changes (lib/protocol/registry), which copies should
 *             move (lib/protocol/placement), checkpoints, and how messages travel.
 * Start at    control_ops.c in lib/server for the list of operations, this file for
 *             a request, control_session.c for hello and session numbers.
 */
/* The control port: one request in, one answer out. */
#include "server/state/control_inner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "protocol/registry/command_code.h"
#include "wire/messages/reply.h"

#define TURN_MS 50                            /* of requests before other work gets a turn */
#define READ_MS 10                            /* of reading before a request gets a turn */
#define UNSERVED_MAX 4096                     /* requests that wait for their turn */
#define UNSERVED_BYTES_MAX ((size_t)16 << 20) /* of all of them */
#define OP_BYTES_MAX 64                       /* of an operation's name */
#define STRANGER_BYTES_MAX ((size_t)64 << 10) /* of a request that is read to say no to it */

static psd_status_t find_op(const ps_control_t *self, const char *name,
                            const ps_control_row_t **ret_op, psd_error_t *err)
{
    const char *names[PS_TRUST_OPS_COUNT + 1];
    const char *near = NULL;
    char shown[OP_BYTES_MAX * 2];

    assert(self->is.n_ops <= PS_TRUST_OPS_COUNT);
    for (size_t i = 0; i < self->is.n_ops; i++) {
        if (strcmp(self->is.ops[i].name, name) == 0) {
            *ret_op = &self->is.ops[i];
            return PSD_OK;
        }
        names[i] = self->is.ops[i].name;
    }
    names[self->is.n_ops] = NULL;
    near = ps_text_suggest(name, names);
    (void)ps_log_quote(name, shown, sizeof shown);
    if (near != NULL) {
        return psd_error_set(err, PSD_UNSUPPORTED, "unknown op %s; did you mean \"%s\"?", shown,
                             near);
    }
    return psd_error_set(err, PSD_UNSUPPORTED, "unknown op %s; docs/protocol.md lists them", shown);
}

/* Reads the fields that all requests have. */
static psd_status_t read_head(const ps_control_t *self, ps_control_request_t *request,
                              psd_error_t *err)
{
    const char *op = NULL;
    uint64_t version = 0;
    psd_status_t rc = ps_doc_get_u64(request->doc, "id", 0, UINT64_MAX, &request->waits.id, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_doc_get_u64(request->doc, "v", 0, UINT64_MAX, &version, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (version != PS_CONTROL_VERSION) {
        return psd_error_set(err, PSD_VERSION, "v is %" PRIu64 "; this psd speaks %d", version,
                             PS_CONTROL_VERSION);
    }
    rc = ps_doc_get_text(request->doc, "op", OP_BYTES_MAX, &op, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return find_op(self, op, &request->op, err);
}

static ps_control_request_t *request_of(ps_waiter_t *waiter)
{
    return (ps_control_request_t *)waiter; /* its first member */
}

/* true: it resent an earlier answer, or the request waits already; its
 * answer goes to the newest connection. */
static bool answer_again(ps_control_t *self, const ps_control_request_t *request)
{
    const ps_waiter_t *who = &request->waits;
    ps_bytes_t text;

    if (ps_waiters_repeat(&self->waiters, who) != NULL) {
        return true;
    }
    if (!request->op->once || !ps_replies_find(&self->replies, who->session, who->id, &text)) {
        return false;
    }
    ps_control_send_text(self, who->conn, text);
    return true;
}

/* It may have been done by an earlier life of this registry, or another member. */
static void recall(const ps_control_t *self, ps_control_request_t *request)
{
    const ps_outcome_t *outcome =
        ps_registry_answer(self->is.registry, request->waits.session, request->waits.id);

    if (outcome != NULL) {
        request->outcome = *outcome;
        ps_log(PS_LOG_INFO, "request_repeated",
               "op=%s session=%" PRIu64 " id=%" PRIu64 " done=%s number=%" PRIu64,
               request->op->name, outcome->session, outcome->request,
               ps_command_name((ps_command_kind_t)outcome->kind), outcome->number);
    }
}

bool ps_control_is_made(const ps_control_t *self, uint32_t table)
{
    const ps_waiter_t *waiter = NULL;

    TAILQ_FOREACH(waiter, &self->waiters.all, link)
    {
        if (((const ps_control_request_t *)waiter)->made == table) {
            return true;
        }
    }
    return false;
}

static psd_status_t run_op(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    const ps_control_row_t *op = request->op;
    const ps_job_t *job = NULL;
    psd_status_t rc = PSD_OK;

    if (request->step == 0) {
        request->last_table = ps_registry_last_table(self->is.registry);
    }
    if (request->step > 0 || op->first == PS_ASK_NONE) {
        return op->run(self, request, err);
    }
    if (op->first == PS_ASK_INSPECT || op->first == PS_ASK_BRIEFLY) {
        return ps_control_ask(request, PS_CALL_INSPECT, 0);
    }
    if (op->first == PS_ASK_REACHED) {
        return ps_control_ask(request, PS_CALL_REACHED, 0);
    }
    rc = ps_control_find_job(self, request->doc, &job, err);
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_WAITING, job->id) : rc;
}

/* What a client asks that met nodes without a registry when it connected. */
static bool is_for_guest(const ps_control_request_t *request)
{
    return request->waits.session >= PS_GUEST_FIRST && ps_request_is_of_map(request->doc);
}

static psd_status_t judge(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    uint64_t *session = &request->waits.session;
    psd_status_t rc = read_head(self, request, err);

    if (rc != PSD_OK) {
        return rc;
    }
    ps_count_add(&self->counts->requests[request->op - self->is.ops], 1);
    ps_control_note_who(self, request);
    rc = ps_control_may(self, request, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (!request->op->is_open) {
        rc = ps_doc_get_u64(request->doc, "session", 0, UINT64_MAX, session, err);
        if (rc == PSD_OK && !is_for_guest(request)) {
            rc = ps_control_check_session(self, *session, err);
            if (rc == PSD_OK) {
                rc = ps_control_own_session(self, request, *session, err);
            }
        }
        if (rc == PSD_OK) {
            rc = ps_control_check_rows(self, request, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    request->waits.op = request->op;
    if (answer_again(self, request)) {
        request->silent = true;
        return PSD_OK;
    }
    request->once = request->op->once;
    if (request->once) {
        recall(self, request);
    }
    request->reply = ps_control_new_reply(request->waits.id, PSD_OK);
    if (request->reply == NULL) {
        return ps_control_no_memory(err);
    }
    return run_op(self, request, err);
}

/* Asks the nodes what the request wants to know, if now. */
static psd_status_t ask_nodes(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (request->waits.kind != PS_FOR_ANSWERS) {
        return PSD_OK;
    }
    if (request->waits.due_ms == PS_NOT_DUE) {
        rc = ps_overseer_ask(self->overseer, (int)request->ask_kind, request->ask_job,
                             request->words.size == 0 ? "" : (const char *)request->words.data,
                             request, ps_now_ms(), err);
        ps_buffer_done(&request->words);
    }
    if (rc == PSD_OK && request->op->first == PS_ASK_BRIEFLY) {
        ps_overseer_be_brief(self->overseer, request);
    }
    return rc;
}

static void count_refusal(ps_control_t *self, psd_status_t rc)
{
    if ((size_t)rc < PS_DIM_CODE) {
        ps_count_add(&self->counts->refusals[rc], 1);
    }
}

/* An operation has returned: the request is answered and ends, or waits. */
static void settle(ps_control_t *self, ps_control_request_t *request, psd_status_t rc)
{
    if (rc == PSD_OK) {
        rc = ask_nodes(self, request, self->err);
    }
    if (rc == PSD_OK && request->waits.kind != 0) {
        ps_waiters_add(&self->waiters, &request->waits);
        if (request->waits.kind == PS_FOR_BARRIER) {
            ps_control_begin_barrier(self, request);
        }
        return;
    }
    if (rc != PSD_OK) {
        count_refusal(self, rc);
        ps_log(PS_LOG_DEBUG, "request_refused", "conn=%" PRIu64 " session=%" PRIu64 " status=%s",
               request->waits.conn, request->waits.session, psd_status_name(rc));
    }
    ps_control_end(self, request, rc, psd_error_text(self->err));
    psd_error_clear(self->err);
}

/* A question that every member may answer, whether it leads or not. */
static bool is_for_any(const ps_control_request_t *request)
{
    const char *op = NULL;

    return ps_doc_get_text(request->doc, "op", OP_BYTES_MAX, &op, NULL) == PSD_OK &&
           strcmp(op, "registry_list") == 0;
}

static void serve(ps_control_t *self, ps_control_request_t *request)
{
    psd_status_t rc = PSD_OK;

    if (request->doc == NULL) {
        rc = ps_doc_parse((ps_bytes_t){.data = request->text.data, .size = request->text.size},
                          &request->doc, self->err);
        ps_buffer_done(&request->text);
    }
    if (rc == PSD_OK && !is_for_any(request) && !ps_replica_may_answer(self->is.replica)) {
        rc = psd_error_set(self->err, PSD_NOT_LEADER,
                           "this node has the registry, and does not know whether it still leads");
    }
    settle(self, request, rc == PSD_OK ? judge(self, request, self->err) : rc);
}

/* Asks the nodes again, or runs the operation again. */
static void try_again(ps_control_t *self, ps_control_request_t *request)
{
    bool asks = request->waits.kind == PS_FOR_ANSWERS;

    ps_waiters_remove(&self->waiters, &request->waits);
    settle(self, request,
           asks ? ps_control_ask(request, request->ask_kind, request->ask_job)
                : run_op(self, request, self->err));
}

void ps_control_look_again(ps_control_t *self)
{
    uint64_t now_ms = ps_now_ms();
    ps_waiter_t *waiter = NULL;

    while ((waiter = ps_waiters_next_due(&self->waiters, now_ms)) != NULL) {
        if (waiter->kind == PS_FOR_BARRIER) {
            ps_control_expire_barrier(self, request_of(waiter), now_ms);
        } else if ((waiter->kind & PS_FOR_WORK) != 0) {
            ps_control_expire_work(self, request_of(waiter), now_ms);
        } else {
            try_again(self, request_of(waiter));
        }
    }
}

void ps_control_go_on(ps_control_t *self)
{
    for (;;) {
        PSD_AUTO(ps_question_destroy)
        ps_question_t *question = ps_overseer_next_done(self->overseer);
        ps_control_request_t *request = NULL;

        if (question == NULL) {
            return;
        }
        request = question->context;
        ps_waiters_remove(&self->waiters, &request->waits);
        request->step++;
        ps_answers_sort(&question->answers);
        request->answers = &question->answers;
        request->missing = question->missing;
        if (request->made != 0) { /* it is created or withdrawn: what waits for that may go on */
            ps_waiters_hasten(&self->waiters, PS_FOR_RETRY);
        }
        settle(self, request, run_op(self, request, self->err));
    }
}

/* ---- reading ---- */

/* What a worker or a node says now and then, in words of our own clients: others
 * may wait for their turn. */
static bool may_be_sign_of_life(ps_bytes_t text)
{
    static const char *const OPS[] = {"\"op\":\"heartbeat\"", "\"op\":\"node_join\"",
                                      "\"op\":\"node_rights\""};
    bool found = false;

    for (size_t i = 0; text.size > 0 && !found && i < sizeof OPS / sizeof *OPS; i++) {
        found = memmem(text.data, text.size, OPS[i], strlen(OPS[i])) != NULL;
    }
    return found;
}

/* None needs a flush of the disk; and a denial is to reach the nodes whatever waits. */
static bool is_sign_of_life(const ps_control_request_t *request)
{
    const char *op = NULL;

    return ps_doc_get_text(request->doc, "op", OP_BYTES_MAX, &op, NULL) == PSD_OK &&
           (strcmp(op, "heartbeat") == 0 || strcmp(op, "node_join") == 0 ||
            strcmp(op, "node_rights") == 0);
}

/* Nobody whom the registry lets do anything, and nobody whom a token may let in. Who has one that
 * is used or void is answered as strangers are: a repetition changes nothing. */
static bool is_stranger(const ps_control_t *self, const ps_asker_t *caller)
{
    const ps_principal_t *who = NULL;
    const ps_invite_t *invite = NULL;

    if (self->is.rights == NULL) {
        return false;
    }
    who = ps_control_principal(self, caller);
    invite = who == NULL ? ps_invites_find(&self->invites, caller->key) : NULL;
    return who == NULL ? invite == NULL || !ps_invite_counts(invite, ps_now_ms()) : who->denied;
}

/* At once, so that those who may nothing take no place in the queue. What is long is not even
 * read: the answer has no number then. */
static void refuse_stranger(ps_control_t *self, ps_control_request_t *request, ps_bytes_t text)
{
    char who[PS_CONTROL_WHO_SIZE];
    psd_status_t rc = PSD_OK;

    if (text.size > STRANGER_BYTES_MAX) {
        rc = psd_error_set(self->err, PSD_DENIED, "%s may not ask for anything",
                           ps_control_print_who(self, &request->caller, who));
    } else {
        rc = ps_doc_parse(text, &request->doc, self->err);
    }
    /* One who no longer leads may not know whom the leader has let in. */
    if (rc == PSD_OK && !ps_replica_may_answer(self->is.replica)) {
        rc = psd_error_set(self->err, PSD_NOT_LEADER, "this node does not lead the registry");
    }
    settle(self, request, rc == PSD_OK ? judge(self, request, self->err) : rc);
}

/* A sign of life is served at once; all else may take a flush of the disk each,
 * and waits for its turn as text, which is smaller than what it says. Where too
 * much waits, it is dropped: clients ask again. */
static void take_request(ps_control_t *self, uint64_t conn, const ps_asker_t *caller,
                         ps_buffer_t *text)
{
    const ps_control_request_t nobody = {.waits.conn = conn};
    const ps_bytes_t bytes = {.data = text->data, .size = text->size};
    ps_control_request_t *request = ps_alloc(1, sizeof *request);
    psd_status_t rc = PSD_OK;

    if (request == NULL) {
        ps_control_refuse(self, &nobody, PSD_NOMEM, "");
        return;
    }
    request->waits.conn = conn;
    request->caller = *caller;
    if (is_stranger(self, caller)) {
        refuse_stranger(self, request, bytes);
        return;
    }
    if (may_be_sign_of_life(bytes)) {
        rc = ps_doc_parse(bytes, &request->doc, self->err);
    }
    if (rc != PSD_OK) {
        settle(self, request, rc);
    } else if (request->doc != NULL && is_sign_of_life(request)) {
        serve(self, request);
    } else if (self->n_unserved >= UNSERVED_MAX || self->unserved_bytes >= UNSERVED_BYTES_MAX) {
        request->silent = true;
        ps_control_end(self, request, PSD_OK, "");
    } else {
        ps_doc_destroy(&request->doc);
        request->text = *text; /* ownership moves */
        *text = (ps_buffer_t){0};
        self->n_unserved++;
        self->unserved_bytes += request->text.size;
        TAILQ_INSERT_TAIL(&self->unserved, &request->waits, link);
    }
}

/* The next one whose turn it is, out of the queue; NULL: none. */
static ps_control_request_t *next_request(ps_control_t *self)
{
    ps_waiter_t *waiter = TAILQ_FIRST(&self->unserved);
    ps_control_request_t *request = NULL;

    if (waiter != NULL) {
        request = request_of(waiter);
        TAILQ_REMOVE(&self->unserved, waiter, link);
        waiter->link.tqe_prev = NULL; /* of no list */
        self->n_unserved--;
        self->unserved_bytes -= request->text.size;
    }
    return request;
}

/* false: nothing has come. */
static bool read_one(ps_control_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_asker_t caller;
    uint64_t conn = 0;
    bool got = false;
    psd_status_t rc = ps_socket_receive_from(self->is.port, &got, &conn, &caller, &text, self->err);
    ps_bytes_t bytes = {.data = text.data, .size = text.size};

    if (rc != PSD_OK) {
        const ps_control_request_t request = {.waits.conn = conn};

        ps_control_refuse(self, &request, rc, psd_error_text(self->err));
        psd_error_clear(self->err);
        return true;
    }
    if (!got) {
        return false;
    }
    if (ps_node_message_is(bytes) && !ps_control_is_node(self, &caller)) {
        self->n_denied++;
    } else if (ps_node_message_is(bytes)) {
        ps_control_take_node(self, conn, bytes);
        ps_control_go_on(self);
    } else {
        take_request(self, conn, &caller, &text);
    }
    return true;
}

/* What has come, with all signs of life, for a while. */
static void read_all(ps_control_t *self)
{
    const uint64_t until_ms = ps_now_ms() + READ_MS;

    for (uint64_t now_ms = ps_now_ms(); now_ms < until_ms; now_ms = ps_now_ms()) {
        if (!read_one(self)) {
            self->drained_ms = now_ms;
            return;
        }
    }
}

void ps_control_receive(ps_control_t *self)
{
    uint64_t until_ms = ps_now_ms() + TURN_MS;
    ps_control_request_t *request = NULL;

    do {
        read_all(self);
        request = next_request(self);
        if (request != NULL) {
            serve(self, request);
            ps_control_go_on(self);
        }
    } while (request != NULL && ps_now_ms() < until_ms);
    ps_control_settle_work(self);
    ps_control_decide(self);
    ps_control_send_due(self);
}

bool ps_control_next_own(ps_control_t *self, ps_buffer_t *ret_bytes)
{
    return ps_control_flush(self) && ps_fleet_next_own(self->fleet, ret_bytes);
}

void ps_control_settle(ps_control_t *self)
{
    ps_control_go_on(self);
    ps_control_decide(self);
    ps_control_send_due(self);
}

/* ---- start and stop ---- */

static psd_status_t make_fleet(ps_control_t *self, psd_error_t *err)
{
    const ps_overseer_args_t core = {.registry = self->is.registry,
                                     .incarnation = self->is.incarnation,
                                     .suspect_after_ms = self->is.config->cluster.suspect_after,
                                     .term = ps_registry_db_applied(self->is.db).term};
    ps_fleet_args_t args = {.port = self->is.port, .turns = self->is.turns};
    psd_status_t rc = ps_overseer_new(&core, ps_now_ms(), &self->overseer, err);

    if (rc == PSD_OK) {
        ps_overseer_set_index(self->overseer, ps_registry_db_applied(self->is.db).index);
    }
    args.overseer = self->overseer;
    return rc == PSD_OK ? ps_fleet_new(&args, &self->fleet, err) : rc;
}

psd_status_t ps_control_new(const ps_control_args_t *args, ps_control_t **ret_control,
                            psd_error_t *err)
{
    PSD_AUTO(ps_control_destroy) ps_control_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->is = *args;
        self->counts = args->meter == NULL ? &self->own_counts : &args->meter->counts;
        ps_waiters_init(&self->waiters);
        TAILQ_INIT(&self->unserved);
        self->started_ms = ps_now_ms();
        ps_delay_open(&self->delay);
        /* Not the numbers of an earlier life: clients may still ask for its work. */
        self->checkpoint_serial = ps_registry_db_applied(args->db).index << 20;
        self->err = psd_error_new();
        self->clients = ps_alloc(PS_CLIENTS_MAX, sizeof *self->clients);
        self->owners = args->rights == NULL ? NULL : ps_owners_new();
    }
    if (self == NULL || self->err == NULL || self->clients == NULL ||
        (args->rights != NULL && self->owners == NULL)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the control port");
    }
    if (make_fleet(self, err) != PSD_OK) {
        return PSD_NOMEM;
    }
    *ret_control = self;
    self = NULL;
    return PSD_OK;
}

void ps_control_end_all(ps_control_t *self, psd_status_t status, const char *text)
{
    while (!TAILQ_EMPTY(&self->waiters.all)) {
        ps_control_end(self, request_of(TAILQ_FIRST(&self->waiters.all)), status, text);
    }
}

void ps_control_destroy(ps_control_t **self_p)
{
    ps_control_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (ps_control_request_t *request = next_request(self); request != NULL;
         request = next_request(self)) {
        request->silent = true; /* as if it had not been read */
        ps_control_end(self, request, PSD_OK, "");
    }
    ps_control_end_all(self, PSD_STOPPING, "the node is stopping");
    ps_control_look_away(self);
    (void)ps_control_flush(self);
    ps_fleet_destroy(&self->fleet);
    ps_overseer_destroy(&self->overseer);
    ps_watches_done(&self->watches);
    ps_replies_done(&self->replies);
    ps_delay_close(&self->delay);
    ps_buffer_done(&self->backup.bytes);
    ps_doc_destroy(&self->checkpoint.manifest);
    ps_free(self->clients);
    ps_owners_destroy(&self->owners);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

void ps_control_set_config(ps_control_t *self, const ps_config_t *config)
{
    self->is.config = config;
}
