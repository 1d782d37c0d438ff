/* SPDX-License-Identifier: Apache-2.0 */
/* A plain file, for comparison. */
#include "plain_disk.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES ((size_t)512 << 20)
#define BLOCK_BYTES ((size_t)4 << 20)

static _Alignas(4096) uint8_t block[BLOCK_BYTES];

static double now_s(void)
{
    struct timespec now = {.tv_sec = 0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A new file, which has no name any more; -1: none. */
static int open_nameless(const char *dir, int flags)
{
    char path[PATH_MAX + 16];
    int fd = -1;

    (void)snprintf(path, sizeof path, "%s/plain", dir);
    fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | flags, 0600);
    (void)unlink(path);
    return fd;
}

static bool write_whole(int fd)
{
    for (size_t i = 0; i < sizeof block; i++) {
        block[i] = (uint8_t)(i * 2654435761U >> 7);
    }
    for (size_t n = 0; n < FILE_BYTES; n += BLOCK_BYTES) {
        if (write(fd, block, BLOCK_BYTES) != (ssize_t)BLOCK_BYTES) {
            return false;
        }
    }
    return fsync(fd) == 0;
}

static double speed(bool good, double from)
{
    return good ? (double)FILE_BYTES / 1e6 / (now_s() - from) : 0;
}

double plain_disk_write(const char *dir, bool is_direct)
{
    int fd = open_nameless(dir, is_direct ? O_DIRECT : 0);
    double from = now_s();
    double result = fd < 0 ? 0 : speed(write_whole(fd), from);

    (void)close(fd);
    return result;
}

double plain_disk_read(const char *dir)
{
    int fd = open_nameless(dir, 0);
    bool good = fd >= 0 && write_whole(fd) && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
    double from = now_s();
    double result = 0;

    for (size_t at = 0; good && at < FILE_BYTES; at += BLOCK_BYTES) {
        good = pread(fd, block, BLOCK_BYTES, (off_t)at) == (ssize_t)BLOCK_BYTES;
    }
    result = speed(good, from);
    (void)close(fd);
    return result;
}
