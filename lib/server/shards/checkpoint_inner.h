/* SPDX-License-Identifier: Apache-2.0 */
/* Private to a shard's part of a checkpoint: the files that it writes and reads. */
#ifndef PS_SERVER_CHECKPOINT_INNER_H
#define PS_SERVER_CHECKPOINT_INNER_H

#include "server/shards/checkpoint_task.h"
#include "server/threads/piece_thread.h"
#include "wire/messages/doc.h"

typedef enum ps_item_state {
    PS_ITEM_WAITING = 0, /* not opened */
    PS_ITEM_WALKING = 1,
    PS_ITEM_WRITING = 2, /* all pieces are on their way */
    PS_ITEM_DONE = 3
} ps_item_state_t;

/* A file: of a partition of ours that is written, or one that is read. */
typedef struct ps_checkpoint_item {
    ps_snapshot_id_t id;
    ps_item_state_t state;
    ps_image_view_t view;
    uint64_t bytes;
    uint64_t sum;
    size_t dir; /* that is read; place in dirs */
} ps_checkpoint_item_t;

/* A partition of the table that is restored. */
typedef struct ps_mine {
    bool is_mine; /* this shard sets its rows */
    ps_restore_at_t at;
} ps_mine_t;

struct ps_checkpoint_task {
    ps_id_t cluster;
    uint64_t incarnation;
    uint32_t shard;
    ps_turns_t *turns; /* borrowed; may be NULL */
    uint64_t number;   /* 0: there is none */
    bool restores;
    bool is_done;
    ps_piece_thread_t *thread;   /* owned */
    ps_checkpoint_item_t *items; /* owned */
    size_t n_items;
    size_t items_capacity;
    ps_buffer_t *dirs; /* owned, each too; paths that files are read from */
    size_t n_dirs;
    size_t dirs_capacity;
    size_t at;        /* item at hand */
    uint64_t bytes;   /* of rows, handed out or taken */
    uint64_t seen_ms; /* when the control part last looked */
    psd_status_t status;
    psd_error_t *err; /* owned; why, when status is not OK */
    /* restores */
    uint32_t table;
    uint32_t n_partitions; /* of the table, wherever they are */
    ps_mine_t *mine;       /* owned; one each */
    uint32_t n_mine;       /* that are restored here */
    ps_payload_t *piece;   /* owned; that is being set … */
    uint32_t next;         /* … from this partition on */
    /* All rows are set and reach the table's level: */
    uint64_t reached;  /* the partition at hand up to this record … */
    uint64_t moved_ms; /* … since then; 0: it was not looked at */
};

/* Forgets the present work; NULL: the shard ends. */
void ps_checkpoint_end(ps_checkpoint_task_t *self, ps_shard_t *shard);
/* Begins, with files that are written to `dir`. Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_start(ps_checkpoint_task_t *self,
                                                const ps_image_step_t *step, const ps_id_t *cluster,
                                                const char *dir, uint64_t number, psd_error_t *err);
PSD_MUST_CHECK psd_status_t ps_checkpoint_add_item(ps_checkpoint_task_t *self,
                                                   const ps_checkpoint_item_t *item,
                                                   psd_error_t *err);
psd_status_t ps_checkpoint_no_memory(psd_error_t *err);
/* checkpoint_read.c: the command of a restore. */
PSD_MUST_CHECK psd_status_t ps_checkpoint_restore(ps_checkpoint_task_t *self, ps_shard_t *shard,
                                                  const ps_image_step_t *step, const ps_doc_t *doc,
                                                  ps_doc_t *answer, psd_error_t *err);
/* Fails; the reason is in self->err. */
void ps_checkpoint_fail(ps_checkpoint_task_t *self, psd_status_t status);

/* checkpoint_write.c, checkpoint_read.c: about one piece; milliseconds until
 * the next one. */
uint64_t ps_checkpoint_put_out(ps_checkpoint_task_t *self, ps_shard_t *shard,
                               const ps_image_step_t *step);
uint64_t ps_checkpoint_take_in(ps_checkpoint_task_t *self, ps_shard_t *shard,
                               const ps_image_step_t *step);
/* checkpoint_read.c: checks finished partitions again: a node that answered
 * meanwhile may not have had all of them. */
void ps_checkpoint_check_done(ps_checkpoint_task_t *self, ps_shard_t *shard,
                              const ps_image_step_t *step);
#endif
