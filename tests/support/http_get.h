/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_get - one request to the HTTP port of a psd of this host
 *
 * What     Finds the port in endpoints.json, sends what it is told, and gives the
 *          whole answer; a connection of its own each time.
 */
#ifndef PS_TESTS_HTTP_GET_H
#define PS_TESTS_HTTP_GET_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define HTTP_ANSWER_MAX (16 << 20)
#define HTTP_WAIT_S 60

/* The port that DIR/endpoints.json names; 0: it names none. */
static inline uint16_t http_port(const char *dir)
{
    char path[4096];
    char text[8192] = "";
    const char *found = NULL;
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%.4000s/endpoints.json", dir);
    file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    found = strstr(text, "\"http\":\"http://127.0.0.1:");
    return found == NULL
               ? 0
               : (uint16_t)strtoul(found + strlen("\"http\":\"http://127.0.0.1:"), NULL, 10);
}

/* A connection; -1: none. */
static inline int http_connect(uint16_t port)
{
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    const struct timeval wait = {.tv_sec = HTTP_WAIT_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
                    connect(fd, (const struct sockaddr *)&to, sizeof to) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Sends the text and reads up to the end of the connection, which is closed then.
 * The caller frees *ret_answer. Gives the status; 0: there was no answer. */
static inline unsigned http_exchange(uint16_t port, const char *request, size_t size,
                                     char **ret_answer)
{
    int fd = http_connect(port);
    char *answer = malloc(HTTP_ANSWER_MAX);
    size_t n = 0;
    ssize_t more = 0;

    *ret_answer = answer;
    if (answer == NULL) {
        return 0;
    }
    answer[0] = '\0';
    if (fd < 0) {
        return 0;
    }
    (void)!send(fd, request, size, MSG_NOSIGNAL);
    while (n < HTTP_ANSWER_MAX - 1 &&
           (more = recv(fd, answer + n, HTTP_ANSWER_MAX - 1 - n, 0)) > 0) {
        n += (size_t)more;
    }
    answer[n] = '\0';
    (void)close(fd);
    return strncmp(answer, "HTTP/1.", 7) == 0 && n > 12 ? (unsigned)strtoul(answer + 9, NULL, 10)
                                                        : 0;
}

static inline unsigned http_ask(uint16_t port, const char *method, const char *path,
                                char **ret_answer)
{
    char request[512];
    int size =
        snprintf(request, sizeof request,
                 "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method, path);

    return http_exchange(port, request, (size_t)size, ret_answer);
}

/* The sum of all series of the metric that have the label ("" any), in an answer. -1:
 * there is none. */
static inline double http_sum(const char *answer, const char *metric, const char *label)
{
    size_t length = strlen(metric);
    double sum = 0;
    bool found = false;

    for (const char *line = answer; line != NULL; line = strchr(line, '\n')) {
        const char *end = NULL;
        const char *at = NULL;

        line += *line == '\n' ? 1 : 0;
        end = strchr(line, '\n');
        at = strstr(line, label);
        if (end == NULL) {
            break;
        }
        if (strncmp(line, metric, length) != 0 || (line[length] != ' ' && line[length] != '{') ||
            at == NULL || at > end) {
            continue;
        }
        at = memrchr(line, ' ', (size_t)(end - line));
        sum += strtod(at, NULL);
        found = true;
    }
    return found ? sum : -1;
}
#endif
