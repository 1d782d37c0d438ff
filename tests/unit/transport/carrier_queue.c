/* SPDX-License-Identifier: Apache-2.0 */
/* A carrier in a plug-in, for the tests: queues between the ends of one
 * process. It passes for ucx. Its endpoints are ucx://NAME; a link wants its
 * port to be open. */
#include "transport/sockets/carrier_plugin.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/queue.h>
#include <unistd.h>

#define NAME_SIZE 64
#define PORTS_MAX 16
#define LINKS_MAX 64 /* of one port */

typedef struct letter {
    STAILQ_ENTRY(letter) in_order;
    uint64_t conn;
    size_t n; /* 0: the peer has left */
    ps_carrier_frame_t frames[PS_CARRIER_FRAMES];
} letter_t;

typedef struct end {
    bool is_port;
    char name[NAME_SIZE];
    uint32_t high_water;
    STAILQ_HEAD(letters, letter) letters; /* to be received */
    uint32_t n_from[LINKS_MAX];           /* of them, from each conn */
    uint64_t gone[LINKS_MAX];             /* whose last letter was read */
    size_t n_gone;
    struct end *links[LINKS_MAX]; /* a port's, by conn */
    uint64_t n_links;             /* conns that were given, from 1 */
    struct end *port;             /* a link's; NULL: it is closed */
    uint64_t conn;                /* a link's number there */
    int fd;
    bool sleeps;
} end_t;

/* One lock for all: it is a test's. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static end_t *ports[PORTS_MAX];

static end_t *new_end(bool is_port, const char *endpoint, const ps_carrier_setup_t *setup)
{
    end_t *self = calloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->is_port = is_port;
    self->high_water = setup->high_water;
    (void)snprintf(self->name, sizeof self->name, "%s", endpoint);
    STAILQ_INIT(&self->letters);
    self->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return self;
}

static end_t **place_of(const char *name)
{
    for (int i = 0; i < PORTS_MAX; i++) {
        if (name == NULL ? ports[i] == NULL
                         : ports[i] != NULL && strcmp(ports[i]->name, name) == 0) {
            return &ports[i];
        }
    }
    return NULL;
}

static int bind_port(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                     char *ret_bound, size_t bound_size, char ret_reason[PS_CARRIER_REASON])
{
    end_t **place = NULL;
    int code = 0;

    (void)pthread_mutex_lock(&mutex);
    place = place_of(NULL);
    if (place == NULL || place_of(endpoint) != NULL) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "the name is taken");
        code = EADDRINUSE;
    } else {
        *place = new_end(true, endpoint, setup);
        *ret_end = *place;
        code = *place == NULL ? ENOMEM : 0;
    }
    (void)pthread_mutex_unlock(&mutex);
    (void)snprintf(ret_bound, bound_size, "%s", endpoint);
    return code;
}

static int connect_link(const char *endpoint, const ps_carrier_setup_t *setup, void **ret_end,
                        char ret_reason[PS_CARRIER_REASON])
{
    end_t **place = NULL;
    end_t *self = NULL;
    int code = 0;

    (void)pthread_mutex_lock(&mutex);
    place = place_of(endpoint);
    if (place == NULL || (*place)->n_links + 1 == LINKS_MAX) {
        (void)snprintf(ret_reason, PS_CARRIER_REASON, "no such port");
        code = EINVAL;
    } else {
        self = new_end(false, endpoint, setup);
        code = self == NULL ? ENOMEM : 0;
    }
    if (self != NULL) {
        self->port = *place;
        self->conn = ++self->port->n_links;
        self->port->links[self->conn] = self;
        *ret_end = self;
    }
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

static void wake(const end_t *self)
{
    uint64_t one = 1;

    if (self->sleeps && write(self->fd, &one, sizeof one) != (ssize_t)sizeof one) {
        abort();
    }
}

static void free_letter(letter_t *letter)
{
    for (size_t i = 0; i < letter->n; i++) {
        letter->frames[i].free_frame(letter->frames[i].owner);
    }
    free(letter);
}

/* false: no memory. */
static bool deliver(end_t *to, uint64_t conn, const ps_carrier_frame_t *frames, size_t n)
{
    letter_t *letter = calloc(1, sizeof *letter);

    if (letter == NULL) {
        return false;
    }
    letter->conn = conn;
    letter->n = n;
    for (size_t i = 0; i < n; i++) {
        letter->frames[i] = frames[i];
    }
    STAILQ_INSERT_TAIL(&to->letters, letter, in_order);
    to->n_from[conn]++;
    wake(to);
    return true;
}

static void leave(end_t *self)
{
    if (self->port != NULL) {
        self->port->links[self->conn] = NULL;
        (void)deliver(self->port, self->conn, NULL, 0);
    }
}

static void shut(end_t *self)
{
    end_t **place = place_of(self->name);

    if (place != NULL) {
        *place = NULL;
    }
    for (uint64_t i = 1; i <= self->n_links; i++) {
        if (self->links[i] != NULL) {
            self->links[i]->port = NULL;
            wake(self->links[i]);
        }
    }
}

static void close_end(void *end, uint32_t linger_ms)
{
    end_t *self = end;
    letter_t *letter = NULL;

    (void)linger_ms; /* what was sent is there */
    (void)pthread_mutex_lock(&mutex);
    if (self->is_port) {
        shut(self);
    } else {
        leave(self);
    }
    (void)pthread_mutex_unlock(&mutex);
    while ((letter = STAILQ_FIRST(&self->letters)) != NULL) {
        STAILQ_REMOVE_HEAD(&self->letters, in_order);
        free_letter(letter);
    }
    (void)close(self->fd);
    free(self);
}

static int send_frames(void *end, uint64_t conn, const ps_carrier_frame_t *frames, size_t n)
{
    end_t *self = end;
    end_t *to = NULL;
    uint64_t from = self->is_port ? 0 : self->conn;
    int code = 0;

    (void)pthread_mutex_lock(&mutex);
    to = !self->is_port ? self->port : conn < LINKS_MAX ? self->links[conn] : NULL;
    if (to == NULL) {
        code = EHOSTUNREACH;
    } else if (to->n_from[from] >= self->high_water) {
        code = EAGAIN;
    } else if (!deliver(to, from, frames, n)) {
        code = ENOMEM;
    }
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

static int receive_frames(void *end, uint64_t *ret_conn,
                          ps_carrier_frame_t frames[PS_CARRIER_FRAMES], size_t *ret_n)
{
    end_t *self = end;
    letter_t *letter = NULL;
    int code = EAGAIN;

    (void)pthread_mutex_lock(&mutex);
    while (code == EAGAIN && (letter = STAILQ_FIRST(&self->letters)) != NULL) {
        STAILQ_REMOVE_HEAD(&self->letters, in_order);
        self->n_from[letter->conn]--;
        if (letter->n == 0) {
            self->gone[self->n_gone++] = letter->conn;
        } else {
            *ret_conn = letter->conn;
            *ret_n = letter->n;
            memcpy(frames, letter->frames, sizeof letter->frames);
            code = 0;
        }
        free(letter);
    }
    (void)pthread_mutex_unlock(&mutex);
    return code;
}

static void flush(void *end)
{
    (void)end;
}

static bool has_some(const end_t *self)
{
    return !STAILQ_EMPTY(&self->letters) || self->n_gone > 0 ||
           (!self->is_port && self->port == NULL);
}

static int is_ready(void *end)
{
    const end_t *self = end;
    int ready = 0;

    (void)pthread_mutex_lock(&mutex);
    ready = has_some(self) ? 1 : 0;
    (void)pthread_mutex_unlock(&mutex);
    return ready;
}

static int fd_of(void *end)
{
    const end_t *self = end;

    return self->fd;
}

static int lie_down(void *end)
{
    end_t *self = end;

    (void)pthread_mutex_lock(&mutex);
    self->sleeps = !has_some(self);
    (void)pthread_mutex_unlock(&mutex);
    return self->sleeps ? 1 : 0;
}

static void get_up(void *end)
{
    end_t *self = end;
    uint64_t n = 0;

    (void)pthread_mutex_lock(&mutex);
    self->sleeps = false;
    (void)pthread_mutex_unlock(&mutex);
    while (read(self->fd, &n, sizeof n) > 0) {
    }
}

static int next_gone(void *end, uint64_t *ret_conn)
{
    end_t *self = end;
    int found = 0;

    (void)pthread_mutex_lock(&mutex);
    if (!self->is_port) {
        found = self->port == NULL ? 1 : 0;
    } else if (self->n_gone > 0) {
        *ret_conn = self->gone[--self->n_gone];
        found = 1;
    }
    (void)pthread_mutex_unlock(&mutex);
    return found;
}

static const ps_carrier_plugin_t PLUGIN = {
    .abi = PS_CARRIER_ABI,
    .size = sizeof PLUGIN,
    .name = "ucx",
    .bind = bind_port,
    .connect = connect_link,
    .close = close_end,
    .send = send_frames,
    .receive = receive_frames,
    .flush = flush,
    .is_ready = is_ready,
    .fd = fd_of,
    .lie_down = lie_down,
    .get_up = get_up,
    .next_gone = next_gone,
};

__attribute__((visibility("default"))) const ps_carrier_plugin_t *psd_carrier_plugin(void);

const ps_carrier_plugin_t *psd_carrier_plugin(void)
{
    return &PLUGIN;
}
