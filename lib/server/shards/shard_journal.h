/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_journal - between a shard's core and the thread of its journal
 *
 * What     At the start: opens the journal, reads it into a new core, logs what
 *          it found, and starts the thread that writes it. Later: passes tables
 *          to the core and news from the disk.
 * Threads  The shard's.
 */
#ifndef PS_SERVER_SHARD_JOURNAL_H
#define PS_SERVER_SHARD_JOURNAL_H

#include "server/threads/journal_thread.h"
#include "protocol/core/outbox.h"

/* What the disk had. */
typedef struct ps_shard_found {
    bool kept;        /* everything that an earlier life had written was
                       * there; false: there was no earlier life */
    uint32_t *tables; /* owned; that were read */
    size_t n_tables;
    ps_damage_t damage;
} ps_shard_found_t;
/* Frees what it holds and zeroes it. */
void ps_shard_found_done(ps_shard_found_t *self);

/*
 * Damage costs only the partitions that it affects. Nothing on disk changes
 * before the first ps_shard_journal_settle.
 *
 * turns      in   of the thread; may be NULL
 * ret_found  out  zeroes before; borrowed until the thread has stopped;
 *                 ps_shard_found_done by the caller, in any case
 *
 * Errors: those of ps_journal_open and ps_journal_recover.
 */
PSD_MUST_CHECK psd_status_t ps_shard_journal_open(const ps_journal_args_t *args, ps_shard_t *core,
                                                  ps_turns_t *turns, ps_shard_found_t *ret_found,
                                                  ps_journal_thread_t **ret, psd_error_t *err);
/* The registry has answered this life of the node, and so has taken the
 * losses into account. thread NULL: there is none. Errors: those of
 * ps_journal_settle. */
PSD_MUST_CHECK psd_status_t ps_shard_journal_settle(ps_journal_thread_t *thread, psd_error_t *err);
/* Before a TABLE goes to the core: writes a table with a log that the core
 * does not know, or knows with another `combine`, to disk. thread NULL: there is none. Errors:
 * those of ps_journal_settle, which comes first, and ps_journal_put_table. */
PSD_MUST_CHECK psd_status_t ps_shard_journal_table(ps_journal_thread_t *thread,
                                                   const ps_shard_t *core, const ps_event_t *event,
                                                   psd_error_t *err);
/* A RECORD or PIECE joins the queue. */
void ps_shard_journal_give(ps_journal_thread_t *thread, const ps_effect_t *effect);
/* Its news, as an event that borrows from them. false: there is none. */
PSD_MUST_CHECK bool ps_shard_journal_take(ps_journal_thread_t *thread, ps_journal_news_t *news,
                                          ps_event_t *ret_event);
#endif
