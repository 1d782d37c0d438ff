/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_piece_thread - writes and reads the files of a checkpoint beside a shard
 *
 * What     A thread that takes orders one by one. Writing: open a file, add
 *          pieces, commit. Reading: read a file; its pieces come out. Neither
 *          side waits: the caller checks whether there is room, or a result to
 *          take. After a failure it does nothing more, and ps_piece_thread_look
 *          says why.
 * Owner    The caller; ps_piece_thread_stop ends the thread. A file that was
 *          not committed is removed.
 * Threads  All calls from one.
 */
#ifndef PS_SERVER_PIECE_THREAD_H
#define PS_SERVER_PIECE_THREAD_H

#include "storage/snapshot/snapshot_file.h"
#include "transport/threads/turns.h"
#include "base/slice.h"

#define PS_PIECE_TEXT_SIZE 300

typedef struct ps_piece_thread ps_piece_thread_t;

/* A result. */
typedef struct ps_piece_done {
    ps_snapshot_id_t id;
    ps_payload_t *piece; /* the taker owns it; NULL: the file is done */
    uint64_t bytes;      /* of the file, when it is done */
    uint64_t sum;        /* of its blocks, when it is done */
} ps_piece_done_t;

/* dir is copied; files are written there. turns: where the thread reports
 * that it turns, as "pieces-SHARD"; may be NULL. Errors: PSD_NOMEM, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_piece_thread_start(const ps_snapshot_dir_t *dir, uint32_t shard,
                                                  ps_turns_t *turns, ps_piece_thread_t **ret,
                                                  psd_error_t *err);
/* Takes NULL. */
void ps_piece_thread_stop(ps_piece_thread_t **self_p);

/* There is room for orders with pieces. */
bool ps_piece_thread_has_room(ps_piece_thread_t *self);
/* Each false: no memory; nothing was ordered. */
PSD_MUST_CHECK bool ps_piece_thread_open(ps_piece_thread_t *self, const ps_snapshot_id_t *id);
/* Takes the piece, also when it fails. */
PSD_MUST_CHECK bool ps_piece_thread_add(ps_piece_thread_t *self, ps_payload_t **piece_p);
PSD_MUST_CHECK bool ps_piece_thread_commit(ps_piece_thread_t *self);
/* dir is borrowed until the file is done, or the thread stopped. */
PSD_MUST_CHECK bool ps_piece_thread_read(ps_piece_thread_t *self, const char *dir,
                                         const ps_snapshot_id_t *id);

/* The next result, in order. false: nothing yet. */
PSD_MUST_CHECK bool ps_piece_thread_take(ps_piece_thread_t *self, ps_piece_done_t *ret);
/* PSD_OK, or why it does nothing more. */
psd_status_t ps_piece_thread_look(ps_piece_thread_t *self, char ret_text[PS_PIECE_TEXT_SIZE]);
#endif
