/* SPDX-License-Identifier: Apache-2.0 */
/* The fault proxy does what its header says: a peer that sends back what it
 * gets, behind a door, and each order in turn. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/tcp_proxy.h"

#define HOST "127.0.0.1"
#define LIMIT_MS 60000
#define LARGE 300000

typedef struct echo { /* serves one connection after the other */
    int fd;
    uint16_t port;
    pthread_t thread;
} echo_t;

static void *run_echo(void *context)
{
    const echo_t *self = context;
    char data[4096];
    int fd = -1;

    while ((fd = accept4(self->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
        ssize_t n = 0;

        while ((n = recv(fd, data, sizeof data, 0)) > 0 &&
               send(fd, data, (size_t)n, MSG_NOSIGNAL) == n) {
        }
        (void)close(fd);
    }
    return NULL;
}

static bool echo_start(echo_t *self)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    self->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(self->fd >= 0);
    CHECK(bind(self->fd, (const struct sockaddr *)&at, size) == 0);
    CHECK(listen(self->fd, 16) == 0);
    CHECK(getsockname(self->fd, (struct sockaddr *)&at, &size) == 0);
    self->port = ntohs(at.sin_port);
    CHECK(pthread_create(&self->thread, NULL, run_echo, self) == 0);
    return true;
}

static void echo_stop(echo_t *self)
{
    (void)shutdown(self->fd, SHUT_RDWR);
    (void)pthread_join(self->thread, NULL);
    (void)close(self->fd);
}

static int dial(uint16_t port)
{
    const struct timeval limit = {.tv_sec = LIMIT_MS / 1000};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Says it and hears it. */
static bool says(int fd, const char *text)
{
    char heard[64] = "";
    size_t size = strlen(text);

    CHECK(send(fd, text, size, MSG_NOSIGNAL) == (ssize_t)size);
    CHECK(recv(fd, heard, size, MSG_WAITALL) == (ssize_t)size);
    CHECK(strcmp(heard, text) == 0);
    return true;
}

static bool hears_nothing(int fd)
{
    char byte = 0;

    CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
    return true;
}

static bool passed_in(const tcp_counts_t *counts, uint64_t number)
{
    return counts->bytes[TCP_WAY_IN] >= number;
}

static bool dropped_in(const tcp_counts_t *counts, uint64_t number)
{
    return counts->dropped[TCP_WAY_IN] >= number;
}

static bool dropped_out(const tcp_counts_t *counts, uint64_t number)
{
    return counts->dropped[TCP_WAY_OUT] >= number;
}

static bool open_is(const tcp_counts_t *counts, uint64_t number)
{
    return counts->n_open == number;
}

/* What is held arrives later, in order, and none of it before. */
static bool holds(tcp_proxy_t *proxy, uint16_t port)
{
    tcp_counts_t counts = {0};
    char heard[8] = "";
    int fd = dial(port);

    CHECK(says(fd, "one"));
    tcp_proxy_set_flow(proxy, TCP_WAY_OUT, TCP_FLOW_HOLD);
    tcp_proxy_counts(proxy, &counts);
    CHECK(send(fd, "two", 3, 0) == 3);
    CHECK(tcp_proxy_wait(proxy, passed_in, counts.bytes[TCP_WAY_IN] + 3, LIMIT_MS));
    CHECK(hears_nothing(fd));
    tcp_proxy_set_flow(proxy, TCP_WAY_IN, TCP_FLOW_HOLD);
    CHECK(send(fd, "six", 3, 0) == 3);
    tcp_proxy_counts(proxy, &counts);
    tcp_proxy_set_flow(proxy, TCP_WAY_OUT, TCP_FLOW_PASS);
    CHECK(recv(fd, heard, 3, MSG_WAITALL) == 3 && strcmp(heard, "two") == 0);
    CHECK(hears_nothing(fd));
    CHECK(!passed_in(&counts, counts.bytes[TCP_WAY_IN] + 1));
    CHECK(tcp_proxy_heal(proxy));
    CHECK(recv(fd, heard, 3, MSG_WAITALL) == 3 && strcmp(heard, "six") == 0);
    (void)close(fd);
    return tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS);
}

/* Who lost bytes is reset when they would be missed; who did not goes on. */
static bool drops(tcp_proxy_t *proxy, uint16_t port)
{
    tcp_counts_t counts = {0};
    char byte = 0;
    int fd = dial(port);

    tcp_proxy_counts(proxy, &counts);
    CHECK(says(fd, "one"));
    tcp_proxy_set_flow(proxy, TCP_WAY_IN, TCP_FLOW_DROP);
    tcp_proxy_set_flow(proxy, TCP_WAY_IN, TCP_FLOW_PASS);
    CHECK(says(fd, "two"));
    tcp_proxy_set_flow(proxy, TCP_WAY_OUT, TCP_FLOW_DROP);
    CHECK(send(fd, "six", 3, 0) == 3);
    CHECK(tcp_proxy_wait(proxy, dropped_out, counts.dropped[TCP_WAY_OUT] + 3, LIMIT_MS));
    tcp_proxy_set_flow(proxy, TCP_WAY_IN, TCP_FLOW_DROP);
    CHECK(send(fd, "ten", 3, 0) == 3);
    CHECK(tcp_proxy_wait(proxy, dropped_in, counts.dropped[TCP_WAY_IN] + 3, LIMIT_MS));
    CHECK(hears_nothing(fd));
    CHECK(tcp_proxy_heal(proxy));
    CHECK(recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET);
    (void)close(fd);
    return tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS);
}

/* Exactly so many bytes arrive, then the end. */
static bool cuts(tcp_proxy_t *proxy, uint16_t port, bool by_reset)
{
    tcp_counts_t counts = {0};
    char heard[8] = "";
    int fd = dial(port);
    ssize_t n = 0;

    CHECK(says(fd, "one"));
    tcp_proxy_counts(proxy, &counts);
    tcp_proxy_cut_after(proxy, TCP_WAY_OUT, 2, by_reset);
    CHECK(send(fd, "seven", 5, 0) == 5);
    n = recv(fd, heard, 5, MSG_WAITALL);
    if (by_reset) { /* which takes along what was not read yet */
        CHECK(n == 2 || (n < 0 && errno == ECONNRESET));
    } else {
        CHECK(n == 2 && memcmp(heard, "se", 2) == 0);
        CHECK(recv(fd, heard, 1, 0) == 0);
    }
    (void)close(fd);
    CHECK(tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS));
    n = (ssize_t)counts.n_cut;
    tcp_proxy_counts(proxy, &counts);
    CHECK(counts.n_cut == (uint64_t)n + 1);
    fd = dial(port); /* once */
    CHECK(says(fd, "again"));
    (void)close(fd);
    return tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS);
}

static bool resets_and_refuses(tcp_proxy_t *proxy, uint16_t port)
{
    char byte = 0;
    int fd = dial(port);
    int kept = -1;

    CHECK(says(fd, "one"));
    tcp_proxy_reset(proxy);
    CHECK(recv(fd, &byte, 1, 0) < 0 && errno == ECONNRESET);
    (void)close(fd);
    kept = dial(port);
    CHECK(says(kept, "two"));
    CHECK(tcp_proxy_accept(proxy, false));
    CHECK(dial(port) < 0);
    CHECK(says(kept, "six"));
    CHECK(tcp_proxy_accept(proxy, true));
    (void)close(kept);
    CHECK(tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS));
    fd = dial(port);
    CHECK(says(fd, "ten"));
    (void)close(fd);
    return tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS);
}

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Never sooner than it is told to be. */
static bool is_late_and_slow(tcp_proxy_t *proxy, uint16_t port)
{
    int fd = dial(port);
    uint64_t begin_ms = 0;

    CHECK(says(fd, "one"));
    tcp_proxy_set_delay(proxy, TCP_WAY_IN, 40);
    tcp_proxy_set_delay(proxy, TCP_WAY_OUT, 20);
    begin_ms = now_ms();
    CHECK(says(fd, "two"));
    CHECK(now_ms() - begin_ms >= 59);
    CHECK(tcp_proxy_heal(proxy));
    tcp_proxy_set_rate(proxy, TCP_WAY_IN, 500);
    begin_ms = now_ms();
    CHECK(says(fd, "these are fifty bytes, which take a tenth of a sec"));
    CHECK(now_ms() - begin_ms >= 80);
    CHECK(tcp_proxy_heal(proxy));
    (void)close(fd);
    return tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS);
}

static void *send_large(void *context)
{
    const int *fd = context;
    static char data[LARGE];

    for (size_t i = 0; i < LARGE; i++) {
        data[i] = (char)(i % 251);
    }
    (void)send(*fd, data, LARGE, MSG_NOSIGNAL);
    (void)shutdown(*fd, SHUT_WR);
    return NULL;
}

/* More than any buffer, to the end of the stream, and every byte the same. */
static bool is_whole(tcp_proxy_t *proxy, uint16_t port)
{
    static char heard[LARGE];
    pthread_t thread;
    int fd = dial(port);

    CHECK(pthread_create(&thread, NULL, send_large, &fd) == 0);
    CHECK(recv(fd, heard, LARGE, MSG_WAITALL) == LARGE);
    for (size_t i = 0; i < LARGE; i++) {
        CHECK(heard[i] == (char)(i % 251));
    }
    CHECK(recv(fd, heard, 1, 0) == 0);
    (void)pthread_join(thread, NULL);
    (void)close(fd);
    return tcp_proxy_wait(proxy, open_is, 0, LIMIT_MS);
}

/* Without a target there is no connection for long. */
static bool has_no_target(tcp_proxy_t *proxy)
{
    char byte = 0;
    uint16_t port = 0;
    int fd = -1;

    tcp_proxy_forget_doors(proxy);
    port = tcp_proxy_open_door(proxy, 0, HOST, 1);
    CHECK(port != 0);
    fd = dial(port);
    CHECK(fd >= 0 && recv(fd, &byte, 1, 0) <= 0 && errno != EAGAIN);
    (void)close(fd);
    return true;
}

int main(void)
{
    echo_t echo = {.fd = -1};
    tcp_proxy_t *proxy = tcp_proxy_new(HOST);
    bool good = proxy != NULL && echo_start(&echo);
    uint16_t port = good ? tcp_proxy_open_door(proxy, 0, HOST, echo.port) : 0;

    good = port != 0 && is_whole(proxy, port) && holds(proxy, port) && drops(proxy, port) &&
           cuts(proxy, port, true) && cuts(proxy, port, false) && resets_and_refuses(proxy, port) &&
           is_late_and_slow(proxy, port) && has_no_target(proxy);
    tcp_proxy_destroy(&proxy);
    if (echo.fd >= 0) {
        echo_stop(&echo);
    }
    return good ? 0 : 1;
}
