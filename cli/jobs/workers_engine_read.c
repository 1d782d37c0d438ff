/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes of a launcher write: records of helpers, and words of their own. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/jobs/workers_inner.h"

#define READS_MAX 64   /* of one pipe before the others have their turn */
#define TEXT_MAX 65536 /* bytes that are kept of what an engine says before it is up */

/* "EXIT SIGNAL HOST" */
static void take_ended(ps_workers_t *self, const ps_exec_record_t *record)
{
    char text[PS_EXEC_RECORD_TEXT_MAX + 1];
    int exit_code = 0;
    int number = 0;

    (void)snprintf(text, sizeof text, "%.*s", (int)record->size, record->text);
    if (!self->items[record->rank].ended && sscanf(text, "%d %d", &exit_code, &number) == 2) {
        ps_workers_note_end(self, record->rank, exit_code, number);
    }
}

/* The helper could not start the program: the launch has failed, if that was the first try. */
static void take_failed(ps_workers_t *self, const ps_exec_record_t *record)
{
    if (self->items[record->rank].ended) {
        return;
    }
    ps_workers_note_end(self, record->rank, 1, 0);
    if (self->why[0] == '\0') {
        (void)snprintf(self->why, sizeof self->why, "worker %" PRIu32 " on %s: %.*s", record->rank,
                       ps_launch_place(self->args->launch, record->rank), (int)record->size,
                       record->text);
    }
    ps_workers_give_up(self);
}

static void take_record(ps_workers_t *self, ps_engine_t *engine, const ps_exec_record_t *record)
{
    size_t stream =
        record->kind == PS_EXEC_RECORD_ERR || record->kind == PS_EXEC_RECORD_ERR_PART ? 1 : 0;

    if (record->rank < engine->first || record->rank >= engine->first + engine->n) {
        return;
    }
    engine->up = true;
    switch (record->kind) {
    case PS_EXEC_RECORD_STARTED:
        self->items[record->rank].started = true;
        break;
    case PS_EXEC_RECORD_ENDED:
        take_ended(self, record);
        break;
    case PS_EXEC_RECORD_FAILED:
        take_failed(self, record);
        break;
    case PS_EXEC_RECORD_OUT_PART:
    case PS_EXEC_RECORD_OUT:
    case PS_EXEC_RECORD_ERR_PART:
    case PS_EXEC_RECORD_ERR:
        ps_workers_add(self, record->rank, stream, record->text, record->size);
        if (record->kind == PS_EXEC_RECORD_OUT || record->kind == PS_EXEC_RECORD_ERR) {
            ps_workers_show_line(self, record->rank, stream);
        }
        break;
    }
}

/* A line of the engine itself: the reason, if it never comes up; else the user sees it. */
static void take_words(const ps_workers_t *self, ps_engine_t *engine, const ps_worker_line_t *line)
{
    if (!engine->up) {
        if (engine->text.size + line->n < TEXT_MAX) {
            (void)!ps_buffer_print(&engine->text, "%.*s\n", (int)line->n, line->text);
        }
    } else if (self->asked == 0 && line->n > 0) {
        ps_print(self->args->to[1], "%s: %.*s\n",
                 ps_launch_place(self->args->launch, engine->first), (int)line->n, line->text);
    }
}

static void take_line(ps_workers_t *self, ps_engine_t *engine, size_t stream)
{
    ps_worker_line_t *line = &engine->lines[stream];
    ps_exec_record_t record;

    if (stream == 0 && ps_exec_record_parse(self->args->launch->id, line->text, line->n, &record)) {
        take_record(self, engine, &record);
    } else {
        take_words(self, engine, line);
    }
    line->n = 0;
}

/* ---- tags of mpirun: "[1,RANK]<stdout>:" in front of each piece ---- */

static void take_tag(ps_workers_t *self, ps_engine_t *engine)
{
    uint32_t rank = 0;

    engine->tag[engine->tag_size] = '\0';
    engine->tag_size = 0;
    if (sscanf(engine->tag, "[%*u,%" SCNu32 "]", &rank) == 1 && rank < self->n) {
        engine->tagged = rank;
    }
}

/* One byte of the output of a rank. */
static void take_tagged(ps_workers_t *self, ps_engine_t *engine, char byte)
{
    ps_local_worker_t *worker = &self->items[engine->tagged];
    ps_exec_record_t record;

    if (byte != '\n') {
        if (worker->record_size < sizeof worker->record) {
            worker->record[worker->record_size++] = byte;
        }
        return;
    }
    if (ps_exec_record_parse(self->args->launch->id, worker->record, worker->record_size,
                             &record)) {
        take_record(self, engine, &record);
    }
    worker->record_size = 0;
}

static void take_bytes(ps_workers_t *self, ps_engine_t *engine, const char *bytes, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++) {
        if (engine->tag_size == 0 && bytes[i] != '[') {
            take_tagged(self, engine, bytes[i]);
            continue;
        }
        engine->tag[engine->tag_size++] = bytes[i];
        if (bytes[i] == ':' || engine->tag_size == sizeof engine->tag - 1) {
            take_tag(self, engine);
        }
    }
}

static void read_stream(ps_workers_t *self, ps_engine_t *engine, size_t stream)
{
    ps_worker_line_t *line = &engine->lines[stream];
    const bool tagged = stream == 0 && self->args->launch->kind == PS_LAUNCH_MPI;
    char bytes[8192];
    ssize_t n = 1;

    for (int reads = 0; reads < READS_MAX && n > 0; reads++) {
        n = read(line->fd, bytes, sizeof bytes);
        if (tagged) {
            take_bytes(self, engine, bytes, n);
        }
        for (ssize_t i = 0; i < n && !tagged; i++) {
            if (bytes[i] != '\n') {
                line->text[line->n++] = bytes[i];
            }
            if (bytes[i] == '\n' || line->n == PS_LINE_SIZE) {
                take_line(self, engine, stream);
            }
        }
    }
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) {
        return;
    }
    if (line->n > 0) {
        take_line(self, engine, stream);
    }
    (void)close(line->fd);
    line->fd = -1;
}

void ps_engines_read(ps_workers_t *self)
{
    for (uint32_t i = 0; i < self->n_engines; i++) {
        for (size_t j = 0; j < 2; j++) {
            if (self->engines[i].lines[j].fd >= 0) {
                read_stream(self, &self->engines[i], j);
            }
        }
    }
    if (self->n_engines > 0) {
        (void)fflush(self->args->to[0]);
        (void)fflush(self->args->to[1]);
    }
}
