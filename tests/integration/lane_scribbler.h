/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lane_scribbler - a client that writes over the memory that it shares
 *
 * What     Words anywhere, and counters and heads of records that could almost
 *          be right; in memory that it took without any code of the library's,
 *          or in that of a client of the library in the same process.
 */
#ifndef PS_TESTS_LANE_SCRIBBLER_H
#define PS_TESTS_LANE_SCRIBBLER_H

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* Tells the parent that it is at it. */
static inline void say(int out)
{
    ssize_t n = write(out, "!", 1);

    (void)n; /* who listens sees the end of the pipe otherwise */
}

static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Writes over what is shared: words anywhere, and counters and the heads of
 * records that could almost be right. It stands for another process, so it is
 * no race of this program's. */
__attribute__((no_sanitize("thread"))) static inline void scribble(uint8_t *memory, size_t size,
                                                                   uint64_t *state)
{
    for (int i = 0; i < 2000; i++) {
        uint64_t random = next_random(state);
        uint64_t at = next_random(state) % (size / 8);
        uint64_t word = next_random(state);

        switch (random % 4) {
        case 0: /* the counters: a few bytes further, or anywhere */
            at = at % 512;
            word = random % 8 == 0 ? word : word % 65536 & ~UINT64_C(7);
            break;
        case 1: /* the ring of requests: a record of some kind and size */
            at = (4096 + at % 65536) / 8;
            word = (8 + word % 512) | (word % 80) << 32 | (uint64_t)(1 + random % 3) << 48;
            break;
        default:
            break;
        }
        ((volatile uint64_t *)(void *)memory)[at] = word;
    }
}

/* Takes the memory as the library does, with nothing of its code. -1: none was
 * to be had. */
static inline int take_lane(const char *path, uint8_t **ret_memory, size_t *ret_size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char greeting[256];
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec bytes = {greeting, sizeof greeting};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    const struct cmsghdr *head = NULL;
    struct stat stat;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    int memory = -1;

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        recvmsg(fd, &message, MSG_CMSG_CLOEXEC) <= 0) {
        (void)close(fd);
        return -1;
    }
    head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS) {
        memcpy(&memory, CMSG_DATA(head), sizeof memory);
    }
    if (memory < 0 || fstat(memory, &stat) != 0) {
        (void)close(fd);
        return -1;
    }
    *ret_size = (size_t)stat.st_size;
    *ret_memory = mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    (void)close(memory);
    return *ret_memory == MAP_FAILED ? -1 : fd;
}

/* Lane after lane, each until the daemon has had enough of it. */
_Noreturn static inline void scribble_alone(const char *path, int out)
{
    uint64_t state = UINT64_C(88172645463325252);
    bool said = false;

    for (;;) {
        uint8_t *memory = NULL;
        size_t size = 0;
        int fd = take_lane(path, &memory, &size);
        struct pollfd watch = {.fd = fd, .events = POLLIN};

        if (fd < 0) {
            continue; /* the last one is not put away yet */
        }
        for (int i = 0; i < 200; i++) {
            scribble(memory, size, &state);
            (void)send(fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
            if (poll(&watch, 1, 0) > 0 && (watch.revents & POLLHUP) != 0) {
                break;
            }
        }
        (void)munmap(memory, size);
        (void)close(fd);
        if (!said) {
            say(out);
        }
        said = true;
    }
}

/* The memory that this process shares, when it has some. */
static inline uint8_t *find_shared(size_t *ret_size)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    uint8_t *found = NULL;

    while (maps != NULL && found == NULL && fgets(line, sizeof line, maps) != NULL) {
        char *end = NULL;
        uintptr_t first = strtoull(line, &end, 16);
        uintptr_t last = *end == '-' ? strtoull(end + 1, NULL, 16) : 0;

        if (strstr(line, "memfd:") != NULL && strstr(line, " rw-s ") != NULL) {
            found = (uint8_t *)first; /* NOLINT */
            *ret_size = last - first;
        }
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return found;
}

static inline void *scribble_beside(void *out)
{
    uint64_t state = UINT64_C(362436069);
    size_t size = 0;
    uint8_t *memory = find_shared(&size);

    if (memory == NULL) {
        say(*(int *)out); /* it has no lane: nothing to write over */
        return NULL;
    }
    for (int i = 0;; i++) {
        const struct timespec pause = {.tv_nsec = 20000};

        scribble(memory, size, &state);
        (void)nanosleep(&pause, NULL); /* so that some requests get through */
        if (i == 10) {
            say(*(int *)out);
        }
    }
}
#endif
