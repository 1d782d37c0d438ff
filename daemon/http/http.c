/* SPDX-License-Identifier: Apache-2.0 */
/* A socket, libmicrohttpd, and the thread that turns both. */
#include "daemon/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netdb.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/http/http_answer.h"
#include "daemon/http/http_api.h"
#include "daemon/http/http_asker.h"
#include "daemon/http/http_conns.h"
#include "transport/threads/clock.h"
#include "transport/threads/thread.h"

#define HEAD_MS 5000
#define BODY_MS 10000
#define TURN_MS 250        /* the longest wait of the thread */
#define BACKLOG 64         /* connections that wait to be accepted */
#define MEMORY_BYTES 16384 /* of one connection: its request's head */
#define ASKING_MAX 16      /* connections that are suspended at once: nobody can cut them */
#define THREAD_NAME "http"
#define NICE 5 /* so much lower than other threads */
#define URL_SIZE (PS_HTTP_HOST_SIZE + 32)

struct ps_http {
    ps_http_args_t is;
    pthread_t thread;
    bool is_started;
    sem_t has_begun; /* the thread runs, and tid is its own */
    pid_t tid;
    _Atomic(ps_turn_t *) turn; /* its place in the page of threads; NULL: none yet */
    int stop_fd;               /* an eventfd */
    int listen_fd;             /* owned by the server once that is there */
    struct MHD_Daemon *server; /* owned */
    ps_http_conns_t conns;     /* the thread's */
    unsigned n_asking;         /* the thread's: of asking_t */
    char url[URL_SIZE];
    char token[PS_HTTP_TOKEN_SIZE];   /* not changed once asker is set */
    _Atomic(ps_http_asker_t *) asker; /* owned; NULL: there is no API yet */
};

/* ---- libmicrohttpd's calls, all from the thread ---- */

static ps_http_conn_t *conn_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info == NULL ? NULL : info->socket_context;
}

static void notify_connection(void *arg, struct MHD_Connection *connection, void **socket_context,
                              enum MHD_ConnectionNotificationCode code)
{
    ps_http_t *self = arg;

    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

        *socket_context =
            info == NULL ? NULL : ps_http_conns_add(&self->conns, info->connect_fd, ps_now_ms());
    } else if (*socket_context != NULL) {
        ps_http_conns_remove(&self->conns, *socket_context);
        *socket_context = NULL;
    }
}

/* A request whose answer the asker makes; its connection is suspended meanwhile. */
typedef struct asking {
    ps_http_work_t work;
    const char *type; /* of the answer's content */
} asking_t;

static void asking_destroy(asking_t **self_p)
{
    if (*self_p != NULL) {
        ps_buffer_done(&(*self_p)->work.question);
        ps_buffer_done(&(*self_p)->work.text);
        ps_free(*self_p);
        *self_p = NULL;
    }
}

static void notify_completed(void *arg, struct MHD_Connection *connection, void **context,
                             enum MHD_RequestTerminationCode code)
{
    ps_http_t *self = arg;
    asking_t *asking = *context;

    (void)code;
    self->n_asking -= asking == NULL ? 0 : 1;
    asking_destroy(&asking); /* the asker is done with it: the connection goes on */
    *context = NULL;
    ps_http_conn_enter(conn_of(connection), PS_HTTP_IDLE, ps_now_ms());
}

/* value NULL: not that one. */
static bool add_header(struct MHD_Response *response, const char *name, const char *value)
{
    return value == NULL || MHD_add_response_header(response, name, value) == MHD_YES;
}

/* Takes the answer's text. NULL: no memory. */
static struct MHD_Response *response_of(ps_http_answer_t *answer)
{
    static char empty[] = "";
    struct MHD_Response *response =
        answer->text.size == 0 ? MHD_create_response_from_buffer(0, empty, MHD_RESPMEM_PERSISTENT)
                               : MHD_create_response_from_buffer_with_free_callback(
                                     answer->text.size, answer->text.data, ps_free);

    if (response == NULL) {
        return NULL;
    }
    answer->text = (ps_buffer_t){0}; /* the response's now */
    if (!add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer->type) ||
        !add_header(response, "X-Content-Type-Options", "nosniff") ||
        !add_header(response, "Referrer-Policy", "no-referrer") ||
        !add_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store") ||
        !add_header(response, MHD_HTTP_HEADER_ALLOW, answer->allows) ||
        !add_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, answer->wants) ||
        !add_header(response, "Content-Security-Policy", answer->policy)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

/* Takes the answer's text. The connection ends when this fails. */
static enum MHD_Result respond(struct MHD_Connection *connection, ps_http_answer_t *answer)
{
    struct MHD_Response *response = response_of(answer);
    enum MHD_Result queued = MHD_NO;

    if (response == NULL) {
        return MHD_NO;
    }
    queued = MHD_queue_response(connection, answer->status, response);
    MHD_destroy_response(response); /* it lives until it is sent */
    ps_http_conn_enter(conn_of(connection), PS_HTTP_BODY, ps_now_ms());
    return queued;
}

static void resume(void *connection)
{
    MHD_resume_connection(connection);
}

/* Takes the answer's question. The connection waits until the asker resumes it. */
static enum MHD_Result ask(ps_http_t *self, struct MHD_Connection *connection,
                           ps_http_answer_t *answer, void **context)
{
    asking_t *asking = ps_alloc(1, sizeof *asking);

    if (asking == NULL) {
        return MHD_NO;
    }
    asking->type = answer->type;
    asking->work =
        (ps_http_work_t){.question = answer->question, .on_done = resume, .user = connection};
    answer->question = (ps_buffer_t){0};
    *context = asking;
    self->n_asking++;
    ps_http_conn_enter(conn_of(connection), PS_HTTP_BODY, ps_now_ms());
    MHD_suspend_connection(connection);
    ps_http_asker_ask(atomic_load(&self->asker), &asking->work);
    return MHD_YES;
}

/* Too many ask already. */
static enum MHD_Result refuse_question(ps_http_t *self, struct MHD_Connection *connection,
                                       ps_http_answer_t *answer)
{
    answer->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    if (!ps_http_api_refuse(PSD_BUSY, "too many questions at once; ask again", &answer->text)) {
        ps_buffer_done(&answer->text);
    }
    ps_http_answer_count(self->is.metrics, answer->status);
    return respond(connection, answer);
}

/* Its connection goes on: the asker has answered. */
static enum MHD_Result give(ps_http_t *self, struct MHD_Connection *connection, asking_t *asking)
{
    PSD_AUTO(ps_http_answer_done) ps_http_answer_t answer = {.type = asking->type};

    if (!atomic_load(&asking->work.is_done)) {
        return MHD_NO; /* never so */
    }
    answer.status = asking->work.status;
    answer.text = asking->work.text;
    asking->work.text = (ps_buffer_t){0};
    ps_http_answer_count(self->is.metrics, answer.status);
    return respond(connection, &answer);
}

/* Answered when the head is there: a body, which no path takes, is not waited for. */
static enum MHD_Result handle(void *arg, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *body,
                              size_t *body_size, void **context)
{
    ps_http_t *self = arg;
    ps_http_asker_t *asker = atomic_load(&self->asker);
    PSD_AUTO(ps_http_answer_done) ps_http_answer_t answer = {0};
    const ps_http_view_t view = {.metrics = self->is.metrics,
                                 .host = self->is.host,
                                 .token = asker == NULL ? NULL : self->token,
                                 .token_for_all = self->is.token_for_all};
    const ps_http_request_t request = {
        .method = method,
        .path = path,
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .authorization =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION),
        .last = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "last")};

    (void)version;
    (void)body;
    (void)body_size;
    if (*context != NULL) {
        return give(self, connection, *context);
    }
    ps_http_answer_make(&view, &request, &answer);
    if (answer.question.size == 0) {
        return respond(connection, &answer);
    }
    return self->n_asking < ASKING_MAX ? ask(self, connection, &answer, context)
                                       : refuse_question(self, connection, &answer);
}

/* libmicrohttpd's own words about clients that break the protocol: not for the log. */
static void ignore(void *arg, const char *format, va_list arguments)
{
    (void)arg;
    (void)format;
    (void)arguments;
}

/* ---- the thread ---- */

static void report(ps_http_t *self)
{
    ps_node_counts_t *node = ps_metrics_node(self->is.metrics);

    ps_count_set(node->http_connections, self->conns.n);
    ps_count_set(node->http_cut, self->conns.n_cut);
}

static void *run(void *arg)
{
    ps_http_t *self = arg;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(self->server, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd waits[2] = {{.fd = self->stop_fd, .events = POLLIN},
                              {.fd = info->epoll_fd, .events = POLLIN}};

    (void)ps_turns_enter(NULL, THREAD_NAME); /* the name; ps_http_enter brings the place */
    self->tid = (pid_t)syscall(SYS_gettid);
    (void)setpriority(PRIO_PROCESS, (id_t)self->tid, NICE);
    (void)sem_post(&self->has_begun);
    while ((waits[0].revents & POLLIN) == 0) {
        MHD_UNSIGNED_LONG_LONG left_ms = TURN_MS;

        ps_turn_waits(atomic_load(&self->turn));
        if (MHD_get_timeout(self->server, &left_ms) != MHD_YES || left_ms > TURN_MS) {
            left_ms = TURN_MS;
        }
        (void)poll(waits, 2, (int)left_ms);
        ps_turn_works(atomic_load(&self->turn));
        (void)MHD_run(self->server);
        ps_http_conns_tick(&self->conns, ps_now_ms());
        report(self);
    }
    return NULL;
}

/* ---- start and stop ---- */

static psd_status_t refuse(const ps_http_t *self, const char *what, int code, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "http.listen %s:%u: %s: %s", self->is.host,
                         (unsigned)self->is.port, what, strerror(code));
}

/* The socket, and the URL with the port that it got. */
static psd_status_t bind_it(ps_http_t *self, psd_error_t *err)
{
    const struct addrinfo want = {.ai_family = AF_UNSPEC,
                                  .ai_socktype = SOCK_STREAM,
                                  .ai_flags = AI_NUMERICSERV | AI_PASSIVE};
    struct addrinfo *found = NULL;
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;
    char port[8];
    const int on = 1;

    (void)snprintf(port, sizeof port, "%u", (unsigned)self->is.port);
    if (getaddrinfo(self->is.host, port, &want, &found) != 0) {
        return psd_error_set(err, PSD_IO, "http.listen %s:%s: no such address", self->is.host,
                             port);
    }
    self->listen_fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self->listen_fd >= 0) {
        (void)setsockopt(self->listen_fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (self->listen_fd < 0 || bind(self->listen_fd, found->ai_addr, found->ai_addrlen) != 0 ||
        listen(self->listen_fd, BACKLOG) != 0 ||
        getsockname(self->listen_fd, (struct sockaddr *)&bound, &size) != 0) {
        int code = errno;

        freeaddrinfo(found);
        return refuse(self, "cannot listen", code, err);
    }
    freeaddrinfo(found);
    if (bound.ss_family == AF_INET6) {
        const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)&bound;

        (void)snprintf(self->url, sizeof self->url, "http://[%s]:%u", self->is.host,
                       (unsigned)ntohs(six->sin6_port));
    } else {
        const struct sockaddr_in *four = (const struct sockaddr_in *)&bound;

        (void)snprintf(self->url, sizeof self->url, "http://%s:%u", self->is.host,
                       (unsigned)ntohs(four->sin_port));
    }
    return PSD_OK;
}

static psd_status_t serve(ps_http_t *self, psd_error_t *err)
{
    int code = 0;

    self->server = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_ERROR_LOG | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, handle, self,
        MHD_OPTION_EXTERNAL_LOGGER, ignore, NULL, MHD_OPTION_LISTEN_SOCKET, self->listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, (unsigned)PS_HTTP_CONNS_LIMIT,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
        notify_connection, self, MHD_OPTION_NOTIFY_COMPLETED, notify_completed, self,
        MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_END);
    if (self->server == NULL) {
        return psd_error_set(err, PSD_NOMEM, "http.listen: the server does not start");
    }
    self->listen_fd = -1; /* the server's now */
    self->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    code = self->stop_fd < 0 ? errno : ps_thread_start(&self->thread, run, self);
    if (code != 0) {
        return refuse(self, "start a thread", code, err);
    }
    self->is_started = true;
    while (sem_wait(&self->has_begun) != 0) { /* a signal */
    }
    return PSD_OK;
}

psd_status_t ps_http_start(const ps_http_args_t *args, ps_http_t **ret_http, psd_error_t *err)
{
    PSD_AUTO(ps_http_stop) ps_http_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for http.listen");
    }
    self->is = *args;
    (void)sem_init(&self->has_begun, 0, 0); /* cannot fail: 0 is allowed */
    self->stop_fd = -1;
    self->listen_fd = -1;
    self->conns.head_ms = args->head_ms == 0 ? HEAD_MS : args->head_ms;
    self->conns.body_ms = args->body_ms == 0 ? BODY_MS : args->body_ms;
    rc = bind_it(self, err);
    if (rc == PSD_OK) {
        rc = serve(self, err);
    }
    if (rc == PSD_OK) {
        *ret_http = self;
        self = NULL;
    }
    return rc;
}

void ps_http_enter(ps_http_t *self, ps_turns_t *turns)
{
    atomic_store(&self->turn, ps_turns_add(turns, THREAD_NAME, self->tid));
}

psd_status_t ps_http_open_api(ps_http_t *self, const char token[PS_HTTP_TOKEN_SIZE],
                              const char *endpoint, psd_error_t *err)
{
    ps_http_asker_t *asker = NULL;
    psd_status_t rc = ps_http_asker_new(endpoint, &asker, err);

    if (rc == PSD_OK) {
        memcpy(self->token, token, sizeof self->token);
        atomic_store(&self->asker, asker);
    }
    return rc;
}

void ps_http_stop(ps_http_t **self_p)
{
    ps_http_t *self = *self_p;
    ps_turn_t *turn = NULL;
    ps_http_asker_t *asker = NULL;
    const uint64_t one = 1;

    if (self == NULL) {
        return;
    }
    asker = atomic_load(&self->asker);
    ps_http_asker_stop(asker); /* no connection is suspended from here on */
    if (self->is_started) {
        (void)!write(self->stop_fd, &one, sizeof one);
        (void)pthread_join(self->thread, NULL);
        turn = atomic_load(&self->turn);
        ps_turn_leave(&turn);
    }
    if (self->server != NULL) {
        MHD_stop_daemon(self->server);
    }
    ps_http_asker_destroy(&asker);
    if (self->stop_fd >= 0) {
        (void)close(self->stop_fd);
    }
    if (self->listen_fd >= 0) {
        (void)close(self->listen_fd);
    }
    (void)sem_destroy(&self->has_begun);
    ps_free(self);
    *self_p = NULL;
}

const char *ps_http_url(const ps_http_t *self)
{
    return self->url;
}
