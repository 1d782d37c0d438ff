/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/threads: threads beside the shards
 *
 * It is       The thread of a journal, the thread that writes and reads the files
 *             of a checkpoint, the filler, the watch over all threads and the
 *             probe of ZeroMQ's, and how background threads rest.
 * It uses     config, metrics; lib/storage (log, snapshot), lib/model/rows,
 *             lib/transport, lib/base; zmq.
 * It ignores  Requests, and what a record or a piece holds.
 * Start at    journal_thread.h, piece_thread.h for checkpoints, thread_watch.h.
 */
/*
 * ps_journal_thread - the thread that writes a shard's journal
 *
 * What     Takes records and pieces of snapshots in their order, writes and
 *          flushes whatever arrived during the previous flush, and reports its
 *          position. It retries when the disk is full or fails, or when there
 *          is no memory, until it works. Meanwhile the queue stays in memory,
 *          and the shard stops giving records when too much waits. No caller
 *          blocks on a disk here.
 * Owner    The shard's thread.
 * Threads  All functions from the shard's thread; the rest is inside.
 */
#ifndef PS_SERVER_JOURNAL_THREAD_H
#define PS_SERVER_JOURNAL_THREAD_H

#include "storage/log/journal.h"
#include "transport/threads/turns.h"

#define PS_JOURNAL_TEXT_SIZE 300

typedef struct ps_journal_thread ps_journal_thread_t;

/* What has happened since it was last asked. */
typedef struct ps_journal_news {
    ps_position_t *positions; /* owned; flushed */
    size_t n_positions;
    size_t capacity;
    uint64_t flushed_bytes; /* of records and pieces */
    uint64_t log_bytes;
    bool snapshot_failed;               /* one was cancelled */
    char trouble[PS_JOURNAL_TEXT_SIZE]; /* why it cannot flush now; "" */
} ps_journal_news_t;
/* Frees and zeroes; fits PSD_AUTO. */
void ps_journal_news_done(ps_journal_news_t *self);

/* Takes the journal, which was opened with args and recovered; borrows args->dir and
 * args->counts. turns: where the thread reports that it turns; may be NULL. Errors:
 * PSD_NOMEM; PSD_IO no thread. */
PSD_MUST_CHECK psd_status_t ps_journal_thread_start(ps_journal_t **journal_p,
                                                    const ps_journal_args_t *args,
                                                    ps_turns_t *turns,
                                                    ps_journal_thread_t **ret_thread,
                                                    psd_error_t *err);
/* Writes the queue, if the disk takes it at once, and ends. Takes NULL. */
void ps_journal_thread_stop(ps_journal_thread_t **self_p);
/* Readable when there is news. */
int ps_journal_thread_fd(const ps_journal_thread_t *self);

/* As ps_journal_settle, before the thread gets anything. Does not wait for
 * the thread. */
PSD_MUST_CHECK psd_status_t ps_journal_thread_settle(ps_journal_thread_t *self, psd_error_t *err);
/* A table with a log, before its first record, and again when its spec changes. Does not
 * wait for the thread. Errors: those of ps_journal_put_table. */
PSD_MUST_CHECK psd_status_t ps_journal_thread_put_table(ps_journal_thread_t *self, uint32_t table,
                                                        const ps_table_spec_t *spec,
                                                        psd_error_t *err);
/* Each joins the queue. The payload, which is not `shared`, stays until it
 * is written. Without memory for one, nothing is written from there on,
 * since the disk would have a gap; the news say so, and the next start goes
 * on before the gap. */
void ps_journal_thread_record(ps_journal_thread_t *self, const ps_record_t *record,
                              ps_payload_t *payload);
void ps_journal_thread_piece(ps_journal_thread_t *self, const ps_piece_t *piece,
                             ps_payload_t *payload);
void ps_journal_thread_drop(ps_journal_thread_t *self, uint32_t table);

/* True when there is news, which *news then says; it is kept by the caller and
 * used again. */
PSD_MUST_CHECK bool ps_journal_thread_take(ps_journal_thread_t *self, ps_journal_news_t *news);
#endif
