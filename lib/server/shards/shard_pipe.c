/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of ZeroMQ's sockets within the process. */
#include "server/shards/shard_pipe.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <zmq.h>

#define LETTERS_MAX 1000 /* on their way to one side */

static void *open_end(ps_context_t *context)
{
    const int most = LETTERS_MAX;
    const int none = 0;
    void *end = zmq_socket(ps_context_zmq(context), ZMQ_PAIR);

    if (end != NULL && (zmq_setsockopt(end, ZMQ_SNDHWM, &most, sizeof most) != 0 ||
                        zmq_setsockopt(end, ZMQ_RCVHWM, &most, sizeof most) != 0 ||
                        zmq_setsockopt(end, ZMQ_LINGER, &none, sizeof none) != 0)) {
        ps_shard_pipe_close(&end);
    }
    return end;
}

psd_status_t ps_shard_pipe_open(ps_context_t *context, const char *name, void **ret_here,
                                void **ret_there, psd_error_t *err)
{
    /* An address is free again only some time after its sockets were closed. */
    static atomic_uint_fast64_t n_opened;
    void *here = open_end(context);
    void *there = open_end(context);
    char address[96];

    (void)snprintf(address, sizeof address, "inproc://psd-pipe-%" PRIuFAST64,
                   atomic_fetch_add_explicit(&n_opened, 1, memory_order_relaxed));
    if (here == NULL || there == NULL || zmq_bind(here, address) != 0 ||
        zmq_connect(there, address) != 0) {
        int code = zmq_errno();

        ps_shard_pipe_close(&here);
        ps_shard_pipe_close(&there);
        return psd_error_set(err, code == ENOMEM ? PSD_NOMEM : PSD_IO, "open a pipe to %s: %s",
                             name, zmq_strerror(code));
    }
    *ret_here = here;
    *ret_there = there;
    return PSD_OK;
}

void ps_shard_pipe_close(void **end_p)
{
    if (*end_p != NULL) {
        (void)zmq_close(*end_p);
        *end_p = NULL;
    }
}

void ps_shard_pipe_send(void *end, ps_letter_kind_t kind, void *pointer)
{
    const ps_letter_t letter = {.kind = kind, .pointer = pointer};

    while (zmq_send(end, &letter, sizeof letter, 0) < 0 && zmq_errno() == EINTR) {
    }
}

static bool receive(void *end, int flags, ps_letter_t *ret_letter)
{
    int size = 0;

    do {
        size = zmq_recv(end, ret_letter, sizeof *ret_letter, flags);
    } while (size < 0 && zmq_errno() == EINTR);
    return size == (int)sizeof *ret_letter;
}

bool ps_shard_pipe_take(void *end, ps_letter_t *ret_letter)
{
    return receive(end, ZMQ_DONTWAIT, ret_letter);
}

bool ps_shard_pipe_wait(void *end, ps_letter_t *ret_letter)
{
    return receive(end, 0, ret_letter);
}
