/* SPDX-License-Identifier: Apache-2.0 */
#include "ucx/process.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/queue.h>
#include <unistd.h>

#include <ucs/debug/debug.h>

#include "base/alloc.h"
#include "transport/threads/clock.h"
#include "transport/threads/thread.h"
#include "ucx/lines.h"

#define LOOKS 50          /* that find nothing, before the thread sleeps */
#define LINGER_LOOK_MS 10 /* between looks at what lingers */
#define LINGER_MS 2000    /* for what is queued at the end */

typedef enum stage { NOT_BEGUN, BEGINS, RUNS, ENDS, ENDED, FAILED } stage_t;

/* What the thread is asked for. */
typedef struct ask {
    STAILQ_ENTRY(ask) in_line;
    enum { LISTEN, UNLISTEN, CONNECT } what;
    int peer;
    uint32_t port;
    struct sockaddr_storage at; /* of LISTEN: afterwards the whole address */
    int code;
    bool is_waited_for; /* else the thread frees it */
    bool is_done;
} ask_t;

typedef STAILQ_HEAD(asks, ask) asks_t;

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* the stage, or an ask is done */
    bool has_cond;
    stage_t stage;
    _Atomic pid_t pid; /* 0: it has not begun */
    ps_hall_t *hall;
    ps_ucx_lines_t *lines;
    asks_t asks;
    char reason[PS_CARRIER_REASON];
} mine = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void set_stage(stage_t stage)
{
    (void)pthread_mutex_lock(&mine.mutex);
    mine.stage = stage;
    (void)pthread_cond_broadcast(&mine.changed);
    (void)pthread_mutex_unlock(&mine.mutex);
}

/* ---- the thread ---------------------------------------------------------- */

static void do_ask(ask_t *ask)
{
    switch (ask->what) {
    case LISTEN:
        ask->code = ps_ucx_lines_listen(mine.lines, &ask->at, ask->port, &ask->at);
        break;
    case UNLISTEN:
        ps_ucx_lines_unlisten(mine.lines, ask->port);
        break;
    case CONNECT:
        ps_ucx_lines_connect(mine.lines, ask->peer, &ask->at);
        break;
    }
}

/* Does all that was asked for. Returns the stage. */
static stage_t hear_asks(void)
{
    stage_t stage = RUNS;
    ask_t *ask = NULL;

    (void)pthread_mutex_lock(&mine.mutex);
    while ((ask = STAILQ_FIRST(&mine.asks)) != NULL) {
        STAILQ_REMOVE_HEAD(&mine.asks, in_line);
        (void)pthread_mutex_unlock(&mine.mutex);
        do_ask(ask);
        (void)pthread_mutex_lock(&mine.mutex);
        if (ask->is_waited_for) {
            ask->is_done = true;
            (void)pthread_cond_broadcast(&mine.changed);
        } else {
            ps_free(ask);
        }
    }
    stage = mine.stage;
    (void)pthread_mutex_unlock(&mine.mutex);
    return stage;
}

/* Until something comes, or is to be sent. */
static void sleep_long(bool lingers)
{
    int fd = -1;

    if (ps_ucx_lines_lie_down(mine.lines, &fd) && ps_hall_lie_down(mine.hall)) {
        struct pollfd polled[] = {{.fd = fd, .events = POLLIN},
                                  {.fd = ps_hall_fd(mine.hall), .events = POLLIN}};

        (void)poll(polled, 2, lingers ? LINGER_LOOK_MS : -1);
    }
    ps_hall_get_up(mine.hall);
}

/* One turn, and a rest where nothing moved. */
static void turn(uint32_t *n_idle)
{
    bool moved = ps_ucx_lines_turn(mine.lines);
    bool lingers = false;

    *n_idle = moved ? 0 : *n_idle + (*n_idle < UINT32_MAX ? 1 : 0);
    if (moved) {
        return;
    }
    lingers = ps_hall_look_lingering(mine.hall, ps_now_ms());
    if (*n_idle < LOOKS) {
        (void)sched_yield();
    } else {
        sleep_long(lingers);
    }
}

/* Until the others have what was queued, or for a while. */
static void send_rest(void)
{
    uint64_t until_ms = ps_now_ms() + LINGER_MS;
    uint32_t n_idle = 0;

    ps_hall_end(mine.hall, LINGER_MS);
    while (ps_now_ms() < until_ms &&
           (ps_hall_look_lingering(mine.hall, ps_now_ms()) || ps_ucx_lines_are_open(mine.lines))) {
        n_idle = n_idle < LOOKS - 1 ? n_idle : LOOKS - 2; /* it looks at the clock */
        turn(&n_idle);
    }
}

/* UCX takes these when it is loaded, to print where a program fails. They are the program's. */
static void leave_signals(void)
{
    static const int SIGNALS[] = {SIGILL, SIGBUS, SIGFPE, SIGSEGV};

    for (size_t i = 0; i < sizeof SIGNALS / sizeof SIGNALS[0]; i++) {
        ucs_debug_disable_signal(SIGNALS[i]);
    }
}

static void *run(void *argument)
{
    uint32_t n_idle = 0;

    (void)argument;
    leave_signals();
    mine.hall = ps_hall_new(-1, 0);
    if (mine.hall == NULL) {
        (void)snprintf(mine.reason, sizeof mine.reason, "no memory");
    } else {
        mine.lines = ps_ucx_lines_new(mine.hall, mine.reason);
    }
    set_stage(mine.lines == NULL ? FAILED : RUNS);
    if (mine.lines == NULL) {
        return NULL;
    }
    while (hear_asks() == RUNS) {
        turn(&n_idle);
    }
    send_rest();
    (void)pthread_mutex_lock(&mine.mutex);
    ps_ucx_lines_destroy(&mine.lines);
    mine.stage = ENDED;
    (void)pthread_cond_broadcast(&mine.changed);
    (void)pthread_mutex_unlock(&mine.mutex);
    return NULL;
}

/* ---- for the others ------------------------------------------------------ */

/* The process exits. */
static void stop_at_exit(void)
{
    if (getpid() != mine.pid) {
        return; /* a forked child */
    }
    (void)pthread_mutex_lock(&mine.mutex);
    if (mine.stage == RUNS) {
        mine.stage = ENDS;
        ps_hall_wake(mine.hall);
    }
    while (mine.stage == ENDS) {
        (void)pthread_cond_wait(&mine.changed, &mine.mutex);
    }
    (void)pthread_mutex_unlock(&mine.mutex);
}

/* Under the lock. 0 or an errno. */
static int start(void)
{
    pthread_t thread;
    int code = mine.has_cond ? 0 : ps_cond_init(&mine.changed);

    if (code != 0) {
        return code;
    }
    mine.has_cond = true;
    mine.pid = getpid();
    mine.stage = BEGINS;
    STAILQ_INIT(&mine.asks);
    code = ps_thread_start(&thread, run, NULL);
    if (code != 0) {
        mine.stage = NOT_BEGUN;
        return code;
    }
    (void)pthread_detach(thread);
    return atexit(stop_at_exit) == 0 ? 0 : ENOMEM;
}

int ps_ucx_enter(ps_hall_t **ret_hall, char ret_reason[PS_CARRIER_REASON])
{
    int code = 0;

    if (mine.pid != 0 && mine.pid != getpid()) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "UCX is that of the parent process");
        return EIO;
    }
    (void)pthread_mutex_lock(&mine.mutex);
    if (mine.stage == NOT_BEGUN) {
        code = start();
    }
    while (code == 0 && mine.stage == BEGINS) {
        (void)pthread_cond_wait(&mine.changed, &mine.mutex);
    }
    if (code == 0 && mine.stage != RUNS) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "%s",
                       mine.stage == FAILED ? mine.reason : "UCX has ended");
        code = EIO;
    }
    *ret_hall = mine.hall;
    (void)pthread_mutex_unlock(&mine.mutex);
    return code;
}

/* Hands it to the thread, which does all that it got while it ran. 0 or an errno. */
static int put(ask_t *ask)
{
    const bool waits = ask->is_waited_for;
    int code = EIO;

    (void)pthread_mutex_lock(&mine.mutex);
    if (mine.stage == RUNS) {
        code = 0;
        STAILQ_INSERT_TAIL(&mine.asks, ask, in_line);
        ps_hall_wake(mine.hall);
    }
    while (code == 0 && waits && !ask->is_done) {
        (void)pthread_cond_wait(&mine.changed, &mine.mutex);
    }
    code = code == 0 && waits ? ask->code : code;
    (void)pthread_mutex_unlock(&mine.mutex);
    return code;
}

int ps_ucx_listen(const struct sockaddr_storage *at, uint32_t port, struct sockaddr_storage *ret_at)
{
    ask_t ask = {.what = LISTEN, .port = port, .at = *at, .is_waited_for = true};
    int code = put(&ask);

    *ret_at = ask.at;
    return code;
}

void ps_ucx_unlisten(uint32_t port)
{
    ask_t ask = {.what = UNLISTEN, .port = port, .is_waited_for = true};

    (void)put(&ask); /* at the end all are closed */
}

int ps_ucx_connect(int peer, const struct sockaddr_storage *at)
{
    ask_t *ask = ps_alloc(1, sizeof *ask);
    int code = ENOMEM;

    if (ask != NULL) {
        *ask = (ask_t){.what = CONNECT, .peer = peer, .at = *at};
        code = put(ask);
    }
    if (code != 0) {
        ps_free(ask);
    }
    return code;
}

void ps_ucx_count(uint64_t *ret_sent, uint64_t *ret_received)
{
    *ret_sent = 0;
    *ret_received = 0;
    if (mine.pid != getpid()) {
        return;
    }
    (void)pthread_mutex_lock(&mine.mutex);
    if (mine.lines != NULL) {
        ps_ucx_lines_count(mine.lines, ret_sent, ret_received);
    }
    (void)pthread_mutex_unlock(&mine.mutex);
}
