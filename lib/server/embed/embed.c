/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/embed: a node inside a program
 *
 * It is       What psd_server.h promises: a thread that opens a server, serves, and
 *             closes it; its options; its temporary directory; the questions that
 *             its program asks.
 * It uses     The whole of lib/server, and libpsd to ask the registry.
 * It ignores  Signals, and everything else of the process that it runs in.
 * Start at    psd_server.h, then this file.
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "server/embed/embed_ask.h"
#include "server/embed/embed_dir.h"
#include "server/embed/embed_inner.h"
#include "server/embed/embed_loop.h"
#include "transport/threads/fork.h"
#include "transport/threads/thread.h"

#define TIMEOUT_MS 10000

struct psd_embed {
    ps_config_t config;
    ps_embed_dir_t dir; /* of a temporary data directory */
    ps_log_sink_t sink;
    psd_on_log_t *on_log;
    void *on_log_user;
    psd_on_end_t *on_end;
    void *on_end_user;
    unsigned n_forks; /* before it was made */
    int end_fd;       /* an eventfd: readable when it shall end */
    pthread_t thread;
    bool has_thread;
    LIST_ENTRY(psd_embed) in_all;
    /* of both threads */
    pthread_mutex_t mutex;
    pthread_cond_t moved;
    bool is_settled; /* it serves, or cannot */
    bool serves;
    bool shall_end;
    psd_status_t status;                /* why it cannot … */
    psd_error_t *err;                   /* … in words; the thread's until it is settled */
    char endpoint[PS_ENDPOINT_MAX + 1]; /* fixed once it serves */
    char node[PS_NAME_MAX + 1];
};

/* Those that run, for the end of the process. */
static pthread_mutex_t all_mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(embeds, psd_embed) all = LIST_HEAD_INITIALIZER(all);

/* The list may be locked when another thread forks. */
static void in_child(void)
{
    all_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

/* exit() does not stop a server, whose threads run until the process is gone; but
 * its directory goes, and what then fails in it is nobody's business. A thread that
 * exits while another one holds the list leaves the directory to the next start. */
__attribute__((destructor)) static void leave_nothing(void)
{
    psd_embed_t *self = NULL;

    if (pthread_mutex_trylock(&all_mutex) != 0) {
        return;
    }
    LIST_FOREACH(self, &all, in_all)
    {
        if (!ps_fork_is_since(self->n_forks)) {
            atomic_store(&self->sink.level, PS_LOG_NOTHING);
            ps_embed_dir_empty(&self->dir);
        }
    }
    (void)pthread_mutex_unlock(&all_mutex);
}

/* ---- the server's thread ---- */

static void take_line(void *user, ps_log_level_t level, const char *line)
{
    psd_embed_t *self = user;

    self->on_log(self->on_log_user, (int)level, line);
}

static void settle(psd_embed_t *self, bool serves, psd_status_t status)
{
    (void)pthread_mutex_lock(&self->mutex);
    self->is_settled = true;
    self->serves = serves;
    self->status = status;
    (void)pthread_cond_broadcast(&self->moved);
    (void)pthread_mutex_unlock(&self->mutex);
}

typedef struct serving {
    psd_embed_t *self;
    const ps_server_t *server;
} serving_t;

static void on_ready(void *user)
{
    const serving_t *serving = user;
    psd_embed_t *self = serving->self;

    (void)snprintf(self->endpoint, sizeof self->endpoint, "%s",
                   ps_server_endpoint(serving->server));
    (void)snprintf(self->node, sizeof self->node, "%s", ps_server_node(serving->server));
    settle(self, true, PSD_OK);
}

/* It has ended: by itself, unless it was told to. */
static void tell_end(psd_embed_t *self, psd_status_t rc, const psd_error_t *err)
{
    bool by_itself = false;

    (void)pthread_mutex_lock(&self->mutex);
    by_itself = self->serves && !self->shall_end;
    (void)pthread_mutex_unlock(&self->mutex);
    if (by_itself && self->on_end != NULL) {
        self->on_end(self->on_end_user, rc, psd_error_text(err));
    }
}

static void *run(void *arg)
{
    psd_embed_t *self = arg;
    const ps_server_host_t host = {.end_fd = self->end_fd};
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_server_t *server = NULL;
    char quoted[1024];
    psd_status_t rc = PSD_OK;

    ps_log_use(&self->sink);
    rc = ps_server_open(&self->config, &host, NULL, &server, err);
    if (rc == PSD_OK) {
        serving_t serving = {.self = self, .server = server};

        rc = ps_embed_loop(server, self->end_fd, on_ready, &serving, err);
    }
    ps_server_close(&server);
    if (rc != PSD_OK && self->serves) {
        ps_log(PS_LOG_ERROR, "server_ended", "status=%s reason=%s", psd_status_name(rc),
               ps_log_quote(psd_error_text(err), quoted, sizeof quoted));
    }
    if (!self->serves) {
        (void)psd_error_set(self->err, rc, "%s", psd_error_text(err));
        settle(self, false, rc);
    }
    tell_end(self, rc, err);
    return NULL;
}

/* ---- start ---- */

static psd_status_t settle_config(psd_embed_t *self, const psd_embed_options_t *options,
                                  psd_error_t *err)
{
    const ps_origin_t origin = {.source = PS_SOURCE_FLAG, .flag = "option"};
    bool temporary = false;
    psd_status_t rc = ps_embed_options_config(options, &self->config, &temporary, err);

    if (rc == PSD_OK && temporary) {
        rc = ps_embed_dir_make(&self->dir, err);
    }
    if (rc == PSD_OK && temporary) {
        rc = ps_config_set(&self->config, PS_KEY_data_dir, self->dir.path, &origin, err);
    }
    return rc == PSD_OK ? ps_config_check(&self->config, err) : rc;
}

static psd_status_t read_timeout(uint32_t *ret_ms, psd_error_t *err)
{
    const char *text = getenv("PSD_TIMEOUT_MS");
    int64_t value = TIMEOUT_MS;

    if (text != NULL && text[0] != '\0' &&
        (!ps_text_i64(text, &value) || value < 1 || value > 86400000)) {
        return psd_error_set(err, PSD_CONFIG, "PSD_TIMEOUT_MS is \"%.40s\"; allowed: 1..86400000",
                             text);
    }
    *ret_ms = (uint32_t)value;
    return PSD_OK;
}

static psd_status_t start_thread(psd_embed_t *self, psd_error_t *err)
{
    int code = 0;

    self->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    code = self->end_fd < 0 ? errno : ps_cond_init(&self->moved);
    if (code == 0) {
        code = ps_thread_start(&self->thread, run, self);
        self->has_thread = code == 0;
    }
    return code == 0 ? PSD_OK : psd_error_set(err, PSD_IO, "start a thread: error %d", code);
}

static psd_status_t await_start(psd_embed_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    const struct timespec until = ps_cond_end_in(timeout_ms);
    psd_status_t rc = PSD_OK;
    int code = 0;

    (void)pthread_mutex_lock(&self->mutex);
    while (!self->is_settled && code == 0) {
        code = pthread_cond_timedwait(&self->moved, &self->mutex, &until);
    }
    if (!self->is_settled) {
        rc = psd_error_set(err, PSD_DEADLINE, "the server was not ready within %" PRIu32 " ms",
                           timeout_ms);
    } else if (!self->serves) {
        rc = psd_error_set(err, self->status == PSD_OK ? PSD_FAILED : self->status, "%s",
                           psd_error_text(self->err));
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return rc;
}

static void set_log(psd_embed_t *self, const psd_embed_options_t *options)
{
    self->sink.fd = STDERR_FILENO;
    atomic_init(&self->sink.level, self->config.log.level);
    if (options != NULL) {
        self->on_end = options->on_end;
        self->on_end_user = options->on_end_user;
        self->on_log = options->on_log;
        self->on_log_user = options->on_log_user;
    }
    if (self->on_log != NULL) {
        self->sink.take = take_line;
        self->sink.user = self;
    }
}

psd_status_t psd_embed_start(const psd_embed_options_t *options, psd_embed_t **ret_server,
                             psd_error_t *err)
{
    psd_error_clear(err);

    static pthread_once_t once = PTHREAD_ONCE_INIT;
    PSD_AUTO(psd_embed_stop) psd_embed_t *self = ps_alloc(1, sizeof *self);
    uint32_t timeout_ms = 0;
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a server");
    }
    (void)pthread_once(&once, watch_forks);
    self->n_forks = ps_fork_count();
    self->end_fd = -1;
    self->err = psd_error_new();
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    (void)pthread_mutex_lock(&all_mutex);
    LIST_INSERT_HEAD(&all, self, in_all);
    (void)pthread_mutex_unlock(&all_mutex);
    rc = read_timeout(&timeout_ms, err);
    if (rc == PSD_OK) {
        rc = settle_config(self, options, err);
    }
    if (rc == PSD_OK) {
        set_log(self, options);
        rc = start_thread(self, err);
    }
    if (rc == PSD_OK) {
        rc = await_start(self, timeout_ms, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "embedded server");
    }
    *ret_server = self;
    self = NULL;
    return PSD_OK;
}

/* ---- a running one ---- */

const char *psd_embed_endpoint(const psd_embed_t *self)
{
    return self->endpoint;
}

psd_status_t psd_embed_drain(psd_embed_t *self, uint32_t timeout_ms, psd_error_t *err)
{
    psd_error_clear(err);
    if (ps_fork_is_since(self->n_forks)) {
        return ps_fork_error("server", err);
    }
    return ps_embed_ask_drain(self->endpoint, self->node, timeout_ms, err);
}

psd_status_t psd_embed_wait(psd_embed_t *self, const char *job, uint32_t timeout_ms,
                            psd_error_t *err)
{
    psd_error_clear(err);
    if (ps_fork_is_since(self->n_forks)) {
        return ps_fork_error("server", err);
    }
    return ps_embed_ask_job(self->endpoint, job, timeout_ms, err);
}

/* ---- stop ---- */

static void end_thread(psd_embed_t *self)
{
    const uint64_t one = 1;

    (void)pthread_mutex_lock(&self->mutex);
    self->shall_end = true;
    (void)pthread_mutex_unlock(&self->mutex);
    (void)!write(self->end_fd, &one, sizeof one);
    (void)pthread_join(self->thread, NULL);
}

void psd_embed_stop(psd_embed_t **self_p)
{
    psd_embed_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    if (ps_fork_is_since(self->n_forks)) {
        return; /* its threads, which used all of this, are the parent's; it stays in the list */
    }
    if (self->has_thread) {
        end_thread(self);
    }
    (void)pthread_mutex_lock(&all_mutex);
    LIST_REMOVE(self, in_all);
    (void)pthread_mutex_unlock(&all_mutex);
    ps_embed_dir_remove(&self->dir);
    if (self->end_fd >= 0) {
        (void)close(self->end_fd);
        (void)pthread_cond_destroy(&self->moved);
    }
    (void)pthread_mutex_destroy(&self->mutex);
    psd_error_destroy(&self->err);
    ps_config_done(&self->config);
    ps_free(self);
}
