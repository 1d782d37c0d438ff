/* SPDX-License-Identifier: Apache-2.0 */
/* Private to a shard's part of a checkpoint: what is written, what is read. */
#ifndef PS_DAEMON_CHECKPOINT_INNER_H
#define PS_DAEMON_CHECKPOINT_INNER_H

#include "daemon/checkpoint_task.h"
#include "daemon/piece_thread.h"
#include "wire/doc.h"

typedef enum ps_item_state {
    PS_ITEM_WAITING = 0, /* not opened */
    PS_ITEM_WALKING = 1,
    PS_ITEM_WRITING = 2, /* all pieces are on their way */
    PS_ITEM_DONE = 3
} ps_item_state_t;

/* A file: of a partition of ours that is written, or one that is read. */
typedef struct ps_item {
    ps_snapshot_id_t id;
    ps_item_state_t state;
    ps_image_view_t view;
    uint64_t bytes;
    uint64_t sum;
} ps_item_t;

struct ps_checkpoint_task {
    ps_id_t cluster;
    uint64_t incarnation;
    uint32_t shard;
    uint64_t number; /* 0: there is none */
    bool restores;
    bool is_done;
    ps_piece_thread_t *thread; /* owned */
    ps_item_t *items;          /* owned */
    size_t n_items;
    size_t items_capacity;
    size_t at;        /* item at hand */
    uint64_t bytes;   /* of rows, handed out or taken */
    uint64_t seen_ms; /* when somebody looked */
    psd_status_t status;
    psd_error_t *err; /* owned; why, when status is not OK */
    /* restores */
    uint32_t table;
    uint32_t n_partitions;
    ps_payload_t *piece; /* owned; that is being set … */
    uint32_t next;       /* … from this partition on */
    bool has_begun;      /* partitions keep clients waiting */
};

/* It cannot go on: says why in self->err. */
void ps_checkpoint_fail(ps_checkpoint_task_t *self, psd_status_t status);

/* checkpoint_write.c, checkpoint_read.c: about one piece; milliseconds until
 * the next one. */
uint64_t ps_checkpoint_put_out(ps_checkpoint_task_t *self,
                               ps_shard_t *shard,
                               const ps_image_step_t *step);
uint64_t ps_checkpoint_take_in(ps_checkpoint_task_t *self,
                               ps_shard_t *shard,
                               const ps_image_step_t *step);
#endif
