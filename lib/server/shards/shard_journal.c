/* SPDX-License-Identifier: Apache-2.0 */
/* What a shard's disk has, at the start and later. */
#include "server/shards/shard_journal.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/log.h"
#include "protocol/shard/shard_recover.h"
#include "transport/sockets/socket.h"

#define MIB ((uint64_t)1 << 20)

static void say_progress(void *context, uint64_t bytes)
{
    const ps_journal_args_t *args = context;

    ps_log(PS_LOG_INFO, "recovering", "shard=%" PRIu32 " mib=%" PRIu64, args->shard, bytes / MIB);
}

static void say_found(const ps_journal_args_t *args, const ps_journal_found_t *found,
                      uint64_t took_ms)
{
    const ps_shard_log_found_t *log = &found->log;

    if (log->cut_bytes > 0) {
        ps_log(PS_LOG_WARN, "torn_tail_cut",
               "shard=%" PRIu32 " segment=%016" PRIx64 " offset=%" PRIu64 " bytes=%" PRIu64
               " hint=\"a crash interrupted a write; none of it was acknowledged at level disk\"",
               args->shard, log->cut_segment, log->cut_offset, log->cut_bytes);
    }
    if (log->note_torn) {
        ps_log(PS_LOG_WARN, "flushed_note_torn",
               "shard=%" PRIu32 " hint=\"the other slot is used\"", args->shard);
    }
    if (found->was_there) {
        ps_log(PS_LOG_INFO, "recovered",
               "shard=%" PRIu32 " tables=%" PRIu32 " snapshots=%" PRIu32 " snapshot_bytes=%" PRIu64
               " records=%" PRIu64 " log_bytes=%" PRIu64 " ms=%" PRIu64,
               args->shard, found->n_tables, found->n_snapshots, found->snapshot_bytes,
               log->n_records, log->bytes, took_ms);
    }
}

static void say_damage(const ps_journal_args_t *args, const ps_damage_t *damage)
{
    char quoted[1024];

    for (size_t i = 0; i < damage->n_texts; i++) {
        ps_log(PS_LOG_ERROR, "damaged", "shard=%" PRIu32 " reason=%s", args->shard,
               ps_log_quote(damage->texts[i], quoted, sizeof quoted));
    }
    for (size_t i = 0; i < damage->n_lost; i++) {
        const ps_lost_t *lost = &damage->lost[i];

        ps_log(PS_LOG_ERROR, "partitions_lost",
               "shard=%" PRIu32 " table=%" PRIu32 " first=%" PRIu32 " last=%" PRIu32
               " hint=\"those of this shard are rebuilt from their other copies\"",
               args->shard, lost->table, lost->first, lost->last);
    }
}

/* An earlier life also knew the tables whose file is damaged. */
static psd_status_t list_tables(const ps_shard_t *core, ps_shard_found_t *found, psd_error_t *err)
{
    const ps_damage_t *damage = &found->damage;
    size_t capacity = 0;
    psd_status_t rc = ps_shard_recover_tables(core, &found->tables, &found->n_tables, err);

    capacity = found->n_tables;
    for (size_t i = 0; rc == PSD_OK && i < damage->n_lost; i++) {
        if (ps_shard_recover_knows(core, damage->lost[i].table)) {
            continue;
        }
        if (!ps_grow(&found->tables, &capacity, found->n_tables + 1, sizeof *found->tables)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for tables");
        }
        found->tables[found->n_tables++] = damage->lost[i].table;
    }
    return rc;
}

void ps_shard_found_done(ps_shard_found_t *self)
{
    ps_free(self->tables);
    ps_damage_done(&self->damage);
    *self = (ps_shard_found_t){0};
}

static psd_status_t recover(const ps_journal_args_t *args, ps_journal_t *journal, ps_shard_t *core,
                            ps_shard_found_t *ret_found, psd_error_t *err)
{
    ps_journal_found_t found;
    uint64_t since_ms = ps_now_ms();
    ps_journal_args_t mine = *args;
    psd_status_t rc = ps_journal_recover(journal, core, say_progress, &mine, &found, err);

    if (rc == PSD_OK) {
        say_found(args, &found, ps_now_ms() - since_ms);
        say_damage(args, &ret_found->damage);
        ret_found->kept = found.was_there;
        rc = list_tables(core, ret_found, err);
    }
    return rc;
}

psd_status_t ps_shard_journal_open(const ps_journal_args_t *args, ps_shard_t *core,
                                   ps_turns_t *turns, ps_shard_found_t *ret_found,
                                   ps_journal_thread_t **ret, psd_error_t *err)
{
    PSD_AUTO(ps_journal_close) ps_journal_t *journal = NULL;
    ps_journal_args_t mine = *args;
    psd_status_t rc = PSD_OK;

    mine.damage = &ret_found->damage;
    rc = ps_journal_open(&mine, &journal, err);
    if (rc == PSD_OK) {
        rc = recover(args, journal, core, ret_found, err);
    }
    return rc == PSD_OK ? ps_journal_thread_start(&journal, args, turns, ret, err) : rc;
}

psd_status_t ps_shard_journal_settle(ps_journal_thread_t *thread, psd_error_t *err)
{
    return thread == NULL ? PSD_OK : ps_journal_thread_settle(thread, err);
}

psd_status_t ps_shard_journal_table(ps_journal_thread_t *thread, const ps_shard_t *core,
                                    const ps_event_t *event, psd_error_t *err)
{
    psd_status_t rc = ps_shard_journal_settle(thread, err);

    return rc != PSD_OK || thread == NULL || event->spec->ack != PS_ACK_DISK ||
                   ps_shard_has_table(core, event)
               ? rc
               : ps_journal_thread_put_table(thread, event->table, event->spec, err);
}

void ps_shard_journal_give(ps_journal_thread_t *thread, const ps_effect_t *effect)
{
    if (effect->kind == PS_EFFECT_RECORD) {
        ps_journal_thread_record(thread, &effect->record, effect->payload);
    } else {
        ps_journal_thread_piece(thread, &effect->piece, effect->payload);
    }
}

bool ps_shard_journal_take(ps_journal_thread_t *thread, ps_journal_news_t *news,
                           ps_event_t *ret_event)
{
    if (thread == NULL || !ps_journal_thread_take(thread, news)) {
        return false;
    }
    *ret_event = (ps_event_t){.kind = PS_EVENT_FLUSHED,
                              .flushed = news->positions,
                              .n_flushed = news->n_positions,
                              .flushed_bytes = news->flushed_bytes,
                              .log_bytes = news->log_bytes,
                              .snapshot_failed = news->snapshot_failed,
                              .disk_trouble = news->trouble};
    return true;
}
