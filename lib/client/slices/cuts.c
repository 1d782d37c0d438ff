/* SPDX-License-Identifier: Apache-2.0 */
/* A list of slices, and the keys of one. */
#include <string.h>

#include "base/alloc.h"
#include "client/slices/cut_inner.h"

/* Makes room for one more in memory of the list's own. */
static bool grow(ps_cuts_t *self)
{
    ps_cut_t *items = self->items == &self->one ? NULL : self->items;

    if (!ps_grow(&items, &self->capacity, self->n + 1, sizeof *items)) {
        return false;
    }
    if (self->items == &self->one) {
        items[0] = self->one;
    }
    self->items = items;
    return true;
}

ps_cut_t *ps_cuts_add(ps_cuts_t *self)
{
    ps_cut_t *cut = NULL;

    if (self->n == 0 && self->items == NULL) {
        self->items = &self->one;
    } else if (!grow(self)) {
        return NULL;
    }
    cut = &self->items[self->n++];
    *cut = (ps_cut_t){.partition = 0};
    return cut;
}

void ps_cuts_done(ps_cuts_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_payload_destroy(&self->items[i].payload);
        ps_places_done(&self->items[i].places);
    }
    if (self->items != &self->one) {
        ps_free(self->items);
    }
    *self = (ps_cuts_t){.n = 0};
}

void ps_cut_keys(const psd_select_t *select, const ps_row_run_t *run, size_t from, size_t n,
                 uint8_t *to)
{
    if (select->rows_are == PS_SELECT_LIST && run->order == NULL) {
        memcpy(to, select->rows + run->first + from, n * sizeof(uint64_t));
        return;
    }
    if (select->rows_are == PS_SELECT_LIST) {
        for (size_t i = 0; i < n; i++) {
            memcpy(to + i * sizeof(uint64_t), &select->rows[run->order[from + i]],
                   sizeof(uint64_t));
        }
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t key = ps_select_row(select, ps_row_run_at(run, from + i));

        memcpy(to + i * sizeof key, &key, sizeof key);
    }
}
