/* SPDX-License-Identifier: Apache-2.0 */
/* One question in, one answer out. The questions come from ZeroMQ's own I/O threads. */
#include "transport/sockets/zap.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "base/alloc.h"
#include "base/log.h"
#include "transport/threads/thread.h"

#define NAME "zap"
#define ADDRESS "inproc://zeromq.zap.01"
#define FRAMES_MAX 8      /* of a question that we read */
#define FRAME_SIZE 256    /* bytes of one of them */
#define KEY_BYTES 32      /* of a public key, in bytes */
#define LOCAL "localhost" /* the address of a peer over ipc: localhost:UID:GID:PID */
#define PAUSE_MS 1000     /* after an error that may last */

enum { VERSION, REQUEST, DOMAIN, PEER, ROUTING_ID, MECHANISM, CREDENTIALS };

struct ps_zap {
    void *socket; /* owned */
    int wake;     /* eventfd: something below has changed */
    atomic_bool stops;
    _Atomic(ps_turns_t *) turns; /* NULL: nobody looks */
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    bool has_list;         /* only these keys get in */
    ps_public_key_t *keys; /* owned */
    size_t n_keys;
};

typedef struct question {
    char frames[FRAMES_MAX][FRAME_SIZE]; /* each with a '\0' */
    size_t sizes[FRAMES_MAX];
    size_t n;
} question_t;

/* ---- what it is asked ---- */

/* false: with ZeroMQ's error. */
static bool read_question(void *socket, question_t *question)
{
    int more = 1;

    *question = (question_t){.n = 0};
    while (more != 0) {
        size_t at = question->n < FRAMES_MAX ? question->n : FRAMES_MAX - 1;
        size_t size = sizeof more;
        int got = 0;

        do {
            got = zmq_recv(socket, question->frames[at], FRAME_SIZE - 1, 0);
        } while (got < 0 && zmq_errno() == EINTR);
        if (got < 0) {
            return false;
        }
        question->sizes[at] = (size_t)got < FRAME_SIZE ? (size_t)got : FRAME_SIZE; /* cut */
        question->n += question->n < FRAMES_MAX ? 1 : 0;
        if (zmq_getsockopt(socket, ZMQ_RCVMORE, &more, &size) != 0) {
            return false;
        }
    }
    return true;
}

static bool is(const question_t *question, size_t at, const char *word)
{
    return question->sizes[at] == strlen(word) && strcmp(question->frames[at], word) == 0;
}

/* Who it is. false: not one whom a port lets in. */
static bool settle_user(const question_t *question, char ret_user[FRAME_SIZE])
{
    const char *peer = question->frames[PEER];

    ret_user[0] = '\0';
    if (question->n <= MECHANISM || question->sizes[PEER] == 0 || !is(question, VERSION, "1.0") ||
        !is(question, DOMAIN, PS_ZAP_DOMAIN)) {
        return false;
    }
    if (is(question, MECHANISM, "CURVE")) {
        char key[PS_KEY_SIZE + 1];

        if (question->n != CREDENTIALS + 1 || question->sizes[CREDENTIALS] != KEY_BYTES ||
            zmq_z85_encode(key, (const uint8_t *)question->frames[CREDENTIALS], KEY_BYTES) ==
                NULL) {
            return false;
        }
        (void)snprintf(ret_user, FRAME_SIZE, PS_ZAP_KEY "%s", key);
        return true;
    }
    if (!is(question, MECHANISM, "NULL")) {
        return false;
    }
    if (strncmp(peer, LOCAL, strlen(LOCAL)) == 0) {
        const char *uid = peer + strlen(LOCAL) + 1;
        size_t length = peer[strlen(LOCAL)] == ':' ? strcspn(uid, ":") : 0;

        if (length == 0 || uid[length] != ':') {
            return false; /* the kernel did not say who it is */
        }
        (void)snprintf(ret_user, FRAME_SIZE, PS_ZAP_UID "%.*s", (int)length, uid);
    }
    return true;
}

/* ---- the list ---- */

/* Who has that User-Id is in the list, or there is none. */
static bool is_admitted(ps_zap_t *self, const char *user)
{
    bool is_in = false;

    (void)pthread_mutex_lock(&self->mutex);
    is_in = !self->has_list;
    for (size_t i = 0; !is_in && i < self->n_keys; i++) {
        is_in = strncmp(user, PS_ZAP_KEY, strlen(PS_ZAP_KEY)) == 0 &&
                strcmp(user + strlen(PS_ZAP_KEY), self->keys[i].text) == 0;
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return is_in;
}

psd_status_t ps_zap_admit(ps_zap_t *self, const ps_public_key_t *keys, size_t n_keys,
                          psd_error_t *err)
{
    ps_public_key_t *copy = n_keys == 0 ? NULL : ps_alloc(n_keys, sizeof *copy);
    ps_public_key_t *old = NULL;
    bool has_room = n_keys == 0 || copy != NULL;

    if (copy != NULL) {
        memcpy(copy, keys, n_keys * sizeof *copy);
    }
    (void)pthread_mutex_lock(&self->mutex);
    old = self->keys;
    self->keys = copy;
    self->n_keys = has_room ? n_keys : 0;
    self->has_list = true;
    (void)pthread_mutex_unlock(&self->mutex);
    ps_free(old);
    return has_room ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a list of keys");
}

/* ---- what it answers ---- */

static bool send_frame(void *socket, const void *bytes, size_t size, bool more)
{
    int sent = 0;

    do {
        sent = zmq_send(socket, bytes, size, more ? ZMQ_SNDMORE : 0);
    } while (sent < 0 && zmq_errno() == EINTR);
    return sent >= 0;
}

static bool answer(ps_zap_t *self, const question_t *question)
{
    void *socket = self->socket;
    char user[FRAME_SIZE];
    bool is_in = settle_user(question, user) && is_admitted(self, user);
    const char *code = is_in ? "200" : "400";

    user[0] = is_in ? user[0] : '\0';
    return send_frame(socket, "1.0", 3, true) &&
           send_frame(socket, question->frames[REQUEST], question->sizes[REQUEST], true) &&
           send_frame(socket, code, strlen(code), true) && send_frame(socket, "", 0, true) &&
           send_frame(socket, user, strlen(user), true) && send_frame(socket, "", 0, false);
}

/* One wait, and what it brought. false: with ZeroMQ's error. */
static bool turn_once(ps_zap_t *self, ps_turn_t **turn_p)
{
    zmq_pollitem_t items[] = {{.socket = self->socket, .events = ZMQ_POLLIN},
                              {.fd = self->wake, .events = ZMQ_POLLIN}};
    ps_turns_t *turns = atomic_load(&self->turns);
    question_t question;
    uint64_t n_wakes = 0;

    if (*turn_p == NULL && turns != NULL) {
        *turn_p = ps_turns_enter(turns, NAME);
    }
    ps_turn_waits(*turn_p);
    if (zmq_poll(items, 2, turns == NULL ? -1 : PS_TURN_WAIT_MS) < 0) {
        return zmq_errno() == EINTR;
    }
    ps_turn_works(*turn_p);
    if (items[1].revents != 0) {
        ssize_t n = read(self->wake, &n_wakes, sizeof n_wakes);

        (void)n; /* what has changed is looked at in any case */
    }
    return items[0].revents == 0 ||
           (read_question(self->socket, &question) && answer(self, &question));
}

/* Nobody new gets in while this thread cannot work, so it goes on for as long as there is a
 * context. */
static void go_on(ps_zap_t *self)
{
    struct pollfd item = {.fd = self->wake, .events = POLLIN};

    ps_log(PS_LOG_ERROR, "zap_failed", "error=\"%s\" hint=\"nobody new gets in meanwhile\"",
           zmq_strerror(zmq_errno()));
    (void)zmq_send(self->socket, "", 0, 0); /* ends an answer that was begun, which is none */
    (void)poll(&item, 1, PAUSE_MS);
}

static void *run(void *argument)
{
    ps_zap_t *self = argument;
    ps_turn_t *turn = ps_turns_enter(NULL, NAME);

    while (!atomic_load(&self->stops)) {
        if (turn_once(self, &turn)) {
            continue;
        }
        if (zmq_errno() == ETERM) {
            break; /* the context ends: its ports let nobody in any more */
        }
        go_on(self);
    }
    ps_turn_leave(&turn);
    return NULL;
}

static void wake(ps_zap_t *self)
{
    const uint64_t one = 1;
    ssize_t n = write(self->wake, &one, sizeof one);

    (void)n; /* it fails only when the thread is to wake already */
}

/* ---- start and stop ---- */

static psd_status_t failed(const char *doing, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO,
                         "the thread that learns who connects (ZAP) cannot start: %s: %s", doing,
                         zmq_strerror(zmq_errno()));
}

static void done(ps_zap_t **self_p)
{
    ps_zap_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->socket != NULL) {
        (void)zmq_close(self->socket);
    }
    if (self->wake >= 0) {
        (void)close(self->wake);
    }
    (void)pthread_mutex_destroy(&self->mutex);
    ps_free(self->keys);
    ps_free(self);
    *self_p = NULL;
}

psd_status_t ps_zap_start(void *zmq, ps_zap_t **ret_zap, psd_error_t *err)
{
    PSD_AUTO(done) ps_zap_t *self = ps_alloc(1, sizeof *self);
    const int none = 0; /* no question is dropped, and none is kept at the end */
    int code = 0;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a thread (ZAP)");
    }
    (void)pthread_mutex_init(&self->mutex, NULL); /* a plain one: it cannot fail */
    self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    self->socket = self->wake < 0 ? NULL : zmq_socket(zmq, ZMQ_REP);
    if (self->socket == NULL || zmq_setsockopt(self->socket, ZMQ_RCVHWM, &none, sizeof none) != 0 ||
        zmq_setsockopt(self->socket, ZMQ_SNDHWM, &none, sizeof none) != 0 ||
        zmq_setsockopt(self->socket, ZMQ_LINGER, &none, sizeof none) != 0) {
        return failed("its socket", err);
    }
    if (zmq_bind(self->socket, ADDRESS) != 0) {
        return failed("bind " ADDRESS, err);
    }
    code = ps_thread_start(&self->thread, run, self);
    if (code != 0) {
        return psd_error_set(err, PSD_IO,
                             "the thread that learns who connects (ZAP) cannot start: %s",
                             zmq_strerror(code));
    }
    *ret_zap = self;
    self = NULL;
    return PSD_OK;
}

void ps_zap_watch(ps_zap_t *self, ps_turns_t *turns)
{
    atomic_store(&self->turns, turns);
    wake(self);
}

void ps_zap_stop(ps_zap_t **self_p)
{
    if (*self_p == NULL) {
        return;
    }
    atomic_store(&(*self_p)->stops, true);
    wake(*self_p);
    (void)pthread_join((*self_p)->thread, NULL);
    done(self_p);
}
