/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine can do at all: memory and loopback. */
#include "cli/bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"

#define COPY_BYTES ((size_t)64 << 20)
#define STREAM_BYTES ((size_t)128 << 20)
#define BLOCK_BYTES ((size_t)256 << 10)

psd_status_t
ps_bench_memcpy(uint32_t repeats, double *ret_bytes_s, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *from = ps_alloc(COPY_BYTES, 1);
    PSD_AUTO(ps_free_at) char *to = ps_alloc(COPY_BYTES, 1);
    double rates[PS_BENCH_REPEATS_MAX];

    if (from == NULL || to == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for memcpy");
    }
    for (uint32_t i = 0; i < repeats; i++) {
        double start = ps_cli_now_s();

        memcpy(to, from, COPY_BYTES);
        /* The compiler must think that somebody reads it. */
        __asm__ volatile("" : : "r"(to) : "memory");
        rates[i] = (double)COPY_BYTES / (ps_cli_now_s() - start);
    }
    *ret_bytes_s = ps_bench_median(rates, repeats);
    return PSD_OK;
}

/* Sends STREAM_BYTES over the socket that arg points at. */
static void *
send_stream(void *arg)
{
    const int *fd = arg;
    char *block = ps_alloc(BLOCK_BYTES, 1);
    size_t left = block == NULL ? 0 : STREAM_BYTES;

    while (left > 0) {
        ssize_t n = send(*fd, block, left < BLOCK_BYTES ? left : BLOCK_BYTES,
                         MSG_NOSIGNAL);

        if (n <= 0) {
            break;
        }
        left -= (size_t)n;
    }
    (void)shutdown(*fd, SHUT_WR);
    ps_free(block);
    return NULL;
}

/* A pair of connected tcp sockets over loopback. */
static bool
connect_pair(int ret_fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ret_fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener >= 0 && ret_fds[0] >= 0 &&
        bind(listener, (struct sockaddr *)&address, sizeof address) == 0 &&
        listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &size) == 0 &&
        connect(ret_fds[0], (struct sockaddr *)&address, size) == 0) {
        ret_fds[1] = accept(listener, NULL, NULL);
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    return ret_fds[1] >= 0;
}

static psd_status_t
stream_once(double *ret_bytes_s, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) char *block = ps_alloc(BLOCK_BYTES, 1);
    int fds[2] = {-1, -1};
    pthread_t sender;
    size_t got = 0;
    double start = 0;
    int failed = 1;

    if (block != NULL && connect_pair(fds)) {
        start = ps_cli_now_s();
        failed = pthread_create(&sender, NULL, send_stream, &fds[0]);
    }
    while (failed == 0) {
        ssize_t n = recv(fds[1], block, BLOCK_BYTES, 0);

        if (n <= 0) {
            break;
        }
        got += (size_t)n;
    }
    if (failed == 0) {
        (void)pthread_join(sender, NULL);
    }
    for (size_t i = 0; i < 2; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    if (failed != 0 || got != STREAM_BYTES) {
        return psd_error_set(err, PSD_IO, "a tcp stream over loopback: %s",
                             strerror(errno));
    }
    *ret_bytes_s = (double)got / (ps_cli_now_s() - start);
    return PSD_OK;
}

psd_status_t
ps_bench_loopback(uint32_t repeats, double *ret_bytes_s, psd_error_t *err)
{
    double rates[PS_BENCH_REPEATS_MAX];

    for (uint32_t i = 0; i < repeats; i++) {
        psd_status_t rc = stream_once(&rates[i], err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret_bytes_s = ps_bench_median(rates, repeats);
    return PSD_OK;
}
