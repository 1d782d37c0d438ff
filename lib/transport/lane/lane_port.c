/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes in slots; an epoll for clients that connect, leave and ring. */
#include "transport/lane/lane_port.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/alloc.h"

#define EVENTS_AT_ONCE 64
#define ACCEPTS_AT_ONCE 16
#define MESSAGES_IN_TURN 16 /* of one lane before the next has its turn */
#define LOOKS_AT_ONCE 16    /* at lanes, if no message is whole */
#define SLOT_BITS 12        /* of a conn; PS_LANES_MAX */
#define SLOT_MASK ((UINT64_C(1) << SLOT_BITS) - 1)
#define LISTENER_MARK (UINT64_C(1) << 32) /* in an event's data */

typedef struct listener {
    int fd;
    char *path; /* owned; removed at close */
} listener_t;

struct ps_lane_port {
    ps_lane_port_args_t args;
    int epoll;
    listener_t *listeners; /* owned */
    size_t n_listeners;
    size_t listeners_capacity;
    ps_lane_t **lanes; /* owned, by slot; NULL: free */
    size_t n_slots;    /* beyond, all are free */
    size_t n_lanes;
    uint64_t serial;  /* of the newest lane */
    size_t turn;      /* slot whose turn it is */
    size_t n_in_turn; /* messages that it had */
    ps_lane_t *ended; /* told, and kept until the next call */
    int spare;        /* a file to give up when there are no more */
    uint64_t n_refused;
};

static int open_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

psd_status_t ps_lane_port_new(const ps_lane_port_args_t *args, ps_lane_port_t **ret_port,
                              psd_error_t *err)
{
    PSD_AUTO(ps_lane_port_close)
    ps_lane_port_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for lanes");
    }
    self->args = *args;
    self->epoll = -1;
    self->spare = open_spare();
    self->lanes = ps_alloc(args->most, sizeof(ps_lane_t *));
    if (self->lanes == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for lanes");
    }
    self->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (self->epoll < 0) {
        char reason[128] = "";

        return psd_error_set(err, PSD_IO, "epoll for lanes: %s",
                             strerror_r(errno, reason, sizeof reason));
    }
    *ret_port = self;
    self = NULL;
    return PSD_OK;
}

void ps_lane_port_close(ps_lane_port_t **self_p)
{
    ps_lane_port_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    for (size_t i = 0; i < self->n_listeners; i++) {
        (void)unlink(self->listeners[i].path);
        (void)close(self->listeners[i].fd);
        ps_free(self->listeners[i].path);
    }
    for (size_t i = 0; i < self->n_slots; i++) {
        ps_lane_destroy(&self->lanes[i]);
    }
    ps_lane_destroy(&self->ended);
    if (self->epoll >= 0) {
        (void)close(self->epoll);
    }
    if (self->spare >= 0) {
        (void)close(self->spare);
    }
    ps_free(self->listeners);
    ps_free(self->lanes);
    ps_free(self);
}

static bool hear(ps_lane_port_t *self, int fd, uint64_t data)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.u64 = data}};

    return epoll_ctl(self->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

psd_status_t ps_lane_port_bind(ps_lane_port_t *self, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *copy = ps_strdup(path);
    int fd = -1;
    psd_status_t rc = PSD_OK;

    if (copy == NULL || !ps_grow(&self->listeners, &self->listeners_capacity, self->n_listeners + 1,
                                 sizeof *self->listeners)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for lanes");
    }
    rc = ps_lane_listen_at(path, self->args.peers, &fd, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (!hear(self, fd, LISTENER_MARK | self->n_listeners)) {
        (void)unlink(path);
        (void)close(fd);
        return psd_error_set(err, PSD_IO, "cannot wait at \"%.300s\"", path);
    }
    self->listeners[self->n_listeners++] = (listener_t){.fd = fd, .path = copy};
    copy = NULL;
    return PSD_OK;
}

int ps_lane_port_fd(const ps_lane_port_t *self)
{
    return self->epoll;
}

/* ---- coming and going --------------------------------------------------- */

/* The first free slot; args.most when there is none. */
static size_t free_slot(const ps_lane_port_t *self)
{
    size_t slot = 0;

    while (slot < self->n_slots && self->lanes[slot] != NULL) {
        slot++;
    }
    return slot;
}

/* Makes a lane over fd, which it takes on success. */
static psd_status_t open_lane(ps_lane_port_t *self, int fd, psd_error_t *err)
{
    const ps_lane_sizes_t sizes = {.request_bytes = PS_LANE_REQUEST_BYTES,
                                   .reply_bytes = PS_LANE_REPLY_BYTES,
                                   .arena_bytes = self->args.arena_bytes};
    size_t slot = free_slot(self);
    ps_lane_share_t *share = NULL;
    ps_lane_t *lane = NULL;
    int memory = -1;
    psd_status_t rc = PSD_OK;

    if (slot == self->args.most) {
        return psd_error_set(err, PSD_BUSY, "%zu lanes are open; allowed: %" PRIu32, self->n_lanes,
                             self->args.most);
    }
    rc = ps_lane_share_new(&sizes, &share, &memory, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = ps_lane_hand_over(fd, &sizes, memory, err);
    (void)close(memory);
    if (rc != PSD_OK || !hear(self, fd, slot)) {
        ps_lane_share_drop(&share);
        return rc != PSD_OK ? rc : psd_error_set(err, PSD_IO, "no more lanes");
    }
    rc = ps_lane_new(share, fd, true, &self->args.lane, &lane, err);
    if (rc != PSD_OK) {
        return PSD_OK; /* fd is closed: the client sees that */
    }
    lane->conn = PS_LANE_CONN + (++self->serial << SLOT_BITS) + slot;
    self->lanes[slot] = lane;
    self->n_lanes++;
    if (slot == self->n_slots) {
        self->n_slots++;
    }
    return PSD_OK;
}

static void take_in(ps_lane_port_t *self, int fd)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    psd_status_t rc = PSD_DENIED;

    if (ps_door_admits(fd, self->args.peers, err)) {
        rc = open_lane(self, fd, err);
    }
    if (rc != PSD_OK) {
        self->n_refused++;
        ps_lane_turn_away(fd, rc, psd_error_text(err));
        (void)close(fd);
    }
}

/* Without a free descriptor no client can be accepted, and one that waits would
 * wake us forever. So it is accepted and closed, and uses another transport. */
static void hang_up_on_one(ps_lane_port_t *self, int listener)
{
    int fd = -1;

    if (self->spare < 0) {
        return;
    }
    (void)close(self->spare);
    fd = ps_lane_accept(listener);
    if (fd >= 0) {
        self->n_refused++;
        (void)close(fd);
    }
    self->spare = open_spare();
}

static void look_at_event(ps_lane_port_t *self, uint64_t data)
{
    if (data >= LISTENER_MARK) {
        const listener_t *listener = &self->listeners[data - LISTENER_MARK];

        for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
            int fd = ps_lane_accept(listener->fd);

            if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
                hang_up_on_one(self, listener->fd);
            }
            if (fd < 0) {
                return;
            }
            take_in(self, fd);
        }
    } else if (data < self->n_slots && self->lanes[data] != NULL) {
        ps_lane_listen(self->lanes[data]);
        if (self->lanes[data]->gone) {
            /* epoll would report its end forever. */
            (void)epoll_ctl(self->epoll, EPOLL_CTL_DEL, self->lanes[data]->fd, NULL);
        }
    }
}

void ps_lane_port_look(ps_lane_port_t *self)
{
    struct epoll_event events[EVENTS_AT_ONCE];
    int n = epoll_wait(self->epoll, events, EVENTS_AT_ONCE, 0);

    for (int i = 0; i < n; i++) {
        look_at_event(self, events[i].data.u64);
    }
}

bool ps_lane_port_gone(ps_lane_port_t *self, uint64_t *ret_conn)
{
    ps_lane_destroy(&self->ended);
    for (size_t i = 0; i < self->n_slots; i++) {
        ps_lane_t *lane = self->lanes[i];

        if (lane != NULL && lane->gone && !ps_lane_has_record(lane)) {
            self->lanes[i] = NULL;
            self->n_lanes--;
            self->ended = lane;
            *ret_conn = lane->conn;
            return true;
        }
    }
    return false;
}

/* ---- messages ----------------------------------------------------------- */

ps_lane_t *ps_lane_port_at(ps_lane_port_t *self, uint64_t conn)
{
    uint64_t slot = conn & SLOT_MASK;

    if (conn < PS_LANE_CONN || slot >= self->n_slots || self->lanes[slot] == NULL ||
        self->lanes[slot]->conn != conn) {
        return NULL;
    }
    return self->lanes[slot];
}

/* The lane whose turn it is, if it has something; else the next that has. */
static ps_lane_t *next_in_turn(ps_lane_port_t *self)
{
    if (self->n_in_turn >= MESSAGES_IN_TURN) {
        self->turn++;
        self->n_in_turn = 0;
    }
    for (size_t i = 0; i < self->n_slots; i++) {
        size_t slot = (self->turn + i) % self->n_slots;
        ps_lane_t *lane = self->lanes[slot];

        if (lane != NULL && ps_lane_has_record(lane)) {
            if (i > 0) {
                self->n_in_turn = 0;
            }
            self->turn = slot;
            self->n_in_turn++;
            return lane;
        }
    }
    return NULL;
}

psd_status_t ps_lane_port_receive(ps_lane_port_t *self, bool *ret_got, uint64_t *ret_conn,
                                  ps_message_t *ret_message, ps_payload_t **ret_payload,
                                  ps_room_t *ret_room, psd_error_t *err)
{
    *ret_got = false;
    /* A client that writes pieces as fast as we read them must not keep us
     * here. */
    for (int i = 0; i < LOOKS_AT_ONCE; i++) {
        ps_lane_t *lane = next_in_turn(self);
        psd_status_t rc = PSD_OK;

        if (lane == NULL) {
            return PSD_OK;
        }
        *ret_conn = lane->conn;
        rc = ps_lane_receive(lane, ret_got, ret_message, ret_payload, ret_room, err);
        if (rc != PSD_OK || *ret_got) {
            return rc;
        }
    }
    return PSD_OK;
}

bool ps_lane_port_is_ready(ps_lane_port_t *self)
{
    for (size_t i = 0; i < self->n_slots; i++) {
        if (self->lanes[i] != NULL && ps_lane_is_ready(self->lanes[i])) {
            return true;
        }
    }
    return false;
}

void ps_lane_port_flush(ps_lane_port_t *self)
{
    for (size_t i = 0; i < self->n_slots; i++) {
        if (self->lanes[i] != NULL) {
            ps_lane_flush(self->lanes[i]);
        }
    }
}

bool ps_lane_port_sleep(ps_lane_port_t *self)
{
    for (size_t i = 0; i < self->n_slots; i++) {
        if (self->lanes[i] != NULL && !ps_lane_sleep(self->lanes[i])) {
            return false;
        }
    }
    return true;
}

void ps_lane_port_wake(ps_lane_port_t *self)
{
    for (size_t i = 0; i < self->n_slots; i++) {
        if (self->lanes[i] != NULL) {
            ps_lane_wake(self->lanes[i]);
        }
    }
}

size_t ps_lane_port_n(const ps_lane_port_t *self)
{
    return self->n_lanes;
}

size_t ps_lane_port_n_unfinished(const ps_lane_port_t *self)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_slots; i++) {
        n += self->lanes[i] != NULL && self->lanes[i]->assembly.n_open > 0;
    }
    return n;
}

uint64_t ps_lane_port_n_refused(const ps_lane_port_t *self)
{
    return self->n_refused;
}
