/* SPDX-License-Identifier: Apache-2.0 */
/* A shard whose wait fails: goes on when there was no memory, else ends psd. */
#include <errno.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

static bool goes_on(int code)
{
    ps_context_t *context = NULL;
    node_t node = {.incarnation = 77};
    bool done = false;

    is_main = true;
    if (ps_context_new(1, &context, NULL) != PSD_OK) {
        return false;
    }
    zsys_handler_set(NULL);
    node.context = context;
    done = open_node(&node, 1) && is_answered(&node, code);
    close_node(&node);
    ps_context_destroy(&context);
    return done;
}

/* The process is a child's: it was ended by its shard. */
static bool ends_its_process(void)
{
    pid_t child = fork();
    int status = 0;

    if (child == 0) {
        const struct rlimit none = {0, 0};

        (void)setrlimit(RLIMIT_CORE, &none);
        (void)goes_on(EFAULT);
        _exit(0);
    }
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return true;
}

int main(void)
{
    return ends_its_process() && goes_on(ENOMEM) ? 0 : 1;
}
