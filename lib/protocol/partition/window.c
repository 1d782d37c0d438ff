/* SPDX-License-Identifier: Apache-2.0 */
/* The next seq, and the results of earlier ones. */
#include "protocol/partition/window.h"

#include <string.h>

#include "base/alloc.h"

ps_window_t *ps_window_new(uint64_t session)
{
    ps_window_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->session = session;
        self->next = 1;
        self->arrived = 1;
    }
    return self;
}

void ps_window_destroy(ps_window_t **self_p)
{
    ps_window_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_refusals; i++) {
        ps_free(self->refusals[i].text);
    }
    ps_free(self->refusals);
    ps_free(self);
    *self_p = NULL;
}

ps_admit_t ps_window_admit(const ps_window_t *self, uint64_t seq)
{
    if (seq < self->next) {
        return PS_ADMIT_DUPLICATE;
    }
    if (seq < self->arrived) {
        return PS_ADMIT_QUEUED;
    }
    return seq == self->arrived ? PS_ADMIT_NEXT : PS_ADMIT_GAP;
}

void ps_window_hold(ps_window_t *self)
{
    self->arrived++;
}

void ps_window_let_go(ps_window_t *self)
{
    self->arrived = self->next;
}

void ps_window_finish(ps_window_t *self, uint64_t seq)
{
    if (self->next <= seq) {
        self->next = seq + 1;
    }
    if (self->arrived < self->next) {
        self->arrived = self->next;
    }
}

bool ps_window_reserve(ps_window_t *self)
{
    return ps_grow(&self->refusals, &self->capacity, self->n_refusals + 1, sizeof *self->refusals);
}

bool ps_window_refuse(ps_window_t *self, uint64_t seq, psd_status_t status, const char *text,
                      uint32_t keep)
{
    char *kept = ps_window_reserve(self) ? ps_strdup(text) : NULL;
    size_t n_old = 0;

    if (kept == NULL) {
        return false;
    }

    while (n_old < self->n_refusals && self->refusals[n_old].seq + keep < seq) {
        self->unsure = self->refusals[n_old].seq;
        ps_free(self->refusals[n_old].text);
        n_old++;
    }
    if (n_old > 0) {
        self->n_refusals -= n_old;
        memmove(self->refusals, self->refusals + n_old, self->n_refusals * sizeof *self->refusals);
    }
    self->refusals[self->n_refusals++] = (ps_refusal_t){.seq = seq, .status = status, .text = kept};
    ps_window_finish(self, seq);
    return true;
}

bool ps_window_is_unsure(const ps_window_t *self, uint64_t seq)
{
    return seq <= self->unsure;
}

const ps_refusal_t *ps_window_refusal(const ps_window_t *self, uint64_t seq)
{
    for (size_t i = self->n_refusals; i > 0; i--) {
        if (self->refusals[i - 1].seq == seq) {
            return &self->refusals[i - 1];
        }
    }
    return NULL;
}
