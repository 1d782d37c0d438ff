/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a virtual disk, and the part of it that lasts. */
#include "support/sim_disk_state.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

void *sim_disk_grown(void *old, size_t size)
{
    void *block = realloc(old, size);

    assert(block != NULL);
    return block;
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;

    return memcpy(sim_disk_grown(NULL, size), text, size);
}

bool sim_disk_coin(sim_disk_t *self)
{
    return ps_rng_below(&self->rng, 2) == 0;
}

/* ---- names --------------------------------------------------------------- */

sim_disk_name_t *sim_disk_find(const sim_disk_names_t *self, const char *path)
{
    for (size_t i = 0; i < self->n; i++) {
        if (strcmp(self->items[i].path, path) == 0) {
            return &self->items[i];
        }
    }
    return NULL;
}

void sim_disk_unlink(sim_disk_names_t *self, const char *path)
{
    sim_disk_name_t *name = sim_disk_find(self, path);

    if (name != NULL) {
        free(name->path);
        *name = self->items[--self->n];
    }
}

void sim_disk_link(sim_disk_names_t *self, const char *path, sim_disk_node_t *node)
{
    sim_disk_unlink(self, path);
    self->items = sim_disk_grown(self->items, (self->n + 1) * sizeof *self->items);
    self->items[self->n++] = (sim_disk_name_t){copy_text(path), node};
}

void sim_disk_names_clear(sim_disk_names_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        free(self->items[i].path);
    }
    self->n = 0;
}

static void apply_change(sim_disk_names_t *to, const sim_disk_change_t *change)
{
    if (change->from != NULL) {
        sim_disk_unlink(to, change->from);
    }
    if (change->to != NULL) {
        sim_disk_link(to, change->to, change->node);
    }
}

void sim_disk_change(sim_disk_t *self, const char *from, const char *to, sim_disk_node_t *node)
{
    sim_disk_change_t change = {.from = from != NULL ? copy_text(from) : NULL,
                                .to = to != NULL ? copy_text(to) : NULL,
                                .node = node};

    self->changes = sim_disk_grown(self->changes, (self->n_changes + 1) * sizeof change);
    self->changes[self->n_changes++] = change;
    apply_change(&self->now, &change);
}

/* The first n changes last; the others are forgotten. */
void sim_disk_settle_names(sim_disk_t *self, size_t n)
{
    for (size_t i = 0; i < self->n_changes; i++) {
        if (i < n) {
            apply_change(&self->safe, &self->changes[i]);
        }
        free(self->changes[i].from);
        free(self->changes[i].to);
    }
    self->n_changes = 0;
}

/* ---- bytes --------------------------------------------------------------- */

sim_disk_node_t *sim_disk_new_node(sim_disk_t *self)
{
    sim_disk_node_t *node = sim_disk_grown(NULL, sizeof *node);

    memset(node, 0, sizeof *node);
    self->nodes = sim_disk_grown(self->nodes, (self->n_nodes + 1) * sizeof(sim_disk_node_t *));
    self->nodes[self->n_nodes++] = node;
    return node;
}

static void node_reserve(sim_disk_node_t *node, size_t size)
{
    size_t capacity = node->capacity > 0 ? node->capacity : SECTOR;
    size_t old = node->capacity;

    while (capacity < size) {
        capacity *= 2;
    }
    if (capacity == old) {
        return;
    }
    node->now = sim_disk_grown(node->now, capacity);
    node->safe = sim_disk_grown(node->safe, capacity);
    node->dirty = sim_disk_grown(node->dirty, capacity / SECTOR);
    memset(node->now + old, 0, capacity - old);
    memset(node->safe + old, 0, capacity - old);
    memset(node->dirty + old / SECTOR, 0, (capacity - old) / SECTOR);
    node->capacity = capacity;
}

void sim_disk_node_write(sim_disk_node_t *node, uint64_t offset, const uint8_t *bytes, size_t size)
{
    if (size == 0) {
        return;
    }
    node_reserve(node, offset + size);
    memcpy(node->now + offset, bytes, size);
    memset(node->dirty + offset / SECTOR, 1, (offset + size - 1) / SECTOR - offset / SECTOR + 1);
    if (offset + size > node->now_size) {
        node->now_size = offset + size;
    }
}

void sim_disk_node_truncate(sim_disk_node_t *node, uint64_t size)
{
    node_reserve(node, size);
    if (size < node->now_size) {
        memset(node->now + size, 0, node->now_size - size);
    }
    node->now_size = size;
}

static void set_safe_size(sim_disk_node_t *node, size_t size)
{
    if (size < node->safe_size) {
        memset(node->safe + size, 0, node->capacity - size);
    }
    node->safe_size = size;
}

/* Written bytes become safe: all of them, or any part. */
void sim_disk_settle_node(sim_disk_t *self, sim_disk_node_t *node, bool all)
{
    for (size_t i = 0; i < node->capacity / SECTOR; i++) {
        if (node->dirty[i] != 0 && !all && node->spoils) {
            memset(node->safe + i * SECTOR, 0x5a, SECTOR);
        } else if (node->dirty[i] != 0 && (all || sim_disk_coin(self))) {
            memcpy(node->safe + i * SECTOR, node->now + i * SECTOR, SECTOR);
        }
        node->dirty[i] = 0;
    }
    if (all) {
        set_safe_size(node, node->now_size);
    } else if (node->now_size > node->safe_size) {
        node->safe_size += (size_t)ps_rng_below(&self->rng, node->now_size - node->safe_size + 1);
    } else if (sim_disk_coin(self)) {
        set_safe_size(node, node->now_size);
    }
    /* Bytes after the end are not part of the file. */
    if (node->capacity > 0) {
        memset(node->safe + node->safe_size, 0, node->capacity - node->safe_size);
    }
}

uint64_t sim_disk_used(const sim_disk_t *self)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < self->now.n; i++) {
        sum += self->now.items[i].node->now_size;
    }
    return sum;
}
