/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of words, and their quoting. */
#include "cli/launch/quote.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void ps_words_done(ps_words_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_free(self->items[i]);
    }
    ps_free(self->items);
    *self = (ps_words_t){0};
}

static bool grow(ps_words_t *self)
{
    size_t capacity = self->capacity == 0 ? 16 : 2 * self->capacity;
    char **items = NULL;

    if (self->n + 1 < self->capacity) {
        return true;
    }
    items = ps_alloc(capacity, sizeof *items);
    if (items == NULL) {
        return false;
    }
    if (self->n > 0) {
        memcpy(items, self->items, self->n * sizeof *items);
    }
    ps_free(self->items);
    self->items = items;
    self->capacity = capacity;
    return true;
}

bool ps_words_add(ps_words_t *self, const char *format, ...)
{
    va_list args;
    va_list again;
    int size = 0;
    char *word = NULL;

    va_start(args, format);
    va_copy(again, args);
    size = vsnprintf(NULL, 0, format, args);
    va_end(args);
    word = size >= 0 && grow(self) ? ps_alloc((size_t)size + 1, 1) : NULL;
    if (word != NULL) {
        (void)vsnprintf(word, (size_t)size + 1, format, again);
        self->items[self->n++] = word;
        self->items[self->n] = NULL;
    }
    va_end(again);
    return word != NULL;
}

bool ps_words_split(ps_words_t *self, const char *text)
{
    static const char BLANKS[] = " \t\n";

    for (text += strspn(text, BLANKS); *text != '\0'; text += strspn(text, BLANKS)) {
        size_t size = strcspn(text, BLANKS);

        if (!ps_words_add(self, "%.*s", (int)size, text)) {
            return false;
        }
        text += size;
    }
    return true;
}

bool ps_quote(ps_buffer_t *to, const char *word)
{
    static const char HARMLESS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789_./:=@%+,-";
    bool ok = true;

    if (word[0] != '\0' && word[strspn(word, HARMLESS)] == '\0') {
        return ps_buffer_append(to, word, strlen(word));
    }
    ok = ps_buffer_append(to, "'", 1);
    while (ok && *word != '\0') {
        size_t size = strcspn(word, "'");

        ok = ps_buffer_append(to, word, size);
        word += size;
        if (ok && *word == '\'') {
            ok = ps_buffer_append(to, "'\\''", 4);
            word++;
        }
    }
    return ok && ps_buffer_print(to, "'");
}

bool ps_quote_all(ps_buffer_t *to, const char *const *words)
{
    bool ok = true;

    for (size_t i = 0; ok && words[i] != NULL; i++) {
        ok = (i == 0 || ps_buffer_append(to, " ", 1)) && ps_quote(to, words[i]);
    }
    return ok && ps_buffer_print(to, "%s", "");
}
