/* SPDX-License-Identifier: Apache-2.0 */
/* A shard whose wait fails: goes on when there was no memory, else ends, and says so. */
#include <errno.h>
#include <stdatomic.h>

#include "shards_kit.h"
#include "transport/sockets/poll.h"

#define FAILURES 3

static _Thread_local bool is_main; /* whose own waits are served */
static atomic_int n_failures;      /* to come, of the other threads */
static atomic_int reason;

int __real_ps_poll(ps_poll_item_t *items, struct pollfd *fds, size_t n, long timeout_ms);
int __wrap_ps_poll(ps_poll_item_t *items, struct pollfd *fds, size_t n, long timeout_ms);

/* Stands before the library's, by the linker's --wrap. */
int __wrap_ps_poll(ps_poll_item_t *items, struct pollfd *fds, size_t n, long timeout_ms)
{
    if (!is_main && atomic_load(&n_failures) > 0) {
        (void)atomic_fetch_sub(&n_failures, 1);
        errno = atomic_load(&reason);
        return -1;
    }
    return __real_ps_poll(items, fds, n, timeout_ms);
}

/* Asks until every failure has come, and once more. */
static bool is_answered(node_t *node, int code)
{
    ps_shards_done_t done = {0};
    uint64_t serial = 0;

    atomic_store(&reason, code);
    atomic_store(&n_failures, FAILURES);
    for (bool last = false; !last;) {
        last = atomic_load(&n_failures) <= 0;
        CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err),
                 node->err);
        CHECK(wait_done(node, &done));
        CHECK(done.serial == serial && done.status == PSD_OK);
        ps_shards_done_done(&done);
    }
    return true;
}

/* Waits until the shard has ended. */
static bool is_deaf(node_t *node, int code)
{
    const uint64_t until_ms = ps_now_ms() + PATIENCE_MS;
    uint64_t serial = 0;

    CHECK(!ps_shards_are_deaf(node->shards));
    atomic_store(&reason, code);
    atomic_store(&n_failures, 1);
    CHECK_OK(ps_shards_send_ask(node->shards, PS_CALL_INSPECT, 0, &serial, node->err), node->err);
    while (!ps_shards_are_deaf(node->shards)) {
        zmq_pollitem_t item = {.socket = ps_shards_handle(node->shards, 0), .events = ZMQ_POLLIN};

        CHECK(ps_now_ms() < until_ms);
        (void)zmq_poll(&item, 1, 10);
        ps_shards_take(node->shards, ps_now_ms());
    }
    return true;
}

static bool run(bool (*story)(node_t *node, int code), int code)
{
    ps_context_t *context = NULL;
    node_t node = {.incarnation = 77};
    bool done = false;

    is_main = true;
    if (ps_context_new(1, &context, NULL) != PSD_OK) {
        return false;
    }
    node.context = context;
    done = open_node(&node, 1) && story(&node, code);
    close_node(&node);
    ps_context_destroy(&context);
    return done;
}

int main(void)
{
    return run(is_answered, ENOMEM) && run(is_deaf, EFAULT) ? 0 : 1;
}
