/* SPDX-License-Identifier: Apache-2.0 */
/* Silent shards: are their partitions still there? And signs of life that are
 * not a complete answer. */
#include <assert.h>

#include "protocol/session/session_private.h"

#define PIECE_GAPS 2       /* times that between two pieces, until the next */
#define PIECE_MAX_MS 60000 /* that are waited for one: 1 MiB at 20 kB/s */
#define PACE_PARTS 3       /* of what was known, beside one of what is new */
#define PACE_MAX_MS 5000   /* or it is no link, but an end that stood still */
#define SINCE_MAX_MS 2000  /* more is not waited for HELLO's answer */

void ps_link_lives(ps_link_t *self, uint64_t now_ms)
{
    self->doubted_ms = 0;
    if (self->sign_ms == 0) {
        self->sign_ms = now_ms;
    }
}

/* Otherwise one slow answer would delay detection forever. */
void ps_link_answered(ps_link_t *self, uint64_t took_ms)
{
    if (took_ms < self->pace_ms) {
        self->pace_ms = (PACE_PARTS * self->pace_ms + took_ms) / (PACE_PARTS + 1);
    }
}

void ps_link_welcomed(ps_link_t *self, uint64_t now_ms, bool was_ready)
{
    uint64_t took_ms = now_ms - self->hello_ms;

    if (self->hello_tries != 1) {
        return; /* to which HELLO it is the answer is not known */
    }
    self->hello_tries++; /* a second answer says nothing */
    if (took_ms < self->pace_ms) {
        ps_link_answered(self, took_ms);
        return;
    }
    if (was_ready) { /* until that first sign it may have stood still */
        took_ms = now_ms - self->sign_ms;
    }
    if (took_ms > PACE_MAX_MS) {
        took_ms = PACE_MAX_MS;
    }
    if (took_ms > self->pace_ms) { /* a slow one counts at once */
        self->pace_ms = took_ms;
    }
}

void ps_link_doubt(ps_session_t *self, uint64_t now_ms, const ps_op_t *op, ps_outbox_t *outbox)
{
    ps_link_t *link = op->part->link;

    if (link->doubted_ms != 0) {
        return;
    }
    link->doubted_ms = now_ms;
    if (!ps_op_is_numbered(op) && link->state == PS_LINK_READY) {
        link->hello_tries = 0;
        ps_link_say_hello(self, now_ms, link, false, outbox);
    }
}

static bool has(const uint32_t *tables, size_t n, uint32_t table)
{
    for (size_t i = 0; i < n; i++) {
        if (tables[i] == table) {
            return true;
        }
    }
    return false;
}

/* Since when it would have answered, at its own pace. */
static uint64_t since_of(const ps_link_t *link)
{
    return link->doubted_ms + (link->pace_ms < SINCE_MAX_MS ? link->pace_ms : SINCE_MAX_MS);
}

uint64_t ps_session_doubt(const ps_session_t *self, uint32_t ret_tables[PS_DOUBT_MAX],
                          size_t *ret_n)
{
    uint64_t since_ms = UINT64_MAX;

    *ret_n = 0;
    for (size_t i = 0; i < self->n_places; i++) {
        const ps_link_t *link = self->places[i];
        const ps_part_t *part = NULL;

        if (link->doubted_ms == 0 || TAILQ_EMPTY(&link->active)) {
            continue;
        }
        since_ms = since_of(link) < since_ms ? since_of(link) : since_ms;
        TAILQ_FOREACH(part, &link->active, in_active)
        {
            if (*ret_n < PS_DOUBT_MAX && !has(ret_tables, *ret_n, part->table)) {
                ret_tables[(*ret_n)++] = part->table;
            }
        }
    }
    return since_ms;
}

size_t ps_session_silent(const ps_session_t *self, ps_silent_t ret_silent[PS_SILENT_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < self->n_places && n < PS_SILENT_MAX; i++) {
        const ps_link_t *link = self->places[i];

        if (link->doubted_ms != 0 && !TAILQ_EMPTY(&link->active)) {
            ret_silent[n++] = (ps_silent_t){
                .incarnation = link->route.incarnation,
                .shard = link->route.shard,
                .since_ms = link->doubted_ms,
            };
        }
    }
    return n;
}

void ps_session_heard(ps_session_t *self, uint64_t now_ms, uint64_t link, uint64_t request)
{
    ps_op_t *op = ps_op_find(self, request);
    uint64_t wait_ms = 0;
    uint64_t gap_ms = 0;

    assert(link < self->n_links);
    ps_link_lives(self->links[link], now_ms);
    if (op == NULL || op->status != PSD_OK || !op->sent || op->part->link != self->links[link]) {
        return;
    }
    op->tries = 0; /* it is not held there any more */
    wait_ms = ps_link_wait_ms(self, op->part->link, op->tries);
    /* Before the first piece it may have been held for long. */
    gap_ms = op->piece_ms == 0 ? 0 : PIECE_GAPS * (now_ms - op->piece_ms);
    if (gap_ms > PIECE_MAX_MS) {
        gap_ms = PIECE_MAX_MS;
    }
    op->piece_ms = now_ms;
    op->heard_ms = now_ms;
    op->due_ms = now_ms + (wait_ms > gap_ms ? wait_ms : gap_ms);
    ps_session_wake(self, op->due_ms);
}

void ps_op_wait(ps_session_t *self, ps_op_t *op, uint64_t until_ms)
{
    if (op->due_ms < until_ms) {
        op->due_ms = until_ms; /* a tick finds that it is not due */
    }
    ps_session_wake(self, op->due_ms);
}
