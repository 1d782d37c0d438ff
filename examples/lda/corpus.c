/* SPDX-License-Identifier: Apache-2.0 */
/* Documents from files. */
#include "corpus.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/random.h"
#include "psd_data.h"

#define BATCH 1000
#define ID_MOST (UINT64_C(1) << 27)
#define COUNT_MOST 16777216.0 /* a float distinguishes all integers up to it */

/* One document of a batch. */
typedef struct document {
    uint64_t number; /* in the file, from 0 */
    size_t n;        /* words */
    const uint64_t *ids;
    const float *counts;
} document_t;

typedef psd_status_t visit_t(void *user, const document_t *document, psd_error_t *err);

static psd_status_t open_reader(const char *path, const lda_options_t *options,
                                psd_reader_t **ret_reader, psd_error_t *err)
{
    psd_reader_options_t *how = psd_reader_options_new();
    psd_status_t rc = PSD_OK;

    if (how == NULL) {
        return psd_error_set(err, PSD_NOMEM, "read %s", path);
    }
    psd_reader_options_set_strict(how, true);
    psd_reader_options_set_merge(how, true);
    psd_reader_options_set_constant(how, false); /* it is not a word */
    if (options->format != NULL) {
        rc = psd_reader_options_set_format(how, options->format, err);
    }
    if (rc == PSD_OK) {
        rc = psd_reader_open(&path, 1, how, ret_reader, err);
    }
    psd_reader_options_destroy(&how);
    return rc;
}

static psd_status_t check(const document_t *document, psd_error_t *err)
{
    for (size_t i = 0; i < document->n; i++) {
        double count = (double)document->counts[i];

        if (document->ids[i] > ID_MOST) {
            return psd_error_set(err, PSD_INVALID,
                                 "document %" PRIu64 ": word %" PRIu64 " is beyond %" PRIu64
                                 "; words are numbered from 0 by a vocabulary, "
                                 "as \"pscli data convert --vocabulary FILE "
                                 "--to lda-c\" does",
                                 document->number + 1, document->ids[i], ID_MOST);
        }
        if (!(count >= 0 && count <= COUNT_MOST) || floor(count) < count) {
            return psd_error_set(err, PSD_INVALID,
                                 "document %" PRIu64 ": word %" PRIu64
                                 ": %g is not a whole number from 0 to %.0f",
                                 document->number + 1, document->ids[i], count, COUNT_MOST);
        }
    }
    return PSD_OK;
}

static psd_status_t visit_batch(const psd_samples_t *batch, uint64_t *number, visit_t *visit,
                                void *user, psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(batch);
    const size_t *starts = psd_samples_starts(batch);
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < psd_samples_count(batch); i++) {
        size_t first = starts[groups[i]];
        document_t document = {.number = (*number)++,
                               .n = starts[groups[i + 1]] - first,
                               .ids = psd_samples_keys(batch) + first,
                               .counts = psd_samples_values(batch) + first};

        rc = check(&document, err);
        if (rc == PSD_OK) {
            rc = visit(user, &document, err);
        }
    }
    return rc;
}

static psd_status_t visit_all(const char *path, const lda_options_t *options, visit_t *visit,
                              void *user, psd_error_t *err)
{
    psd_samples_t *batch = psd_samples_new();
    psd_reader_t *reader = NULL;
    uint64_t number = 0;
    psd_status_t rc = batch == NULL ? psd_error_set(err, PSD_NOMEM, "a batch of documents")
                                    : open_reader(path, options, &reader, err);

    if (rc == PSD_OK) {
        do {
            rc = psd_reader_next(reader, BATCH, batch, err);
            if (rc == PSD_OK) {
                rc = visit_batch(batch, &number, visit, user, err);
                rc = rc == PSD_OK ? rc : psd_error_wrap(err, rc, "%s", path);
            }
        } while (rc == PSD_OK && psd_samples_count(batch) > 0);
    }
    psd_reader_close(&reader);
    psd_samples_destroy(&batch);
    return rc;
}

/* Whether a document is held out, and its number among the held-out or the
 * learnt ones. */
static bool is_held(uint64_t number, uint32_t every, uint64_t *ret_rank)
{
    if (every == 0) {
        *ret_rank = number;
        return false;
    }
    if (number % every == every - 1) {
        *ret_rank = number / every;
        return true;
    }
    *ret_rank = number - number / every;
    return false;
}

/* ---- all documents ------------------------------------------------------- */

typedef struct scan {
    lda_corpus_t *corpus;
    uint32_t test_every;
    size_t room; /* frequencies, by id */
    uint64_t lowest, highest;
} scan_t;

static psd_status_t grow(scan_t *self, uint64_t id, psd_error_t *err)
{
    size_t room = self->room == 0 ? 65536 : self->room;
    uint32_t *more = NULL;

    while (room <= id) {
        room *= 2;
    }
    if (room == self->room) {
        return PSD_OK;
    }
    more = realloc(self->corpus->frequencies, room * sizeof *more);
    if (more == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu words", room);
    }
    memset(more + self->room, 0, (room - self->room) * sizeof *more);
    self->corpus->frequencies = more;
    self->room = room;
    return PSD_OK;
}

static psd_status_t scan_word(scan_t *self, uint64_t id, uint32_t count, bool held,
                              psd_error_t *err)
{
    lda_corpus_t *corpus = self->corpus;
    psd_status_t rc = grow(self, id, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->lowest = id < self->lowest ? id : self->lowest;
    self->highest = id > self->highest ? id : self->highest;
    if (!held) {
        corpus->frequencies[id] += count;
        corpus->n_tokens += count;
        if (corpus->frequencies[id] > INT32_MAX) {
            return psd_error_set(
                err, PSD_LIMIT, "word %" PRIu64 " has more than %" PRId32 " tokens", id, INT32_MAX);
        }
    }
    return PSD_OK;
}

static psd_status_t scan_document(void *user, const document_t *document, psd_error_t *err)
{
    scan_t *self = user;
    uint64_t rank = 0;
    bool held = is_held(document->number, self->test_every, &rank);
    psd_status_t rc = PSD_OK;

    self->corpus->n_documents += held ? 0 : 1;
    for (size_t i = 0; rc == PSD_OK && i < document->n; i++) {
        uint32_t count = (uint32_t)document->counts[i];

        if (count > 0) {
            rc = scan_word(self, document->ids[i], count, held, err);
        }
    }
    return rc;
}

psd_status_t lda_corpus_scan(lda_corpus_t *self, const lda_options_t *options, psd_error_t *err)
{
    scan_t scan = {.corpus = self, .test_every = options->test_every, .lowest = UINT64_MAX};
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof *self);
    rc = visit_all(options->train, options, scan_document, &scan, err);
    if (rc == PSD_OK && self->n_tokens == 0) {
        rc = psd_error_set(err, PSD_INVALID, "%s: no token to train", options->train);
    }
    if (rc != PSD_OK) {
        lda_corpus_done(self);
        return rc;
    }
    self->first_id = scan.lowest;
    self->n_words = (uint32_t)(scan.highest - scan.lowest + 1);
    memmove(self->frequencies, self->frequencies + scan.lowest,
            self->n_words * sizeof *self->frequencies);
    return PSD_OK;
}

void lda_corpus_done(lda_corpus_t *self)
{
    free(self->frequencies);
    memset(self, 0, sizeof *self);
}

/* ---- blocks -------------------------------------------------------------- */

typedef struct fill {
    lda_block_t *block;
    const lda_held_t *held; /* or else, documents that are learnt */
    const lda_warm_t *warm;
    const lda_block_key_t *key;
    uint64_t seed;
} fill_t;

static void draw_topics(const fill_t *self, uint64_t rank)
{
    const lda_block_t *block = self->block;
    const lda_slice_t *warm = self->warm == NULL ? NULL : self->warm->slice;
    uint64_t random = self->seed ^ (rank * UINT64_C(0xd1342543de82ef95));

    for (size_t i = block->starts[block->n_documents - 1]; i < block->n_tokens; i++) {
        uint64_t id = self->key->first_id + block->words[i];

        if (warm != NULL && id >= self->warm->first_id && id - self->warm->first_id < warm->n) {
            block->topics[i] = lda_row_draw(warm, &warm->rows[id - self->warm->first_id], &random);
        } else {
            block->topics[i] = (uint32_t)(((ex_random(&random) >> 32) * self->key->n_topics) >> 32);
        }
    }
}

/* The document's words, as numbers from first_id. */
static psd_status_t add_words(fill_t *self, const document_t *document, psd_error_t *err)
{
    uint64_t first_id = self->held != NULL ? self->held->first_id : self->key->first_id;
    uint32_t n_words = self->held != NULL ? self->held->n_words : self->key->n_words;
    psd_status_t rc = lda_block_add_document(self->block, err);

    for (size_t i = 0; rc == PSD_OK && i < document->n; i++) {
        uint64_t id = document->ids[i];

        if (id >= first_id && id - first_id < n_words) {
            rc = lda_block_add_word(self->block, (uint32_t)(id - first_id),
                                    (uint32_t)document->counts[i], err);
        }
    }
    return rc;
}

static psd_status_t fill_learnt(void *user, const document_t *document, psd_error_t *err)
{
    fill_t *self = user;
    uint64_t rank = 0;
    psd_status_t rc = PSD_OK;

    if (is_held(document->number, self->key->test_every, &rank) ||
        rank % self->key->n_blocks != self->key->block) {
        return PSD_OK;
    }
    rc = add_words(self, document, err);
    if (rc == PSD_OK) {
        lda_block_sort_last(self->block);
        draw_topics(self, rank);
    }
    return rc;
}

static psd_status_t fill_held(void *user, const document_t *document, psd_error_t *err)
{
    fill_t *self = user;
    const lda_held_t *held = self->held;
    uint64_t rank = 0;
    bool is = is_held(document->number, held->test_every, &rank);

    return (held->test_every > 0 && !is) || rank % held->n_parts != held->part
               ? PSD_OK
               : add_words(self, document, err);
}

psd_status_t lda_corpus_block(const lda_options_t *options, const lda_block_key_t *key,
                              const lda_warm_t *warm, lda_block_t *ret_block, psd_error_t *err)
{
    fill_t fill = {.block = ret_block, .warm = warm, .key = key, .seed = options->seed};
    psd_status_t rc = PSD_OK;

    memset(ret_block, 0, sizeof *ret_block);
    rc = visit_all(options->train, options, fill_learnt, &fill, err);
    if (rc != PSD_OK) {
        lda_block_done(ret_block);
    }
    return rc;
}

psd_status_t lda_corpus_held(const lda_options_t *options, const lda_held_t *held,
                             lda_block_t *ret_block, psd_error_t *err)
{
    fill_t fill = {.block = ret_block, .held = held};
    psd_status_t rc = PSD_OK;

    memset(ret_block, 0, sizeof *ret_block);
    rc = visit_all(held->path, options, fill_held, &fill, err);
    if (rc != PSD_OK) {
        lda_block_done(ret_block);
    }
    return rc;
}
