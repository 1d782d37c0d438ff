/* SPDX-License-Identifier: Apache-2.0 */
/* control - shared by tests of the daemon: its log, and a client of the
 * control port on plain sockets that sees raw answers */
#ifndef PS_TESTS_CONTROL_H
#define PS_TESTS_CONTROL_H

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/daemon.h"
#include "support/zmtp.h"

#define REPLY_SIZE 65536
#define WAIT_STEPS 12000 /* of 5 ms */

static inline void step(void)
{
    const struct timespec span = {.tv_nsec = 5000000L};

    (void)nanosleep(&span, NULL);
}

/* The text of DIR/NAME. */
static inline bool read_file(const daemon_t *d, const char *name, char *ret, size_t size)
{
    char path[PATH_MAX];
    FILE *file = NULL;
    size_t n = 0;

    (void)snprintf(path, sizeof path, "%.3000s/%s", d->dir.path, name);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    n = fread(ret, 1, size - 1, file);
    ret[n] = '\0';
    (void)fclose(file);
    return true;
}

static inline bool log_has(const daemon_t *d, const char *part)
{
    static char log[262144];

    return read_file(d, "log", log, sizeof log) && strstr(log, part) != NULL;
}

/* Waits until the log has that text. */
static inline bool wait_log(const daemon_t *d, const char *part)
{
    for (int i = 0; i < WAIT_STEPS; i++) {
        if (log_has(d, part)) {
            return true;
        }
        step();
    }
    (void)fprintf(stderr, "the log never had: %s\n", part);
    return false;
}

/* A session on the control port. */
typedef struct control {
    int fd;
    unsigned long long session;
    unsigned id;            /* of the next request */
    char reply[REPLY_SIZE]; /* the last answer */
} control_t;

static inline bool control_open(control_t *c, const daemon_t *d, unsigned client)
{
    char request[256];
    const char *at = NULL;

    c->fd = zmtp_connect(d->control);
    c->id = 2;
    CHECK(c->fd >= 0);
    (void)snprintf(request, sizeof request,
                   "{\"v\":1,\"id\":1,\"op\":\"hello\",\"versions\":[1,1],"
                   "\"client\":\"00000000-0000-4000-8000-%012u\"}",
                   client);
    CHECK(zmtp_ask(c->fd, request, c->reply, sizeof c->reply));
    at = strstr(c->reply, "\"session\":");
    CHECK(at != NULL);
    c->session = strtoull(at + 10, NULL, 10);
    return true;
}

static inline void control_close(control_t *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->fd = -1;
}

/* Sends op with its fields (",\"a\":1" or ""); does not wait. */
static inline bool control_post(control_t *c, const char *op, const char *fields)
{
    char request[1024];

    (void)snprintf(request, sizeof request, "{\"v\":1,\"id\":%u,\"session\":%llu,\"op\":\"%s\"%s}",
                   c->id++, c->session, op, fields);
    return zmtp_send(c->fd, 0, request, strlen(request));
}

/* Whether the next answer has that text. */
static inline bool answer_has(control_t *c, const char *part)
{
    size_t size = 0;

    if (!zmtp_receive(c->fd, c->reply, sizeof c->reply, &size)) {
        (void)fprintf(stderr, "no answer\n");
        return false;
    }
    if (strstr(c->reply, part) == NULL) {
        (void)fprintf(stderr, "wanted %s in: %.2000s\n", part, c->reply);
        return false;
    }
    return true;
}

static inline bool control_ask(control_t *c, const char *op, const char *fields, const char *part)
{
    return control_post(c, op, fields) && answer_has(c, part);
}
#endif
