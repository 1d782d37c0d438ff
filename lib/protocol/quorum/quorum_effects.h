/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_quorum_effects - what a member wants done, and what of its log is on disk
 *
 * Shape    Effects in order; each that changes the log has the next op. For each
 *          op that is not flushed yet: the last index that is on disk with it.
 * Owner    It owns the bytes of SEND until the effects are cleared.
 * Threads  Confined to one.
 */
#ifndef PS_PROTOCOL_QUORUM_EFFECTS_H
#define PS_PROTOCOL_QUORUM_EFFECTS_H

#include "protocol/quorum/quorum.h"

typedef struct ps_quorum_op {
    uint64_t op;
    uint64_t last;
} ps_quorum_op_t;

typedef struct ps_quorum_effects {
    ps_quorum_effect_t *at; /* owned */
    ps_buffer_t *bytes;     /* owned; of each */
    size_t n;
    size_t capacity;
    size_t bytes_capacity;
    size_t taken;
    ps_quorum_op_t *ops; /* owned */
    size_t n_ops;
    size_t ops_capacity;
    uint64_t op; /* the last one */
} ps_quorum_effects_t;

void ps_quorum_effects_done(ps_quorum_effects_t *self);
/* All were taken: forgets them. */
void ps_quorum_effects_clear(ps_quorum_effects_t *self);
/* Adds an effect, and takes the bytes if there are any. false: no memory. */
PSD_MUST_CHECK bool ps_quorum_effects_add(ps_quorum_effects_t *self,
                                          const ps_quorum_effect_t *effect, ps_buffer_t *bytes);
/* As that, for BEGIN, CUT and EXTEND: gives it the next op. */
PSD_MUST_CHECK bool ps_quorum_effects_add_op(ps_quorum_effects_t *self, ps_quorum_effect_t *effect);
/* The last index on disk once op is; 0: nothing changed. Forgets what is done. */
uint64_t ps_quorum_effects_flushed(ps_quorum_effects_t *self, uint64_t op);
#endif
