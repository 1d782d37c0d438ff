/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_node_damage - damage found at this start, for the registry
 *
 * What     Of all shards: copies that cannot be read any more, and the first
 *          damaged file in words. The registry counts those copies as empty,
 *          and rebuilds them from another copy that is whole.
 * Owner    The caller; ps_node_damage_done.
 */
#ifndef PS_SERVER_NODE_DAMAGE_H
#define PS_SERVER_NODE_DAMAGE_H

#include "server/shards/shards.h"
#include "protocol/overseer/overseer.h"

typedef struct ps_node_damage {
    ps_lost_t *lost; /* owned */
    size_t n_lost;
    char text[PS_DAMAGE_TEXT_SIZE]; /* "PATH: byte N: why"; "": there is none */
    bool accepted;                  /* the operator gives up what no other copy has */
} ps_node_damage_t;

/* Frees and zeroes; fits PSD_AUTO. */
void ps_node_damage_done(ps_node_damage_t *self);
/* Collects the damage that the shards found; leaves accepted unchanged. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_node_damage_gather(ps_node_damage_t *self, const ps_shards_t *shards,
                                                  psd_error_t *err);
/* Reported at the node's start; borrowed. */
void ps_node_damage_fill(const ps_node_damage_t *self, ps_node_t *node);
/* The error of a refused start, beginning with the damaged file. */
PSD_MUST_CHECK psd_status_t ps_node_damage_wrap(const ps_node_damage_t *self, psd_status_t rc,
                                                psd_error_t *err);
#endif
