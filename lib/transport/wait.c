/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for one of several sockets. */
#include "transport/socket.h"

#include <errno.h>
#include <limits.h>
#include <zmq.h>

#include "base/alloc.h"
#include "transport/socket_inner.h"

#define FEW 16 /* sockets that need no heap */

psd_status_t
ps_socket_wait(ps_socket_t *const *sockets,
               size_t n_sockets,
               uint64_t timeout_ms,
               bool *ret_ready,
               psd_error_t *err)
{
    zmq_pollitem_t few[FEW];
    PSD_AUTO(ps_free_at) zmq_pollitem_t *many = NULL;
    zmq_pollitem_t *items = few;
    long timeout = timeout_ms > INT_MAX ? INT_MAX : (long)timeout_ms;

    if (n_sockets > FEW) {
        many = ps_alloc(n_sockets, sizeof *many);
        if (many == NULL) {
            return psd_error_set(err, PSD_NOMEM, "no memory to wait");
        }
        items = many;
    }
    for (size_t i = 0; i < n_sockets; i++) {
        items[i] = (zmq_pollitem_t){.socket = sockets[i]->handle,
                                    .events = ZMQ_POLLIN};
        ret_ready[i] = false;
    }
    if (zmq_poll(items, (int)n_sockets,
                 timeout_ms == UINT64_MAX ? -1 : timeout) < 0) {
        return zmq_errno() == EINTR ? PSD_OK : ps_zmq_status(err, "wait");
    }
    for (size_t i = 0; i < n_sockets; i++) {
        ret_ready[i] = (items[i].revents & ZMQ_POLLIN) != 0;
    }
    return PSD_OK;
}
