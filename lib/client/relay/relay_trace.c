/* SPDX-License-Identifier: Apache-2.0 */
/* Prints events, and writes them in large pieces. */
#include "client/relay/relay_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"
#include "transport/threads/clock.h"

#define LINE_MAX_BYTES 512
#define DELTAS 1 /* threads of the picture */
#define ROWS 2

/* ---- the file ---- */

/* Puts the rank in. false: it is too long. */
static bool print_path(const char *pattern, uint32_t worker, char ret[PS_RELAY_TRACE_PATH])
{
    const char *at = strstr(pattern, "%r");
    int n = at == NULL ? snprintf(ret, PS_RELAY_TRACE_PATH, "%s.%" PRIu32, pattern, worker)
                       : snprintf(ret, PS_RELAY_TRACE_PATH, "%.*s%" PRIu32 "%s",
                                  (int)(at - pattern), pattern, worker, at + strlen("%r"));

    return n > 0 && n < PS_RELAY_TRACE_PATH;
}

static psd_status_t open_file(ps_relay_trace_t *self, psd_error_t *err)
{
    struct stat is = {.st_mode = 0};

    self->fd =
        open(self->path,
             O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (self->fd < 0) {
        return psd_error_set(err, PSD_IO, "%s cannot be written: %s", self->path,
                             errno == ELOOP ? "it is a symbolic link" : strerror(errno));
    }
    self->is_open = true;
    if (fstat(self->fd, &is) != 0 || !S_ISREG(is.st_mode)) {
        return psd_error_set(err, PSD_INVALID, "%s is no regular file; allowed: one, or none",
                             self->path);
    }
    return PSD_OK;
}

psd_status_t ps_relay_trace_open(ps_relay_trace_t *self, const char *pattern, uint32_t worker,
                                 psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    ps_relay_trace_close(self);
    self->worker = worker;
    if (!print_path(pattern, worker, self->path)) {
        return psd_error_set(err, PSD_INVALID, "\"%.40s…\" is too long; allowed: up to %d bytes",
                             pattern, PS_RELAY_TRACE_PATH - 1);
    }
    self->lines = ps_alloc_raw(1, PS_RELAY_TRACE_BUFFER);
    rc = self->lines == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for %s", self->path)
                             : open_file(self, err);
    if (rc != PSD_OK) {
        ps_relay_trace_close(self);
    }
    return rc;
}

static void drop(ps_relay_trace_t *self)
{
    if (self->is_open) {
        (void)close(self->fd);
    }
    ps_free(self->lines);
    *self = (ps_relay_trace_t){.is_open = false};
}

static void give_up(ps_relay_trace_t *self, const char *reason)
{
    ps_log(PS_LOG_WARN, "overlay_trace_off", "file=%s reason=\"%s\"", self->path, reason);
    drop(self);
}

static void write_lines(ps_relay_trace_t *self, uint64_t now_us)
{
    size_t at = 0;

    self->written_us = now_us;
    while (at < self->size) {
        ssize_t n = write(self->fd, self->lines + at, self->size - at);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            give_up(self, n == 0 ? "nothing is written" : strerror(errno));
            return;
        }
        at += (size_t)n;
    }
    self->written += self->size;
    self->size = 0;
    if (self->written >= PS_RELAY_TRACE_MOST) {
        give_up(self, "the file is large");
    }
}

/* ---- lines ---- */

static void PSD_PRINTF(2, 3) add(ps_relay_trace_t *self, const char *format, ...)
{
    va_list args;
    int n = 0;

    if (self->is_open && self->size + LINE_MAX_BYTES > PS_RELAY_TRACE_BUFFER) {
        write_lines(self, ps_now_us());
    }
    if (!self->is_open) {
        return;
    }
    va_start(args, format);
    n = vsnprintf(self->lines + self->size, LINE_MAX_BYTES, format, args);
    va_end(args);
    self->size += n > 0 && n < LINE_MAX_BYTES ? (size_t)n : 0; /* else no whole line */
}

static void name_thread(ps_relay_trace_t *self, int thread, const char *name)
{
    add(self,
        ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%" PRIu32
        ",\"tid\":%d,\"args\":{\"name\":\"%s\"}}",
        self->worker, thread, name);
}

void ps_relay_trace_begin(ps_relay_trace_t *self)
{
    if (!self->is_open) {
        return;
    }
    if (ftruncate(self->fd, 0) != 0) {
        give_up(self, strerror(errno));
        return;
    }
    self->runs = true;
    add(self,
        "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%" PRIu32
        ",\"args\":{\"name\":\"worker %" PRIu32 "\"}}",
        self->worker, self->worker);
    name_thread(self, DELTAS, "deltas");
    name_thread(self, ROWS, "rows");
    add(self,
        ",\n{\"name\":\"begins\",\"cat\":\"relay\",\"ph\":\"i\",\"s\":\"p\",\"ts\":%" PRIu64
        ",\"pid\":%" PRIu32 ",\"tid\":%d,\"args\":{\"unix_ms\":%" PRIu64 "}}",
        ps_now_us(), self->worker, DELTAS, ps_unix_ms());
}

/* "to worker 3", "to nodes". */
static void print_end(const char *way, uint32_t worker, char ret_text[40])
{
    if (worker == PS_OVERLAY_NODES) {
        (void)snprintf(ret_text, 40, "%s nodes", way);
    } else {
        (void)snprintf(ret_text, 40, "%s worker %" PRIu32, way, worker);
    }
}

/* A bundle on its way: events of one id belong together. One that the next relay does not take
 * goes to the nodes by the same number. */
static void add_bundle(ps_relay_trace_t *self, const ps_relay_trace_event_t *event, char phase,
                       const char *news)
{
    char name[40];
    char args[160];

    print_end("to", event->worker, name);
    if (phase == 'b') {
        (void)snprintf(args, sizeof args,
                       "\"table\":%" PRIu32 ",\"partition\":%" PRIu32 ",\"clock\":%" PRIu64
                       ",\"bytes\":%" PRIu64 ",\"workers\":%zu",
                       event->table, event->partition, event->clock, event->bytes, event->n_from);
    } else {
        (void)snprintf(args, sizeof args, "\"news\":\"%s\"", news);
    }
    add(self,
        ",\n{\"name\":\"%s\",\"cat\":\"bundle\",\"ph\":\"%c\",\"id2\":{\"local\":\"%" PRIu64
        "%s\"},\"ts\":%" PRIu64 ",\"pid\":%" PRIu32 ",\"tid\":%d,\"args\":{%s}}",
        name, phase, event->number, event->worker == PS_OVERLAY_NODES ? "n" : "", ps_now_us(),
        self->worker, DELTAS, args);
}

static void add_moment(ps_relay_trace_t *self, const ps_relay_trace_event_t *event, int thread,
                       const char *name)
{
    add(self,
        ",\n{\"name\":\"%s\",\"cat\":\"relay\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%" PRIu64
        ",\"pid\":%" PRIu32 ",\"tid\":%d,\"args\":{\"table\":%" PRIu32 ",\"partition\":%" PRIu32
        ",\"clock\":%" PRIu64 ",\"bytes\":%" PRIu64 "%s%s%s}}",
        name, ps_now_us(), self->worker, thread, event->table, event->partition, event->clock,
        event->bytes, event->reason == NULL ? "" : ",\"reason\":\"",
        event->reason == NULL ? "" : event->reason, event->reason == NULL ? "" : "\"");
}

void ps_relay_trace_note(ps_relay_trace_t *self, const ps_relay_trace_event_t *event)
{
    char name[40];

    if (!self->runs) {
        return;
    }
    switch (event->kind) {
    case PS_TRACE_LENT:
        add_moment(self, event, DELTAS, "lent");
        break;
    case PS_TRACE_SENT:
        add_bundle(self, event, 'b', NULL);
        break;
    case PS_TRACE_TAKEN:
        add_bundle(self, event, 'n', "taken");
        break;
    case PS_TRACE_DONE:
        add_bundle(self, event, 'e', "done");
        break;
    case PS_TRACE_RETURNED:
        add_bundle(self, event, 'e', "returned");
        break;
    case PS_TRACE_GOT:
        print_end("from", event->worker, name);
        add_moment(self, event, DELTAS, name);
        break;
    case PS_TRACE_GAVE_BACK:
        print_end("back to", event->worker, name);
        add_moment(self, event, DELTAS, name);
        break;
    case PS_TRACE_ROWS_ASKED:
        print_end("rows wanted of", event->worker, name);
        add_moment(self, event, ROWS, name);
        break;
    case PS_TRACE_ROWS_GOT:
        add_moment(self, event, ROWS, "rows got");
        break;
    case PS_TRACE_ROWS_MISSED:
        add_moment(self, event, ROWS, "rows missed");
        break;
    case PS_TRACE_ROWS_GAVE:
    default:
        print_end("rows for", event->worker, name);
        add_moment(self, event, ROWS, name);
        break;
    }
}

void ps_relay_trace_sent(ps_relay_trace_t *self, const ps_relay_deed_t *deed, uint64_t bytes)
{
    ps_relay_trace_note(self, &(ps_relay_trace_event_t){.kind = PS_TRACE_SENT,
                                                        .worker = deed->to,
                                                        .number = deed->number,
                                                        .table = deed->key.table,
                                                        .partition = deed->key.partition,
                                                        .clock = deed->key.clock,
                                                        .bytes = bytes,
                                                        .n_from = deed->lot->n_from});
}

void ps_relay_trace_news(ps_relay_trace_t *self, uint32_t from, uint64_t number,
                         ps_relay_news_t news)
{
    if (news != PS_RELAY_WAITS) {
        ps_relay_trace_note(
            self, &(ps_relay_trace_event_t){.kind = news == PS_RELAY_TAKEN  ? PS_TRACE_TAKEN
                                                    : news == PS_RELAY_DONE ? PS_TRACE_DONE
                                                                            : PS_TRACE_RETURNED,
                                            .worker = from,
                                            .number = number});
    }
}

void ps_relay_trace_turn(ps_relay_trace_t *self)
{
    uint64_t now_us = 0;

    if (!self->runs || self->size == 0) {
        return;
    }
    now_us = ps_now_us();
    if (self->size > PS_RELAY_TRACE_BUFFER / 2 ||
        now_us >= self->written_us + PS_RELAY_TRACE_LATE_US) {
        write_lines(self, now_us);
    }
}

void ps_relay_trace_close(ps_relay_trace_t *self)
{
    if (self->runs) {
        add(self, "\n]\n");
    }
    if (self->is_open && self->size > 0) {
        write_lines(self, 0);
    }
    drop(self);
}
