/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zmtp - a DEALER on plain sockets, to send what no library would send
 *
 * What     Speaks ZMTP 3.0 with the NULL mechanism: connects, shakes hands,
 *          writes and reads frames. Everything has a deadline of 10 s.
 * Owner    The caller closes the socket with close.
 */
#ifndef PS_TESTS_ZMTP_H
#define PS_TESTS_ZMTP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define ZMTP_MORE 0x01
#define ZMTP_LONG 0x02
#define ZMTP_COMMAND 0x04
#define ZMTP_GREETING_SIZE 64

/* A connection to "tcp://127.0.0.1:PORT" or another address of this host; -1 when there is none.
 * receive_bytes > 0 sets the size of the receive buffer. */
static inline int zmtp_dial(const char *endpoint, int receive_bytes)
{
    const char *colon = strrchr(endpoint, ':');
    const struct timeval limit = {.tv_sec = 10};
    struct sockaddr_in to = {.sin_family = AF_INET};
    char host[64];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || colon == NULL) {
        return -1;
    }
    to.sin_port = htons((uint16_t)strtol(colon + 1, NULL, 10));
    (void)snprintf(host, sizeof host, "%.*s", (int)(colon - endpoint), endpoint);
    if (strncmp(host, "tcp://", 6) != 0 || inet_pton(AF_INET, host + 6, &to.sin_addr) != 1) {
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    }
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (receive_bytes > 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    if (connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static inline bool zmtp_write(int fd, const void *data, size_t size)
{
    const char *at = data;

    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);

        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

static inline bool zmtp_read(int fd, void *ret, size_t size)
{
    char *at = ret;

    while (size > 0) {
        ssize_t n = recv(fd, at, size, 0);

        if (n <= 0) {
            return false;
        }
        at += n;
        size -= (size_t)n;
    }
    return true;
}

/* The head of a frame; size may be a lie. */
static inline bool zmtp_write_head(int fd, uint8_t flags, uint64_t size)
{
    uint8_t head[9] = {(uint8_t)(flags | ZMTP_LONG)};

    for (int i = 0; i < 8; i++) {
        head[1 + i] = (uint8_t)(size >> (56 - 8 * i));
    }
    return zmtp_write(fd, head, sizeof head);
}

static inline bool zmtp_send(int fd, uint8_t flags, const void *data, size_t size)
{
    return zmtp_write_head(fd, flags, size) && zmtp_write(fd, data, size);
}

/* The next frame that is not a command, cut to fit and ended with '\0'. */
static inline bool zmtp_receive(int fd, char *ret, size_t capacity, size_t *ret_size)
{
    for (;;) {
        uint8_t flags = 0;
        uint8_t bytes[8] = {0};
        uint64_t size = 0;
        size_t n = 0;

        if (!zmtp_read(fd, &flags, 1)) {
            return false;
        }
        n = (flags & ZMTP_LONG) != 0 ? 8 : 1;
        if (!zmtp_read(fd, bytes, n)) {
            return false;
        }
        for (size_t i = 0; i < n; i++) {
            size = size << 8 | bytes[i];
        }
        for (uint64_t i = 0; i < size; i++) {
            char byte = 0;
            size_t take = size < capacity ? (size_t)size : 0;

            if (i == 0 && take > 0) {
                if (!zmtp_read(fd, ret, take)) {
                    return false;
                }
                break;
            }
            if (!zmtp_read(fd, &byte, 1)) {
                return false;
            }
            if (i < capacity - 1) {
                ret[i] = byte;
            }
        }
        if ((flags & ZMTP_COMMAND) == 0) {
            *ret_size = size < capacity ? (size_t)size : capacity - 1;
            ret[*ret_size] = '\0';
            return true;
        }
    }
}

/* Greeting and READY of a DEALER. identity NULL: none. */
static inline bool zmtp_shake(int fd, const char *identity)
{
    uint8_t greeting[ZMTP_GREETING_SIZE] = {0xFF};
    uint8_t theirs[ZMTP_GREETING_SIZE];
    uint8_t ready[256] = "\4\0\5READY\13Socket-Type\0\0\0\6DEALER";
    size_t length = 2 + 6 + 12 + 4 + 6;
    uint8_t head[2];

    greeting[9] = 0x7F;
    greeting[10] = 3;
    memcpy(greeting + 12, "NULL", 4);
    if (identity != NULL) {
        size_t n = strlen(identity);

        memcpy(ready + length, "\10Identity\0\0\0", 12);
        ready[length + 12] = (uint8_t)n;
        memcpy(ready + length + 13, identity, n);
        length += 13 + n;
    }
    ready[1] = (uint8_t)(length - 2);
    if (!zmtp_write(fd, greeting, sizeof greeting) || !zmtp_read(fd, theirs, sizeof theirs) ||
        !zmtp_write(fd, ready, length) || !zmtp_read(fd, head, 2)) {
        return false;
    }
    for (int i = 0; i < head[1]; i++) {
        if (!zmtp_read(fd, theirs, 1)) {
            return false;
        }
    }
    return head[0] == ZMTP_COMMAND;
}

/* Dials and shakes hands; -1 when that fails. */
static inline int zmtp_connect(const char *endpoint)
{
    int fd = zmtp_dial(endpoint, 0);

    if (fd >= 0 && !zmtp_shake(fd, NULL)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* One request, one answer. */
static inline bool zmtp_ask(int fd, const char *request, char *ret, size_t capacity)
{
    size_t size = 0;

    return zmtp_send(fd, 0, request, strlen(request)) && zmtp_receive(fd, ret, capacity, &size);
}
#endif
