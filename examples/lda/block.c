/* SPDX-License-Identifier: Apache-2.0 */
/* Documents in memory and in files. */
#include "block.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC UINT64_C(0x316b6c4261647370) /* "psdaBlk1" */
#define FIRST_ROOM 1024

void lda_block_done(lda_block_t *self)
{
    free(self->starts);
    free(self->words);
    free(self->topics);
    memset(self, 0, sizeof *self);
}

static bool grow_documents(lda_block_t *self, size_t room)
{
    size_t *starts = realloc(self->starts, (room + 1) * sizeof *starts);

    if (starts == NULL) {
        return false;
    }
    self->starts = starts;
    self->documents_room = room;
    return true;
}

static bool grow_tokens(lda_block_t *self, size_t room)
{
    uint32_t *words = realloc(self->words, room * sizeof *words);
    uint32_t *topics = NULL;

    if (words != NULL) {
        self->words = words;
        topics = realloc(self->topics, room * sizeof *topics);
    }
    if (topics == NULL) {
        return false;
    }
    self->topics = topics;
    self->tokens_room = room;
    return true;
}

/* At least n, with half as much again so that growing is rare. */
static size_t next_room(size_t room, size_t n)
{
    size_t next = room == 0 ? FIRST_ROOM : room + room / 2;

    return next < n ? n : next;
}

psd_status_t lda_block_add_document(lda_block_t *self, psd_error_t *err)
{
    if ((self->starts == NULL || self->n_documents == self->documents_room) &&
        !grow_documents(self, next_room(self->documents_room, 1))) {
        return psd_error_set(err, PSD_NOMEM, "%zu documents", self->n_documents + 1);
    }
    self->starts[self->n_documents++] = self->n_tokens;
    self->starts[self->n_documents] = self->n_tokens;
    return PSD_OK;
}

psd_status_t lda_block_add_word(lda_block_t *self, uint32_t word, uint32_t n, psd_error_t *err)
{
    size_t end = self->n_tokens + n;

    if (end > self->tokens_room && !grow_tokens(self, next_room(self->tokens_room, end))) {
        return psd_error_set(err, PSD_NOMEM, "%zu tokens", end);
    }
    for (size_t i = self->n_tokens; i < end; i++) {
        self->words[i] = word;
        self->topics[i] = 0;
    }
    self->n_tokens = end;
    self->starts[self->n_documents] = end;
    return PSD_OK;
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

void lda_block_sort_last(lda_block_t *self)
{
    size_t first = self->starts[self->n_documents - 1];

    if (self->n_tokens > first) {
        qsort(self->words + first, self->n_tokens - first, sizeof *self->words, compare);
    }
}

/* ---- files --------------------------------------------------------------- */

/* The head of a file, in the byte order of the machine: its magic number
 * shows another order. */
typedef struct head {
    uint64_t magic;
    uint64_t block, n_blocks;
    uint64_t n_topics, n_words, first_id, test_every;
    uint64_t n_documents, n_tokens, sweeps;
    uint64_t sum; /* of the lists that follow */
} head_t;

static head_t head_of(const lda_block_key_t *key)
{
    return (head_t){.magic = MAGIC,
                    .block = key->block,
                    .n_blocks = key->n_blocks,
                    .n_topics = key->n_topics,
                    .n_words = key->n_words,
                    .first_id = key->first_id,
                    .test_every = key->test_every};
}

static uint64_t sum_of(const lda_block_t *self)
{
    uint64_t sum = self->n_tokens;

    for (size_t d = 0; d < self->n_documents; d++) {
        sum = (sum ^ self->starts[d + 1]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    for (size_t i = 0; i < self->n_tokens; i++) {
        uint64_t token = (uint64_t)self->words[i] << 32 | self->topics[i];

        sum = (sum ^ token) * UINT64_C(0x9e3779b97f4a7c15);
        sum ^= sum >> 29;
    }
    return sum;
}

static psd_status_t io_failed(const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
}

static bool write_lists(const lda_block_t *self, const head_t *head, FILE *file)
{
    const size_t none = 0;
    const size_t *starts = self->n_documents > 0 ? self->starts : &none;
    size_t n = self->n_tokens;

    return fwrite(head, sizeof *head, 1, file) == 1 &&
           fwrite(starts, sizeof *starts, self->n_documents + 1, file) == self->n_documents + 1 &&
           (n == 0 || (fwrite(self->words, sizeof *self->words, n, file) == n &&
                       fwrite(self->topics, sizeof *self->topics, n, file) == n));
}

static psd_status_t name(char ret_path[PATH_MAX], const char *dir, const lda_block_key_t *key,
                         const char *end, psd_error_t *err)
{
    int n = snprintf(ret_path, PATH_MAX, "%s/block-%" PRIu32 "-of-%" PRIu32 "%s", dir, key->block,
                     key->n_blocks, end);

    return n < PATH_MAX ? PSD_OK : psd_error_set(err, PSD_INVALID, "%s: name too long", dir);
}

/* A rename lasts only when the directory is flushed too. */
static bool flush_directory(const char *dir)
{
    FILE *file = fopen(dir, "re");
    bool good = file != NULL && fsync(fileno(file)) == 0;

    if (file != NULL) {
        good = fclose(file) == 0 && good;
    }
    return good;
}

psd_status_t lda_block_save(const lda_block_t *self, const char *dir, const lda_block_key_t *key,
                            psd_error_t *err)
{
    char path[PATH_MAX];
    char beside[PATH_MAX];
    head_t head = head_of(key);
    FILE *file = NULL;
    bool good = false;
    psd_status_t rc = name(path, dir, key, "", err);

    if (rc == PSD_OK) {
        rc = name(beside, dir, key, ".tmp", err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    head.n_documents = self->n_documents;
    head.n_tokens = self->n_tokens;
    head.sweeps = self->sweeps;
    head.sum = sum_of(self);
    file = fopen(beside, "we");
    if (file == NULL) {
        return io_failed(beside, err);
    }
    good = write_lists(self, &head, file) && fflush(file) == 0 && fsync(fileno(file)) == 0;
    if (fclose(file) != 0 || !good || rename(beside, path) != 0 || !flush_directory(dir)) {
        rc = io_failed(path, err);
        (void)unlink(beside);
    }
    return rc;
}

static psd_status_t damaged(const char *path, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_DAMAGED, "%s: %s", path, what);
}

/* Compares the sizes in the head with the file's size before it allocates
 * anything. */
static psd_status_t check_head(const head_t *head, const lda_block_key_t *key, uint64_t size,
                               const char *path, psd_error_t *err)
{
    const head_t want = head_of(key);
    uint64_t most = size / sizeof(uint64_t);

    if (head->magic != want.magic) {
        return damaged(path, "not a block of psd-lda", err);
    }
    if (memcmp(head, &want, offsetof(head_t, n_documents)) != 0) {
        return psd_error_set(
            err, PSD_INVALID,
            "%s: of %" PRIu64 " blocks, %" PRIu64 " topics, %" PRIu64 " words from id %" PRIu64
            ", test-every %" PRIu64 "; these are %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
            ", %" PRIu64,
            path, head->n_blocks, head->n_topics, head->n_words, head->first_id, head->test_every,
            want.n_blocks, want.n_topics, want.n_words, want.first_id, want.test_every);
    }
    if (head->n_documents > most || head->n_tokens > most ||
        size != sizeof *head + 8 * (head->n_documents + 1) + 8 * head->n_tokens) {
        return damaged(path, "its size does not match its header", err);
    }
    return PSD_OK;
}

static psd_status_t check_lists(const lda_block_t *self, const lda_block_key_t *key,
                                const char *path, psd_error_t *err)
{
    if (self->starts[0] != 0 || self->starts[self->n_documents] != self->n_tokens) {
        return damaged(path, "its documents are not its tokens", err);
    }
    for (size_t d = 0; d < self->n_documents; d++) {
        if (self->starts[d + 1] < self->starts[d] || self->starts[d + 1] > self->n_tokens) {
            return damaged(path, "a document ends before it begins", err);
        }
        for (size_t i = self->starts[d]; i < self->starts[d + 1]; i++) {
            if (self->words[i] >= key->n_words || self->topics[i] >= key->n_topics ||
                (i > self->starts[d] && self->words[i] < self->words[i - 1])) {
                return damaged(path, "a token is out of range", err);
            }
        }
    }
    return PSD_OK;
}

static psd_status_t read_lists(lda_block_t *self, const head_t *head, FILE *file, const char *path,
                               psd_error_t *err)
{
    size_t n = (size_t)head->n_tokens;
    size_t n_starts = (size_t)head->n_documents + 1;

    if (!grow_documents(self, n_starts) || !grow_tokens(self, n + 1)) {
        return psd_error_set(err, PSD_NOMEM, "%s: %zu tokens", path, n);
    }
    if (fread(self->starts, sizeof *self->starts, n_starts, file) != n_starts ||
        fread(self->words, sizeof *self->words, n, file) != n ||
        fread(self->topics, sizeof *self->topics, n, file) != n) {
        return damaged(path, "it is shorter than before", err);
    }
    self->n_documents = n_starts - 1;
    self->n_tokens = n;
    self->sweeps = head->sweeps;
    return PSD_OK;
}

static psd_status_t read_file(lda_block_t *self, FILE *file, const char *path,
                              const lda_block_key_t *key, psd_error_t *err)
{
    head_t head;
    long size = -1;
    psd_status_t rc = PSD_OK;

    if (fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (size < 0 || fseek(file, 0, SEEK_SET) != 0) {
        return io_failed(path, err);
    }
    if (fread(&head, sizeof head, 1, file) != 1) {
        return damaged(path, "not a block of psd-lda", err);
    }
    rc = check_head(&head, key, (uint64_t)size, path, err);
    if (rc == PSD_OK) {
        rc = read_lists(self, &head, file, path, err);
    }
    if (rc == PSD_OK) {
        rc = check_lists(self, key, path, err);
    }
    if (rc == PSD_OK && sum_of(self) != head.sum) {
        rc = damaged(path, "its checksum does not match", err);
    }
    return rc;
}

psd_status_t lda_block_load(lda_block_t *ret_block, const char *dir, const lda_block_key_t *key,
                            psd_error_t *err)
{
    lda_block_t block = {0};
    char path[PATH_MAX];
    FILE *file = NULL;
    psd_status_t rc = name(path, dir, key, "", err);

    if (rc != PSD_OK) {
        return rc;
    }
    file = fopen(path, "re");
    if (file == NULL) {
        return errno == ENOENT ? psd_error_set(err, PSD_RANGE, "%s: not there", path)
                               : io_failed(path, err);
    }
    rc = read_file(&block, file, path, key, err);
    (void)fclose(file);
    if (rc != PSD_OK) {
        lda_block_done(&block);
        return rc;
    }
    *ret_block = block;
    return PSD_OK;
}
