/* SPDX-License-Identifier: Apache-2.0 */
/* One shard: a port, a pure core, and the loop between them. */
#include "server/shards/shard_actor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "base/log.h"
#include "server/shards/checkpoint_task.h"
#include "server/shards/peer_links.h"
#include "server/shards/shard_call.h"
#include "server/shards/shard_gate.h"
#include "server/shards/shard_lane.h"
#include "server/shards/shard_lines.h"
#include "server/shards/shard_pieces.h"
#include "server/shards/shard_tell.h"
#include "server/shards/shard_wait.h"
#include "protocol/replica/shard_links.h"

#define BATCH 256     /* messages before the pipe gets a turn */
#define TELL_EVERY 32 /* messages in a batch, until peers are woken for their answers … */
#define TELL_BYTES (128 << 10) /* … or bytes of bodies */
#define NOTE_SIZE 512          /* bytes of a note's line */
#define NS_PER_US 1000
#define NEWS_AGAIN_MS 10 /* until it looks for the letter again */

typedef struct actor {
    void *pipe;
    const ps_shard_actor_args_t *args;
    ps_turn_t *turn;
    ps_shard_news_t *news; /* of args */
    ps_socket_t *port;
    ps_peer_links_t links; /* to shards that hold copies */
    ps_shard_t *core;
    ps_checkpoint_task_t *checkpoint;
    uint64_t checkpoint_ms;       /* when it wants to go on */
    ps_journal_thread_t *journal; /* NULL: nothing is kept on disk */
    ps_journal_news_t disk_news;
    ps_outbox_t outbox;
    ps_shard_told_t told;
    ps_shard_gate_t gate;
    uint64_t now_ms;  /* looked up once for a few messages */
    uint64_t step_us; /* when the current step began */
    psd_error_t *err;
    ps_shard_lines_t lines;
    uint64_t n_dropped;  /* answers that could not be sent */
    size_t untold_bytes; /* taken since peers were last woken */
    bool stopping;
} actor_t;

/* ---- effects ---- */

static uint64_t now_us(void)
{
    return ps_meter_now_ns() / NS_PER_US;
}

static void send_effect(actor_t *self, ps_effect_t *effect)
{
    psd_status_t rc = PSD_OK;

    if (ps_message_has_times(&effect->message)) {
        effect->message.times.work_us += now_us() - self->step_us;
    }
    rc = effect->to < PS_LINK_CONN
             ? ps_socket_send(self->port, effect->to, &effect->message, effect->payload, self->err)
             : ps_peer_links_send(&self->links, effect->to, &effect->message, effect->payload,
                                  self->err);

    ps_meter_sent(self->args->meter, effect->payload, rc == PSD_OK);
    /* The peer asks again for answers that were not sent. */
    if (rc != PSD_OK) {
        self->n_dropped++;
        ps_log(PS_LOG_DEBUG, "answer_dropped", "shard=%" PRIu32 " kind=%s status=%s n=%" PRIu64,
               self->args->core.shard, ps_kind_name(effect->message.kind), psd_status_name(rc),
               self->n_dropped);
        psd_error_clear(self->err);
    }
}

static void perform(actor_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->outbox.n_effects; i++) {
        ps_effect_t *effect = &self->outbox.effects[i];

        switch (effect->kind) {
        case PS_EFFECT_SEND:
            send_effect(self, effect);
            break;
        case PS_EFFECT_NOTE:
            ps_shard_lines_print(&self->lines, &effect->note, now_ms);
            break;
        case PS_EFFECT_FILL:
            ps_filler_add(self->args->common->filler, &effect->soon);
            break;
        case PS_EFFECT_REPORT:
            ps_shard_news_add(self->news, &effect->report);
            break;
        case PS_EFFECT_OPEN:
            ps_peer_links_open(&self->links, effect->to, effect->copy.tcp, now_ms, self->err);
            break;
        case PS_EFFECT_RECORD:
        case PS_EFFECT_PIECE:
            ps_shard_journal_give(self->journal, effect);
            break;
        case PS_EFFECT_CLOSE:
            ps_peer_links_close(&self->links, effect->to);
            break;
        case PS_EFFECT_DONE:
        default:
            break;
        }
    }
    ps_outbox_clear(&self->outbox);
}

static void tell(actor_t *self)
{
    ps_shard_limit_pieces(self->port, self->core, &self->told, self->args);
    ps_shard_tell(&self->told, self->args->common, self->core, self->now_ms);
}

static psd_status_t step(actor_t *self, ps_event_t *event)
{
    psd_status_t rc = PSD_OK;

    event->now_ms = self->now_ms;
    event->now_us = event->now_us > 0 ? event->now_us : now_us();
    self->step_us = event->now_us;
    ps_shard_hear(&self->told, self->args->common, event);
    rc = ps_shard_step(self->core, event, &self->outbox, self->err);
    perform(self, event->now_ms);
    tell(self);
    return rc;
}

/* The disk has news. */
static void take_news(actor_t *self)
{
    ps_event_t event;

    if (ps_shard_journal_take(self->journal, &self->disk_news, &event) &&
        step(self, &event) != PSD_OK) {
        psd_error_clear(self->err);
    }
}

/* ---- the port ---- */

/* A peer sent something that is not a message: says so, whatever the peer may be. */
static void refuse(actor_t *self, uint64_t conn, const ps_message_t *of, psd_status_t rc)
{
    ps_message_t message;
    bool told = ps_shard_refusal(of, rc, psd_error_text(self->err), &message);
    char quoted[NOTE_SIZE];

    if (rc != PSD_NO_SESSION && ps_shard_lines_may(&self->lines, ps_now_ms())) {
        ps_log(PS_LOG_WARN, "message_refused",
               "shard=%" PRIu32 " conn=%" PRIu64 " status=%s reason=%s", self->args->core.shard,
               conn, psd_status_name(rc),
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
    }
    psd_error_clear(self->err);
    if (told && ps_socket_send(self->port, conn, &message, NULL, NULL) != PSD_OK) {
        self->n_dropped++;
    }
}

static const char *table_name(const void *of, uint32_t id)
{
    return ps_shard_table_name(((const actor_t *)of)->core, id);
}

static bool conn_stands(const void *of, uint64_t conn)
{
    return ps_socket_has_conn(((const actor_t *)of)->port, conn);
}

/* false: it was refused. */
static bool is_allowed(actor_t *self, uint64_t conn, const ps_message_t *message)
{
    psd_status_t rc = PSD_OK;

    if (message->kind == PS_KIND_HELLO || message->kind == PS_KIND_PEER) {
        ps_asker_t asker;

        ps_shard_gate_greet(&self->gate, conn,
                            ps_socket_greeter(self->port, conn, &asker) ? &asker : NULL);
    }
    rc = ps_shard_gate_check(&self->gate, conn, message, self->err);
    if (rc != PSD_OK) {
        refuse(self, conn, message, rc);
        ps_meter_begin(self->args->meter);
    } else if (message->kind == PS_KIND_BYE) {
        ps_shard_gate_forget(&self->gate, conn);
    }
    return rc == PSD_OK;
}

/* Takes in one message. false: none was there. */
static bool take_message(actor_t *self)
{
    ps_message_t message;
    ps_event_t event = {
        .kind = PS_EVENT_MESSAGE,
        .message = &message,
        .last_session =
            atomic_load_explicit(&self->args->common->last_session, memory_order_acquire),
        .told_job =
            (uint32_t)atomic_load_explicit(&self->args->common->told_job, memory_order_relaxed),
        .told_table =
            (uint32_t)atomic_load_explicit(&self->args->common->told_table, memory_order_relaxed)};
    bool got = false;
    uint64_t work_ns = 0;
    psd_status_t rc = ps_socket_receive(self->port, &got, &event.conn, &message, &event.payload,
                                        &event.room, self->err);

    if (rc == PSD_LIMIT || rc == PSD_NOMEM) {
        /* It has too many unfinished messages: they are dropped, and sent again. */
        ps_socket_forget(self->port, event.conn);
        rc = PSD_BUSY;
    }
    if (rc != PSD_OK) {
        refuse(self, event.conn, &message, rc);
        ps_meter_begin(self->args->meter);
        return true;
    }
    if (!got) {
        return false;
    }
    if (self->gate.rights != NULL && !is_allowed(self, event.conn, &message)) {
        ps_payload_destroy(&event.payload);
        return true;
    }
    ps_shard_find_answer(self->port, self->core, self->now_ms, &event);
    /* What is traced begins after it came: the mark may be from before that, and the sum of its
     * phases would be more than the whole. */
    if (self->args->meter != NULL && (message.flags & PS_FLAG_TIMES) == 0) {
        event.now_us = self->args->meter->mark_ns / NS_PER_US;
    }
    rc = step(self, &event);
    if (rc != PSD_OK) {
        /* Answered with a refusal; the sender retries. */
        ps_log(PS_LOG_ERROR, "step_failed", "shard=%" PRIu32 " status=%s", self->args->core.shard,
               psd_status_name(rc));
        psd_error_clear(self->err);
    }
    work_ns = ps_meter_taken(self->args->meter, message.kind, event.payload);
    ps_shard_worked(self->core, &event, work_ns / NS_PER_US);
    self->untold_bytes += ps_payload_size(event.payload);
    ps_payload_destroy(&event.payload);
    return true;
}

/* ---- the pipe ---- */

static void do_table(actor_t *self, ps_shard_call_t *call)
{
    ps_event_t event = {.kind = PS_EVENT_TABLE,
                        .table = call->table,
                        .spec = &call->spec,
                        .routes = call->routes,
                        .n_routes = call->spec.n_partitions,
                        .copies = call->copies,
                        .rows_lost = call->rows_lost,
                        .lost_sessions = call->lost_sessions,
                        .restoring = call->restoring};

    call->status = ps_shard_journal_table(self->journal, self->core, &event, self->err);
    if (call->status == PSD_OK) {
        call->status = step(self, &event);
    }
}

static void do_drop(actor_t *self, ps_shard_call_t *call)
{
    ps_event_t event = {.kind = PS_EVENT_DROP, .table = call->table};

    call->status = ps_shard_journal_settle(self->journal, self->err);
    if (call->status == PSD_OK) {
        call->status = step(self, &event);
    }
    if (call->status == PSD_OK && self->journal != NULL) {
        ps_journal_thread_drop(self->journal, call->table);
    }
}

static void do_aside(actor_t *self, ps_shard_call_t *call)
{
    ps_event_t event = {.kind = PS_EVENT_ASIDE, .table = call->table};

    call->status = step(self, &event);
}

static void do_unknown(actor_t *self, ps_shard_call_t *call)
{
    call->status = ps_shard_list_aside(self->core, &call->answer.words, self->err);
}

static void do_slow(actor_t *self, ps_shard_call_t *call)
{
    call->status = ps_shard_list_slow(self->core, self->now_ms, &call->answer.words, self->err);
}

static void do_job(actor_t *self, ps_shard_call_t *call)
{
    ps_event_t event = {.kind = PS_EVENT_JOB, .job = &call->job};

    call->status = step(self, &event);
}

static void do_fence(actor_t *self, ps_shard_call_t *call)
{
    ps_event_t event = {.kind = PS_EVENT_FENCE,
                        .table = call->table,
                        .partition = call->partition,
                        .epoch = call->epoch};

    call->status = step(self, &event);
}

static void do_inspect(actor_t *self, ps_shard_call_t *call)
{
    call->status = ps_shard_call_inspect(call, self->core, self->err);
}

static void do_clocks(actor_t *self, ps_shard_call_t *call)
{
    call->status = ps_shard_clocks(self->core, call->job_id, &call->answer.clocks,
                                   &call->answer.n_clocks, self->err);
}

static void do_reached(actor_t *self, ps_shard_call_t *call)
{
    (void)self;
    call->status = PSD_OK;
}

static void do_waiting(actor_t *self, ps_shard_call_t *call)
{
    call->status = ps_shard_waiting(self->core, call->job_id, &call->answer.waiting,
                                    &call->answer.n_waiting, self->err);
    if (call->status == PSD_OK) {
        do_clocks(self, call);
    }
}

static void do_checkpoint(actor_t *self, ps_shard_call_t *call)
{
    const ps_image_step_t now = {.now_ms = self->now_ms, .outbox = &self->outbox};
    PSD_AUTO(ps_buffer_done) ps_buffer_t words = {0};

    call->status = ps_checkpoint_task_call(self->checkpoint, self->core, &now,
                                           (ps_bytes_t){call->words.data, call->words.size}, &words,
                                           self->err);
    perform(self, self->now_ms);
    self->checkpoint_ms = self->now_ms;
    call->answer.words = words;
    words = (ps_buffer_t){0}; /* the call's now */
}

static void (*const COMMANDS[PS_CALL_COUNT])(actor_t *self, ps_shard_call_t *call) = {
    [PS_CALL_TABLE] = do_table,     [PS_CALL_DROP] = do_drop,
    [PS_CALL_JOB] = do_job,         [PS_CALL_FENCE] = do_fence,
    [PS_CALL_INSPECT] = do_inspect, [PS_CALL_WAITING] = do_waiting,
    [PS_CALL_CLOCKS] = do_clocks,   [PS_CALL_CHECKPOINT] = do_checkpoint,
    [PS_CALL_SIZES] = do_inspect,   [PS_CALL_ASIDE] = do_aside,
    [PS_CALL_UNKNOWN] = do_unknown, [PS_CALL_REACHED] = do_reached,
    [PS_CALL_SLOW] = do_slow,
};

/* Reports go out; the pipe has room for the letter. */
static void send_news(actor_t *self)
{
    if (ps_shard_news_seal(self->news)) {
        ps_handover_give(self->news);
        ps_shard_pipe_send(self->pipe, PS_LETTER_NEWS, self->news);
    }
}

static void answer(actor_t *self, ps_shard_call_t *call)
{
    COMMANDS[call->kind](self, call);
    if (call->status != PSD_OK) {
        (void)snprintf(call->text, sizeof call->text, "%.*s", PS_CALL_TEXT_SIZE - 1,
                       psd_error_text(self->err));
        psd_error_clear(self->err);
    }
    send_news(self); /* the report of a FENCE goes before its answer */
    ps_handover_give(call);
    ps_shard_pipe_send(self->pipe, PS_LETTER_CALL, call);
}

static void take_command(actor_t *self)
{
    ps_letter_t letter;

    if (!ps_shard_pipe_take(self->pipe, &letter)) {
        return;
    }
    if (letter.kind != PS_LETTER_CALL) {
        self->stopping = true;
        return;
    }
    ps_handover_take(letter.pointer);
    answer(self, letter.pointer);
    ps_meter_hasten(self->args->meter);
}

/* ---- the loop ---- */

/* Milliseconds until the core wants a tick; UINT64_MAX for never. */
static uint64_t time_to_tick(const actor_t *self)
{
    uint64_t deadline = ps_shard_deadline(self->core);
    uint64_t now_ms = deadline == UINT64_MAX ? 0 : ps_now_ms();

    if (deadline == UINT64_MAX) {
        return UINT64_MAX;
    }
    return deadline <= now_ms ? 0 : deadline - now_ms;
}

/* Does one piece of a checkpoint between messages. */
static void work_if_due(actor_t *self)
{
    const ps_image_step_t now = {.now_ms = self->now_ms, .outbox = &self->outbox};
    uint64_t wait_ms = 0;

    if (self->checkpoint_ms > self->now_ms) {
        return;
    }
    self->step_us = now_us();
    wait_ms = ps_checkpoint_task_work(self->checkpoint, self->core, &now);
    perform(self, self->now_ms);
    tell(self);
    self->checkpoint_ms = wait_ms == UINT64_MAX ? UINT64_MAX : self->now_ms + wait_ms;
}

/* Milliseconds without work if nothing arrives. */
static uint64_t time_left(const actor_t *self)
{
    uint64_t left_ms = time_to_tick(self);
    uint64_t now_ms = self->checkpoint_ms == UINT64_MAX ? 0 : ps_now_ms();
    uint64_t work_ms = self->checkpoint_ms == UINT64_MAX ? UINT64_MAX
                       : self->checkpoint_ms > now_ms    ? self->checkpoint_ms - now_ms
                                                         : 0;
    uint64_t tell_ms = ps_shard_tell_ms(&self->told);

    left_ms = work_ms < left_ms ? work_ms : left_ms;
    left_ms = tell_ms < left_ms ? tell_ms : left_ms;
    if (self->news->n_kept > 0 && left_ms > NEWS_AGAIN_MS) {
        return NEWS_AGAIN_MS;
    }
    return left_ms < PS_TURN_WAIT_MS ? left_ms : PS_TURN_WAIT_MS;
}

static void tick_if_due(actor_t *self)
{
    ps_event_t event = {.kind = PS_EVENT_TICK};

    if (time_to_tick(self) > 0) {
        return;
    }
    self->now_ms = ps_now_ms();
    if (step(self, &event) != PSD_OK) {
        ps_log(PS_LOG_ERROR, "tick_failed", "shard=%" PRIu32 " reason=no_memory",
               self->args->core.shard);
        psd_error_clear(self->err);
    }
}

/* The core releases the rooms of lanes that have ended, and reopens links. */
static void take_gone(actor_t *self)
{
    ps_event_t event = {.kind = PS_EVENT_GONE};

    ps_socket_drop_stale(self->port, self->now_ms);
    while (ps_socket_next_gone(self->port, &event.conn) ||
           ps_peer_links_next_gone(&self->links, self->now_ms, &event.conn)) {
        event.now_us = 0;
        ps_shard_gate_forget(&self->gate, event.conn);
        if (step(self, &event) != PSD_OK) {
            psd_error_clear(self->err);
        }
    }
}

/* Takes what waits, and wakes the peers in batches: one that sleeps wakes
 * once for all of its answers. */
static void take_messages(actor_t *self)
{
    self->untold_bytes = 0;
    ps_meter_begin(self->args->meter);
    for (int i = 0; i < BATCH; i++) {
        if (!take_message(self)) {
            break;
        }
        self->untold_bytes += TELL_BYTES / TELL_EVERY;
        if (self->untold_bytes >= TELL_BYTES) {
            self->untold_bytes = 0;
            self->now_ms = ps_now_ms();
            ps_turn_works(self->turn);
            ps_socket_flush(self->port);
            ps_peer_links_flush(&self->links);
        }
    }
}

/* Answers of other copies. */
static void take_answers(actor_t *self)
{
    ps_message_t message;
    ps_event_t event = {.kind = PS_EVENT_MESSAGE, .message = &message};

    for (int i = 0; i < BATCH; i++) {
        if (!ps_peer_links_receive(&self->links, &event.conn, &message, &event.payload,
                                   self->err)) {
            return;
        }
        event.now_us = 0;
        if (step(self, &event) != PSD_OK) {
            psd_error_clear(self->err); /* the peer asks again for a lost answer */
        }
        ps_payload_destroy(&event.payload);
    }
}

static void run(actor_t *self)
{
    char name[PS_TURN_NAME_SIZE];

    (void)snprintf(name, sizeof name, "shard-%" PRIu32, self->args->core.shard);
    self->turn = ps_turns_enter(self->args->common->turns, name);
    while (!self->stopping) {
        bool ready = false;
        bool called = false;
        ps_waited_t waited = PS_WAITED_OK;
        psd_status_t rc = PSD_OK;

        ps_turn_waits(self->turn);
        rc = ps_peer_links_wait(&self->links, self->port, self->pipe, time_left(self), &ready,
                                &called, self->err);
        ps_turn_works(self->turn);
        waited = ps_shard_wait_check(self->args->core.shard, self->pipe, rc, self->err);
        if (waited != PS_WAITED_OK) {
            atomic_store(&self->args->common->is_deaf, waited == PS_WAITED_DEAF);
            return;
        }
        ready = ready && rc == PSD_OK;
        called = called && rc == PSD_OK;
        self->now_ms = ps_now_ms();
        take_news(self);
        if (called) {
            take_command(self);
        }
        if (ready) {
            take_messages(self);
        }
        take_answers(self);
        take_gone(self);
        tick_if_due(self);
        work_if_due(self);
        ps_meter_look(self->args->meter, self->core, self->now_ms);
        tell(self);
        send_news(self);
    }
}

/* ---- start and stop ---- */

static psd_status_t open_all(actor_t *self, ps_shard_actor_args_t *args)
{
    const char *endpoints[] = {args->tcp, args->ipc};
    size_t first = args->tcp[0] == '\0' ? 1 : 0;
    size_t end = args->ipc[0] == '\0' ? 1 : 2;
    psd_status_t rc = PSD_OK;

    self->err = psd_error_new();
    ps_shard_lines_init(&self->lines, args->core.shard, &args->common->log_level);
    ps_peer_links_init(&self->links, &args->socket);
    ps_shard_gate_init(&self->gate, args->rights,
                       &(ps_gate_view_t){.table = table_name, .stands = conn_stands, .of = self});
    self->gate.audit = args->audit;
    self->checkpoint_ms = UINT64_MAX;
    rc = ps_checkpoint_task_new(&args->core, args->common->turns, &self->checkpoint, self->err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_shard_new(&args->core, &self->core, self->err);
    if (rc == PSD_OK && args->journal.dir != NULL) {
        rc = ps_shard_journal_open(&args->journal, self->core, args->common->turns, &args->found,
                                   &self->journal, self->err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    args->socket.is_watched = true;
    args->socket.patience_ms = PS_PATIENCE_BODIES_MS;
    rc = ps_socket_bind(endpoints + first, end - first, &args->socket, &self->port, self->err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->journal != NULL) {
        ps_socket_wake_by(self->port, ps_journal_thread_fd(self->journal));
    }
    (void)snprintf(first == 0 ? args->tcp : args->ipc, sizeof args->tcp, "%s",
                   ps_socket_endpoint(self->port, 0));
    if (args->with_lane && args->ipc[0] != '\0') {
        ps_shard_lane_open(self->port, args);
    }
    return PSD_OK;
}

void *ps_shard_actor(void *args)
{
    ps_shard_actor_args_t *mine = args;
    actor_t self = {.args = mine, .news = &mine->news};

    ps_handover_take(mine);
    self.pipe = mine->pipe;
    mine->ready = open_all(&self, mine);
    (void)snprintf(mine->text, sizeof mine->text, "%.*s", PS_ACTOR_TEXT_SIZE - 1,
                   psd_error_text(self.err));
    psd_error_clear(self.err);
    ps_handover_give(mine);
    ps_shard_pipe_send(self.pipe, PS_LETTER_READY, NULL); /* on success and on failure */
    if (mine->ready == PSD_OK) {
        run(&self);
    }
    ps_turn_leave(&self.turn);
    ps_outbox_done(&self.outbox);
    ps_peer_links_done(&self.links);
    ps_socket_close(&self.port);
    ps_shard_gate_done(&self.gate);
    ps_journal_thread_stop(&self.journal);
    ps_journal_news_done(&self.disk_news);
    ps_checkpoint_task_destroy(&self.checkpoint);
    ps_shard_destroy(&self.core);
    psd_error_destroy(&self.err);
    ps_handover_give(mine);
    return NULL;
}
