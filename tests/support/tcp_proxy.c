/* SPDX-License-Identifier: Apache-2.0 */
/* The doors, the thread that moves the bytes, and the orders. */
#include "support/tcp_proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/tcp_link.h"

#define DOORS_MAX 64
#define LINKS_MAX 512
#define POLLS_MAX (1 + DOORS_MAX + 2 * LINKS_MAX)
#define BACKLOG 128
#define HOST_SIZE 64

typedef struct door {
    int fd; /* -1: refuses */
    uint16_t port;
    char host[HOST_SIZE]; /* of the target */
    uint16_t target;
} door_t;

typedef struct record {
    char *bytes; /* owned; NULL: none is kept */
    size_t size;
    size_t capacity;
} record_t;

struct tcp_proxy {
    pthread_t thread;
    pthread_mutex_t lock; /* of everything below */
    pthread_cond_t changed;
    int wake; /* an order was given */
    bool ends;
    bool wants_reset;
    uint64_t n_given; /* orders that the thread must carry out */
    uint64_t n_done;
    char host[HOST_SIZE];
    door_t doors[DOORS_MAX];
    size_t n_doors;
    tcp_link_t *links[LINKS_MAX];
    size_t n_links;
    tcp_orders_t orders[2];
    tcp_counts_t counts;
    record_t records[2]; /* by way */
    /* the thread's own */
    size_t n_rounds;
    struct pollfd polls[POLLS_MAX];
};

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- the thread ---- */

static void drop_link(tcp_proxy_t *self, size_t at, bool by_reset)
{
    tcp_link_close(&self->links[at], by_reset);
    self->links[at] = self->links[--self->n_links];
    self->counts.n_open = self->n_links;
}

static void accept_one(tcp_proxy_t *self, const door_t *door)
{
    int fd = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    tcp_link_t *link = NULL;

    if (fd < 0) {
        return;
    }
    if (self->n_links == LINKS_MAX) {
        (void)close(fd);
        return;
    }
    link = tcp_link_open(fd, door->host, door->target);
    if (link != NULL) {
        self->links[self->n_links++] = link;
        self->counts.n_accepted++;
        self->counts.n_open = self->n_links;
    }
}

static void keep(record_t *record, const char *bytes, size_t size)
{
    size_t room = record->capacity - record->size;
    size_t n = size < room ? size : room;

    if (n > 0) {
        memcpy(record->bytes + record->size, bytes, n);
        record->size += n;
    }
}

/* Moves bytes in one direction. false: the link is gone. */
static bool move(tcp_proxy_t *self, size_t at, tcp_way_t way, uint64_t now)
{
    tcp_link_t *link = self->links[at];
    tcp_orders_t *orders = &self->orders[way];
    tcp_fate_t fate = TCP_FATE_LIVES;
    bool by_reset = true;

    if (tcp_link_wants_read(link, way, orders)) {
        size_t before = link->ways[way].size;

        fate = tcp_link_read(link, way, orders, now, &self->counts.dropped[way]);
        keep(&self->records[way], link->ways[way].data + before, link->ways[way].size - before);
    }
    if (fate == TCP_FATE_LIVES && tcp_link_writes_at(link, way, orders, now) <= now) {
        fate = tcp_link_write(link, way, orders, now, &self->counts.bytes[way]);
    }
    if (fate == TCP_FATE_LIVES) {
        return true;
    }
    if (orders->cut_left == 0) {
        by_reset = orders->cut_by_reset;
        orders->cut_left = UINT64_MAX;
        self->counts.n_cut++;
    }
    drop_link(self, at, fate == TCP_FATE_RESET && by_reset);
    return false;
}

/* Handles the events of a link after poll. */
static void serve_link(tcp_proxy_t *self, size_t at, uint64_t now)
{
    tcp_link_t *link = self->links[at];

    if (!link->is_connected && tcp_link_write(link, TCP_WAY_IN, &self->orders[TCP_WAY_IN], now,
                                              &self->counts.bytes[TCP_WAY_IN]) == TCP_FATE_RESET) {
        drop_link(self, at, true);
        return;
    }
    if (move(self, at, TCP_WAY_IN, now)) {
        (void)move(self, at, TCP_WAY_OUT, now);
    }
}

static short events_of(const tcp_proxy_t *self, const tcp_link_t *link, tcp_way_t fd_of,
                       uint64_t now, uint64_t *wake_ms)
{
    tcp_way_t written = fd_of == TCP_WAY_IN ? TCP_WAY_OUT : TCP_WAY_IN;
    uint64_t at = tcp_link_writes_at(link, written, &self->orders[written], now);
    short events = 0;

    if (tcp_link_wants_read(link, fd_of, &self->orders[fd_of])) {
        events |= POLLIN;
    }
    if (at <= now) {
        events |= POLLOUT;
    } else if (at < *wake_ms) {
        *wake_ms = at;
    }
    return events;
}

/* Fills polls; a link has two in a row. It leaves out a socket without
 * wanted events, or poll would report its hang-up for ever. */
static nfds_t fill_polls(tcp_proxy_t *self, uint64_t now, uint64_t *wake_ms)
{
    nfds_t n = 0;

    self->polls[n++] = (struct pollfd){.fd = self->wake, .events = POLLIN};
    for (size_t i = 0; i < self->n_doors; i++) {
        self->polls[n++] = (struct pollfd){.fd = self->doors[i].fd, .events = POLLIN};
    }
    for (size_t i = 0; i < self->n_links; i++) {
        for (int way = 0; way < 2; way++) {
            short events = events_of(self, self->links[i], (tcp_way_t)way, now, wake_ms);

            self->polls[n++] = (struct pollfd){.fd = events == 0 ? -1 : self->links[i]->fds[way],
                                               .events = events};
        }
    }
    return n;
}

static void carry_out(tcp_proxy_t *self)
{
    uint64_t count = 0;

    (void)!read(self->wake, &count, sizeof count);
    while (self->wants_reset && self->n_links > 0) {
        drop_link(self, self->n_links - 1, true);
    }
    self->wants_reset = false;
    self->n_done = self->n_given;
}

/* Handles all events of poll, and what has become due. A different link
 * comes first each time, or one would use up the credit of a slow direction.
 * The last link replaces one that ends, and then waits for the next round. */
static void serve(tcp_proxy_t *self, size_t n_doors, size_t n_links)
{
    uint64_t now = now_ms();

    tcp_orders_earn(&self->orders[0], now);
    tcp_orders_earn(&self->orders[1], now);
    self->n_rounds++;
    for (size_t i = 0; i < n_links && self->n_links > 0; i++) {
        serve_link(self, (self->n_rounds + i) % self->n_links, now);
    }
    for (size_t i = 0; i < n_doors && i < self->n_doors; i++) {
        if ((self->polls[1 + i].revents & POLLIN) != 0 &&
            self->doors[i].fd == self->polls[1 + i].fd) {
            accept_one(self, &self->doors[i]);
        }
    }
}

static void *run(void *context)
{
    tcp_proxy_t *self = context;

    (void)pthread_mutex_lock(&self->lock);
    while (!self->ends) {
        uint64_t now = now_ms();
        uint64_t wake_ms = now + 1000;
        size_t n_doors = self->n_doors;
        nfds_t n = fill_polls(self, now, &wake_ms);

        (void)pthread_mutex_unlock(&self->lock);
        (void)poll(self->polls, n, (int)(wake_ms - now));
        (void)pthread_mutex_lock(&self->lock);
        if ((self->polls[0].revents & POLLIN) != 0) {
            carry_out(self);
        }
        serve(self, n_doors, self->n_links);
        (void)pthread_cond_broadcast(&self->changed);
    }
    (void)pthread_mutex_unlock(&self->lock);
    return NULL;
}

/* ---- orders ---- */

static void wake_up(tcp_proxy_t *self)
{
    const uint64_t one = 1;

    (void)!write(self->wake, &one, sizeof one);
}

/* Waits until the thread has seen everything; the lock is held. */
static void await_orders(tcp_proxy_t *self)
{
    uint64_t mine = ++self->n_given;

    wake_up(self);
    while (self->n_done < mine) {
        (void)pthread_cond_wait(&self->changed, &self->lock);
    }
}

static int listen_on(const char *host, uint16_t *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(*port)};
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0 || inet_pton(AF_INET, host, &at.sin_addr) != 1 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) != 0 ||
        bind(fd, (const struct sockaddr *)&at, sizeof at) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        (void)fprintf(stderr, "door on %s:%u: %s\n", host, *port, strerror(errno));
        if (fd >= 0) {
            (void)close(fd);
        }
        return -1;
    }
    *port = ntohs(at.sin_port);
    return fd;
}

tcp_proxy_t *tcp_proxy_new(const char *host)
{
    tcp_proxy_t *self = calloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    (void)snprintf(self->host, sizeof self->host, "%s", host);
    (void)pthread_mutex_init(&self->lock, NULL);
    (void)pthread_cond_init(&self->changed, NULL);
    for (int way = 0; way < 2; way++) {
        self->orders[way].cut_left = UINT64_MAX;
    }
    self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->wake < 0 || pthread_create(&self->thread, NULL, run, self) != 0) {
        perror("tcp_proxy");
        free(self);
        return NULL;
    }
    return self;
}

static void close_doors(tcp_proxy_t *self)
{
    for (size_t i = 0; i < self->n_doors; i++) {
        if (self->doors[i].fd >= 0) {
            (void)close(self->doors[i].fd);
            self->doors[i].fd = -1;
        }
    }
}

void tcp_proxy_destroy(tcp_proxy_t **self_p)
{
    tcp_proxy_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    (void)pthread_mutex_lock(&self->lock);
    self->ends = true;
    wake_up(self);
    (void)pthread_mutex_unlock(&self->lock);
    (void)pthread_join(self->thread, NULL);
    while (self->n_links > 0) {
        drop_link(self, self->n_links - 1, true);
    }
    close_doors(self);
    (void)close(self->wake);
    (void)pthread_cond_destroy(&self->changed);
    (void)pthread_mutex_destroy(&self->lock);
    free(self->records[0].bytes);
    free(self->records[1].bytes);
    free(self);
    *self_p = NULL;
}

uint16_t tcp_proxy_open_door(tcp_proxy_t *self, uint16_t port, const char *target_host,
                             uint16_t target_port)
{
    door_t door = {.port = port, .target = target_port};

    (void)snprintf(door.host, sizeof door.host, "%s", target_host);
    (void)pthread_mutex_lock(&self->lock);
    door.fd = self->n_doors == DOORS_MAX ? -1 : listen_on(self->host, &door.port);
    if (door.fd >= 0) {
        self->doors[self->n_doors++] = door;
        await_orders(self);
    }
    (void)pthread_mutex_unlock(&self->lock);
    return door.fd >= 0 ? door.port : 0;
}

void tcp_proxy_forget_doors(tcp_proxy_t *self)
{
    (void)pthread_mutex_lock(&self->lock);
    close_doors(self);
    self->n_doors = 0;
    self->wants_reset = true;
    await_orders(self);
    (void)pthread_mutex_unlock(&self->lock);
}

/* With the lock held. */
static bool set_accepts(tcp_proxy_t *self, bool accepts)
{
    bool done = true;

    if (!accepts) {
        close_doors(self);
    }
    for (size_t i = 0; accepts && i < self->n_doors; i++) {
        if (self->doors[i].fd < 0) {
            self->doors[i].fd = listen_on(self->host, &self->doors[i].port);
            done = done && self->doors[i].fd >= 0;
        }
    }
    await_orders(self);
    return done;
}

bool tcp_proxy_accept(tcp_proxy_t *self, bool accepts)
{
    bool done = false;

    (void)pthread_mutex_lock(&self->lock);
    done = set_accepts(self, accepts);
    (void)pthread_mutex_unlock(&self->lock);
    return done;
}

/* With the lock held. A link that lost bytes cannot go on. */
static void set_flow(tcp_proxy_t *self, tcp_way_t way, tcp_flow_t flow)
{
    bool was_dropping = self->orders[way].flow == TCP_FLOW_DROP;

    self->orders[way].flow = flow;
    for (size_t i = self->n_links; was_dropping && i > 0; i--) {
        if (self->links[i - 1]->ways[way].has_hole) {
            drop_link(self, i - 1, true);
        }
    }
}

void tcp_proxy_set_flow(tcp_proxy_t *self, tcp_way_t way, tcp_flow_t flow)
{
    (void)pthread_mutex_lock(&self->lock);
    set_flow(self, way, flow);
    await_orders(self);
    (void)pthread_mutex_unlock(&self->lock);
}

void tcp_proxy_set_delay(tcp_proxy_t *self, tcp_way_t way, uint32_t delay_ms)
{
    (void)pthread_mutex_lock(&self->lock);
    self->orders[way].delay_ms = delay_ms;
    await_orders(self);
    (void)pthread_mutex_unlock(&self->lock);
}

static void set_rate(tcp_proxy_t *self, tcp_way_t way, uint64_t bytes_per_s)
{
    self->orders[way].bytes_per_s = bytes_per_s;
    self->orders[way].credit = 0;
    self->orders[way].credit_ms = now_ms();
}

void tcp_proxy_set_rate(tcp_proxy_t *self, tcp_way_t way, uint64_t bytes_per_s)
{
    (void)pthread_mutex_lock(&self->lock);
    set_rate(self, way, bytes_per_s);
    await_orders(self);
    (void)pthread_mutex_unlock(&self->lock);
}

void tcp_proxy_cut_after(tcp_proxy_t *self, tcp_way_t way, uint64_t n_bytes, bool by_reset)
{
    (void)pthread_mutex_lock(&self->lock);
    self->orders[way].cut_left = n_bytes == 0 ? 1 : n_bytes;
    self->orders[way].cut_by_reset = by_reset;
    await_orders(self);
    (void)pthread_mutex_unlock(&self->lock);
}

void tcp_proxy_reset(tcp_proxy_t *self)
{
    (void)pthread_mutex_lock(&self->lock);
    self->wants_reset = true;
    await_orders(self);
    (void)pthread_mutex_unlock(&self->lock);
}

bool tcp_proxy_heal(tcp_proxy_t *self)
{
    bool done = false;

    (void)pthread_mutex_lock(&self->lock);
    for (int way = 0; way < 2; way++) {
        set_flow(self, (tcp_way_t)way, TCP_FLOW_PASS);
        set_rate(self, (tcp_way_t)way, 0);
        self->orders[way].delay_ms = 0;
        self->orders[way].cut_left = UINT64_MAX;
    }
    done = set_accepts(self, true);
    (void)pthread_mutex_unlock(&self->lock);
    return done;
}

bool tcp_proxy_record(tcp_proxy_t *self, size_t max_bytes)
{
    bool has_room = true;

    (void)pthread_mutex_lock(&self->lock);
    for (int way = 0; way < 2; way++) {
        self->records[way] = (record_t){.bytes = malloc(max_bytes)};
        self->records[way].capacity = self->records[way].bytes == NULL ? 0 : max_bytes;
        has_room = has_room && self->records[way].bytes != NULL;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return has_room;
}

size_t tcp_proxy_find(tcp_proxy_t *self, tcp_way_t way, const void *bytes, size_t size)
{
    const record_t *record = &self->records[way];
    size_t n = 0;

    (void)pthread_mutex_lock(&self->lock);
    for (size_t i = 0; i + size <= record->size; i++) {
        n += memcmp(record->bytes + i, bytes, size) == 0 ? 1 : 0;
    }
    (void)pthread_mutex_unlock(&self->lock);
    return n;
}

void tcp_proxy_counts(tcp_proxy_t *self, tcp_counts_t *ret_counts)
{
    (void)pthread_mutex_lock(&self->lock);
    *ret_counts = self->counts;
    (void)pthread_mutex_unlock(&self->lock);
}

bool tcp_proxy_wait(tcp_proxy_t *self, bool (*until)(const tcp_counts_t *counts, uint64_t number),
                    uint64_t number, uint32_t timeout_ms)
{
    uint64_t end_ms = now_ms() + timeout_ms;
    bool is_true = false;

    (void)pthread_mutex_lock(&self->lock);
    for (is_true = until(&self->counts, number); !is_true && now_ms() < end_ms;
         is_true = until(&self->counts, number)) {
        /* The thread wakes at least once a second. */
        (void)pthread_cond_wait(&self->changed, &self->lock);
    }
    (void)pthread_mutex_unlock(&self->lock);
    return is_true;
}
