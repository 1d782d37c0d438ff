/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the sockets that are not known to be dry, then sleeps in one poll on all
 * descriptors, then asks the sockets whose descriptor is readable. */
#include "transport/sockets/poll.h"

#include <errno.h>
#include <limits.h>
#include <zmq.h>

#include "transport/sockets/socket.h"

/* Looks whether the socket has something. -1: zmq_errno says why not. */
static int ask_socket(ps_poll_item_t *item)
{
    int events = 0;
    size_t size = sizeof events;

    item->is_ready = false;
    item->is_dry = false; /* what failed may have taken in signs, too */
    if (zmq_getsockopt(item->socket, ZMQ_EVENTS, &events, &size) != 0) {
        return -1;
    }
    item->is_ready = (events & ZMQ_POLLIN) != 0;
    item->is_dry = !item->is_ready;
    return 0;
}

bool ps_poll_has_some(void *socket)
{
    ps_poll_item_t item = {.socket = socket};

    return ask_socket(&item) != 0 || item.is_ready;
}

int ps_poll_fd(void *socket)
{
    int fd = -1;
    size_t size = sizeof fd;

    return zmq_getsockopt(socket, ZMQ_FD, &fd, &size) == 0 ? fd : -1;
}

/* Asks the sockets of which nothing is known. */
static int ask_unknown(ps_poll_item_t *items, size_t n, bool *ret_any)
{
    for (size_t i = 0; i < n; i++) {
        ps_poll_item_t *item = &items[i];

        item->is_ready = false;
        if (item->socket != NULL && !item->is_dry && ask_socket(item) != 0) {
            return -1;
        }
        *ret_any = *ret_any || item->is_ready;
    }
    return 0;
}

/* One sleep, and what it brought. */
static int sleep_on(ps_poll_item_t *items, struct pollfd *fds, size_t n, int timeout_ms,
                    bool *ret_any)
{
    int n_signs = 0;

    for (size_t i = 0; i < n; i++) {
        fds[i] = (struct pollfd){.fd = items[i].fd, .events = POLLIN};
    }
    n_signs = poll(fds, (nfds_t)n, timeout_ms);
    if (n_signs < 0) {
        return -1;
    }
    for (size_t i = 0; n_signs > 0 && i < n; i++) {
        ps_poll_item_t *item = &items[i];

        if (fds[i].revents == 0 || item->is_ready) {
            continue;
        }
        item->is_ready = item->socket == NULL;
        if (item->socket != NULL && ask_socket(item) != 0) {
            return -1;
        }
        *ret_any = *ret_any || item->is_ready;
    }
    return 0;
}

static int sleep_until(ps_poll_item_t *items, struct pollfd *fds, size_t n, long timeout_ms,
                       bool any)
{
    uint64_t until_ms = 0;
    bool is_over = false;

    if (any || timeout_ms == 0) {
        return sleep_on(items, fds, n, 0, &any);
    }
    until_ms = timeout_ms < 0 ? UINT64_MAX : ps_now_ms() + (uint64_t)timeout_ms;
    while (!any && !is_over) {
        int most = timeout_ms > INT_MAX ? INT_MAX : (int)timeout_ms;
        uint64_t now_ms = 0;

        if (sleep_on(items, fds, n, most, &any) != 0) {
            return -1;
        }
        /* The sign may have been of something else, as a new connection. */
        now_ms = any ? until_ms : ps_now_ms();
        is_over = now_ms >= until_ms;
        timeout_ms = timeout_ms < 0 || is_over ? timeout_ms : (long)(until_ms - now_ms);
    }
    return 0;
}

int ps_poll(ps_poll_item_t *items, struct pollfd *fds, size_t n, long timeout_ms)
{
    bool any = false;
    int rc = ask_unknown(items, n, &any);

    if (rc == 0) {
        rc = sleep_until(items, fds, n, timeout_ms, any);
    }
    if (rc == 0 || errno != EINTR) {
        return rc;
    }
    for (size_t i = 0; i < n; i++) {
        items[i].is_ready = false;
    }
    return 0;
}
