/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that sends a worker's heartbeats. It stops when its context does:
 * every wait then ends at once. */
#include "client/connection/heartbeat.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/handover.h"
#include "base/log.h"
#include "client/connection/client_state.h"
#include "client/connection/discover.h"
#include "transport/threads/fork.h"
#include "transport/threads/thread.h"

/* Ids that differ from those of the client that has the session. */
#define FIRST_ID (UINT64_C(1) << 48)
#define HIGH_WATER 2 /* old heartbeats are of no use */
#define LINGER_MS 100
#define NEXT_MAX_MS 3600000
#define NO_CLOCK UINT64_MAX
#define ROUND_MS 1500 /* to ask all nodes: a worker that is silent for longer may be lost */

struct ps_beat {
    unsigned n_forks;      /* before it was started */
    ps_context_t *context; /* owned */
    ps_socket_t *socket;   /* the thread's, which closes it */
    ps_finder_t finder;    /* the thread's; of the registry */
    ps_key_pair_t keys;    /* a copy … */
    bool has_keys;         /* … if there are any */
    bool over_tcp;
    ps_key_watch_t key_watch; /* the thread's, of their file */
    pthread_t thread;
    atomic_uint n_holders;
    _Atomic uint64_t clocks[PS_MEMBERS_MAX]; /* NO_CLOCK: no such member */
    atomic_int wakes[PS_MEMBERS_MAX];        /* eventfds, owned; -1: no such member */
    atomic_uint n_news;
    _Atomic uint64_t version;
    atomic_int state;                /* psd_status_t */
    char lost_text[PS_TEXT_MAX + 1]; /* the thread's until state is ROWS_LOST */
    /* fixed from the start */
    char job[PS_NAME_MAX + 1];
    uint32_t job_id;
    uint32_t worker;
    uint32_t joins;
    uint64_t session;
    uint64_t heartbeat_ms; /* the thread's, once it runs */
    ps_desk_t *desk;       /* one holder; NULL: no relay */
    bool was_refused;      /* the thread's: the registry lets nobody send to the relay */
    LIST_ENTRY(ps_beat) in_all;
    bool is_listed;
};

/* Those that run, for the end of the process. */
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(beats, ps_beat) all = LIST_HEAD_INITIALIZER(all);

/* The list stays whole in a child. */
static void lock_all(void)
{
    (void)pthread_mutex_lock(&all_mutex);
}

static void unlock_all(void)
{
    (void)pthread_mutex_unlock(&all_mutex);
}

static void watch_forks(void)
{
    (void)pthread_atfork(lock_all, unlock_all, unlock_all);
}

static void list(ps_beat_t *self)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, watch_forks);
    lock_all();
    LIST_INSERT_HEAD(&all, self, in_all);
    self->is_listed = true;
    unlock_all();
}

static void unlist(ps_beat_t *self)
{
    lock_all();
    if (self->is_listed) {
        LIST_REMOVE(self, in_all);
        self->is_listed = false;
    }
    unlock_all();
}

static uint64_t worker_clock(const ps_beat_t *self)
{
    uint64_t least = NO_CLOCK;

    for (size_t i = 0; i < PS_MEMBERS_MAX; i++) {
        uint64_t clock = atomic_load(&self->clocks[i]);

        least = clock < least ? clock : least;
    }
    return least == NO_CLOCK ? 0 : least;
}

/* Where the relay is, which plan it has, and what was measured. */
static bool fill_relay(const ps_beat_t *self, ps_doc_t *doc)
{
    ps_overlay_report_t report;
    ps_doc_t *overlay = ps_doc_add_object(doc, "overlay");

    ps_desk_report(self->desk, ps_now_us(), &report);
    return overlay != NULL && ps_overlay_report_to_doc(&report, overlay) &&
           ps_doc_set_text(doc, "relay", ps_desk_relay(self->desk)) &&
           ps_doc_set_u64(doc, "plan", ps_desk_newest(self->desk));
}

static bool fill(const ps_beat_t *self, ps_doc_t *doc, uint64_t id)
{
    return doc != NULL && ps_doc_set_u64(doc, "v", 1) && ps_doc_set_u64(doc, "id", id) &&
           ps_doc_set_u64(doc, "session", self->session) &&
           ps_doc_set_text(doc, "job", self->job) && ps_doc_set_u64(doc, "job_id", self->job_id) &&
           ps_doc_set_u64(doc, "worker", self->worker) &&
           ps_doc_set_u64(doc, "joins", self->joins) &&
           ps_doc_set_u64(doc, "clock", worker_clock(self)) &&
           (self->desk == NULL || fill_relay(self, doc));
}

/* A heartbeat that cannot be sent now is sent next time. */
static void say(ps_beat_t *self, uint64_t id)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_question_new("heartbeat");
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};
    psd_status_t rc = PSD_OK;

    if (fill(self, doc, id) && ps_doc_print(doc, &text)) {
        rc = ps_socket_send_text(self->socket, 0, (ps_bytes_t){text.data, text.size}, NULL);
        (void)rc;
    }
}

/* The members look. The count comes last: who has seen it finds the rest. */
static void wake_all(ps_beat_t *self)
{
    const uint64_t one = 1;

    for (size_t i = 0; i < PS_MEMBERS_MAX; i++) {
        int fd = atomic_load(&self->wakes[i]);

        if (fd >= 0) {
            (void)!write(fd, &one, sizeof one); /* full: it is readable already */
        }
    }
    atomic_fetch_add(&self->n_news, 1);
}

/* Keeps the first end: an end is final. */
static void set_state(ps_beat_t *self, psd_status_t state)
{
    int running = PSD_OK;

    if (state != PSD_OK && atomic_compare_exchange_strong(&self->state, &running, (int)state)) {
        wake_all(self);
    }
}

static void set_version(ps_beat_t *self, uint64_t version)
{
    if (atomic_exchange(&self->version, version) != version) {
        wake_all(self);
    }
}

static psd_status_t state_of(const char *word)
{
    if (strcmp(word, "stopped") == 0) {
        return PSD_JOB_STOPPED;
    }
    return strcmp(word, "lost") == 0 ? PSD_WORKER_LOST : PSD_OK;
}

/* The text is written once: others may read it from then on. */
static void keep_loss(ps_beat_t *self, const ps_doc_t *doc)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *why = psd_error_new();
    psd_status_t rc = ps_reply_status(doc, why);

    if (rc == PSD_ROWS_LOST && atomic_load(&self->state) == PSD_OK) {
        (void)snprintf(self->lost_text, sizeof self->lost_text, "%s", psd_error_text(why));
    }
}

static void hear_plan(ps_beat_t *self, const ps_doc_t *doc)
{
    ps_relay_facts_t facts = {.version = 0};
    const ps_doc_t *overlay = NULL;

    if (self->desk != NULL && ps_doc_has(doc, "overlay") &&
        ps_doc_get_object(doc, "overlay", &overlay, NULL) == PSD_OK &&
        ps_relay_facts_from_doc(overlay, &facts, NULL) == PSD_OK) {
        ps_desk_put_plan(self->desk, &facts);
    }
}

/* Says once why the worker goes on without its relay. */
static void hear_refusal(ps_beat_t *self, const ps_doc_t *doc)
{
    char quoted[PS_TEXT_MAX];
    const char *why = "";

    if (self->desk != NULL && !self->was_refused && ps_doc_has(doc, "relay_refused") &&
        ps_doc_get_text(doc, "relay_refused", PS_TEXT_MAX, &why, NULL) == PSD_OK) {
        self->was_refused = true;
        ps_log(PS_LOG_WARN, "overlay_off", "job=%s worker=%u reason=%s", self->job, self->worker,
               ps_log_quote(why, quoted, sizeof quoted));
    }
}

static void hear(ps_beat_t *self, const ps_buffer_t *text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const char *word = "";
    uint64_t version = 0;
    uint64_t next_ms = 0;
    psd_status_t status = ps_doc_parse((ps_bytes_t){text->data, text->size}, &doc, NULL);

    if (status != PSD_OK || !ps_finder_heard(&self->finder, doc, ps_now_ms())) {
        return;
    }
    status = ps_reply_status(doc, NULL);
    if (status == PSD_ROWS_LOST) {
        keep_loss(self, doc);
    }
    if (status == PSD_WORKER_LOST || status == PSD_JOB_STOPPED || status == PSD_ROWS_LOST) {
        set_state(self, status);
    }
    if (status != PSD_OK) {
        return;
    }
    if (ps_doc_get_text_or(doc, "state", PS_NAME_MAX, "running", &word, NULL) == PSD_OK) {
        set_state(self, state_of(word));
    }
    if (ps_doc_get_u64_or(doc, "version", 0, UINT64_MAX, 0, &version, NULL) == PSD_OK) {
        set_version(self, version);
    }
    hear_plan(self, doc);
    hear_refusal(self, doc);
    if (ps_doc_get_u64_or(doc, "next_ms", 1, NEXT_MAX_MS, self->heartbeat_ms, &next_ms, NULL) ==
        PSD_OK) {
        self->heartbeat_ms = next_ms;
    }
}

static psd_status_t connect_to(const ps_beat_t *self, ps_socket_t **ret_socket, psd_error_t *err)
{
    const ps_socket_args_t args = {.context = self->context,
                                   .high_water = HIGH_WATER,
                                   .frame_bytes = PS_DOC_BYTES_MAX,
                                   .chunk_bytes = PS_DOC_BYTES_MAX,
                                   .linger_ms = LINGER_MS,
                                   .patience_ms = PS_PATIENCE_SMALL_MS,
                                   .keys = self->has_keys ? &self->keys : NULL};

    char endpoint[PS_ENDPOINT_MAX + 1];

    ps_discover(ps_finder_endpoint(&self->finder), self->has_keys || self->over_tcp, endpoint);
    return ps_socket_connect(endpoint, &args, ret_socket, err);
}

/* Another node may have the registry. An address that does not work is as good
 * as silent. */
static bool go_there(ps_beat_t *self)
{
    ps_socket_t *socket = NULL;

    if (connect_to(self, &socket, NULL) != PSD_OK) {
        return false;
    }
    ps_socket_close(&self->socket); /* what is on its way may arrive yet */
    self->socket = socket;
    return true;
}

/* The same address, by the new key. Without a connection by it, the old key stays until the next
 * look. */
static void look_at_keys(ps_beat_t *self)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t old = self->keys;

    if (self->has_keys &&
        ps_key_watch_look(&self->key_watch, ps_now_ms(), ps_unix_ms(), &self->keys) &&
        !go_there(self)) {
        self->keys = old;
        ps_key_watch_undo(&self->key_watch);
    }
}

static bool receive(ps_beat_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {.size = 0};

    for (bool got = true; got;) {
        uint64_t conn = 0;
        psd_status_t rc = ps_socket_receive_text(self->socket, &got, &conn, &text, NULL);

        if (rc == PSD_OK && got) {
            hear(self, &text);
        } else if (rc == PSD_IO) {
            return false;
        }
    }
    return true;
}

/* Receives until the time is over, or the next heartbeat is to go elsewhere.
 * False: the context was stopped. */
static bool listen_until(ps_beat_t *self, uint64_t until_ms)
{
    for (uint64_t now_ms = ps_now_ms(); now_ms < until_ms; now_ms = ps_now_ms()) {
        uint64_t due_ms = ps_finder_due_ms(&self->finder);
        bool ready = false;
        bool moved = false;

        if (!receive(self)) { /* it may have waited here longer than this thread slept */
            return false;
        }
        if (ps_finder_look(&self->finder, now_ms, &moved)) {
            if (moved) {
                (void)go_there(self);
            }
            return true;
        }
        due_ms = due_ms < until_ms ? due_ms : until_ms;
        if (ps_socket_wait(&self->socket, 1, due_ms > now_ms ? due_ms - now_ms : 0, &ready, NULL) !=
            PSD_OK) {
            return false;
        }
    }
    return true;
}

static void *run(void *arg)
{
    ps_beat_t *self = arg;
    uint64_t id = FIRST_ID;

    ps_handover_take(self);
    do {
        look_at_keys(self);
        say(self, id++);
        ps_finder_asked(&self->finder, ps_now_ms());
    } while (listen_until(self, ps_now_ms() + self->heartbeat_ms));
    ps_socket_drop(&self->socket);
    ps_handover_give(self);
    return NULL;
}

static void close_wakes(const ps_beat_t *self)
{
    for (size_t i = 0; i < PS_MEMBERS_MAX; i++) {
        int fd = atomic_load(&self->wakes[i]);

        if (fd >= 0) {
            (void)close(fd);
        }
    }
}

static void destroy(ps_beat_t **self_p)
{
    ps_beat_t *self = *self_p;

    *self_p = NULL;
    if (self != NULL) {
        ps_socket_drop(&self->socket);
        ps_context_destroy(&self->context);
        close_wakes(self);
        ps_desk_release(&self->desk);
        ps_key_pair_done(&self->keys);
        ps_free(self);
    }
}

psd_status_t ps_beat_start(const ps_beat_args_t *args, ps_beat_t **ret_beat, psd_error_t *err)
{
    PSD_AUTO(destroy) ps_beat_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;
    int failure = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a heartbeat");
    }
    for (size_t i = 0; i < PS_MEMBERS_MAX; i++) {
        atomic_init(&self->clocks[i], NO_CLOCK);
        atomic_init(&self->wakes[i], -1);
    }
    atomic_init(&self->n_news, 0);
    atomic_init(&self->n_holders, 1);
    atomic_init(&self->version, 0);
    atomic_init(&self->state, PSD_OK);
    self->n_forks = ps_fork_count();
    (void)snprintf(self->job, sizeof self->job, "%s", args->job);
    self->job_id = args->job_id;
    self->worker = args->worker;
    self->joins = args->joins;
    self->session = args->session;
    self->heartbeat_ms = args->heartbeat_ms;
    self->desk = args->desk == NULL ? NULL : ps_desk_keep(args->desk);
    self->finder = *args->finder;
    self->has_keys = args->keys != NULL;
    self->over_tcp = args->over_tcp;
    if (self->has_keys) {
        self->keys = *args->keys;
        self->key_watch = *args->key_watch;
    }
    ps_finder_rest(&self->finder);
    self->finder.patience_max_ms = ROUND_MS / self->finder.n;
    rc = ps_context_new(1, &self->context, err);
    if (rc == PSD_OK) {
        rc = connect_to(self, &self->socket, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    ps_handover_give(self);
    failure = ps_thread_start(&self->thread, run, self);
    if (failure != 0) {
        return psd_error_set(err, PSD_IO, "start a thread: error %d", failure);
    }
    list(self);
    *ret_beat = self;
    self = NULL;
    return PSD_OK;
}

ps_beat_t *ps_beat_keep(ps_beat_t *self)
{
    atomic_fetch_add(&self->n_holders, 1);
    return self;
}

void ps_beat_stop(ps_beat_t *self)
{
    ps_context_stop(self->context);
}

void ps_beat_stop_all(void)
{
    ps_beat_t *beat = NULL;

    lock_all();
    LIST_FOREACH(beat, &all, in_all)
    {
        if (!ps_fork_is_since(beat->n_forks)) {
            ps_beat_stop(beat);
        }
    }
    unlock_all();
}

void ps_beat_release(ps_beat_t **self_p)
{
    ps_beat_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    if (atomic_fetch_sub(&self->n_holders, 1) > 1) {
        return;
    }
    unlist(self);
    if (ps_fork_is_since(self->n_forks)) { /* the thread is the parent's */
        ps_fork_keep(self->socket);
        ps_context_destroy(&self->context);
        close_wakes(self);
        ps_key_pair_done(&self->keys);
        ps_free(self);
        return;
    }
    ps_beat_stop(self);
    (void)pthread_join(self->thread, NULL);
    ps_handover_take(self);
    destroy(&self);
}

void ps_beat_set_clock(ps_beat_t *self, uint32_t member, uint64_t clock)
{
    atomic_store(&self->clocks[member], clock);
}

int ps_beat_watch(ps_beat_t *self, uint32_t member)
{
    int fd = atomic_load(&self->wakes[member]);

    if (fd < 0) {
        fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        atomic_store(&self->wakes[member], fd);
    }
    return fd;
}

void ps_beat_take_news(const ps_beat_t *self, uint32_t member, unsigned *seen)
{
    unsigned n_news = atomic_load(&self->n_news);
    uint64_t n = 0;

    if (n_news != *seen) {
        *seen = n_news;
        (void)!read(atomic_load(&self->wakes[member]), &n, sizeof n);
    }
}

uint64_t ps_beat_version(const ps_beat_t *self)
{
    return atomic_load(&self->version);
}

psd_status_t ps_beat_state(const ps_beat_t *self, const char **ret_text)
{
    psd_status_t state = (psd_status_t)atomic_load(&self->state);

    *ret_text = state == PSD_ROWS_LOST ? self->lost_text : "";
    return state;
}
