/* SPDX-License-Identifier: Apache-2.0 */
/* The spare descriptor, and an accept4 that can give it up. */
#include "daemon/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

#define LASTS_MS 5000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int spare = -1;                 /* guarded by lock */
static atomic_uint_fast64_t n_hung_up; /* connections, since the start */

static int take_spare(void)
{
    return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void ps_files_start(void)
{
    (void)pthread_mutex_lock(&lock);
    if (spare < 0) {
        spare = take_spare();
    }
    (void)pthread_mutex_unlock(&lock);
}

static int accept_now(int fd, struct sockaddr *from, socklen_t *size, int flags)
{
    return (int)syscall(SYS_accept4, fd, from, size, flags);
}

/* Accepts a waiting connection and closes it, so that no client waits for
 * ever or retries at once. false: none waits. */
static bool hang_up_on_one(int listener, int flags)
{
    int fd = -1;

    (void)pthread_mutex_lock(&lock);
    if (spare < 0) {
        spare = take_spare(); /* another thread got it last time */
    }
    if (spare >= 0) {
        (void)close(spare);
        fd = accept_now(listener, NULL, NULL, flags);
        if (fd >= 0) {
            (void)close(fd);
            atomic_fetch_add(&n_hung_up, 1);
        }
        spare = take_spare();
    }
    (void)pthread_mutex_unlock(&lock);
    return fd >= 0;
}

/* Overrides the C library's accept4 in the whole program, libzmq included. */
__attribute__((visibility("default"))) int accept4(int fd, __SOCKADDR_ARG from, socklen_t *size,
                                                   int flags)
{
    int taken = accept_now(fd, from.__sockaddr__, size, flags);

    if (taken < 0 && (errno == EMFILE || errno == ENFILE)) {
        /* Linux also says so for an empty queue. Every caller takes
         * ECONNABORTED for a peer that hung up, and asks again. */
        errno = hang_up_on_one(fd, flags) ? ECONNABORTED : EAGAIN;
    }
    return taken;
}

/* No descriptor is left. */
static bool is_out(void)
{
    int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);

    if (fd >= 0) {
        (void)close(fd);
    }
    return fd < 0 && (errno == EMFILE || errno == ENFILE);
}

bool ps_files_are_out(uint64_t now_ms)
{
    static uint64_t until_ms; /* it counts as out; 0: it is not */
    static uint64_t n_told;   /* of n_hung_up */
    uint64_t n = atomic_load(&n_hung_up);
    struct rlimit limit = {.rlim_cur = 0};

    if (n != n_told || is_out()) {
        if (until_ms == 0) {
            (void)getrlimit(RLIMIT_NOFILE, &limit);
            ps_log(PS_LOG_WARN, "files_out",
                   "limit=%" PRIu64 " hung_up=%" PRIu64
                   " hint=\"each connection takes a file descriptor: raise LimitNOFILE (ulimit "
                   "-n), or close clients\"",
                   (uint64_t)limit.rlim_cur, n - n_told);
        }
        until_ms = now_ms + LASTS_MS;
        n_told = n;
    } else if (until_ms != 0 && now_ms >= until_ms) {
        until_ms = 0;
        ps_files_start(); /* the spare one may have been lost */
        ps_log(PS_LOG_INFO, "files_back", "hung_up=%" PRIu64, n);
    }
    return until_ms != 0;
}
