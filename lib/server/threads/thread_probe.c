/* SPDX-License-Identifier: Apache-2.0 */
/* Monitors sockets that exist only to be monitored. */
#include "server/threads/thread_probe.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "transport/sockets/socket.h"

#define AGAIN_MS 200 /* ZeroMQ adds up to as much by chance */
#define REAPER_EVERY_MS 400
#define FIND_TRIES 200 /* a new thread gets its name when it runs */
#define FIND_NAP_NS 10000000L
#define ADDRESS_SIZE 96

/* ---- finding the threads ---- */

/* The thread of this process with that name; 0: none. */
static pid_t thread_named(const char *wanted)
{
    DIR *all = opendir("/proc/self/task");
    const struct dirent *entry = NULL;
    pid_t tid = 0;

    while (all != NULL && tid == 0 && (entry = readdir(all)) != NULL) {
        char path[64];
        char name[PS_TURN_NAME_SIZE + 1] = "";
        int fd = -1;

        (void)snprintf(path, sizeof path, "/proc/self/task/%.20s/comm", entry->d_name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd >= 0 && read(fd, name, sizeof name - 1) > 0) {
            name[strcspn(name, "\n")] = '\0';
            tid = strcmp(name, wanted) == 0 ? (pid_t)strtol(entry->d_name, NULL, 10) : 0;
        }
        if (fd >= 0) {
            (void)close(fd);
        }
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return tid;
}

static psd_status_t add_place(ps_probe_t *probe, const char *wanted, const char *name,
                              ps_turns_t *turns, psd_error_t *err)
{
    const struct timespec nap = {.tv_nsec = FIND_NAP_NS};
    pid_t tid = thread_named(wanted);

    for (int i = 0; tid == 0 && i < FIND_TRIES; i++) {
        (void)nanosleep(&nap, NULL);
        tid = thread_named(wanted);
    }
    if (tid == 0) {
        return psd_error_set(err, PSD_IO, "ZeroMQ's thread %s is not found", wanted);
    }
    probe->turn = ps_turns_add_probed(turns, name, tid);
    return PSD_OK;
}

/* ---- their events ---- */

/* The other end of a socket's monitor. NULL: there is no room for one. */
static void *watch_socket(void *context, void *socket, const char *address, int events)
{
    const int endless = 0; /* a thread that waits for us would look dead */
    const int none = 0;
    void *monitor = NULL;

    if (zmq_socket_monitor(socket, address, events) != 0) {
        return NULL;
    }
    monitor = zmq_socket(context, ZMQ_PAIR);
    if (monitor != NULL && (zmq_setsockopt(monitor, ZMQ_RCVHWM, &endless, sizeof endless) != 0 ||
                            zmq_setsockopt(monitor, ZMQ_LINGER, &none, sizeof none) != 0 ||
                            zmq_connect(monitor, address) != 0)) {
        (void)zmq_close(monitor);
        monitor = NULL;
    }
    return monitor;
}

/* true: it has said something. */
static bool drain(void *monitor)
{
    bool any = false;
    char frame[256];

    while (monitor != NULL && zmq_recv(monitor, frame, sizeof frame, ZMQ_DONTWAIT) >= 0) {
        any = true;
    }
    return any;
}

/* A connection of that I/O thread alone, to a name that does not exist. */
static psd_status_t open_io(ps_thread_probe_t *self, unsigned i, psd_error_t *err)
{
    ps_probe_t *probe = &self->probes[i];
    const uint64_t affinity = UINT64_C(1) << i;
    const int again_ms = AGAIN_MS;
    const int none = 0;
    uint64_t name[2];
    char address[ADDRESS_SIZE];
    psd_status_t rc = ps_random(name, sizeof name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    probe->socket = zmq_socket(self->context, ZMQ_DEALER);
    (void)snprintf(address, sizeof address, "inproc://psd-probe-%s-%u", self->name, i);
    if (probe->socket != NULL) {
        probe->monitor =
            watch_socket(self->context, probe->socket, address, ZMQ_EVENT_CONNECT_RETRIED);
    }
    (void)snprintf(address, sizeof address, "ipc://@psd-nobody-%016" PRIx64 "%016" PRIx64, name[0],
                   name[1]);
    if (probe->monitor == NULL ||
        zmq_setsockopt(probe->socket, ZMQ_AFFINITY, &affinity, sizeof affinity) != 0 ||
        zmq_setsockopt(probe->socket, ZMQ_RECONNECT_IVL, &again_ms, sizeof again_ms) != 0 ||
        zmq_setsockopt(probe->socket, ZMQ_LINGER, &none, sizeof none) != 0 ||
        zmq_connect(probe->socket, address) != 0) {
        return psd_error_set(err, PSD_IO, "watch ZeroMQ's thread %u: %s", i,
                             zmq_strerror(zmq_errno()));
    }
    return PSD_OK;
}

/* Closes a socket, whose monitor says when the reaper is done with it.
 * Without room for one (too many files are open) nothing is known of the
 * reaper, and it counts as alive. */
static void ask_reaper(ps_thread_probe_t *self, ps_probe_t *probe)
{
    void *socket = zmq_socket(self->context, ZMQ_PAIR);
    char address[ADDRESS_SIZE];

    if (socket != NULL) {
        (void)snprintf(address, sizeof address, "inproc://psd-reaper-%s-%" PRIu64, self->name,
                       self->serial++);
        probe->monitor = watch_socket(self->context, socket, address, ZMQ_EVENT_MONITOR_STOPPED);
        (void)zmq_close(socket);
    }
    if (probe->monitor == NULL) {
        ps_turn_waits(probe->turn);
    }
}

/* ---- all of a context ---- */

psd_status_t ps_thread_probe_init(ps_thread_probe_t *self, void *context, const char *prefix,
                                  const char *name, ps_turns_t *turns, psd_error_t *err)
{
    int n_io = zmq_ctx_get(context, ZMQ_IO_THREADS);
    char theirs[64];
    char ours[64];
    psd_status_t rc = PSD_OK;

    *self = (ps_thread_probe_t){.context = context, .name = name};
    n_io = n_io > PS_PROBE_IO_MAX ? PS_PROBE_IO_MAX : n_io;
    for (int i = 0; rc == PSD_OK && i < n_io; i++) {
        self->n = (size_t)i + 1;
        rc = open_io(self, (unsigned)i, err); /* the threads begin with it */
        (void)snprintf(theirs, sizeof theirs, "%sZMQbg/IO/%d", prefix, i);
        (void)snprintf(ours, sizeof ours, "%s-io-%d", name, i);
        if (rc == PSD_OK) {
            rc = add_place(&self->probes[i], theirs, ours, turns, err);
        }
    }
    if (rc == PSD_OK) {
        (void)snprintf(theirs, sizeof theirs, "%sZMQbg/Reaper", prefix);
        (void)snprintf(ours, sizeof ours, "%s-reaper", name);
        rc = add_place(&self->probes[self->n++], theirs, ours, turns, err);
    }
    if (rc != PSD_OK) {
        ps_thread_probe_done(self);
    }
    return rc;
}

void ps_thread_probe_done(ps_thread_probe_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_probe_t *probe = &self->probes[i];

        if (probe->socket != NULL) {
            (void)zmq_close(probe->socket);
        }
        if (probe->monitor != NULL) {
            (void)zmq_close(probe->monitor);
        }
        ps_turn_leave(&probe->turn);
    }
    self->n = 0;
}

size_t ps_thread_probe_items(const ps_thread_probe_t *self, zmq_pollitem_t *items)
{
    size_t n = 0;

    for (size_t i = 0; i < self->n; i++) {
        if (self->probes[i].monitor != NULL) {
            items[n++] = (zmq_pollitem_t){.socket = self->probes[i].monitor, .events = ZMQ_POLLIN};
        }
    }
    return n;
}

void ps_thread_probe_turn(ps_thread_probe_t *self, uint64_t now_ms)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_probe_t *probe = &self->probes[i];
        bool is_reaper = probe->socket == NULL;

        if (drain(probe->monitor)) {
            ps_turn_waits(probe->turn);
            if (is_reaper) {
                (void)zmq_close(probe->monitor);
                probe->monitor = NULL;
            }
        }
        if (is_reaper && probe->monitor == NULL && now_ms >= self->asked_ms + REAPER_EVERY_MS) {
            self->asked_ms = now_ms;
            ask_reaper(self, probe);
        }
    }
}
