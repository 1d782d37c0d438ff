/* SPDX-License-Identifier: Apache-2.0 */
/* From `event key=value …` to fields, and to journald. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include "daemon/journal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-journal.h>
#include <unistd.h>

#define NAME_MAX_SIZE 40
#define SOCKET "/run/systemd/journal/socket"

static const struct {
    const char *event;
    const char *id;
} EVENTS[] = {
#define X(event, id) {event, id},
#include "daemon/journal_events.def"
#undef X
};

const char *ps_journal_id(const char *event)
{
    for (size_t i = 0; i < sizeof EVENTS / sizeof EVENTS[0]; i++) {
        if (strcmp(EVENTS[i].event, event) == 0) {
            return EVENTS[i].id;
        }
    }
    return NULL;
}

/* Adds NAME=value, of which the value has that size. */
static void add(ps_journal_entry_t *self, const char *name, const char *value, size_t size)
{
    size_t before = strlen(name) + 1;
    char *at = self->bytes + self->used;

    if (self->n == PS_JOURNAL_FIELDS_MAX || before + size + 1 > PS_JOURNAL_BYTES - self->used) {
        return;
    }
    (void)snprintf(at, before + 1, "%s=", name);
    memcpy(at + before, value, size);
    self->fields[self->n++] = (struct iovec){.iov_base = at, .iov_len = before + size};
    self->used += before + size;
}

/* PSD_ and the key in capitals. false: it is none that journald takes. */
static bool name_field(const char *key, size_t size, char ret_name[NAME_MAX_SIZE])
{
    if (size == 0 || size + sizeof "PSD_" > NAME_MAX_SIZE || !islower((unsigned char)key[0])) {
        return false;
    }
    memcpy(ret_name, "PSD_", 4);
    for (size_t i = 0; i < size; i++) {
        if (!islower((unsigned char)key[i]) && !isdigit((unsigned char)key[i]) && key[i] != '_') {
            return false;
        }
        ret_name[4 + i] = (char)toupper((unsigned char)key[i]);
    }
    ret_name[4 + size] = '\0';
    return true;
}

/* Reads a value that begins with a quote into ret, as ps_log_quote wrote it. Gives what
 * comes after it. */
static const char *unquote(const char *text, char *ret, size_t *ret_size)
{
    *ret_size = 0;
    for (text++; *text != '\0' && *text != '"'; text++) {
        if (*text == '\\' && text[1] != '\0') {
            text++;
            ret[(*ret_size)++] = (char)(*text == 'n' ? '\n' : *text);
        } else {
            ret[(*ret_size)++] = *text;
        }
    }
    return *text == '"' ? text + 1 : text;
}

/* The words of a line after its event; one that is no key=value is part of MESSAGE
 * alone. */
static void add_values(ps_journal_entry_t *self, const char *text)
{
    char name[NAME_MAX_SIZE];
    char value[PS_JOURNAL_BYTES / 2];

    while (*(text += strspn(text, " ")) != '\0') {
        size_t size = strcspn(text, " =\"");
        bool is_field = text[size] == '=' && name_field(text, size, name);

        if (text[size] == '=' && text[size + 1] == '"') {
            text = unquote(text + size + 1, value, &size);
        } else if (text[size] == '=') {
            text += size + 1;
            size = strcspn(text, " ");
            memcpy(value, text, size);
            text += size;
        } else {
            text = text[size] == '"' ? unquote(text + size, value, &size) : text + size;
        }
        if (is_field) {
            add(self, name, value, size);
        }
    }
}

void ps_journal_entry_make(ps_journal_entry_t *self, ps_log_level_t level, const char *line)
{
    char event[64];
    char digit[4];
    const char *id = NULL;

    self->n = 0;
    self->used = 0;
    (void)snprintf(event, sizeof event, "%.*s", (int)strcspn(line, " "), line);
    (void)snprintf(digit, sizeof digit, "%d", (int)level);
    add(self, "MESSAGE", line, strlen(line));
    add(self, "PRIORITY", digit, strlen(digit));
    add(self, "SYSLOG_IDENTIFIER", "psd", strlen("psd"));
    add(self, "PSD_EVENT", event, strlen(event));
    id = ps_journal_id(event);
    if (id != NULL) {
        add(self, "MESSAGE_ID", id, strlen(id));
    }
    add_values(self, line + strcspn(line, " "));
}

/* ---- the sink ---- */

/* line: "<N>event key=value …", as ps_log writes it for a journal. */
static void take(void *user, ps_log_level_t level, const char *line)
{
    static _Thread_local ps_journal_entry_t entry;
    const char *end = line[0] == '<' ? strchr(line, '>') : NULL;

    (void)user;
    ps_journal_entry_make(&entry, level, end == NULL ? line : end + 1);
    if (sd_journal_sendv(entry.fields, (int)entry.n) < 0) {
        (void)dprintf(STDERR_FILENO, "%s\n", line); /* there is nowhere else */
    }
}

void ps_journal_use(void)
{
    static ps_log_sink_t sink = {.take = take, .fd = STDERR_FILENO, .level = PS_LOG_WARN};
    struct stat is;

    if (fstat(STDERR_FILENO, &is) == 0 && S_ISSOCK(is.st_mode) && access(SOCKET, W_OK) == 0) {
        ps_log_use(&sink);
    }
}
