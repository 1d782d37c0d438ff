/* SPDX-License-Identifier: Apache-2.0 */
/* ZeroMQ's I/O threads, and the sockets that are open on them. */
#include "transport/sockets/socket.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <zmq.h>

#include "base/alloc.h"
#include "transport/threads/fork.h"
#include "transport/sockets/socket_inner.h"
#include "transport/sockets/zap.h"

#define IO_THREADS_MAX 16
#define SOCKETS_MAX 8192                         /* open at a time; ZeroMQ's own default is 1023 */
#define LESSON_BYTES (((size_t)32 << 20) - 8192) /* glibc learns to 32 MiB */

struct ps_context {
    void *zmq;
    unsigned n_forks; /* before it was made */
    atomic_uint_fast64_t n_numbers;
    atomic_size_t n_open;   /* sockets; a forgotten one would hang zmq_ctx_term */
    ps_zap_t *zap;          /* owned; NULL: its ports let anybody in */
    int stop_fd;            /* eventfd, owned: readable since its stop … */
    atomic_bool is_stopped; /* … which this tells without a call */
};

psd_status_t ps_zmq_status(psd_error_t *err, const char *doing)
{
    int code = zmq_errno();

    switch (code) {
    case EAGAIN:
        return psd_error_set(err, PSD_BUSY, "%s: queue is full", doing);
    case EHOSTUNREACH:
        return psd_error_set(err, PSD_BUSY, "%s: peer is gone", doing);
    case ENOMEM:
        return psd_error_set(err, PSD_NOMEM, "%s: no memory", doing);
    default:
        return psd_error_set(err, PSD_IO, "%s: %s", doing, zmq_strerror(code));
    }
}

/* Frames of values come and go by the thousand. By itself the allocator gives
 * each back to the kernel and takes it again, and filling fresh pages costs
 * more
 * than all else that is done with the values. glibc learns from the greatest
 * block that was ever freed what is to be kept; nothing of this one is touched.
 * Where the program has set the thresholds (mallopt) they stay as they are. */
static void teach_allocator(void)
{
    void *block = ps_alloc_raw(1, LESSON_BYTES);

    ps_free(block);
}

psd_status_t ps_context_new(int n_io_threads, ps_context_t **ret_context, psd_error_t *err)
{
    ps_context_t *self = NULL;

    if (n_io_threads < 1 || n_io_threads > IO_THREADS_MAX) {
        return psd_error_set(err, PSD_INVALID, "n_io_threads is %d; allowed: 1..%d", n_io_threads,
                             IO_THREADS_MAX);
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a context");
    }
    self->n_forks = ps_fork_count();
    atomic_init(&self->is_stopped, false);
    self->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (self->stop_fd < 0) {
        ps_free(self);
        return psd_error_set(err, PSD_IO, "new context: %s", strerror(errno));
    }
    self->zmq = zmq_ctx_new();
    if (self->zmq == NULL) {
        psd_status_t rc = ps_zmq_status(err, "new context");

        (void)close(self->stop_fd);
        ps_free(self);
        return rc;
    }
    teach_allocator();
    if (zmq_ctx_set(self->zmq, ZMQ_IO_THREADS, n_io_threads) != 0 ||
        zmq_ctx_set(self->zmq, ZMQ_MAX_SOCKETS, SOCKETS_MAX) != 0) {
        psd_status_t rc = ps_zmq_status(err, "set up context");

        ps_context_destroy(&self);
        return rc;
    }
    atomic_init(&self->n_open, 0);
    atomic_init(&self->n_numbers, 0);
    *ret_context = self;
    return PSD_OK;
}

psd_status_t ps_context_guard(ps_context_t *self, psd_error_t *err)
{
    return self->zap != NULL ? PSD_OK : ps_zap_start(self->zmq, &self->zap, err);
}

psd_status_t ps_context_admit(ps_context_t *self, const ps_public_key_t *keys, size_t n_keys,
                              psd_error_t *err)
{
    assert(self->zap != NULL);
    return ps_zap_admit(self->zap, keys, n_keys, err);
}

void ps_context_watch_guard(ps_context_t *self, ps_turns_t *turns)
{
    if (self->zap != NULL) {
        ps_zap_watch(self->zap, turns);
    }
}

void ps_context_end_guard(ps_context_t *self)
{
    ps_zap_stop(&self->zap);
}

bool ps_context_is_guarded(const ps_context_t *self)
{
    return self->zap != NULL;
}

void *ps_context_zmq(const ps_context_t *self)
{
    return self->zmq;
}

void ps_context_stop(ps_context_t *self)
{
    const uint64_t one = 1;

    if (!ps_context_is_forked(self)) {
        atomic_store(&self->is_stopped, true);
        (void)!write(self->stop_fd, &one, sizeof one); /* full: it is readable already */
        (void)zmq_ctx_shutdown(self->zmq);
    }
}

bool ps_context_is_stopped(const ps_context_t *self)
{
    return atomic_load(&self->is_stopped);
}

int ps_context_stop_fd(const ps_context_t *self)
{
    return self->stop_fd;
}

bool ps_context_is_forked(const ps_context_t *self)
{
    return ps_fork_is_since(self->n_forks);
}

void ps_context_destroy(ps_context_t **self_p)
{
    ps_context_t *self = *self_p;
    int rc = 0;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    (void)close(self->stop_fd);
    if (ps_context_is_forked(self)) {
        ps_fork_keep(self->zmq); /* its threads would have to end it */
        ps_fork_keep(self->zap);
        ps_free(self);
        return;
    }
    assert(atomic_load(&self->n_open) == 0);
    ps_context_end_guard(self);
    do {
        rc = zmq_ctx_term(self->zmq);
    } while (rc != 0 && zmq_errno() == EINTR);
    ps_free(self);
}

psd_status_t ps_context_open(ps_context_t *self, int zmq_type, void **ret_handle, psd_error_t *err)
{
    void *handle = zmq_socket(self->zmq, zmq_type);

    if (handle == NULL) {
        return ps_zmq_status(err, "open socket");
    }
    atomic_fetch_add(&self->n_open, 1);
    *ret_handle = handle;
    return PSD_OK;
}

uint64_t ps_context_next_number(ps_context_t *self)
{
    return atomic_fetch_add(&self->n_numbers, 1);
}

void ps_context_close(ps_context_t *self, void *handle)
{
    if (!ps_context_is_forked(self)) {
        (void)zmq_close(handle); /* fails only for what is no socket */
    }
    atomic_fetch_sub(&self->n_open, 1);
}
