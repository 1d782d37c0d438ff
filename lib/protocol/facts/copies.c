/* SPDX-License-Identifier: Apache-2.0 */
/* The copies of one partition as a value: looking, changing, checking. */
#include "protocol/facts/copies.h"

#include <assert.h>
#include <string.h>

static const char *const state_names[] = {"?", "primary", "in_sync", "kept", "catching_up"};

const char *ps_copy_state_name(ps_copy_state_t state)
{
    return state >= PS_COPY_PRIMARY && state <= PS_COPY_CATCHING_UP ? state_names[state]
                                                                    : state_names[0];
}

ps_copy_state_t ps_copy_state_parse(const char *word)
{
    for (int i = PS_COPY_PRIMARY; i <= PS_COPY_CATCHING_UP; i++) {
        if (strcmp(word, state_names[i]) == 0) {
            return (ps_copy_state_t)i;
        }
    }
    return (ps_copy_state_t)0;
}

bool ps_copy_is_whole(const ps_copy_t *self)
{
    return self->state == PS_COPY_PRIMARY || self->state == PS_COPY_IN_SYNC;
}

bool ps_copy_is_heir(const ps_copy_t *self)
{
    return ps_copy_is_whole(self) || self->state == PS_COPY_KEPT;
}

const ps_copy_t *ps_copies_on(const ps_copies_t *self, uint64_t incarnation)
{
    for (uint32_t i = 0; i < self->n; i++) {
        if (self->at[i].incarnation == incarnation) {
            return &self->at[i];
        }
    }
    return NULL;
}

const ps_copy_t *ps_copies_primary(const ps_copies_t *self)
{
    return self->fenced ? NULL : &self->at[0];
}

uint32_t ps_copies_n_whole(const ps_copies_t *self)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < self->n; i++) {
        n += ps_copy_is_whole(&self->at[i]) ? 1 : 0;
    }
    return n;
}

uint32_t ps_copies_n_heirs(const ps_copies_t *self)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < self->n; i++) {
        n += ps_copy_is_heir(&self->at[i]) ? 1 : 0;
    }
    return n;
}

bool ps_copies_has_dropped(const ps_copies_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        if (self->at[i].dropped) {
            return true;
        }
    }
    return false;
}

void ps_copies_remove(ps_copies_t *self, uint32_t at)
{
    assert(at < self->n);
    self->n--;
    memmove(&self->at[at], &self->at[at + 1], (self->n - at) * sizeof *self->at);
    memset(&self->at[self->n], 0, sizeof *self->at);
}

/* Inserts a copy after those of the same or a better state. */
void ps_copies_add(ps_copies_t *self, const ps_copy_t *copy)
{
    uint32_t at = self->n;

    assert(self->n < PS_COPIES_MAX && copy->state != PS_COPY_PRIMARY);
    while (at > 0 && self->at[at - 1].state > copy->state) {
        self->at[at] = self->at[at - 1];
        at--;
    }
    self->at[at] = *copy;
    self->n++;
}

void ps_copies_set_state(ps_copies_t *self, uint32_t at, ps_copy_state_t state)
{
    ps_copy_t copy = self->at[at];

    assert(copy.state != PS_COPY_PRIMARY && state != PS_COPY_PRIMARY);
    copy.state = state;
    ps_copies_remove(self, at);
    ps_copies_add(self, &copy);
}

void ps_copies_promote(ps_copies_t *self, uint32_t at)
{
    ps_copy_t copy = self->at[at];

    assert(self->fenced && ps_copy_is_heir(&copy));
    memmove(&self->at[1], &self->at[0], at * sizeof *self->at);
    copy.state = PS_COPY_PRIMARY;
    self->at[0] = copy;
    self->fenced = false;
    ps_copies_forget_dropped(self);
}

void ps_copies_fence(ps_copies_t *self)
{
    assert(!self->fenced);
    self->at[0].state = PS_COPY_IN_SYNC;
    self->fenced = true;
}

void ps_copies_drop(ps_copies_t *self, const ps_copies_t *before)
{
    assert(ps_copies_n_heirs(self) == 1);
    for (uint32_t i = 1; i < self->n; i++) {
        const ps_copy_t *was = ps_copies_on(before, self->at[i].incarnation);

        self->at[i].dropped = was != NULL && was->state == PS_COPY_IN_SYNC;
    }
}

void ps_copies_recall(ps_copies_t *self)
{
    assert(self->fenced);
    /* Forward: a copy that moves goes to a place already visited. */
    for (uint32_t i = 0; i < self->n; i++) {
        if (self->at[i].dropped) {
            ps_copies_set_state(self, i, PS_COPY_KEPT);
        }
    }
}

void ps_copies_forget_dropped(ps_copies_t *self)
{
    for (uint32_t i = 0; i < self->n; i++) {
        self->at[i].dropped = false;
    }
}

static psd_status_t check_copy(const ps_copies_t *self, uint32_t i, psd_error_t *err)
{
    const ps_copy_t *copy = &self->at[i];
    bool is_first = i == 0 && !self->fenced;
    ps_copy_state_t dropped_is = self->fenced ? PS_COPY_KEPT : PS_COPY_CATCHING_UP;

    if (copy->state < PS_COPY_PRIMARY || copy->state > PS_COPY_CATCHING_UP ||
        is_first != (copy->state == PS_COPY_PRIMARY) || (i == 0 && !ps_copy_is_heir(copy)) ||
        (i > 0 && self->at[i - 1].state > copy->state)) {
        return psd_error_set(err, PSD_INVALID, "copy %u of %u%s is %s", i, self->n,
                             self->fenced ? ", fenced," : "", ps_copy_state_name(copy->state));
    }
    if (copy->dropped && copy->state != dropped_is) {
        return psd_error_set(err, PSD_INVALID,
                             "copy %u of %u%s was dropped and is %s; allowed: "
                             "%s",
                             i, self->n, self->fenced ? ", fenced," : "",
                             ps_copy_state_name(copy->state), ps_copy_state_name(dropped_is));
    }
    for (uint32_t j = 0; j < i; j++) {
        if (self->at[j].incarnation == copy->incarnation) {
            return psd_error_set(err, PSD_INVALID, "copies %u and %u are on one node", j, i);
        }
    }
    return PSD_OK;
}

psd_status_t ps_copies_check(const ps_copies_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->n < 1 || self->n > PS_COPIES_MAX) {
        return psd_error_set(err, PSD_INVALID, "there are %u copies; allowed: 1..%d", self->n,
                             PS_COPIES_MAX);
    }
    for (uint32_t i = 0; i < self->n && rc == PSD_OK; i++) {
        rc = check_copy(self, i, err);
    }
    return rc;
}
