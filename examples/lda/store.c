/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of a worker. */
#include "store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static lda_block_key_t key_of(const lda_store_t *self, uint32_t at)
{
    lda_block_key_t key = self->key;

    key.block = self->worker + at * self->n_workers;
    return key;
}

static psd_status_t io_failed(const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
}

/* Two processes that write the same blocks would count each other's tokens. */
static psd_status_t lock(lda_store_t *self, psd_error_t *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/worker-%" PRIu32 ".lock", self->dir, self->worker);

    if (n >= (int)sizeof path) {
        return psd_error_set(err, PSD_INVALID, "%s: name too long", self->dir);
    }
    if (mkdir(self->dir, 0777) != 0 && errno != EEXIST) {
        return io_failed(self->dir, err);
    }
    self->lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0666);
    if (self->lock < 0) {
        return io_failed(path, err);
    }
    if (flock(self->lock, LOCK_EX | LOCK_NB) != 0) {
        return errno == EWOULDBLOCK
                   ? psd_error_set(err, PSD_FAILED, "%s: another process uses it", path)
                   : io_failed(path, err);
    }
    return PSD_OK;
}

/* Blocks of another division would start again beside these. */
static psd_status_t check_division(const lda_store_t *self, psd_error_t *err)
{
    DIR *dir = opendir(self->dir);
    const struct dirent *entry = NULL;
    char ours[16];
    char other[NAME_MAX + 1] = "";
    bool has_ours = false;

    if (dir == NULL) {
        return io_failed(self->dir, err);
    }
    (void)snprintf(ours, sizeof ours, "%" PRIu32, self->key.n_blocks);
    while ((entry = readdir(dir)) != NULL) {
        const char *of = strstr(entry->d_name, "-of-");

        if (of == NULL || strncmp(entry->d_name, "block-", 6) != 0 ||
            strspn(of + 4, "0123456789") != strlen(of + 4)) {
            continue;
        }
        if (strcmp(of + 4, ours) == 0) {
            has_ours = true;
        } else {
            (void)snprintf(other, sizeof other, "%s", of + 4);
        }
    }
    (void)closedir(dir); /* it was only read */
    if (has_ours || other[0] == '\0') {
        return PSD_OK;
    }
    return psd_error_set(
        err, PSD_INVALID,
        "%s is of a training in %s blocks, this one has %s; use --blocks %s, or another directory",
        self->dir, other, ours, other);
}

/* Makes a block, or reads it to see that it is sound. */
static psd_status_t prepare(lda_store_t *self, uint32_t at, const lda_store_args_t *args,
                            psd_error_t *err)
{
    lda_block_key_t key = key_of(self, at);
    lda_block_t *block = &self->blocks[at];
    psd_status_t rc = PSD_RANGE;

    if (self->dir != NULL) {
        rc = lda_block_load(block, self->dir, &key, err);
    }
    if (rc == PSD_RANGE) { /* there is none */
        psd_error_clear(err);
        rc = lda_corpus_block(args->options, &key, args->warm, block, err);
        if (rc == PSD_OK && self->dir != NULL) {
            rc = lda_block_save(block, self->dir, &key, err);
        }
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->sweeps[at] = block->sweeps;
    self->n_tokens += block->n_tokens;
    if (self->dir != NULL) {
        lda_block_done(block);
    }
    return PSD_OK;
}

psd_status_t lda_store_init(lda_store_t *self, const lda_store_args_t *args, psd_error_t *err)
{
    const lda_options_t *options = args->options;
    uint32_t n_blocks = options->blocks;
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof *self);
    n_blocks = n_blocks < args->n_workers ? args->n_workers : n_blocks;
    self->dir = options->state;
    self->lock = -1;
    self->worker = args->worker;
    self->n_workers = args->n_workers;
    self->key = (lda_block_key_t){.n_blocks = n_blocks,
                                  .n_topics = options->n_topics,
                                  .n_words = args->corpus->n_words,
                                  .test_every = options->test_every,
                                  .first_id = args->corpus->first_id};
    self->n = (n_blocks - args->worker + args->n_workers - 1) / args->n_workers;
    self->in_memory = self->n;
    self->blocks = calloc(self->n, sizeof *self->blocks);
    self->sweeps = calloc(self->n, sizeof *self->sweeps);
    self->reading.err = psd_error_new();
    if (self->blocks == NULL || self->sweeps == NULL || self->reading.err == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%" PRIu32 " blocks", self->n);
    }
    if (self->dir != NULL) {
        rc = lock(self, err);
    }
    if (rc == PSD_OK && self->dir != NULL) {
        rc = check_division(self, err);
    }
    for (uint32_t at = 0; rc == PSD_OK && at < self->n; at++) {
        rc = prepare(self, at, args, err);
    }
    return rc;
}

static void end_reading(lda_store_t *self)
{
    if (self->reading.runs) {
        (void)pthread_join(self->reading.thread, NULL);
        self->reading.runs = false;
    }
}

void lda_store_done(lda_store_t *self)
{
    end_reading(self);
    lda_block_done(&self->reading.block);
    psd_error_destroy(&self->reading.err);
    for (uint32_t at = 0; self->blocks != NULL && at < self->n; at++) {
        lda_block_done(&self->blocks[at]);
    }
    free(self->blocks);
    free(self->sweeps);
    if (self->lock >= 0) {
        (void)close(self->lock);
    }
    memset(self, 0, sizeof *self);
    self->lock = -1;
}

static void *read_block(void *arg)
{
    lda_reading_t *self = arg;

    self->rc = lda_block_load(&self->block, self->dir, &self->key, self->err);
    return NULL;
}

/* Starts reading the next block, so that it is ready when it is taken.
 * Without a thread it is read then. */
static void read_ahead(lda_store_t *self, uint32_t at)
{
    lda_reading_t *reading = &self->reading;

    reading->at = at;
    reading->dir = self->dir;
    reading->key = key_of(self, at);
    psd_error_clear(reading->err);
    reading->runs = pthread_create(&reading->thread, NULL, read_block, reading) == 0;
}

static psd_status_t bring(lda_store_t *self, uint32_t at, psd_error_t *err)
{
    lda_reading_t *reading = &self->reading;
    lda_block_key_t key = key_of(self, at);
    bool was_read = reading->runs && reading->at == at;

    end_reading(self);
    if (!was_read) {
        lda_block_done(&reading->block);
        return lda_block_load(&self->blocks[at], self->dir, &key, err);
    }
    if (reading->rc != PSD_OK) {
        return psd_error_set(err, reading->rc, "%s", psd_error_text(reading->err));
    }
    self->blocks[at] = reading->block;
    memset(&reading->block, 0, sizeof reading->block);
    return PSD_OK;
}

psd_status_t lda_store_take(lda_store_t *self, uint32_t at, lda_block_t **ret_block,
                            psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret_block = &self->blocks[at];
    if (self->dir == NULL || self->in_memory == at) {
        return PSD_OK;
    }
    if (self->in_memory < self->n) {
        lda_block_done(&self->blocks[self->in_memory]);
        self->in_memory = self->n;
    }
    rc = bring(self, at, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->in_memory = at;
    if (self->n > 1) {
        read_ahead(self, (at + 1) % self->n);
    }
    return PSD_OK;
}

psd_status_t lda_store_put(lda_store_t *self, uint32_t at, psd_error_t *err)
{
    lda_block_key_t key = key_of(self, at);

    self->sweeps[at]++;
    self->blocks[at].sweeps = self->sweeps[at];
    return self->dir == NULL ? PSD_OK : lda_block_save(&self->blocks[at], self->dir, &key, err);
}
