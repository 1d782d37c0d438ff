/* SPDX-License-Identifier: Apache-2.0 */
/* Private to sim_disk: names and bytes, as they are and as a loss of power
 * leaves them. */
#ifndef PS_TESTS_SIM_DISK_STATE_H
#define PS_TESTS_SIM_DISK_STATE_H

#include "support/sim_disk.h"

#define SECTOR 512

/* The file of a name. `safe` is what a loss of power leaves. */
typedef struct sim_disk_node {
    uint8_t *now;
    uint8_t *safe;
    uint8_t *dirty; /* one a sector: written since the last flush */
    bool spoils;    /* a loss of power makes noise of such sectors */
    size_t capacity;
    size_t now_size;
    size_t safe_size;
} sim_disk_node_t;

typedef struct sim_disk_name {
    char *path;
    sim_disk_node_t *node;
} sim_disk_name_t;

typedef struct sim_disk_names {
    sim_disk_name_t *items;
    size_t n;
} sim_disk_names_t;

/* A change of names that was not flushed: `to` then means node; NULL:
 * nothing. `from` is removed, if set. */
typedef struct sim_disk_change {
    char *from;
    char *to;
    sim_disk_node_t *node;
} sim_disk_change_t;

struct ps_disk_file {
    sim_disk_node_t *node;
};

struct sim_disk {
    ps_disk_t face; /* first: a ps_disk_t * is ours */
    ps_rng_t rng;
    sim_disk_names_t now;
    sim_disk_names_t safe;
    sim_disk_change_t *changes;
    size_t n_changes;
    sim_disk_node_t **nodes; /* all that ever were */
    size_t n_nodes;
    uint64_t n_ops;
    uint64_t first_fault;
    uint64_t end_fault;
    sim_disk_fault_t fault;
    uint64_t capacity;
    bool only_flushes;
    bool crashed;
};

void *sim_disk_grown(void *old, size_t size);
bool sim_disk_coin(sim_disk_t *self);
sim_disk_name_t *sim_disk_find(const sim_disk_names_t *self, const char *path);
void sim_disk_unlink(sim_disk_names_t *self, const char *path);
void sim_disk_link(sim_disk_names_t *self, const char *path, sim_disk_node_t *node);
void sim_disk_names_clear(sim_disk_names_t *self);
void sim_disk_change(sim_disk_t *self, const char *from, const char *to, sim_disk_node_t *node);
void sim_disk_settle_names(sim_disk_t *self, size_t n);
sim_disk_node_t *sim_disk_new_node(sim_disk_t *self);
void sim_disk_node_write(sim_disk_node_t *node, uint64_t offset, const uint8_t *bytes, size_t size);
void sim_disk_node_truncate(sim_disk_node_t *node, uint64_t size);
void sim_disk_settle_node(sim_disk_t *self, sim_disk_node_t *node, bool all);
uint64_t sim_disk_used(const sim_disk_t *self);
#endif
