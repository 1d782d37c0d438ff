/* SPDX-License-Identifier: Apache-2.0 */
/* The control port: one request in, one answer out. */
#include "daemon/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "daemon/commit.h"

#define BATCH 64        /* requests before other things are looked at */
#define OP_BYTES_MAX 64 /* of an operation's name */
#define PROTOCOL_VERSION 1

static const struct {
    const char *name;
    ps_control_op_t *run;
    bool is_open; /* needs no session */
    bool once;    /* changes something: a repetition gets the first answer */
} OPS[] = {
    {"hello", ps_control_hello, true, false},
    {"table_create", ps_control_table_create, false, true},
    {"table_open", ps_control_table_open, false, false},
    {"table_list", ps_control_table_list, false, false},
    {"table_inspect", ps_control_table_inspect, false, false},
    {"table_drop", ps_control_table_drop, false, true},
    {"job_join", ps_control_job_join, false, true},
    {"job_leave", ps_control_job_leave, false, true},
    {"heartbeat", ps_control_heartbeat, false, false},
    {"job_tables", ps_control_job_tables, false, false},
    {"barrier", ps_control_barrier, false, true},
    {"job_list", ps_control_job_list, false, false},
    {"job_inspect", ps_control_job_inspect, false, false},
    {"job_stop", ps_control_job_stop, false, true},
    {"worker_list", ps_control_worker_list, false, false},
    {"clock_list", ps_control_clock_list, false, false},
    {"clock_inspect", ps_control_clock_inspect, false, false},
    {"why", ps_control_why, false, false},
    {"cluster_status", ps_control_cluster_status, false, false},
    {"cluster_events", ps_control_cluster_events, false, false},
    {"node_list", ps_control_node_list, false, false},
    {"node_inspect", ps_control_node_inspect, false, false},
};
#define N_OPS (sizeof OPS / sizeof OPS[0])

psd_status_t
ps_control_no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for an answer");
}

psd_status_t
ps_control_commit(ps_control_t *self,
                  const ps_command_t *command,
                  ps_log_level_t level,
                  psd_error_t *err)
{
    return ps_commit(self->is.db, self->is.registry, command, level,
                     &self->broken, err);
}

/* ---- answers ---- */

static bool
add_error(ps_doc_t *reply, psd_status_t status, const char *text)
{
    ps_doc_t *error = ps_doc_add_object(reply, "error");

    return error != NULL &&
           ps_doc_set_text(error, "code", psd_status_code(status)) &&
           ps_doc_set_i64(error, "exit", psd_status_exit(status)) &&
           ps_doc_set_text(error, "message",
                           text[0] == '\0' ? psd_status_text(status) : text) &&
           ps_doc_set_text(error, "hint", psd_status_hint(status));
}

/* A document with v, id and status; NULL: no memory. */
static ps_doc_t *
new_reply(uint64_t id, psd_status_t status)
{
    ps_doc_t *reply = ps_doc_new();

    if (reply != NULL &&
        (!ps_doc_set_u64(reply, "v", PROTOCOL_VERSION) ||
         !ps_doc_set_u64(reply, "id", id) ||
         !ps_doc_set_text(reply, "status", psd_status_name(status)))) {
        ps_doc_destroy(&reply);
    }
    return reply;
}

static void
send_text(ps_control_t *self, uint64_t conn, ps_bytes_t text)
{
    psd_status_t rc = ps_socket_send_text(self->is.port, conn, text, NULL);

    /* The client asks again for what did not go out. */
    if (rc != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "answer_dropped", "conn=%" PRIu64 " status=%s",
               conn, psd_status_name(rc));
    }
}

/* Prints a reply; one that is too long becomes an error. */
static bool
print_reply(const ps_doc_t *reply, uint64_t id, ps_buffer_t *ret_text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *instead = NULL;

    if (!ps_doc_print(reply, ret_text)) {
        return false;
    }
    if (ret_text->size <= PS_DOC_BYTES_MAX) {
        return true;
    }
    ps_buffer_done(ret_text);
    instead = new_reply(id, PSD_LIMIT);
    return instead != NULL &&
           add_error(instead, PSD_LIMIT,
                     "the answer is longer than a control message may be; ask "
                     "for less at once") &&
           ps_doc_print(instead, ret_text);
}

static void
send_reply(ps_control_t *self,
           const ps_control_request_t *request,
           const ps_doc_t *reply)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    ps_bytes_t bytes;

    if (reply == NULL || !print_reply(reply, request->id, &text)) {
        ps_log(PS_LOG_ERROR, "answer_dropped", "reason=no_memory id=%" PRIu64,
               request->id);
        return;
    }
    bytes = (ps_bytes_t){.data = text.data, .size = text.size};
    if (request->once) {
        ps_replies_keep(&self->replies, request->session, request->id, bytes);
    }
    send_text(self, request->conn, bytes);
}

static void
send_refusal(ps_control_t *self,
             const ps_control_request_t *request,
             psd_status_t status,
             const char *text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = new_reply(request->id, status);

    if (reply != NULL && !add_error(reply, status, text)) {
        ps_doc_destroy(&reply);
    }
    send_reply(self, request, reply);
}

void
ps_control_answer(ps_control_t *self,
                  const ps_waiter_t *waiter,
                  psd_status_t status,
                  const char *text)
{
    const ps_control_request_t request = {.conn = waiter->conn,
                                          .id = waiter->id,
                                          .session = waiter->session,
                                          .once = true};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;

    if (status != PSD_OK) {
        send_refusal(self, &request, status, text);
        return;
    }
    reply = new_reply(waiter->id, PSD_OK);
    send_reply(self, &request, reply);
}

/* ---- requests ---- */

static psd_status_t
find_op(const char *name, size_t *ret_op, psd_error_t *err)
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
        return psd_error_set(err, PSD_UNSUPPORTED,
                             "unknown op %s; did you mean \"%s\"?", shown,
                             near);
    }
    return psd_error_set(err, PSD_UNSUPPORTED,
                         "unknown op %s; docs/protocol.md lists those that are",
                         shown);
}

/* Reads what all requests have. */
static psd_status_t
read_head(ps_control_request_t *request, size_t *ret_op, psd_error_t *err)
{
    const char *op = NULL;
    uint64_t version = 0;
    psd_status_t rc =
        ps_doc_get_u64(request->doc, "id", 0, UINT64_MAX, &request->id, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_doc_get_u64(request->doc, "v", 0, UINT64_MAX, &version, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (version != PROTOCOL_VERSION) {
        return psd_error_set(err, PSD_VERSION,
                             "v is %" PRIu64 "; this psd speaks %d", version,
                             PROTOCOL_VERSION);
    }
    rc = ps_doc_get_text(request->doc, "op", OP_BYTES_MAX, &op, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return find_op(op, ret_op, err);
}

/* Does what is asked. true: an answer that was given before was given again. */
static bool
answer_again(ps_control_t *self, const ps_control_request_t *request)
{
    ps_bytes_t text;

    if (!request->once || !ps_replies_find(&self->replies, request->session,
                                           request->id, &text)) {
        return false;
    }
    send_text(self, request->conn, text);
    return true;
}

static psd_status_t
judge(ps_control_t *self, ps_control_request_t *request, psd_error_t *err)
{
    size_t op = 0;
    psd_status_t rc = read_head(request, &op, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!OPS[op].is_open) {
        rc = ps_doc_get_u64(request->doc, "session", 0, UINT64_MAX,
                            &request->session, err);
        if (rc == PSD_OK) {
            rc = ps_control_check_session(self, request->session, err);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    request->once = OPS[op].once;
    if (answer_again(self, request)) {
        request->parked = true;
        return PSD_OK;
    }
    request->reply = new_reply(request->id, PSD_OK);
    if (request->reply == NULL) {
        return ps_control_no_memory(err);
    }
    return OPS[op].run(self, request, err);
}

/* One request, from its bytes to its answer (or to where it waits). */
static void
serve(ps_control_t *self, uint64_t conn, ps_bytes_t text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    ps_control_request_t request = {.conn = conn};
    psd_status_t rc = ps_doc_parse(text, &doc, self->err);

    request.doc = doc;
    if (rc == PSD_OK) {
        rc = judge(self, &request, self->err);
    }
    if (rc != PSD_OK) {
        ps_log(PS_LOG_DEBUG, "request_refused",
               "conn=%" PRIu64 " session=%" PRIu64 " status=%s", conn,
               request.session, psd_status_name(rc));
        send_refusal(self, &request, rc, psd_error_text(self->err));
    } else if (!request.parked) {
        send_reply(self, &request, request.reply);
    }
    ps_doc_destroy(&request.reply);
    psd_error_clear(self->err);
}

void
ps_control_receive(ps_control_t *self)
{
    for (int i = 0; i < BATCH && !self->broken; i++) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
        uint64_t conn = 0;
        bool got = false;
        psd_status_t rc = ps_socket_receive_text(self->is.port, &got, &conn,
                                                 &text, self->err);

        if (rc != PSD_OK) {
            const ps_control_request_t request = {.conn = conn};

            send_refusal(self, &request, rc, psd_error_text(self->err));
            psd_error_clear(self->err);
            continue;
        }
        if (!got) {
            return;
        }
        serve(self, conn, (ps_bytes_t){.data = text.data, .size = text.size});
    }
}

/* ---- looking things up ---- */

psd_status_t
ps_control_find_table(const ps_control_t *self,
                      const ps_doc_t *doc,
                      const char *key,
                      const ps_table_t **ret_table,
                      psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, 255, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_table = ps_registry_table(self->is.registry, name);
    if (*ret_table == NULL) {
        char shown[128];

        return psd_error_set(err, PSD_NO_TABLE, "table %s does not exist",
                             ps_log_quote(name, shown, sizeof shown));
    }
    return PSD_OK;
}

psd_status_t
ps_control_find_job(const ps_control_t *self,
                    const ps_doc_t *doc,
                    const ps_job_t **ret_job,
                    psd_error_t *err)
{
    const ps_job_t *job = NULL;
    const char *name = NULL;
    uint64_t id = 0;
    char shown[128];
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(doc, "job_id")) {
        rc = ps_doc_get_u64(doc, "job_id", 1, UINT32_MAX, &id, err);
    } else if (ps_doc_get_u64(doc, "job", 1, UINT32_MAX, &id, NULL) != PSD_OK) {
        rc = ps_doc_get_text(doc, "job", 255, &name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (name != NULL) {
        job = ps_registry_job(self->is.registry, name);
        (void)ps_log_quote(name, shown, sizeof shown);
    } else {
        job = ps_registry_job_by_id(self->is.registry, (uint32_t)id);
        (void)snprintf(shown, sizeof shown, "%" PRIu64, id);
        /* A name may be all digits. */
        if (job == NULL &&
            ps_doc_get_text(doc, "job", 255, &name, NULL) == PSD_OK &&
            !ps_doc_has(doc, "job_id")) {
            job = ps_registry_job(self->is.registry, name);
        }
    }
    if (job == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job %s does not exist", shown);
    }
    *ret_job = job;
    return PSD_OK;
}

/* ---- start and stop ---- */

psd_status_t
ps_control_new(const ps_control_args_t *args,
               ps_control_t **ret_control,
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
    *ret_control = self;
    self = NULL;
    return PSD_OK;
}

void
ps_control_destroy(ps_control_t **self_p)
{
    ps_control_t *self = *self_p;
    size_t place = 0;
    uint64_t job = 0;
    void *value = NULL;

    if (self == NULL) {
        return;
    }
    while (ps_map_next(&self->watches.by_job, &place, &job, &value)) {
        const ps_watch_t *watch = value;

        for (size_t i = 0; i < watch->n_waiters; i++) {
            ps_control_answer(self, &watch->waiters[i], PSD_STOPPING,
                              "the node is stopping");
        }
    }
    ps_watches_done(&self->watches);
    ps_replies_done(&self->replies);
    ps_untold_done(&self->drops);
    ps_free(self->clients);
    psd_error_destroy(&self->err);
    ps_free(self);
    *self_p = NULL;
}

/* A table whose plug-in is gone does not keep the others from being served. */
static psd_status_t
tell_table(ps_control_t *self, const ps_table_t *table, psd_error_t *err)
{
    char quoted[512];
    psd_status_t rc = ps_control_check_updater(self, &table->spec, err);

    if (rc == PSD_OK) {
        return ps_control_tell_table(self, table, err);
    }
    ps_log(PS_LOG_ERROR, "table_unusable", "table=%s reason=%s",
           table->spec.name,
           ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    psd_error_clear(err);
    return PSD_OK;
}

psd_status_t
ps_control_start(ps_control_t *self, psd_error_t *err)
{
    const ps_registry_t *registry = self->is.registry;

    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);
        psd_status_t rc = tell_table(self, table, err);

        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "table \"%s\"", table->spec.name);
        }
        if (table->rows_lost) {
            ps_log(PS_LOG_WARN, "rows_lost",
                   "table=%s id=%" PRIu32
                   " reason=restart hint=\"rows begin again at their first "
                   "values; drop and create the table to clear this\"",
                   table->spec.name, table->id);
        }
    }
    for (size_t i = 0; i < ps_registry_n_jobs(registry); i++) {
        const ps_job_t *job = ps_registry_job_at(registry, i);
        psd_status_t rc = ps_shards_tell_job(self->is.shards, job, err);

        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "job \"%s\"", job->name);
        }
    }
    return PSD_OK;
}

void
ps_control_set_config(ps_control_t *self, const ps_config_t *config)
{
    self->is.config = config;
}

bool
ps_control_is_broken(const ps_control_t *self)
{
    return self->broken;
}
