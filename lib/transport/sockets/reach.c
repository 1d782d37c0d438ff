/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt to connect, and what the system says of it. */
#include "transport/sockets/reach.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/lane/door.h"
#include "transport/sockets/ranks.h"
#include "transport/threads/thread.h"

#define TCP "tcp://"
#define IPC "ipc://"
#define ENDPOINT_MAX 300
#define LISTENS                                                      \
    "something listens there and does not answer like psd: another " \
    "service, the port of a shard, or a psd that hangs"

#define LISTENS_KEYED                                                                       \
    "what listens there does not answer under the key that the endpoint names: a psd with " \
    "another key, another service, the port of a shard, or a psd that hangs"

/* Belongs to the last of two users: the caller, or the thread. */
typedef struct attempt {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool has_ended;
    bool is_forgotten;
    bool has_key;         /* the endpoint names one */
    atomic_bool is_found; /* the host's address */
    ps_reach_t outcome;
    uint32_t wait_ms;
    char endpoint[ENDPOINT_MAX];
    char why[PS_REACH_TEXT];
} attempt_t;

/* ---- the attempt --------------------------------------------------------- */

/* What came of connecting; takes the socket. */
static int outcome(int handle, const struct sockaddr *to, socklen_t size, uint32_t wait_ms)
{
    struct pollfd polled = {.fd = handle, .events = POLLOUT};
    socklen_t code_size = sizeof(int);
    int code = connect(handle, to, size) == 0 ? 0 : errno;

    if (code == EINPROGRESS) {
        code = poll(&polled, 1, (int)wait_ms) > 0 ? 0 : ETIMEDOUT;
        if (code == 0 && getsockopt(handle, SOL_SOCKET, SO_ERROR, &code, &code_size) != 0) {
            code = errno;
        }
    }
    (void)close(handle);
    return code;
}

/* Refusals that come at once, and again until a process listens there. */
static bool is_refusal(int code)
{
    return code == ECONNREFUSED || code == ENOENT || code == EACCES || code == ENOTSOCK ||
           code == ENAMETOOLONG;
}

/* path: of a unix socket; NULL: of a host */
static void tell(attempt_t *self, const char *path, int code, bool is_here)
{
    char text[PS_REACH_TEXT];

    self->outcome = code == 0           ? PS_REACH_LISTENS
                    : !is_refusal(code) ? PS_REACH_UNKNOWN
                    : is_here           ? PS_REACH_REFUSED_HERE
                                        : PS_REACH_REFUSED;
    if (code == 0) {
        (void)snprintf(self->why, sizeof self->why, "%s", self->has_key ? LISTENS_KEYED : LISTENS);
    } else if (path != NULL) {
        (void)ps_door_reason(path, code, self->why);
    } else {
        (void)snprintf(self->why, sizeof self->why, "%s", strerror_r(code, text, sizeof text));
    }
}

/* The outcome of connecting to the socket at a path. */
static int connect_ipc(const char *path, uint32_t wait_ms)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    int handle = -1;
    int code = 0;

    if (length >= sizeof to.sun_path) {
        return ENAMETOOLONG;
    }
    handle = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (handle < 0) {
        return errno;
    }
    memcpy(to.sun_path, path, length + 1);
    if (path[0] == '@') { /* no file: a name of the system's own */
        to.sun_path[0] = '\0';
    }
    code = outcome(handle, (const struct sockaddr *)&to,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length), wait_ms);
    return code == EAGAIN ? 0 : code; /* its queue is full */
}

int ps_reach_ipc(const char *endpoint)
{
    return strncmp(endpoint, IPC, strlen(IPC)) == 0 ? connect_ipc(endpoint + strlen(IPC), 0)
                                                    : EINVAL;
}

bool ps_reach_ipc_listens(const char *endpoint)
{
    return ps_reach_ipc(endpoint) == 0;
}

static void try_ipc(attempt_t *self, const char *path)
{
    atomic_store(&self->is_found, true);
    tell(self, path, connect_ipc(path, self->wait_ms), true);
}

/* The address belongs to this host: another host's cannot be bound. */
static bool is_here(const struct addrinfo *found)
{
    struct sockaddr_storage at;
    int handle = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_TCP);
    bool is_ours = false;

    memset(&at, 0, sizeof at);
    memcpy(&at, found->ai_addr, found->ai_addrlen);
    if (found->ai_family == AF_INET) {
        ((struct sockaddr_in *)&at)->sin_port = 0;
    } else {
        ((struct sockaddr_in6 *)&at)->sin6_port = 0;
    }
    if (handle >= 0) {
        is_ours = bind(handle, (const struct sockaddr *)&at, found->ai_addrlen) == 0;
        (void)close(handle);
    }
    return is_ours;
}

/* Of HOST:PORT or [ADDRESS]:PORT; as ZeroMQ, the first address, and IPv6 only
 * in brackets. */
static void try_tcp(attempt_t *self, char *host)
{
    char *mark = strchr(host, '#'); /* a key, which nobody asks for here (curve.h) */
    struct addrinfo wanted = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char *colon = strrchr(host, ':');
    int handle = -1;
    int code = 0;
    int rc = 0;

    self->has_key = mark != NULL;
    if (mark != NULL) {
        *mark = '\0';
        colon = strrchr(host, ':');
    }
    if (colon == NULL) {
        (void)snprintf(self->why, sizeof self->why, "there is no port");
        return;
    }
    *colon = '\0';
    if (host[0] == '[' && colon > host + 1 && colon[-1] == ']') {
        colon[-1] = '\0';
        host++;
        wanted.ai_family = AF_INET6;
    }
    rc = getaddrinfo(host, colon + 1, &wanted, &found);
    atomic_store(&self->is_found, true);
    if (rc != 0) {
        (void)snprintf(self->why, sizeof self->why, "host \"%.100s\": %s", host, gai_strerror(rc));
        self->outcome = rc == EAI_NONAME ? PS_REACH_REFUSED : PS_REACH_UNKNOWN;
        return;
    }
    handle =
        socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, found->ai_protocol);
    code = handle < 0 ? errno : outcome(handle, found->ai_addr, found->ai_addrlen, self->wait_ms);
    tell(self, NULL, code, code == ECONNREFUSED && is_here(found));
    freeaddrinfo(found);
}

static void drop(attempt_t *self)
{
    (void)pthread_cond_destroy(&self->ended);
    (void)pthread_mutex_destroy(&self->lock);
    ps_free(self);
}

static void *run(void *context)
{
    attempt_t *self = context;
    bool is_mine = false;

    if (strncmp(self->endpoint, TCP, strlen(TCP)) == 0) {
        try_tcp(self, self->endpoint + strlen(TCP));
    }
    (void)pthread_mutex_lock(&self->lock);
    self->has_ended = true;
    is_mine = self->is_forgotten;
    (void)pthread_cond_signal(&self->ended);
    (void)pthread_mutex_unlock(&self->lock);
    if (is_mine) {
        drop(self);
    }
    return NULL;
}

/* ---- the caller ---------------------------------------------------------- */

static attempt_t *new_attempt(const char *endpoint, uint32_t wait_ms)
{
    attempt_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->wait_ms = wait_ms;
        (void)snprintf(self->endpoint, sizeof self->endpoint, "%s", endpoint);
        (void)pthread_mutex_init(&self->lock, NULL);
        (void)ps_cond_init(&self->ended);
    }
    return self;
}

static bool start(attempt_t *self)
{
    pthread_t thread;

    return ps_thread_start(&thread, run, self) == 0 && pthread_detach(thread) == 0;
}

/* No host is looked up, and a unix socket answers at once. */
static ps_reach_t why_ipc(const char *path, uint32_t wait_ms, char ret_why[PS_REACH_TEXT])
{
    attempt_t self = {.wait_ms = wait_ms};

    try_ipc(&self, path);
    memcpy(ret_why, self.why, PS_REACH_TEXT);
    return self.outcome;
}

ps_reach_t ps_reach_why(const char *endpoint, uint32_t wait_ms, char ret_why[PS_REACH_TEXT])
{
    bool is_ipc = strncmp(endpoint, IPC, strlen(IPC)) == 0;
    bool is_name = ps_ranks_own(endpoint); /* nobody connects there */
    attempt_t *self = is_ipc || is_name ? NULL : new_attempt(endpoint, wait_ms);
    const struct timespec end = ps_cond_end_in(wait_ms);
    bool has_ended = false;
    ps_reach_t reach = PS_REACH_UNKNOWN;
    int rc = 0;

    ret_why[0] = '\0';
    if (is_ipc && !is_name) {
        return why_ipc(endpoint + strlen(IPC), wait_ms, ret_why);
    }
    if (self == NULL || !start(self)) {
        if (self != NULL) {
            drop(self);
        }
        return PS_REACH_UNKNOWN;
    }
    (void)pthread_mutex_lock(&self->lock);
    while (!self->has_ended && rc == 0) {
        rc = pthread_cond_timedwait(&self->ended, &self->lock, &end);
    }
    has_ended = self->has_ended;
    self->is_forgotten = !has_ended;
    if (has_ended) {
        reach = self->outcome;
        memcpy(ret_why, self->why, PS_REACH_TEXT);
    } else {
        (void)snprintf(ret_why, PS_REACH_TEXT, "%s",
                       atomic_load(&self->is_found) ? "connecting takes long"
                                                    : "its host is still being looked up");
    }
    (void)pthread_mutex_unlock(&self->lock);
    if (has_ended) {
        drop(self);
    }
    return reach;
}
