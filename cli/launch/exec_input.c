/* SPDX-License-Identifier: Apache-2.0 */
/* What comes on a helper's standard input: settings, then orders. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/launch/exec_inner.h"
#include "transport/threads/clock.h"

#define SETTINGS_MS 60000 /* for all settings */

/* ---- the writer ---- */

/* One line; newlines and backslashes in the value are escaped. */
static bool put(ps_buffer_t *to, const char *word, const char *value)
{
    bool ok = ps_buffer_append(to, word, strlen(word));

    while (ok && *value != '\0') {
        size_t size = strcspn(value, "\n\\");

        ok = ps_buffer_append(to, value, size);
        value += size;
        if (ok && *value != '\0') {
            ok = ps_buffer_append(to, *value == '\n' ? "\\n" : "\\\\", 2);
            value++;
        }
    }
    return ok && ps_buffer_append(to, "\n", 1);
}

bool ps_exec_settings(ps_buffer_t *to, const char *dir, const ps_words_t *variables, bool again)
{
    bool ok = put(to, "dir ", dir);

    for (size_t i = 0; ok && i < variables->n; i++) {
        ok = put(to, "set ", variables->items[i]);
    }
    if (ok && again) {
        ok = put(to, "again", "");
    }
    return ok && put(to, "go", "");
}

/* ---- the reader ---- */

static void unescape(char *text)
{
    char *to = text;

    for (; *text != '\0'; text++) {
        if (*text == '\\' && text[1] != '\0') {
            text++;
            *to++ = *text == 'n' ? '\n' : *text;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

static psd_status_t take_variable(char *text, psd_error_t *err)
{
    char *equals = strchr(text, '=');

    if (equals == NULL || equals == text) {
        return psd_error_set(err, PSD_INVALID, "setting \"%.40s\" is not NAME=VALUE", text);
    }
    *equals = '\0';
    return setenv(text, equals + 1, 1) == 0
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "%s cannot be set: %s", text, strerror(errno));
}

static psd_status_t take_directory(const char *path, psd_error_t *err)
{
    return chdir(path) == 0 ? PSD_OK
                            : psd_error_set(err, PSD_IO, "directory %s: %s", path, strerror(errno));
}

static psd_status_t take_start(ps_exec_t *self, const char *text, psd_error_t *err)
{
    uint64_t rank = 0;

    if (!self->waits || !ps_text_u64(text, &rank) || rank != self->rank) {
        return PSD_OK; /* of another worker of this launcher */
    }
    self->waits = false;
    return ps_exec_start(self, err);
}

/* One line. An order that a later pscli may know is passed over. */
static psd_status_t take_line(ps_exec_t *self, char *line, psd_error_t *err)
{
    uint64_t number = 0;

    if (strncmp(line, "dir ", 4) == 0 && !self->go) {
        unescape(line + 4);
        return take_directory(line + 4, err);
    }
    if (strncmp(line, "set ", 4) == 0 && !self->go) {
        unescape(line + 4);
        return take_variable(line + 4, err);
    }
    if (strcmp(line, "again") == 0) {
        self->again = true;
    } else if (strcmp(line, "go") == 0) {
        self->go = true;
    } else if (strncmp(line, "start ", 6) == 0) {
        return take_start(self, line + 6, err);
    } else if (strncmp(line, "signal ", 7) == 0 && ps_text_u64(line + 7, &number) && number < 65) {
        ps_exec_signal(self, (int)number);
        if (ps_exec_is_end((int)number)) {
            self->waits = false; /* no order to start comes any more */
        }
    }
    return PSD_OK;
}

/* The whole lines that are there. */
static psd_status_t take_lines(ps_exec_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    char *text = (char *)self->input.data;
    size_t at = 0;

    while (rc == PSD_OK && at < self->input.size) {
        char *end = memchr(text + at, '\n', self->input.size - at);

        if (end == NULL) {
            break;
        }
        *end = '\0';
        rc = take_line(self, text + at, err);
        at = (size_t)(end - text) + 1;
    }
    if (at > 0) {
        memmove(text, text + at, self->input.size - at);
        self->input.size -= at;
    }
    return rc;
}

psd_status_t ps_exec_read_orders(ps_exec_t *self, psd_error_t *err)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
        self->input_open = false;
        ps_exec_note_gone(self);
        return PSD_OK;
    }
    if (n < 0) {
        return PSD_OK;
    }
    if (self->input.size + (size_t)n > PS_EXEC_LINE_MAX ||
        !ps_buffer_append(&self->input, bytes, (size_t)n)) {
        return psd_error_set(err, PSD_LIMIT, "a setting has more than %d bytes", PS_EXEC_LINE_MAX);
    }
    return take_lines(self, err);
}

psd_status_t ps_exec_read_settings(ps_exec_t *self, psd_error_t *err)
{
    const uint64_t end_ms = ps_now_ms() + SETTINGS_MS;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !self->go) {
        struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
        uint64_t now_ms = ps_now_ms();

        if (now_ms >= end_ms) {
            return psd_error_set(err, PSD_DEADLINE, "no settings on standard input for %d s",
                                 SETTINGS_MS / 1000);
        }
        if (poll(&in, 1, (int)(end_ms - now_ms)) > 0) {
            rc = ps_exec_read_orders(self, err);
        }
        if (rc == PSD_OK && !self->input_open) {
            return psd_error_set(err, PSD_CLOSED, "standard input ended before all settings came");
        }
    }
    return rc;
}
