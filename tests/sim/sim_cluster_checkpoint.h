/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cluster_checkpoint - checkpoints during all other events
 *
 * What     The registry's process makes one after the other, as the daemon
 *          does: all nodes hold back marks and report their clocks; it names a
 *          clock; every primary hands out its image, piece by piece, while
 *          pushes go on. Rows only: each piece goes into a store at once. When
 *          rows have versions, every other checkpoint has only the changes
 *          since the last whole one.
 * Checks   No push is in an image twice; of a job under BSP, and of an exact
 *          image, exactly the pushes of the clocks before the image's; under
 *          SSP at least these; without a job, all pushes acknowledged before
 *          the registry started the image, and no push of a client without all
 *          its earlier pushes.
 */
#ifndef PS_TESTS_SIM_CLUSTER_CHECKPOINT_H
#define PS_TESTS_SIM_CLUSTER_CHECKPOINT_H

#include "protocol/shard/shard_image.h"
#include "sim_cluster_plan.h"

struct cluster;
struct cluster_letter;

typedef enum cluster_image_state {
    CLUSTER_NO_IMAGE = 0,
    CLUSTER_IMAGE_WAITS = 1,
    CLUSTER_IMAGE_WALKS = 2
} cluster_image_state_t;

typedef struct cluster_image { /* of a partition */
    cluster_image_state_t state;
    ps_image_view_t view;
    ps_store_t *rows; /* owned; what was handed out */
} cluster_image_t;

typedef struct cluster_images { /* a shard's part */
    uint64_t number;            /* of the checkpoint; 0: none */
    uint64_t looked_ms;         /* when the registry last asked for it */
    cluster_image_t of[CLUSTER_PARTITIONS_MAX];
} cluster_images_t;

typedef struct cluster_want {
    bool follows; /* the job's clocks */
    bool exact;
    bool changed; /* only what has changed since the last whole one */
} cluster_want_t;

typedef struct cluster_kept { /* a partition in a checkpoint */
    ps_image_since_t at;
    bool rows[CLUSTER_ROWS]; /* that were pushed */
} cluster_kept_t;

typedef struct cluster_checkpoint {
    uint64_t n; /* begun so far; the last one's number */
    bool works; /* the last one is under way … */
    bool fails; /* … and cannot become whole */
    cluster_want_t want;
    uint32_t by; /* the member whose registry makes it */
    uint64_t until_ms;
    uint64_t clock;                    /* the greatest reported; then that of the image */
    uint64_t asked[CLUSTER_NODES_MAX]; /* incarnations; 0: not */
    bool answered[CLUSTER_NODES_MAX];
    bool must[CLUSTER_PARTITIONS_MAX][CLUSTER_ROWS];
    bool done[CLUSTER_PARTITIONS_MAX];
    cluster_kept_t now[CLUSTER_PARTITIONS_MAX];
    cluster_kept_t kept[CLUSTER_PARTITIONS_MAX]; /* of the last whole one */
    uint64_t n_whole;
    uint64_t n_exact; /* of them: all images, after the named clock */
    bool is_exact;    /* so far */
} cluster_checkpoint_t;

/* Work of a shard's thread between two events. */
typedef void cluster_work_t(struct cluster *self, ps_shard_t *machine, const ps_image_step_t *step,
                            const void *order);

/* ---- the registry's part ---- */

void cluster_checkpoint_start(struct cluster *self);
void cluster_checkpoint_time(struct cluster *self);
void cluster_checkpoint_letter(struct cluster *self, const struct cluster_letter *letter);
/* The registry crashes. */
void cluster_checkpoint_forget(struct cluster *self);

/* ---- a node's part ---- */

void cluster_images_letter(struct cluster *self, const struct cluster_letter *letter);
void cluster_images_turn(struct cluster *self, uint32_t node, uint32_t shard);
/* The shard is gone. */
void cluster_images_done(cluster_images_t *self);
#endif
