/* SPDX-License-Identifier: Apache-2.0 */
/* Questions that wait, a client, and the thread that turns it while they come. */
#include "daemon/http/http_asker.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "client/connection/client_state.h"
#include "client/requests/pump.h"
#include "daemon/http/http_api.h"
#include "psd/client.h"
#include "transport/threads/clock.h"
#include "transport/threads/thread.h"
#include "transport/threads/turns.h"
#include "wire/messages/doc.h"

#define CONNECT_MS 2000
#define LOOK_MS 20    /* between two looks for new questions, while others wait */
#define IDLE_MS 30000 /* without a question the client is closed */
#define THREAD_NAME "api"
#define NICE 5 /* as the HTTP port's thread */

TAILQ_HEAD(works, ps_http_work);

struct ps_http_asker {
    char *endpoint; /* owned */
    pthread_mutex_t lock;
    pthread_cond_t has_news; /* new is not empty, or stops is set */
    /* guarded by lock */
    struct works new;
    bool stops;      /* for good */
    bool runs;       /* the thread takes what is new */
    bool is_started; /* the thread is to be joined */
    pthread_t thread;
    /* the thread's */
    struct works asked;
    psd_client_t *client; /* owned; NULL: there is none */
    psd_error_t *err;     /* owned */
};

/* ---- ends ---- */

static void finish(ps_http_work_t *work)
{
    ps_free(work->asked);
    work->asked = NULL;
    atomic_store(&work->is_done, true);
    work->on_done(work->user);
}

static void refuse(ps_http_work_t *work, psd_status_t rc, const char *text)
{
    work->status = ps_http_api_status(rc);
    if (!ps_http_api_refuse(rc, text, &work->text)) {
        ps_buffer_done(&work->text);
        work->status = ps_http_api_status(PSD_NOMEM);
    }
    finish(work);
}

static void refuse_all(struct works *works, psd_status_t rc, const char *text)
{
    ps_http_work_t *work = NULL;

    while ((work = TAILQ_FIRST(works)) != NULL) {
        TAILQ_REMOVE(works, work, link);
        refuse(work, rc, text);
    }
}

static void answer(ps_http_work_t *work, psd_status_t rc, const ps_doc_t *reply, const char *why)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    if (reply == NULL) {
        refuse(work, rc, why);
        return;
    }
    work->status = ps_http_api_status(rc);
    if (!ps_doc_print(reply, &text) || !ps_buffer_append(&text, "", 1) ||
        !ps_http_api_write((const char *)text.data, &work->text)) {
        ps_buffer_done(&work->text);
        work->status = ps_http_api_status(PSD_NOMEM);
    }
    finish(work);
}

/* ---- turns ---- */

static psd_status_t open_client(ps_http_asker_t *self)
{
    PSD_AUTO(psd_options_destroy) psd_options_t *options = NULL;
    psd_status_t rc = PSD_OK;

    if (self->client != NULL) {
        return PSD_OK;
    }
    options = psd_options_new();
    if (options == NULL) {
        return psd_error_set(self->err, PSD_NOMEM, "no memory for a client");
    }
    psd_options_set_timeout_ms(options, CONNECT_MS);
    psd_options_set_wait(options, false);
    rc = psd_options_set_transport(options, "auto", self->err);
    return rc == PSD_OK ? psd_connect(self->endpoint, options, &self->client, self->err) : rc;
}

static psd_status_t begin(ps_http_asker_t *self, ps_http_work_t *work)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const ps_bytes_t bytes = {.data = work->question.data,
                              .size = strlen((const char *)work->question.data)};
    psd_status_t rc = ps_doc_parse(bytes, &doc, self->err);

    if (rc != PSD_OK) {
        return rc;
    }
    work->asked = ps_alloc(1, sizeof *work->asked);
    if (work->asked == NULL) {
        return psd_error_set(self->err, PSD_NOMEM, "no memory for a question");
    }
    return ps_question_begin(self->client, doc, PS_HTTP_ASK_MS, 0, work->asked, self->err);
}

/* Asks what has come. */
static void begin_all(ps_http_asker_t *self, struct works *new)
{
    psd_status_t rc = open_client(self);
    ps_http_work_t *work = NULL;

    if (rc != PSD_OK) {
        refuse_all(new, rc, psd_error_text(self->err));
        psd_error_clear(self->err);
    }
    while ((work = TAILQ_FIRST(new)) != NULL) {
        TAILQ_REMOVE(new, work, link);
        rc = begin(self, work);
        if (rc == PSD_OK) {
            TAILQ_INSERT_TAIL(&self->asked, work, link);
        } else {
            refuse(work, rc, psd_error_text(self->err));
            psd_error_clear(self->err);
        }
    }
}

/* Ends the question, if it is over. false: the client is of no more use. */
static bool look(ps_http_asker_t *self, ps_http_work_t *work)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *reply = NULL;
    bool is_over = false;
    psd_status_t rc = ps_question_look(self->client, work->asked, &is_over, self->err);
    bool is_useful = rc == PSD_OK;

    if (rc == PSD_OK && !is_over) {
        return true;
    }
    TAILQ_REMOVE(&self->asked, work, link);
    if (rc == PSD_OK) {
        rc = ps_question_end(self->client, work->asked, &reply, self->err);
        is_useful = rc != PSD_NO_SESSION;
    }
    answer(work, rc, reply, psd_error_text(self->err));
    psd_error_clear(self->err);
    return is_useful;
}

static void close_client(ps_http_asker_t *self, psd_status_t rc, const char *why)
{
    ps_http_work_t *work = NULL;

    TAILQ_FOREACH(work, &self->asked, link)
    {
        ps_question_drop(self->client, work->asked);
    }
    psd_close(&self->client);
    refuse_all(&self->asked, rc, why);
}

/* One turn of the client, and what follows. */
static void turn(ps_http_asker_t *self)
{
    ps_http_work_t *work = NULL;
    ps_http_work_t *next = NULL;
    bool is_useful = true;

    ps_pump(self->client, ps_now_ms() + LOOK_MS);
    for (work = TAILQ_FIRST(&self->asked); work != NULL; work = next) {
        next = TAILQ_NEXT(work, link);
        is_useful = look(self, work) && is_useful;
    }
    if (!is_useful) {
        close_client(self, PSD_CONNECT, "the connection to the registry ended; ask again");
    }
}

/* Waits for questions; holds the lock. false: none came for long. */
static bool wait_for_news(ps_http_asker_t *self)
{
    const struct timespec until = ps_cond_end_in(IDLE_MS);

    return pthread_cond_timedwait(&self->has_news, &self->lock, &until) != ETIMEDOUT ||
           !TAILQ_EMPTY(&self->new);
}

/* So, too; but when it ends, the client is closed: whoever starts another thread joins this
 * one, and must not wait for that. */
static bool goes_on(ps_http_asker_t *self)
{
    if (wait_for_news(self)) {
        return true;
    }
    (void)pthread_mutex_unlock(&self->lock);
    close_client(self, PSD_STOPPING, "");
    (void)pthread_mutex_lock(&self->lock);
    return !TAILQ_EMPTY(&self->new); /* they came meanwhile */
}

static void *run(void *arg)
{
    ps_http_asker_t *self = arg;

    (void)ps_turns_enter(NULL, THREAD_NAME); /* the name; others may keep it waiting */
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICE);
    (void)pthread_mutex_lock(&self->lock);
    while (!self->stops) {
        struct works new = TAILQ_HEAD_INITIALIZER(new);

        if (TAILQ_EMPTY(&self->new) && TAILQ_EMPTY(&self->asked)) {
            if (!goes_on(self)) {
                break;
            }
            continue;
        }
        TAILQ_CONCAT(&new, &self->new, link);
        (void)pthread_mutex_unlock(&self->lock);
        if (!TAILQ_EMPTY(&new)) {
            begin_all(self, &new);
        }
        if (!TAILQ_EMPTY(&self->asked)) {
            turn(self);
        }
        (void)pthread_mutex_lock(&self->lock);
    }
    self->runs = false; /* whoever asks next starts another one */
    (void)pthread_mutex_unlock(&self->lock);
    close_client(self, PSD_STOPPING, "");
    return NULL;
}

/* ---- start and stop ---- */

psd_status_t ps_http_asker_new(const char *endpoint, ps_http_asker_t **ret_asker, psd_error_t *err)
{
    PSD_AUTO(ps_http_asker_destroy) ps_http_asker_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the API");
    }
    (void)pthread_mutex_init(&self->lock, NULL);
    (void)ps_cond_init(&self->has_news); /* cannot fail: it takes no memory */
    TAILQ_INIT(&self->new);
    TAILQ_INIT(&self->asked);
    self->endpoint = ps_strdup(endpoint);
    self->err = psd_error_new();
    if (self->endpoint == NULL || self->err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the API");
    }
    *ret_asker = self;
    self = NULL;
    return PSD_OK;
}

/* Starts the thread, unless it runs; holds the lock, which one that has ended needs no
 * more. false: it cannot. */
static bool start(ps_http_asker_t *self)
{
    if (self->runs) {
        return true;
    }
    if (self->is_started) {
        (void)pthread_join(self->thread, NULL);
    }
    self->is_started = ps_thread_start(&self->thread, run, self) == 0;
    self->runs = self->is_started;
    return self->runs;
}

void ps_http_asker_ask(ps_http_asker_t *self, ps_http_work_t *work)
{
    psd_status_t rc = PSD_STOPPING;

    (void)pthread_mutex_lock(&self->lock);
    if (!self->stops) {
        rc = start(self) ? PSD_OK : PSD_IO;
    }
    if (rc == PSD_OK) {
        TAILQ_INSERT_TAIL(&self->new, work, link);
        (void)pthread_cond_signal(&self->has_news);
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (rc != PSD_OK) {
        refuse(work, rc, rc == PSD_IO ? "no thread can be started" : "");
    }
}

void ps_http_asker_stop(ps_http_asker_t *self)
{
    if (self == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->lock);
    self->stops = true;
    (void)pthread_cond_signal(&self->has_news);
    (void)pthread_mutex_unlock(&self->lock);
    if (self->is_started) { /* no other one starts any more */
        (void)pthread_join(self->thread, NULL);
        self->is_started = false;
    }
    refuse_all(&self->new, PSD_STOPPING, "");
}

void ps_http_asker_destroy(ps_http_asker_t **self_p)
{
    ps_http_asker_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    ps_http_asker_stop(self);
    (void)pthread_cond_destroy(&self->has_news);
    (void)pthread_mutex_destroy(&self->lock);
    psd_error_destroy(&self->err);
    ps_free(self->endpoint);
    ps_free(self);
    *self_p = NULL;
}
