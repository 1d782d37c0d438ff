/* SPDX-License-Identifier: Apache-2.0 */
/* One tcp stream over loopback, between two processes. */
#include "cli/machine/bench_limit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define WRITE_BYTES ((size_t)1 << 20)
#define AREA_BYTES ((size_t)32 << 20) /* more than a core's own caches */
#define WARM_BYTES ((size_t)64 << 20)

static void send_stream(void *arg)
{
    const struct sockaddr_in *address = arg;
    PSD_AUTO(ps_free_at) char *area = ps_alloc(AREA_BYTES, 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t at = 0;

    if (area == NULL || fd < 0 ||
        connect(fd, (const struct sockaddr *)address, sizeof *address) != 0) {
        return;
    }
    memset(area, 1, AREA_BYTES);
    for (;;) {
        ssize_t n = send(fd, area + at, WRITE_BYTES, MSG_NOSIGNAL);

        if (n <= 0) {
            return; /* the reader has enough */
        }
        at = (at + WRITE_BYTES) % AREA_BYTES;
    }
}

/* Reads for the time; bytes a second after the warm-up. */
static bool read_stream(int fd, char *area, uint32_t duration_ms, double *ret)
{
    uint64_t got = 0;
    uint64_t warm = 0;
    uint64_t start = 0;
    uint64_t spent = 0;

    while (start == 0 || spent < (uint64_t)duration_ms * 1000000U) {
        ssize_t n = recv(fd, area + got % AREA_BYTES / WRITE_BYTES * WRITE_BYTES, WRITE_BYTES, 0);

        if (n <= 0) {
            return false;
        }
        got += (uint64_t)n;
        if (start == 0 && got >= WARM_BYTES) {
            warm = got;
            start = ps_bench_now_ns();
        } else if (start != 0) {
            spent = ps_bench_now_ns() - start;
        }
    }
    *ret = (double)(got - warm) / (double)spent * 1e9;
    return true;
}

bool ps_limit_tcp(uint32_t duration_ms, double *ret)
{
    PSD_AUTO(ps_free_at) char *area = ps_alloc(AREA_BYTES, 1);
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = -1;
    bool ok = false;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (area != NULL && listener >= 0 &&
        bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
        ps_limit_fork(send_stream, &address)) {
        fd = accept(listener, NULL, NULL);
        ok = fd >= 0 && read_stream(fd, area, duration_ms, ret);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    return ok;
}
