/* SPDX-License-Identifier: Apache-2.0 */
/* Answers in order of lsn, a list for each level. */
#include "protocol/replica/pending.h"

#include <assert.h>
#include <string.h>

#include "base/alloc.h"

static uint64_t cost_of(const ps_waiting_answer_t *answer)
{
    return sizeof *answer + ps_payload_size(answer->answer.payload);
}

void ps_pending_done(ps_pending_t *self)
{
    for (size_t level = 0; level <= PS_ACK_DISK; level++) {
        ps_pending_list_t *list = &self->of[level];

        for (size_t i = 0; i < list->n; i++) {
            ps_payload_destroy(&list->items[list->first + i].answer.payload);
        }
        ps_free(list->items);
        *list = (ps_pending_list_t){0};
    }
    self->bytes = 0;
}

bool ps_pending_reserve(ps_pending_t *self, ps_ack_t level)
{
    ps_pending_list_t *list = &self->of[level];

    if (list->first + list->n < list->capacity) {
        return true;
    }
    if (list->first > list->n) {
        memmove(list->items, list->items + list->first, list->n * sizeof *list->items);
        list->first = 0;
        return true;
    }
    return ps_grow(&list->items, &list->capacity, list->first + list->n + 1, sizeof *list->items);
}

void ps_pending_add(ps_pending_t *self, ps_ack_t level, const ps_waiting_answer_t *answer)
{
    ps_pending_list_t *list = &self->of[level];

    assert(list->first + list->n < list->capacity);
    list->items[list->first + list->n] = *answer;
    list->n++;
    self->bytes += cost_of(answer);
}

ps_waiting_answer_t *ps_pending_find(ps_pending_t *self, uint64_t session, uint64_t request)
{
    for (size_t level = 0; level <= PS_ACK_DISK; level++) {
        ps_pending_list_t *list = &self->of[level];

        for (size_t i = 0; i < list->n; i++) {
            ps_waiting_answer_t *item = &list->items[list->first + i];

            if (item->session == session && item->request == request) {
                return item;
            }
        }
    }
    return NULL;
}

bool ps_pending_take(ps_pending_t *self, ps_ack_t level, uint64_t lsn,
                     ps_waiting_answer_t *ret_answer)
{
    ps_pending_list_t *list = &self->of[level];

    if (list->n == 0 || list->items[list->first].lsn > lsn) {
        return false;
    }
    *ret_answer = list->items[list->first];
    self->bytes -= cost_of(ret_answer);
    list->first++;
    list->n--;
    if (list->n == 0) {
        list->first = 0;
    }
    return true;
}
