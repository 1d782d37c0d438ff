/* SPDX-License-Identifier: Apache-2.0 */
/* The control port: one request in, one answer out. */
#include "daemon/control/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define BATCH 64        /* requests before other things are looked at */
#define OP_BYTES_MAX 64 /* of an operation's name */

/* What the nodes are asked before an operation runs. */
typedef enum first_ask {
    ASK_NONE = 0, /* nothing, or what the operation asks itself */
    ASK_INSPECT,  /* partitions */
    ASK_BRIEFLY,  /* the same, without who does not answer at once */
    ASK_JOB       /* clocks and held requests of the job that is named */
} first_ask_t;

static const struct {
    const char *name;
    ps_control_op_t *run;
    bool is_open; /* needs no session */
    bool once;    /* changes something: a repetition gets the first answer */
    first_ask_t first;
} OPS[] = {
    {"hello", ps_control_hello, true, false, ASK_NONE},
    {"table_create", ps_control_table_create, false, true, ASK_NONE},
    {"table_open", ps_control_table_open, false, false, ASK_NONE},
    {"routes", ps_control_routes, false, false, ASK_NONE},
    {"table_list", ps_control_table_list, false, false, ASK_INSPECT},
    {"table_inspect", ps_control_table_inspect, false, false, ASK_INSPECT},
    {"table_drop", ps_control_table_drop, false, true, ASK_NONE},
    {"table_ack", ps_control_table_ack, false, true, ASK_NONE},
    {"job_join", ps_control_job_join, false, true, ASK_NONE},
    {"job_leave", ps_control_job_leave, false, true, ASK_NONE},
    {"heartbeat", ps_control_heartbeat, false, false, ASK_NONE},
    {"job_tables", ps_control_job_tables, false, false, ASK_INSPECT},
    {"barrier", ps_control_barrier, false, true, ASK_NONE},
    {"work_open", ps_control_work_open, false, false, ASK_NONE},
    {"work_next", ps_control_work_next, false, false, ASK_NONE},
    {"work_done", ps_control_work_done, false, false, ASK_NONE},
    {"work_idle", ps_control_work_idle, false, false, ASK_NONE},
    {"job_list", ps_control_job_list, false, false, ASK_NONE},
    {"job_inspect", ps_control_job_inspect, false, false, ASK_JOB},
    {"job_stop", ps_control_job_stop, false, true, ASK_NONE},
    {"worker_list", ps_control_worker_list, false, false, ASK_JOB},
    {"clock_list", ps_control_clock_list, false, false, ASK_NONE},
    {"clock_inspect", ps_control_clock_inspect, false, false, ASK_JOB},
    {"why", ps_control_why, false, false, ASK_JOB},
    {"cluster_status", ps_control_cluster_status, false, false, ASK_BRIEFLY},
    {"cluster_events", ps_control_cluster_events, false, false, ASK_NONE},
    {"cluster_backup", ps_control_cluster_backup, false, false, ASK_NONE},
    {"checkpoint_create", ps_control_checkpoint_create, false, true, ASK_NONE},
    {"checkpoint_restore", ps_control_checkpoint_restore, false, true, ASK_NONE},
    {"checkpoint_verify", ps_control_checkpoint_verify, false, true, ASK_NONE},
    {"checkpoint_look", ps_control_checkpoint_look, false, true, ASK_NONE},
    {"checkpoint_list", ps_control_checkpoint_list, false, false, ASK_NONE},
    {"checkpoint_inspect", ps_control_checkpoint_inspect, false, false, ASK_NONE},
    {"checkpoint_drop", ps_control_checkpoint_drop, false, true, ASK_NONE},
    {"node_list", ps_control_node_list, false, false, ASK_INSPECT},
    {"node_inspect", ps_control_node_inspect, false, false, ASK_INSPECT},
    {"node_drain", ps_control_node_drain, false, true, ASK_INSPECT},
    {"node_remove", ps_control_node_remove, false, true, ASK_NONE},
    {"cluster_rebalance", ps_control_cluster_rebalance, false, false, ASK_INSPECT},
    {"cluster_repair", ps_control_cluster_repair, false, false, ASK_INSPECT},
    {"node_join", ps_control_node_join, true, false, ASK_NONE},
    {"node_announce", ps_control_node_announce, true, false, ASK_NONE},
    {"node_beat", ps_control_node_beat, true, false, ASK_NONE},
    {"node_answer", ps_control_node_answer, true, false, ASK_NONE},
    {"node_report", ps_control_node_report, true, false, ASK_NONE},
    {"node_end", ps_control_node_end, true, false, ASK_NONE},
};
#define N_OPS (sizeof OPS / sizeof OPS[0])

static psd_status_t find_op(const char *name, size_t *ret_op, psd_error_t *err)
{
    const char *names[N_OPS + 1];
    const char *near = NULL;
    char shown[OP_BYTES_MAX * 2];

    for (size_t i = 0; i < N_OPS; i++) {
        if (strcmp(OPS[i].name, name) == 0) {
            *ret_op = i;
            return PSD_OK;
        }
        names[i] = OPS[i].name;
    }
    names[N_OPS] = NULL;
    near = ps_text_suggest(name, names);
    (void)ps_log_quote(name, shown, sizeof shown);
    if (near != NULL) {
        return psd_error_set(err, PSD_UNSUPPORTED, "unknown op %s; did you mean \"%s\"?", shown,
                             near);
    }
    return psd_error_set(err, PSD_UNSUPPORTED,
                         "unknown op %s; docs/protocol.md lists those that are", shown);
}

/* Reads what all requests have. */
static psd_status_t read_head(ps_control_request_t *request, size_t *ret_op, psd_error_t *err)
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
    return find_op(op, ret_op, err);
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

/* true: an answer that was given before was given again, or the request waits
 * already and will be answered where it was asked last. */
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
    if (request->step > 0 || OPS[task->op].first == ASK_NONE) {
        return OPS[task->op].run(self, request, err);
    }
    if (OPS[task->op].first == ASK_INSPECT || OPS[task->op].first == ASK_BRIEFLY) {
        return ps_control_ask(request, PS_CALL_INSPECT, 0);
    }
    rc = ps_control_find_job(self, request->doc, &job, err);
    return rc == PSD_OK ? ps_control_ask(request, PS_CALL_WAITING, job->id) : rc;
}

static psd_status_t judge(ps_control_t *self, ps_task_t *task, psd_error_t *err)
{
    ps_control_request_t *request = &task->request;
    psd_status_t rc = read_head(request, &task->op, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!OPS[task->op].is_open) {
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
    request->once = OPS[task->op].once;
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

/* Keeps a task whose question was asked. */
static psd_status_t keep(ps_control_t *self, ps_task_t *task, psd_error_t *err)
{
    ps_control_request_t *request = &task->request;
    psd_status_t rc = PSD_OK;

    if (!ps_grow(&self->tasks, &self->tasks_capacity, self->n_tasks + 1, sizeof(ps_task_t *))) {
        return ps_control_no_memory(err);
    }
    request->asks = false;
    if (request->again_ms == 0) {
        rc = ps_fleet_ask(self->fleet, request->ask_kind, request->ask_job,
                          (const char *)request->words.data, task, err);
        ps_buffer_done(&request->words);
    }
    if (rc == PSD_OK && OPS[task->op].first == ASK_BRIEFLY) {
        ps_fleet_be_brief(self->fleet, task);
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

/* Questions that were to be asked again later, and what was to be tried. */
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

/* A table is made, or was taken back: what waits for that may go on. */
static void end_pauses(ps_control_t *self)
{
    for (size_t i = 0; i < self->n_tasks; i++) {
        ps_control_request_t *request = &self->tasks[i]->request;

        if (request->pauses) {
            request->again_ms = 1; /* it is due */
        }
    }
    ask_due(self);
}

/* Goes on with the requests whose questions were answered. */
static void go_on(ps_control_t *self)
{
    ask_due(self);
    while (!self->broken) {
        PSD_AUTO(ps_question_destroy)
        ps_question_t *question = ps_fleet_next_done(self->fleet);
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
    for (int i = 0; i < BATCH && !self->broken; i++) {
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
        serve(self, conn, (ps_bytes_t){.data = text.data, .size = text.size});
        go_on(self);
    }
    ps_control_settle_work(self);
    ps_control_decide(self);
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
}

/* ---- start and stop ---- */

static psd_status_t make_fleet(ps_control_t *self, psd_error_t *err)
{
    const ps_fleet_args_t args = {
        .registry = self->is.registry,
        .shards = self->is.shards,
        .port = self->is.port,
        .plugins = self->is.plugins,
        .node = self->is.node,
        .incarnation = self->is.incarnation,
        .suspect_after_ms = self->is.config->cluster.suspect_after,
        .turns = self->is.turns,
    };

    return ps_fleet_new(&args, &self->fleet, err);
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

bool ps_control_is_broken(const ps_control_t *self)
{
    return self->broken;
}
