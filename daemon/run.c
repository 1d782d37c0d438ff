/* SPDX-License-Identifier: Apache-2.0 */
/* The main thread: one loop over the control port, signals and timers. */
#include "daemon/run.h"

#include <czmq.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/env.h"
#include "base/log.h"
#include "base/text.h"
#include "daemon/files.h"
#include "daemon/http_setup.h"
#include "server/server.h"
#include "daemon/spare.h"

#define STATUS_SIZE 400
#define STATUS_EVERY_MS 10000
#define KNOWN_WAIT_MS 5000 /* for the registry to know the node */
#define FILES_EVERY_MS 1000

typedef struct run {
    const ps_opts_t *options;
    ps_config_t *config;
    ps_metrics_t *metrics; /* NULL: nothing is counted */
    ps_http_t *http;       /* NULL: it is off */
    ps_server_t *server;
    ps_turn_t *turn;
    zloop_t *loop;
    int quorum;            /* the descriptor of its member of the registry; -1: none is watched */
    void *link;            /* the socket to the registry that is watched; NULL: none */
    int signals;           /* signalfd */
    int ends;              /* signalfd of those of them that end psd */
    int timer;             /* of the next tick; -1: none is set */
    uint64_t timer_due_ms; /* when it fires */
    ps_spare_t spare;
    bool is_known;   /* to the registry, since this start */
    bool is_ready;   /* and has logged that */
    psd_status_t rc; /* why it could not; err says it */
    psd_error_t *err;
} run_t;

bool ps_run_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct stat is;
    char here[64];

    if (stream == NULL || fstat(STDERR_FILENO, &is) != 0) {
        return false;
    }
    (void)snprintf(here, sizeof here, "%ju:%ju", (uintmax_t)is.st_dev, (uintmax_t)is.st_ino);
    return strcmp(stream, here) == 0;
}

/* ---- readiness ---- */

/* Is it nearly a key, or in a section of keys? Other programs also have
 * variables that begin with PSD_. */
static bool is_slip(const char *name)
{
    return !ps_config_reads_env(name) && !ps_env_is_known(name) &&
           (ps_config_near_env(name) || ps_text_suggest(name, ps_env_names) != NULL);
}

/* Without this, psd would silently ignore a misspelt setting. */
static void warn_of_environment(void)
{
    char name[PS_ENV_NAME_SIZE];

    for (size_t at = 0; ps_env_next(environ, &at, "PSD_", name);) {
        if (is_slip(name)) {
            ps_log(PS_LOG_WARN, "environment_unknown",
                   "name=%s \"no key or program uses it; psd --print-config shows the keys\"",
                   name);
        }
    }
}

static bool say_ready(run_t *self)
{
    char status[STATUS_SIZE];

    self->rc = ps_server_announce(self->server, self->http == NULL ? "" : ps_http_url(self->http),
                                  self->err);
    if (self->rc != PSD_OK) {
        return false;
    }
    self->is_ready = true;
    ps_server_status(self->server, status, sizeof status);
    (void)sd_notifyf(0, "READY=1\nSTATUS=%s", status);
    ps_log(PS_LOG_INFO, "ready", "status=\"%s\"", status);
    warn_of_environment();
    return true;
}

/* ---- timers ---- */

static int handle_tick(zloop_t *loop, int timer, void *argument);

/* Sets the timer for the control part's next deadline. */
static void arm(run_t *self)
{
    uint64_t due_ms = ps_server_deadline(self->server);
    uint64_t now_ms = ps_now_ms();
    uint64_t delay_ms = 0;

    if (self->timer >= 0 && due_ms == self->timer_due_ms) {
        return;
    }
    if (self->timer >= 0) {
        (void)zloop_timer_end(self->loop, self->timer);
        self->timer = -1;
    }
    if (due_ms == UINT64_MAX) {
        return;
    }
    delay_ms = due_ms > now_ms ? due_ms - now_ms : 0;
    if (delay_ms > INT32_MAX) {
        delay_ms = INT32_MAX;
    }
    /* One more, so that a tick never comes before its deadline. */
    self->timer = zloop_timer(self->loop, (size_t)delay_ms + 1, 1, handle_tick, self);
    self->timer_due_ms = due_ms;
}

/* Handles what has arrived. */
static void begin(run_t *self)
{
    ps_turn_works(self->turn);
}

static int handle_link(zloop_t *loop, zmq_pollitem_t *item, void *argument);
static int go_on(run_t *self);

/* Watches the link to the registry, which changes when that moves. */
static bool watch_link(run_t *self)
{
    zmq_pollitem_t link = {.socket = ps_server_link_handle(self->server), .events = ZMQ_POLLIN};

    if (link.socket == self->link) {
        return true;
    }
    if (self->link != NULL) {
        zmq_pollitem_t before = {.socket = self->link};

        zloop_poller_end(self->loop, &before);
    }
    self->link = link.socket;
    if (link.socket == NULL) {
        return true;
    }
    if (zloop_poller(self->loop, &link, handle_link, self) != 0) {
        self->rc = psd_error_set(self->err, PSD_NOMEM, "no memory for the loop");
        return false;
    }
    zloop_poller_set_tolerant(self->loop, &link);
    return true;
}

static int handle_quorum(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)item;
    begin(self);
    ps_server_receive_quorum(self->server);
    return go_on(self);
}

/* Watches this node's member of the registry, once there is one. */
static bool watch_quorum(run_t *self)
{
    zmq_pollitem_t quorum = {.fd = ps_server_quorum_fd(self->server), .events = ZMQ_POLLIN};

    if (quorum.fd == self->quorum) {
        return true;
    }
    self->quorum = quorum.fd;
    if (zloop_poller(self->loop, &quorum, handle_quorum, self) != 0) {
        self->rc = psd_error_set(self->err, PSD_NOMEM, "no memory for the loop");
        return false;
    }
    zloop_poller_set_tolerant(self->loop, &quorum);
    return true;
}

/* Done; the loop waits again. -1 ends it. */
static int go_on(run_t *self)
{
    if (ps_server_is_broken(self->server)) {
        return -1;
    }
    if (!self->is_known && ps_server_is_known(self->server)) {
        self->is_known = true;
        ps_metrics_set_stage(self->metrics, PS_STAGE_SERVING);
    }
    if (!self->is_ready && self->is_known && !say_ready(self)) {
        return -1;
    }
    if (!watch_link(self) || !watch_quorum(self)) {
        return -1;
    }
    arm(self);
    ps_turn_waits(self->turn);
    return 0;
}

/* The registry is silent: the shards here still serve. */
static int handle_unknown(zloop_t *loop, int timer, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)timer;
    return self->is_ready || say_ready(self) ? 0 : -1;
}

static int handle_tick(zloop_t *loop, int timer, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)timer;
    self->timer = -1; /* it fires once */
    begin(self);
    ps_server_tick(self->server);
    return go_on(self);
}

/* Nothing else may have arrived for a while. */
static int handle_turn(zloop_t *loop, int timer, void *argument)
{
    const run_t *self = argument;

    (void)loop;
    (void)timer;
    ps_turn_waits(self->turn);
    return ps_server_is_broken(self->server) ? -1 : 0; /* a shard may be deaf */
}

/* For `systemctl status`; the watchdog is thread_watch.c's. */
static int handle_status(zloop_t *loop, int timer, void *argument)
{
    const run_t *self = argument;
    char status[STATUS_SIZE];

    (void)loop;
    (void)timer;
    ps_server_status(self->server, status, sizeof status);
    (void)sd_notifyf(0, "STATUS=%s", status);
    return 0;
}

static int handle_port(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)item;
    begin(self);
    ps_server_receive(self->server);
    return go_on(self);
}

static int handle_link(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)item;
    begin(self);
    ps_server_receive_link(self->server);
    return go_on(self);
}

static int handle_shards(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)item;
    begin(self);
    ps_server_receive_shards(self->server);
    return go_on(self);
}

static int handle_files(zloop_t *loop, int timer, void *argument)
{
    const run_t *self = argument;

    (void)loop;
    (void)timer;
    ps_server_set_files_out(self->server, ps_files_are_out(ps_now_ms()));
    return 0;
}

static int handle_spare(zloop_t *loop, int timer, void *argument)
{
    run_t *self = argument;

    (void)loop;
    (void)timer;
    if (ps_spare_is_due(&self->spare, ps_server_bytes(self->server))) {
        (void)malloc_trim(0);
    }
    return 0;
}

/* ---- signals ---- */

static void reload(run_t *self)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    ps_key_id_t stuck[PS_KEY_COUNT];
    size_t n_stuck = 0;
    char quoted[1024];
    psd_status_t rc = PSD_OK;

    (void)sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, (uint64_t)zclock_usecs());
    rc = ps_options_config(self->options, &config, self->err);
    if (rc != PSD_OK) {
        ps_log(PS_LOG_ERROR, "reload_failed", "status=%s reason=%s", psd_status_name(rc),
               ps_log_quote(psd_error_text(self->err), quoted, sizeof quoted));
        psd_error_clear(self->err);
        (void)sd_notify(0, "READY=1");
        return;
    }
    n_stuck = ps_config_take_reloadable(self->config, &config, stuck);
    for (size_t i = 0; i < n_stuck; i++) {
        ps_log(PS_LOG_WARN, "restart_needed", "key=%s", ps_config_key(stuck[i])->path);
    }
    ps_server_reloaded(self->server);
    ps_log(PS_LOG_INFO, "reloaded", "restart_needed=%zu", n_stuck);
    (void)sd_notify(0, "READY=1");
}

/* The signal that came, 0: none. Logs one that ends psd. */
static uint32_t read_signal(const run_t *self)
{
    struct signalfd_siginfo info;

    if (read(self->signals, &info, sizeof info) != sizeof info) {
        return 0;
    }
    if (info.ssi_signo != SIGHUP) {
        ps_log(PS_LOG_INFO, "stopping", "signal=%s pid=%" PRIu32,
               info.ssi_signo == SIGTERM ? "TERM" : "INT", info.ssi_pid);
    }
    return info.ssi_signo;
}

static int handle_signal(zloop_t *loop, zmq_pollitem_t *item, void *argument)
{
    run_t *self = argument;
    uint32_t signal_number = 0;

    (void)loop;
    (void)item;
    begin(self);
    signal_number = read_signal(self);
    if (signal_number == SIGHUP) {
        reload(self);
        return go_on(self);
    }
    return signal_number == 0 ? 0 : -1;
}

static psd_status_t take_signals(run_t *self, psd_error_t *err)
{
    sigset_t set;

    zsys_handler_set(NULL); /* czmq leaves signals alone */
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* a write says so */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGHUP);
    /* Threads that start later inherit the mask. */
    if (sigprocmask(SIG_BLOCK, &set, NULL) != 0) {
        return psd_error_set(err, PSD_IO, "cannot block signals: %s", strerror(errno));
    }
    self->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    (void)sigdelset(&set, SIGHUP);
    self->ends = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (self->signals < 0 || self->ends < 0) {
        return psd_error_set(err, PSD_IO, "cannot read signals: %s", strerror(errno));
    }
    return PSD_OK;
}

/* From here on a signal has its default action again: it ends the process. */
static void give_signals_back(void)
{
    sigset_t set;

    (void)signal(SIGHUP, SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    (void)signal(SIGINT, SIG_DFL);
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* ---- the loop ---- */

/* Every connection is a file: take as many as the system gives. */
static void raise_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool watch_shards(run_t *self)
{
    bool done = true;

    for (uint32_t i = 0; done && i < ps_server_n_pipes(self->server); i++) {
        zmq_pollitem_t pipe = {.socket = ps_server_pipe_handle(self->server, i),
                               .events = ZMQ_POLLIN};

        done = zloop_poller(self->loop, &pipe, handle_shards, self) == 0;
        if (done) {
            zloop_poller_set_tolerant(self->loop, &pipe);
        }
    }
    return done;
}

static psd_status_t make_loop(run_t *self, psd_error_t *err)
{
    zmq_pollitem_t port = {.socket = ps_server_handle(self->server), .events = ZMQ_POLLIN};
    zmq_pollitem_t signals = {.fd = self->signals, .events = ZMQ_POLLIN};

    self->loop = zloop_new();
    if (self->loop == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the loop");
    }
    zloop_set_nonstop(self->loop, true);
    if (zloop_poller(self->loop, &port, handle_port, self) != 0 ||
        zloop_poller(self->loop, &signals, handle_signal, self) != 0 || !watch_shards(self)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the loop");
    }
    if (!watch_link(self) || !watch_quorum(self)) {
        return self->rc;
    }
    zloop_poller_set_tolerant(self->loop, &port);
    zloop_poller_set_tolerant(self->loop, &signals);
    if (zloop_timer(self->loop, PS_TURN_WAIT_MS, 0, handle_turn, self) < 0 ||
        zloop_timer(self->loop, STATUS_EVERY_MS, 0, handle_status, self) < 0) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the loop");
    }
    if (zloop_timer(self->loop, KNOWN_WAIT_MS, 1, handle_unknown, self) < 0 ||
        zloop_timer(self->loop, FILES_EVERY_MS, 0, handle_files, self) < 0 ||
        zloop_timer(self->loop, PS_SPARE_LOOK_MS, 0, handle_spare, self) < 0) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the loop");
    }
    return PSD_OK;
}

static psd_status_t serve(run_t *self, psd_error_t *err)
{
    psd_status_t rc = make_loop(self, err);

    self->turn = ps_turns_enter(ps_server_turns(self->server), "control");
    if (self->http != NULL) {
        ps_http_enter(self->http, ps_server_turns(self->server));
    }
    if (rc == PSD_OK) {
        rc = ps_http_setup_api(self->http, self->config->data_dir,
                               ps_server_own_endpoint(self->server), err);
    }
    if (rc == PSD_OK && go_on(self) == 0) {
        (void)zloop_start(self->loop);
    }
    ps_turn_leave(&self->turn);
    if (self->rc != PSD_OK) {
        return psd_error_set(err, self->rc, "%s", psd_error_text(self->err));
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_server_failure(self->server, err);
}

static void notify(const char *text)
{
    (void)sd_notify(0, text);
}

static ps_server_host_t host_of(const run_t *self)
{
    uint64_t watchdog_us = 0;

    return (ps_server_host_t){
        .end_fd = self->ends,
        .notify = notify,
        .watchdog_ms = sd_watchdog_enabled(0, &watchdog_us) > 0 ? watchdog_us / 1000 : 0,
    };
}

psd_status_t ps_run(const ps_opts_t *options, ps_config_t *config, psd_error_t *err)
{
    run_t self = {.options = options,
                  .config = config,
                  .signals = -1,
                  .ends = -1,
                  .timer = -1,
                  .quorum = -1,
                  .err = psd_error_new()};
    psd_status_t rc = take_signals(&self, err);

    raise_files();
    ps_files_start();
    if (rc == PSD_OK) {
        rc = ps_http_setup(config, &self.metrics, &self.http, err);
    }
    if (rc == PSD_OK) {
        const ps_server_host_t host = host_of(&self);

        rc = ps_server_open(config, &host, self.metrics, &self.server, err);
    }
    if (rc == PSD_OK) {
        rc = serve(&self, err);
    } else if (rc == PSD_INTERRUPTED) { /* while it waited for the registry */
        ps_log_set_level((ps_log_level_t)config->log.level);
        while (read_signal(&self) == SIGHUP) {
        }
        psd_error_clear(err);
        rc = PSD_OK;
    }
    (void)sd_notify(0, "STOPPING=1");
    ps_metrics_set_stage(self.metrics, PS_STAGE_STOPPING);
    ps_http_stop(&self.http);
    give_signals_back();
    zloop_destroy(&self.loop);
    ps_server_close(&self.server);
    ps_metrics_destroy(&self.metrics);
    if (self.signals >= 0) {
        (void)close(self.signals);
    }
    if (self.ends >= 0) {
        (void)close(self.ends);
    }
    psd_error_destroy(&self.err);
    if (rc == PSD_OK) {
        ps_log(PS_LOG_INFO, "stopped", "pid=%ld", (long)getpid());
    }
    return rc;
}
