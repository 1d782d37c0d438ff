/* SPDX-License-Identifier: Apache-2.0 */
/* The control port: one request in, one answer out. */
#include "daemon/state/control_inner.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define BATCH 64        /* requests before other work gets a turn */
#define OP_BYTES_MAX 64 /* of an operation's name */
#define OPS_MAX 64

static psd_status_t find_op(const ps_control_t *self, const char *name, size_t *ret_op,
                            psd_error_t *err)
{
    const char *names[OPS_MAX + 1];
    const char *near = NULL;
    char shown[OP_BYTES_MAX * 2];

    assert(self->is.n_ops <= OPS_MAX);
    for (size_t i = 0; i < self->is.n_ops; i++) {
        if (strcmp(self->is.ops[i].name, name) == 0) {
            *ret_op = i;
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
                              size_t *ret_op, psd_error_t *err)
{
    const char *op = NULL;
    uint64_t version = 0;
    psd_status_t rc = ps_doc_get_u64(request->doc, "id", 0, UINT64_MAX, &request->id, err);

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
    return find_op(self, op, ret_op, err);
}

/* A request on its way: from its bytes to its answer, or to where it waits. */
typedef struct ps_task {
    ps_control_request_t request;
    ps_doc_t *doc; /* owned; of the request */
    size_t op;
} ps_task_t;

static void task_destroy(ps_task_t **self_p)
{
    ps_task_t *self = *self_p;

    if (self != NULL) {
        ps_doc_destroy(&self->request.reply);
        ps_buffer_done(&self->request.words);
        ps_doc_destroy(&self->doc);
        ps_free(self);
    }
    *self_p = NULL;
}

/* true: it resent an earlier answer, or the request waits already; its
 * answer goes to the newest connection. */
static bool answer_again(ps_control_t *self, const ps_control_request_t *request)
{
    ps_bytes_t text;

    for (size_t i = 0; i < self->n_tasks; i++) {
        ps_control_request_t *waits = &self->tasks[i]->request;

        if ((waits->once || waits->pauses || waits->made != 0) &&
            waits->session == request->session && waits->id == request->id) {
            waits->conn = request->conn;
            return true;
        }
    }
    if (!request->once || !ps_replies_find(&self->replies, request->session, request->id, &text)) {
        return false;
    }
    ps_control_send_text(self, request->conn, text);
    return true;
}

bool ps_control_is_made(const ps_control_t *self, uint32_t table)
{
    for (size_t i = 0; i < self->n_tasks; i++) {
        if (self->tasks[i]->request.made == table) {
            return true;
        }
    }
    return false;
}

static psd_status_t run_op(ps_control_t *self, ps_task_t *task, psd_error_t *err)
{
    ps_control_request_t *request = &task->request;
    const ps_job_t *job = NULL;
    psd_status_t rc = PSD_OK;

    if (request->step == 0) {
        request->last_table = ps_registry_last_table(self->is.registry);
    }
    if (request->step > 0 || self->is.ops[task->op].first == PS_ASK_NONE) {
        return self->is.ops[task->op].run(self, request, err);
    }
    if (self->is.ops[task->op].first == PS_ASK_INSPECT ||
        self->is.ops[task->op].first == PS_ASK_BRIEFLY) {
        return ps_control_ask(request, PS_CALL_INSPECT, 0);
    }
    rc = ps_control_find_job(self, request->doc, &job, err);
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_WAITING, job->id) : rc;
}

static psd_status_t judge(ps_control_t *self, ps_task_t *task, psd_error_t *err)
{
    ps_control_request_t *request = &task->request;
    psd_status_t rc = read_head(self, request, &task->op, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!self->is.ops[task->op].is_open) {
        rc = ps_doc_get_u64(request->doc, "session", 0, UINT64_MAX, &request->session, err);
        if (rc == PSD_OK) {
            rc = ps_control_check_session(self, request->session, err);
        }
        if (rc == PSD_OK) {
            rc = ps_control_check_rows(self, request, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    request->once = self->is.ops[task->op].once;
    if (answer_again(self, request)) {
        request->parked = true;
        request->once = false;
        return PSD_OK;
    }
    request->reply = ps_control_new_reply(request->id, PSD_OK);
    if (request->reply == NULL) {
        return ps_control_no_memory(err);
    }
    return run_op(self, task, err);
}

/* Keeps a task that waits for answers of nodes. */
static psd_status_t keep(ps_control_t *self, ps_task_t *task, psd_error_t *err)
{
    ps_control_request_t *request = &task->request;
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->tasks, &self->tasks_capacity, self->n_tasks + 1, sizeof(ps_task_t *))) {
        return ps_control_no_memory(err);
    }
    request->asks = false;
    if (request->again_ms == 0) {
        rc = ps_overseer_ask(self->overseer, (int)request->ask_kind, request->ask_job,
                             request->words.size == 0 ? "" : (const char *)request->words.data,
                             task, ps_now_ms(), err);
        ps_buffer_done(&request->words);
    }
    if (rc == PSD_OK && self->is.ops[task->op].first == PS_ASK_BRIEFLY) {
        ps_overseer_be_brief(self->overseer, task);
    }
    if (rc == PSD_OK) {
        self->tasks[self->n_tasks++] = task;
    }
    return rc;
}

/* An operation has returned: the task is answered and ends, or waits. */
static void settle(ps_control_t *self, ps_task_t *task, psd_status_t rc)
{
    ps_control_request_t *request = &task->request;

    if (rc == PSD_OK && request->asks) {
        rc = keep(self, task, self->err);
        if (rc == PSD_OK) {
            return;
        }
    }
    if (rc != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "request_refused", "conn=%" PRIu64 " session=%" PRIu64 " status=%s",
               request->conn, request->session, psd_status_name(rc));
        ps_control_refuse(self, request, rc, psd_error_text(self->err));
    } else if (!request->parked) {
        ps_control_send_reply(self, request, request->reply);
    }
    psd_error_clear(self->err);
    task_destroy(&task);
}

static void serve(ps_control_t *self, uint64_t conn, ps_bytes_t text)
{
    const ps_control_request_t nobody = {.conn = conn};
    ps_task_t *task = ps_alloc(1, sizeof *task);
    psd_status_t rc = PSD_OK;

    if (task == NULL) {
        ps_control_refuse(self, &nobody, PSD_NOMEM, "");
        return;
    }
    task->request.conn = conn;
    rc = ps_doc_parse(text, &task->doc, self->err);
    task->request.doc = task->doc;
    if (rc == PSD_OK) {
        rc = judge(self, task, self->err);
    }
    settle(self, task, rc);
}

static void forget_task(ps_control_t *self, const ps_task_t *task)
{
    for (size_t i = 0; i < self->n_tasks; i++) {
        if (self->tasks[i] == task) {
            self->tasks[i] = self->tasks[--self->n_tasks];
            return;
        }
    }
}

/* Asks again, or tries again, what was due later. */
static void ask_due(ps_control_t *self)
{
    uint64_t now_ms = self->n_tasks == 0 ? 0 : ps_now_ms();

    for (size_t i = self->n_tasks; i > 0; i--) {
        ps_task_t *task = self->tasks[i - 1];
        bool pauses = task->request.pauses;

        if (task->request.again_ms == 0 || task->request.again_ms > now_ms) {
            continue;
        }
        self->tasks[i - 1] = self->tasks[--self->n_tasks];
        task->request.again_ms = 0;
        task->request.pauses = false;
        task->request.asks = !pauses;
        settle(self, task, pauses ? run_op(self, task, self->err) : PSD_OK);
    }
}

/* A table was created or withdrawn: what waits for that may go on. */
static void end_pauses(ps_control_t *self)
{
    for (size_t i = 0; i < self->n_tasks; i++) {
        ps_control_request_t *request = &self->tasks[i]->request;

        if (request->pauses) {
            request->again_ms = 1; /* its time has come */
        }
    }
    ask_due(self);
}

/* Goes on with the requests whose answers have come. */
static void go_on(ps_control_t *self)
{
    ask_due(self);
    for (;;) {
        PSD_AUTO(ps_question_destroy)
        ps_question_t *question = ps_overseer_next_done(self->overseer);
        ps_task_t *task = NULL;
        bool has_made = false;

        if (question == NULL) {
            return;
        }
        task = question->context;
        forget_task(self, task);
        task->request.step++;
        task->request.answers = &question->answers;
        task->request.missing = question->missing;
        has_made = task->request.made != 0;
        settle(self, task, run_op(self, task, self->err));
        if (has_made) {
            end_pauses(self);
        }
    }
}

uint64_t ps_control_again_at(const ps_control_t *self)
{
    uint64_t due_ms = UINT64_MAX;

    for (size_t i = 0; i < self->n_tasks; i++) {
        uint64_t again_ms = self->tasks[i]->request.again_ms;

        due_ms = again_ms != 0 && again_ms < due_ms ? again_ms : due_ms;
    }
    return due_ms;
}

void ps_control_receive(ps_control_t *self)
{
    for (int i = 0; i < BATCH; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->is.port, &got, &conn, &text, self->err);

        if (rc != PSD_OK) {
            const ps_control_request_t request = {.conn = conn};

            ps_control_refuse(self, &request, rc, psd_error_text(self->err));
            psd_error_clear(self->err);
            continue;
        }
        if (!got) {
            break;
        }
        if (ps_node_message_is((ps_bytes_t){.data = text.data, .size = text.size})) {
            ps_control_take_node(self, conn, (ps_bytes_t){.data = text.data, .size = text.size});
        } else {
            serve(self, conn, (ps_bytes_t){.data = text.data, .size = text.size});
        }
        go_on(self);
    }
    ps_control_settle_work(self);
    ps_control_decide(self);
    ps_fleet_send_due(self->fleet);
}

void ps_control_receive_shards(ps_control_t *self)
{
    ps_report_t report;

    ps_fleet_take_shards(self->fleet);
    while (ps_shards_next_report(self->is.shards, &report)) {
        ps_control_take_report(self, self->is.incarnation, &report);
    }
    go_on(self);
    ps_control_decide(self);
    ps_fleet_send_due(self->fleet);
}

/* ---- start and stop ---- */

static psd_status_t make_fleet(ps_control_t *self, psd_error_t *err)
{
    const ps_overseer_args_t core = {.registry = self->is.registry,
                                     .node = self->is.node,
                                     .incarnation = self->is.incarnation,
                                     .suspect_after_ms = self->is.config->cluster.suspect_after};
    ps_fleet_args_t args = {
        .registry = self->is.registry,
        .shards = self->is.shards,
        .port = self->is.port,
        .plugins = self->is.plugins,
        .incarnation = self->is.incarnation,
        .turns = self->is.turns,
    };
    psd_status_t rc = ps_overseer_new(&core, ps_now_ms(), &self->overseer, err);

    args.overseer = self->overseer;
    return rc == PSD_OK ? ps_fleet_new(&args, &self->fleet, err) : rc;
}

psd_status_t ps_control_new(const ps_control_args_t *args, ps_control_t **ret_control,
                            psd_error_t *err)
{
    PSD_AUTO(ps_control_destroy) ps_control_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->is = *args;
        self->started_ms = ps_now_ms();
        self->err = psd_error_new();
        self->clients = ps_alloc(PS_CLIENTS_MAX, sizeof *self->clients);
    }
    if (self == NULL || self->err == NULL || self->clients == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the control port");
    }
    if (make_fleet(self, err) != PSD_OK) {
        return PSD_NOMEM;
    }
    *ret_control = self;
    self = NULL;
    return PSD_OK;
}

void ps_control_destroy(ps_control_t **self_p)
{
    ps_control_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_control_end_barriers(self);
    ps_control_end_work(self);
    for (size_t i = 0; i < self->n_tasks; i++) {
        ps_control_refuse(self, &self->tasks[i]->request, PSD_STOPPING, "the node is stopping");
        task_destroy(&self->tasks[i]);
    }
    ps_free(self->tasks);
    ps_fleet_destroy(&self->fleet);
    ps_overseer_destroy(&self->overseer);
    ps_watches_done(&self->watches);
    ps_replies_done(&self->replies);
    ps_buffer_done(&self->backup.bytes);
    ps_doc_destroy(&self->checkpoint.manifest);
    ps_free(self->clients);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

void ps_control_go_on(ps_control_t *self)
{
    go_on(self);
}

void ps_control_set_config(ps_control_t *self, const ps_config_t *config)
{
    self->is.config = config;
}
