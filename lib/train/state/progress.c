/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a training: done, total, rate. */
#include "train/state/train_state.h"

void psd_train_on_progress(psd_train_t *self, psd_train_progress_t *call)
{
    /* cppcheck takes the pointer to a function for a number. */
    /* cppcheck-suppress AssignmentAddressToInteger */
    self->on_progress = call;
}

void psd_train_set_total(psd_train_t *self, uint64_t total)
{
    self->counts.total = total;
}

void psd_trainer_done(psd_trainer_t *self, uint64_t n)
{
    self->n_done += n;
    self->says_done = true;
}

double psd_train_rate(const psd_train_t *self)
{
    uint64_t end_ms = self->ended_ms;
    uint64_t begun_ms = self->begun_ms;

    if (begun_ms == 0) {
        return 0;
    }
    if (end_ms == 0) {
        end_ms = ps_train_now_ms();
    }
    return end_ms <= begun_ms ? 0 : (double)self->counts.done * 1e3 / (double)(end_ms - begun_ms);
}

double psd_train_left_s(const psd_train_t *self)
{
    uint64_t done = self->counts.done;
    uint64_t total = self->counts.total;
    double rate = psd_train_rate(self);

    if (total == 0 || (rate <= 0 && done < total)) {
        return -1;
    }
    return done >= total ? 0 : (double)(total - done) / rate;
}

void ps_train_progress_add(psd_train_t *self, uint64_t n_blocks)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < self->options.n_trainers; i++) {
        psd_trainer_t *trainer = &self->trainers[i];

        if (trainer->says_done && !self->says_done) {
            self->says_done = true; /* blocks were counted till now */
            self->counts.done = 0;
        }
        n += trainer->n_done;
        trainer->n_done = 0;
    }
    self->counts.done += self->says_done ? n : n_blocks;
}

void ps_train_progress_tell(psd_train_t *self, bool last)
{
    uint64_t now_ms = ps_train_now_ms();

    if (self->on_progress == NULL ||
        (!last && now_ms - self->told_ms < self->options.progress_ms)) {
        return;
    }
    self->told_ms = now_ms;
    self->on_progress(self->user, self->counts.done, self->counts.total, psd_train_rate(self),
                      psd_train_left_s(self));
}
