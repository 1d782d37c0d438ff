/* SPDX-License-Identifier: Apache-2.0 */
/* Watched links whose peers hang up while they are closed. ZeroMQ tells its
 * monitors from its I/O threads: one that waited there for a reader that was
 * gone stood still for good, and with it every connection of that thread. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "transport/sockets/socket.h"

#define TURNS 3000
#define TURNS_MS 20000 /* fewer turns where others take the processors */
#define YIELDS 64      /* the close comes at any place of a connection's life */
#define PATIENCE_MS 60000

/* Who answers and hangs up at once. */
typedef struct rude {
    pthread_t thread;
    int fd;
    char endpoint[64];
} rude_t;

static void *hang_up(void *context)
{
    const rude_t *self = context;
    int fd = 0;

    while ((fd = accept(self->fd, NULL, NULL)) >= 0) {
        (void)close(fd);
    }
    return NULL;
}

static bool start_rude(rude_t *self)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;

    self->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(self->fd >= 0 && bind(self->fd, (const struct sockaddr *)&at, sizeof at) == 0 &&
          listen(self->fd, 128) == 0 && getsockname(self->fd, (struct sockaddr *)&at, &size) == 0);
    (void)snprintf(self->endpoint, sizeof self->endpoint, "tcp://127.0.0.1:%u", ntohs(at.sin_port));
    CHECK(pthread_create(&self->thread, NULL, hang_up, self) == 0);
    return true;
}

static void stop_rude(rude_t *self)
{
    (void)shutdown(self->fd, SHUT_RDWR);
    (void)pthread_join(self->thread, NULL);
    (void)close(self->fd);
}

/* A connection comes about: the context's only I/O thread works. */
static bool still_works(const ps_socket_args_t *args, psd_error_t *err)
{
    const char *const endpoints[] = {"tcp://127.0.0.1:*"};
    const struct timespec step = {.tv_nsec = 1000000L};
    uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    ps_socket_t *port = NULL;
    ps_socket_t *link = NULL;
    bool is_up = false;

    CHECK_OK(ps_socket_bind(endpoints, 1, args, &port, err), err);
    CHECK_OK(ps_socket_connect(ps_socket_endpoint(port, 0), args, &link, err), err);
    while (!is_up && ps_now_ms() < until_ms) {
        is_up = ps_socket_is_up(link);
        (void)nanosleep(&step, NULL);
    }
    ps_socket_drop(&link);
    ps_socket_drop(&port);
    CHECK(is_up);
    return true;
}

static bool links_are_closed_while_peers_hang_up(psd_error_t *err)
{
    rude_t rude;
    ps_context_t *context = NULL;
    ps_socket_args_t args = {.high_water = 100,
                             .frame_bytes = 1 << 20,
                             .assembly_bytes = 1 << 20,
                             .chunk_bytes = 4096,
                             .is_watched = true};
    uint64_t until_ms = ps_now_ms() + TURNS_MS;

    CHECK(start_rude(&rude));
    CHECK_OK(ps_context_new(1, &context, err), err);
    args.context = context;
    for (int i = 0; i < TURNS && ps_now_ms() < until_ms; i++) {
        ps_socket_t *link = NULL;

        CHECK_OK(ps_socket_connect(rude.endpoint, &args, &link, err), err);
        for (int k = 0; k < i % YIELDS; k++) {
            (void)sched_yield();
        }
        ps_socket_drop(&link);
    }
    CHECK(still_works(&args, err));
    ps_context_destroy(&context);
    stop_rude(&rude);
    return true;
}

int main(void)
{
    psd_error_t *err = psd_error_new();
    bool ok = links_are_closed_while_peers_hang_up(err);

    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
