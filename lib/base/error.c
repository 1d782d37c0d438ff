/* SPDX-License-Identifier: Apache-2.0 */
/* Why a call failed: a status and a line of text. Callers prefix the text with
 * context. The text lives in the object, so reporting a failure cannot itself
 * run out of memory. A text that is too long ends in "...". */
#include "psd/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

#define TEXT_SIZE 1024 /* bytes, with the terminator */

struct psd_error {
    psd_status_t status;
    char text[TEXT_SIZE];
};

/* Ends a full text in "...", without half a UTF-8 character before it. */
static void mark_cut(char text[TEXT_SIZE])
{
    size_t at = TEXT_SIZE - sizeof "...";

    while (at > 0 && ((unsigned char)text[at] & 0xC0) == 0x80) {
        at--;
    }
    memcpy(text + at, "...", sizeof "...");
}

static void print_text(char text[TEXT_SIZE], const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

static void print_text(char text[TEXT_SIZE], const char *format, va_list arguments)
{
    int length = vsnprintf(text, TEXT_SIZE, format, arguments);

    if (length < 0) {
        memcpy(text, "?", sizeof "?");
    } else if ((size_t)length >= TEXT_SIZE) {
        mark_cut(text);
    }
}

/* Makes text "context: text". */
static void put_in_front(char text[TEXT_SIZE], const char *context)
{
    size_t front = strlen(context);
    size_t room = TEXT_SIZE - 1 - front; /* both are below TEXT_SIZE */
    size_t back = strlen(text);
    bool cut = back + 2 > room;

    if (room < 2) {
        memcpy(text, context, front + 1);
        mark_cut(text);
        return;
    }
    if (cut) {
        back = room - 2;
    }
    memmove(text + front + 2, text, back);
    memcpy(text, context, front);
    memcpy(text + front, ": ", 2);
    text[front + 2 + back] = '\0';
    if (cut) {
        mark_cut(text);
    }
}

psd_error_t *psd_error_new(void)
{
    return ps_alloc(1, sizeof(psd_error_t));
}

void psd_error_destroy(psd_error_t **self_p)
{
    if (self_p == NULL) {
        return;
    }
    ps_free(*self_p);
    *self_p = NULL;
}

void psd_error_clear(psd_error_t *self)
{
    if (self == NULL) {
        return;
    }
    self->status = PSD_OK;
    self->text[0] = '\0';
}

psd_status_t psd_error_status(const psd_error_t *self)
{
    return self == NULL ? PSD_OK : self->status;
}

const char *psd_error_text(const psd_error_t *self)
{
    return self == NULL ? "" : self->text;
}

psd_status_t psd_error_set(psd_error_t *self, psd_status_t status, const char *format, ...)
{
    va_list arguments;

    if (self == NULL || self->status != PSD_OK || status == PSD_OK) {
        return status;
    }
    self->status = status;
    va_start(arguments, format);
    print_text(self->text, format, arguments);
    va_end(arguments);
    return status;
}

psd_status_t psd_error_wrap(psd_error_t *self, psd_status_t status, const char *format, ...)
{
    char context[TEXT_SIZE];
    va_list arguments;

    if (self == NULL || status == PSD_OK) {
        return status;
    }
    if (self->status == PSD_OK) {
        /* No callee gave a text: the status itself is the reason. */
        (void)psd_error_set(self, status, "%s", psd_status_text(status));
    }
    va_start(arguments, format);
    print_text(context, format, arguments);
    va_end(arguments);
    put_in_front(self->text, context);
    return status;
}
