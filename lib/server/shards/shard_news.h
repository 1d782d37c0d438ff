/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_shard_news - reports of one shard on their way to the control part
 *
 * What     A list that the shard's thread fills, and a letter that goes to the
 *          control part through the pipe and comes back when it was read. There
 *          is one letter, so letters never fill the pipe and neither side
 *          waits.
 * Owner    The starter of the shard; it outlives the thread.
 * Threads  The list is the shard's; the letter is the control part's from
 *          ps_shard_news_seal to ps_shard_news_give_back.
 */
#ifndef PS_SERVER_SHARD_NEWS_H
#define PS_SERVER_SHARD_NEWS_H

#include <stdatomic.h>

#include "protocol/core/outbox.h"

#define PS_SHARD_NEWS_KEPT 1024
#define PS_SHARD_NEWS_LETTER 128

typedef struct ps_shard_news {
    ps_report_t kept[PS_SHARD_NEWS_KEPT]; /* the first n_kept */
    uint32_t n_kept;
    atomic_bool is_away;                      /* the letter, which is … */
    ps_report_t letter[PS_SHARD_NEWS_LETTER]; /* … the first n_letter */
    uint32_t n_letter;
} ps_shard_news_t;

/* Adds a report after the others; drops it when PS_SHARD_NEWS_KEPT wait. The
 * shard repeats a report while it holds, or the control part asks again. */
void ps_shard_news_add(ps_shard_news_t *self, const ps_report_t *report);
/* Writes the letter, for the caller to send. false: there is no report, or
 * the last letter is not back. */
PSD_MUST_CHECK bool ps_shard_news_seal(ps_shard_news_t *self);
/* From the control part's thread: the letter was read. */
void ps_shard_news_give_back(ps_shard_news_t *self);
#endif
