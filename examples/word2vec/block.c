/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of words. */
#include "block.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SENTENCE_MAX 1000
/* Blocks of each of several workers in an epoch: at least this many, and more
 * where that leaves each of them MANY_WORDS. */
#define BLOCKS_LEAST 40
#define BLOCKS_MANY 400
#define MANY_WORDS 1000

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for a block of words");
}

/* ---- reading ---- */

uint32_t wv_block_words(const wv_task_t *task, uint32_t n_workers)
{
    const wv_options_t *options = task->options;
    double kept = 0;
    double part = 0;
    double most = 0;

    for (uint32_t i = 0; i < task->vocabulary.n; i++) {
        kept += wv_draws_kept(&task->draws, &task->vocabulary, i);
    }
    part = kept / n_workers;
    most = fmax(fmin(MANY_WORDS, part / BLOCKS_LEAST), part / BLOCKS_MANY);
    most = fmax(WV_BLOCK_LEAST, most);
    return n_workers * options->trainers > 1 && options->block > most ? (uint32_t)most
                                                                      : options->block;
}

void wv_feed_init(wv_feed_t *self, const wv_task_t *task, uint32_t part, uint32_t n_parts)
{
    *self = (wv_feed_t){.task = task,
                        .part = part,
                        .n_parts = n_parts,
                        .random = task->options->seed * 0x10001 + part};
}

void wv_feed_done(wv_feed_t *self)
{
    if (self->is_open) {
        wv_text_close(&self->text);
    }
    self->is_open = false;
}

static bool add_word(wv_block_t *self, uint32_t word)
{
    if (self->n == self->room) {
        size_t room = self->room == 0 ? 1024 : 2 * self->room;
        uint32_t *words = realloc(self->words, room * sizeof *words);

        if (words == NULL) {
            return false;
        }
        self->words = words;
        self->room = room;
    }
    self->words[self->n++] = word;
    return true;
}

/* Until the block is full, at the end of a sentence, or the text ends. */
static psd_status_t fill(wv_feed_t *self, wv_block_t *block, psd_error_t *err)
{
    const wv_task_t *task = self->task;
    wv_token_t token = WV_WORD;
    size_t in_sentence = 0;

    while (token != WV_TEXT_END) {
        uint32_t word = WV_END;
        bool ends = false;

        token = wv_text_next(&self->text);
        if (token == WV_WORD) {
            word = wv_vocabulary_find(&task->vocabulary, self->text.word);
        }
        if (word == WV_UNKNOWN || token == WV_TEXT_END) {
            continue;
        }
        block->n_read++;
        if (word != WV_END && wv_draws_keeps(&task->draws, word, &self->random)) {
            if (!add_word(block, word)) {
                return no_memory(err);
            }
            in_sentence++;
        }
        ends = word == WV_END || in_sentence == SENTENCE_MAX;
        if (ends && in_sentence > 0) {
            if (!add_word(block, WV_UNKNOWN)) {
                return no_memory(err);
            }
            in_sentence = 0;
        }
        if (ends && block->n >= task->block) {
            break;
        }
    }
    return wv_text_check(&self->text, err);
}

psd_status_t wv_feed_next(wv_feed_t *self, wv_block_t **ret, psd_error_t *err)
{
    wv_block_t *block = NULL;
    psd_status_t rc = PSD_OK;

    *ret = NULL;
    while (rc == PSD_OK && block == NULL &&
           (self->is_open || self->epoch < self->task->options->epochs)) {
        if (!self->is_open) {
            rc = wv_text_open(&self->text, self->task->options->train, self->part, self->n_parts,
                              err);
            if (rc != PSD_OK) {
                return rc;
            }
            self->is_open = true;
            self->epoch++;
        }
        block = calloc(1, sizeof *block);
        if (block == NULL) {
            return no_memory(err);
        }
        block->task = self->task;
        block->epoch = self->epoch;
        block->seed = wv_random(&self->random);
        block->n_before = self->n_read;
        rc = fill(self, block, err);
        if (rc != PSD_OK || block->n_read == 0) {
            wv_block_free(block);
            block = NULL;
            wv_feed_done(self);
        } else {
            self->n_read += block->n_read;
        }
    }
    *ret = block;
    return rc;
}

/* ---- slots ---- */

static bool rows_init(wv_rows_t *self, uint32_t n_slots, size_t room)
{
    room = room < n_slots ? room : n_slots;
    *self = (wv_rows_t){.rows = malloc((room + 1) * sizeof *self->rows),
                        .met = calloc(room + 1, sizeof *self->met),
                        .room = room,
                        .slot_of = malloc(n_slots * sizeof *self->slot_of),
                        .n_slots = n_slots};
    if (self->rows == NULL || self->met == NULL || self->slot_of == NULL) {
        return false;
    }
    memset(self->slot_of, 0xFF, n_slots * sizeof *self->slot_of);
    return true;
}

static void rows_done(wv_rows_t *self)
{
    free(self->rows);
    free(self->met);
    free(self->slot_of);
}

static uint32_t slot_of(wv_rows_t *self, uint32_t row)
{
    if (self->slot_of[row] == WV_UNKNOWN) {
        self->rows[self->n] = row;
        self->slot_of[row] = (uint32_t)self->n++;
    }
    return self->slot_of[row];
}

static uint32_t meet(wv_rows_t *self, uint32_t row, float n)
{
    uint32_t slot = slot_of(self, row);

    self->met[slot] += n;
    return slot;
}

/* Of its first sense; those of the others follow. */
static uint32_t meet_senses(wv_block_t *self, uint32_t word)
{
    const wv_senses_t *senses = &self->task->senses;
    size_t n_before = self->in.n;
    uint32_t slot = meet(&self->in, word, 1);

    if (self->in.n > n_before && wv_senses_of(senses, word) > 1) {
        self->several[self->n_several++] = word;
    }
    for (uint32_t i = 1; i < wv_senses_of(senses, word); i++) {
        (void)meet(&self->in, wv_senses_row(senses, word, i), 1);
    }
    return slot;
}

static void take_word(wv_block_t *self, size_t at, uint64_t *random)
{
    const wv_task_t *task = self->task;
    uint32_t word = self->words[at];

    if (word == WV_UNKNOWN) {
        self->targets[at] = WV_UNKNOWN;
        return;
    }
    self->words[at] = meet_senses(self, word);
    if (task->options->negative > 0) {
        self->targets[at] = meet(&self->out, word, 1);
        self->pool[self->n_pool++] = meet(&self->out, wv_draws_negative(&task->draws, random),
                                          (float)task->options->negative);
    }
    if (task->options->hs) {
        const wv_code_t *code = &task->tree.codes[word];

        for (uint32_t i = 0; i < code->n; i++) {
            (void)meet(&self->nodes, code->nodes[i], 1);
        }
    }
}

psd_status_t wv_block_prepare(wv_block_t *self, psd_error_t *err)
{
    const wv_options_t *options = self->task->options;
    const wv_senses_t *senses = &self->task->senses;
    uint32_t n_words = self->task->vocabulary.n;
    uint64_t random = self->seed;

    self->targets = calloc(self->n + 1, sizeof *self->targets);
    self->pool = calloc(self->n + 1, sizeof *self->pool);
    self->several =
        calloc((self->n < senses->last ? self->n : senses->last) + 1, sizeof *self->several);
    if (self->targets == NULL || self->pool == NULL || self->several == NULL ||
        !rows_init(&self->in, wv_senses_rows(senses), self->n * senses->n) ||
        (options->negative > 0 && !rows_init(&self->out, n_words, 2 * self->n)) ||
        (options->hs && !rows_init(&self->nodes, n_words, n_words))) {
        return no_memory(err);
    }
    for (size_t i = 0; i < self->n; i++) {
        take_word(self, i, &random);
    }
    return PSD_OK;
}

void wv_block_free(void *block)
{
    wv_block_t *self = block;

    if (self != NULL) {
        rows_done(&self->in);
        rows_done(&self->out);
        rows_done(&self->nodes);
        free(self->words);
        free(self->targets);
        free(self->pool);
        free(self->several);
        free(self);
    }
}
