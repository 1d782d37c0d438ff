/* SPDX-License-Identifier: Apache-2.0 */
/* Two queues: leaves by rising count, and inner nodes, which appear in that order. */
#include "tree.h"

#include <stdlib.h>

typedef struct node {
    uint64_t count;
    uint32_t parent; /* an inner node */
    uint8_t bit;
} node_t;

/* Leaves are 0 .. n - 1, inner nodes follow. */
typedef struct forest {
    node_t *nodes;
    uint32_t n;          /* leaves */
    uint32_t *by_count;  /* leaves by rising count */
    uint32_t next_leaf;  /* of by_count */
    uint32_t next_inner; /* from n on */
    uint32_t end;        /* of the inner nodes that there are */
} forest_t;

static uint32_t take_least(forest_t *self)
{
    bool has_leaf = self->next_leaf < self->n;
    bool has_inner = self->next_inner < self->end;

    if (has_leaf && (!has_inner || self->nodes[self->by_count[self->next_leaf]].count <
                                       self->nodes[self->next_inner].count)) {
        return self->by_count[self->next_leaf++];
    }
    return self->next_inner++;
}

static void join_all(forest_t *self)
{
    for (uint32_t i = 0; i + 1 < self->n; i++) {
        uint32_t parent = self->end;
        uint32_t left = take_least(self);
        uint32_t right = take_least(self);

        self->nodes[left].parent = parent;
        self->nodes[right].parent = parent;
        self->nodes[right].bit = 1;
        self->nodes[parent] = (node_t){.count = self->nodes[left].count + self->nodes[right].count};
        self->end++;
    }
}

/* From the leaf up, then turned round. false: it is too long. */
static bool read_code(const forest_t *self, uint32_t word, wv_code_t *code)
{
    uint32_t root = 2 * self->n - 2;
    uint32_t n = 0;
    uint32_t at = word;

    for (uint32_t up = word; up != root; up = self->nodes[up].parent) {
        n++;
    }
    if (n > WV_CODE_MAX) {
        return false;
    }
    code->n = (uint8_t)n;
    for (uint32_t i = n; i > 0; i--) {
        code->bits[i - 1] = self->nodes[at].bit;
        at = self->nodes[at].parent;
        code->nodes[i - 1] = at - self->n;
    }
    return true;
}

psd_status_t wv_tree_make(wv_tree_t *self, const wv_vocabulary_t *vocabulary, psd_error_t *err)
{
    uint32_t n = vocabulary->n;
    forest_t forest = {.n = n, .next_inner = n, .end = n};
    psd_status_t rc = PSD_OK;
    uint32_t at = n;

    self->codes = calloc(n, sizeof *self->codes);
    forest.nodes = calloc((size_t)2 * n, sizeof *forest.nodes);
    forest.by_count = calloc(n, sizeof *forest.by_count);
    if (self->codes == NULL || forest.nodes == NULL || forest.by_count == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for a tree of words");
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        forest.nodes[i].count = vocabulary->words[i].count;
    }
    /* All words except the end of a line, which is first, are in order of falling count. */
    for (uint32_t i = n - 1; rc == PSD_OK && i > 0; i--) {
        if (at == n && vocabulary->words[i].count >= vocabulary->words[WV_END].count) {
            at = n - 1 - i;
            forest.by_count[at] = WV_END;
        }
        forest.by_count[n - 1 - i + (at < n ? 1 : 0)] = i;
    }
    if (rc == PSD_OK) {
        if (at == n) {
            forest.by_count[n - 1] = WV_END;
        }
        join_all(&forest);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < n; i++) {
        if (!read_code(&forest, i, &self->codes[i])) {
            rc = psd_error_set(err, PSD_LIMIT, "the code of \"%s\" is longer than %d bits",
                               vocabulary->words[i].text, WV_CODE_MAX);
        }
    }
    free(forest.nodes);
    free(forest.by_count);
    if (rc != PSD_OK) {
        wv_tree_done(self);
    }
    return rc;
}

void wv_tree_done(wv_tree_t *self)
{
    free(self->codes);
    self->codes = NULL;
}
