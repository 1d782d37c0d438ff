/* SPDX-License-Identifier: Apache-2.0 */
/* Words one after the other in one text, and a table of their places. */
#include "psd_data.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "data/text/lines.h"
#include "data/text/number.h"

#define SLOTS_LEAST ((size_t)1024)
#define WORDS_MAX (UINT32_MAX / 2)

struct psd_vocabulary {
    ps_buffer_t text; /* each word with a '\0' after it */
    size_t *starts;   /* n + 1 */
    size_t n, capacity;
    uint32_t *slots; /* places + 1; 0: free */
    size_t n_slots;  /* a power of two, more than 2 n */
};

void psd_vocabulary_destroy(psd_vocabulary_t **self_p)
{
    psd_vocabulary_t *self = *self_p;

    if (self != NULL) {
        ps_buffer_done(&self->text);
        ps_free(self->starts);
        ps_free(self->slots);
    }
    ps_free(self);
    *self_p = NULL;
}

size_t psd_vocabulary_count(const psd_vocabulary_t *self)
{
    return self->n;
}

const char *psd_vocabulary_word(const psd_vocabulary_t *self, uint64_t key)
{
    return key < self->n ? (const char *)self->text.data + self->starts[key] : NULL;
}

/* The slot that has the word, or the free one that it would get. */
static size_t find_slot(const psd_vocabulary_t *self, const char *word, size_t size)
{
    size_t slot = (size_t)ps_hash_bytes(word, size, 0) & (self->n_slots - 1);

    while (self->slots[slot] != 0) {
        size_t place = self->slots[slot] - 1;
        size_t start = self->starts[place];

        if (self->starts[place + 1] - start == size + 1 &&
            memcmp(self->text.data + start, word, size) == 0) {
            break;
        }
        slot = (slot + 1) & (self->n_slots - 1);
    }
    return slot;
}

bool psd_vocabulary_find(const psd_vocabulary_t *self, const char *word, size_t size,
                         uint64_t *ret_key)
{
    size_t slot = find_slot(self, word, size);

    if (self->slots[slot] == 0) {
        return false;
    }
    *ret_key = self->slots[slot] - 1;
    return true;
}

/* A table of twice the slots with the same places. */
static bool grow_slots(psd_vocabulary_t *self)
{
    size_t n_slots = self->n_slots == 0 ? SLOTS_LEAST : self->n_slots * 2;
    uint32_t *slots = ps_alloc(n_slots, sizeof *slots);

    if (slots == NULL) {
        return false;
    }
    ps_free(self->slots);
    self->slots = slots;
    self->n_slots = n_slots;
    for (size_t i = 0; i < self->n; i++) {
        size_t size = self->starts[i + 1] - self->starts[i] - 1;
        const char *word = (const char *)self->text.data + self->starts[i];

        slots[find_slot(self, word, size)] = (uint32_t)i + 1;
    }
    return true;
}

/* Room for one more word. */
static bool grow(psd_vocabulary_t *self)
{
    size_t capacity = self->capacity == 0 ? SLOTS_LEAST : self->capacity * 2;
    size_t *starts = NULL;

    if (self->n + 1 >= self->capacity) {
        starts = ps_alloc_resize(self->starts, capacity, sizeof *starts);
        if (starts == NULL) {
            return false;
        }
        self->starts = starts;
        self->capacity = capacity;
    }
    return (self->n + 1) * 2 < self->n_slots || grow_slots(self);
}

static psd_status_t add_word(psd_vocabulary_t *self, const char *word, size_t size,
                             psd_error_t *err)
{
    size_t slot = 0;

    if (size == 0) {
        return psd_error_set(err, PSD_INVALID, "it has no word");
    }
    if (memchr(word, '\0', size) != NULL) {
        return psd_error_set(err, PSD_INVALID, "a word with a byte of 0");
    }
    if (self->n == WORDS_MAX) {
        return psd_error_set(err, PSD_LIMIT, "more than %" PRIu32 " words", WORDS_MAX);
    }
    if (!grow(self)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu words", self->n);
    }
    slot = find_slot(self, word, size);
    if (self->slots[slot] != 0) {
        return psd_error_set(err, PSD_INVALID, "its word is on line %" PRIu32 " already",
                             self->slots[slot]);
    }
    self->starts[self->n] = self->text.size;
    if (!ps_buffer_append(&self->text, word, size) || !ps_buffer_append(&self->text, "", 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %zu words", self->n);
    }
    self->starts[++self->n] = self->text.size;
    self->slots[slot] = (uint32_t)self->n;
    return PSD_OK;
}

static psd_status_t read_words(psd_vocabulary_t *self, ps_lines_t *lines, psd_error_t *err)
{
    for (;;) {
        PSD_AUTO(ps_buffer_done) ps_buffer_t place = {0};
        ps_line_t line = {0};
        psd_status_t rc = ps_lines_next(lines, &line, err);
        const char *word = NULL;
        const char *end = NULL;

        if (rc != PSD_OK || line.text == NULL) {
            return rc;
        }
        word = ps_skip_blanks(line.text);
        for (end = word; !ps_is_behind_word(end); end++) {
        }
        rc = add_word(self, word, (size_t)(end - word), err);
        if (rc != PSD_OK) {
            return ps_lines_place(lines, &place) ? psd_error_wrap(err, rc, "%s", (char *)place.data)
                                                 : rc;
        }
    }
}

psd_status_t psd_vocabulary_read(const char *path, psd_vocabulary_t **ret_vocabulary,
                                 psd_error_t *err)
{
    psd_error_clear(err);

    PSD_AUTO(psd_vocabulary_destroy) psd_vocabulary_t *self = NULL;
    PSD_AUTO(ps_lines_done) ps_lines_t lines = {0};
    psd_status_t rc = ps_lines_open(&lines, path, (ps_share_t){0, 1}, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self = ps_alloc(1, sizeof *self);
    if (self == NULL || !grow(self)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the words of %s", path);
    }
    rc = read_words(self, &lines, err);
    if (rc == PSD_OK && self->n == 0) {
        rc = psd_error_set(err, PSD_INVALID, "%s has no word", path);
    }
    if (rc == PSD_OK) {
        *ret_vocabulary = self;
        self = NULL;
    }
    return rc;
}
