/* SPDX-License-Identifier: Apache-2.0 */
/* The log sink: one write per line, so that lines of different threads do not
 * mix. */
#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_SIZE 4096 /* bytes; POSIX keeps a pipe write of these in one piece */

/* Until ps_log_open, warnings and errors go to stderr. */
static struct {
    atomic_int fd;
    atomic_int level;
    atomic_bool journal;
    _Atomic(ps_log_stamp_t *) stamp;
} sink = {.fd = STDERR_FILENO, .level = PS_LOG_WARN};
static _Thread_local ps_log_sink_t *mine; /* NULL: the one above */

static const char *level_name(ps_log_level_t level)
{
    switch (level) {
    case PS_LOG_ERROR:
        return "error";
    case PS_LOG_WARN:
        return "warn";
    case PS_LOG_INFO:
        return "info";
    case PS_LOG_DEBUG:
        return "debug";
    default:
        return "?";
    }
}

void ps_log_open(int fd, ps_log_level_t level, bool journal)
{
    atomic_store(&sink.fd, fd);
    atomic_store(&sink.level, (int)level);
    atomic_store(&sink.journal, journal);
}

void ps_log_set_level(ps_log_level_t level)
{
    atomic_store(mine == NULL ? &sink.level : &mine->level, (int)level);
}

void ps_log_use(ps_log_sink_t *own)
{
    mine = own;
}

ps_log_sink_t *ps_log_used(void)
{
    return mine;
}

void ps_log_set_stamp(ps_log_stamp_t *stamp)
{
    atomic_store(&sink.stamp, stamp);
}

/* The bytes that snprintf wrote into `room` bytes, from its return value. */
static size_t written(int length, size_t room)
{
    if (length < 0) {
        return 0;
    }
    return (size_t)length < room ? (size_t)length : room - 1;
}

/* One event is one line: line breaks become spaces. */
static void flatten(char *line, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if (line[i] == '\n' || line[i] == '\r') {
            line[i] = ' ';
        }
    }
}

static size_t begin_line(char *line, size_t room, ps_log_level_t level, const char *event)
{
    ps_log_stamp_t *stamp = atomic_load(&sink.stamp);
    char text[PS_LOG_STAMP_SIZE] = "";

    if (stamp != NULL) {
        stamp(text);
    }
    return written(atomic_load(&sink.journal)
                       ? snprintf(line, room, "%s<%d>%s", text, (int)level, event)
                       : snprintf(line, room, "%s%s %s", text, level_name(level), event),
                   room);
}

void ps_log(ps_log_level_t level, const char *event, const char *format, ...)
{
    char line[LINE_SIZE];
    size_t size = 0;
    va_list arguments;

    if ((int)level > atomic_load(mine == NULL ? &sink.level : &mine->level)) {
        return;
    }
    size = begin_line(line, sizeof line, level, event);
    if (format[0] != '\0' && size + 2 < sizeof line) {
        line[size++] = ' ';
        va_start(arguments, format);
        size += written(vsnprintf(line + size, sizeof line - size, format, arguments),
                        sizeof line - size);
        va_end(arguments);
    }
    flatten(line, size);
    if (mine != NULL && mine->take != NULL) {
        line[size] = '\0';
        mine->take(mine->user, level, line);
        return;
    }
    line[size++] = '\n'; /* over the terminator */
    /* There is nowhere to report that the log itself fails. */
    if (write(mine == NULL ? atomic_load(&sink.fd) : mine->fd, line, size) < 0) {
        return;
    }
}

static bool goes_on(char byte) /* it is a later byte of a UTF-8 character */
{
    return ((unsigned char)byte & 0xC0U) == 0x80U;
}

/* Without the part of a character at the end, of which byte would be next. */
static size_t whole(const char *text, size_t size, char byte)
{
    size_t before = size;

    if (!goes_on(byte)) {
        return size;
    }
    while (before > 0 && size - before < 2 && goes_on(text[before - 1])) {
        before--;
    }
    return before > 0 && (unsigned char)text[before - 1] >= 0xC0U ? before - 1 : size;
}

const char *ps_log_quote(const char *text, char *ret, unsigned long size)
{
    size_t at = 0;

    if (size < sizeof "\"\"") {
        if (size > 0) {
            ret[0] = '\0';
        }
        return ret;
    }
    ret[at++] = '"';
    for (; *text != '\0'; text++) {
        bool escape = *text == '"' || *text == '\\' || *text == '\n';

        if (at + (escape ? 2 : 1) + 2 > size) {
            at = 1 + whole(ret + 1, at - 1, *text);
            break; /* the closing quote and '\0' must fit */
        }
        if (escape) {
            ret[at++] = '\\';
        }
        ret[at++] = *text == '\n' ? 'n' : *text;
    }
    ret[at++] = '"';
    ret[at] = '\0';
    return ret;
}
