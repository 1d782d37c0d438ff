/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's part of the training: blocks, passes, the end. */
#include "train.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/job/weights.h"
#include "../common/program/program.h"
#include "trainer.h"

/* A block in flight: slopes pushed, sums not yet pulled. */
typedef struct slot {
    size_t n;           /* features in it that are not skipped */
    uint32_t *features; /* n */
    uint64_t *rows;     /* n: their keys */
    double *deltas;     /* 2 n: changes of g and u */
    double *sums;       /* 2 n: g and u over all samples */
    psd_select_t *select;
    psd_ticket_t push;
    psd_ticket_t pull;
} slot_t;

typedef struct run {
    bcd_trainer_t trainer;
    slot_t *slots; /* n_slots, a ring */
    size_t n_slots;
    size_t *order; /* of the blocks */
    bcd_rule_t rule;
    uint64_t random; /* state of the generator, the same in all workers */
    uint64_t n_sent; /* rows of slopes in this pass */
    uint32_t n_passes;
    double *sums; /* of a pass: N_PASS, a violation of each worker, and a 1
                   * of each that has finished it */
    double start_s;
} run_t;

/* splitmix64: Steele, Lea, Flood 2014. */
static uint64_t next_random(run_t *self)
{
    uint64_t z = (self->random += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void slot_done(slot_t *self)
{
    psd_select_destroy(&self->select);
    free(self->features);
    free(self->rows);
    free(self->deltas);
    free(self->sums);
}

static bool slot_init(slot_t *self, size_t greatest)
{
    size_t n = greatest + 1; /* never an allocation of nothing */

    self->select = psd_select_new();
    self->features = malloc(n * sizeof(*self->features));
    self->rows = malloc(n * sizeof(*self->rows));
    self->deltas = malloc(2 * n * sizeof(*self->deltas));
    self->sums = malloc(2 * n * sizeof(*self->sums));
    return self->select != NULL && self->features != NULL && self->rows != NULL &&
           self->deltas != NULL && self->sums != NULL;
}

static psd_status_t run_init(run_t *self, psd_error_t *err)
{
    const bcd_options_t *options = self->trainer.options;
    const bcd_blocks_t *blocks = &self->trainer.blocks;
    bool good = true;

    self->start_s = ex_now_s();
    self->random = options->seed;
    self->rule = (bcd_rule_t){
        .lambda = 1 / options->c,
        .eta = options->eta,
        .delta_max = options->delta_max,
        .skip = -1, /* unknown before the first pass */
    };
    self->n_slots = (size_t)options->delay + 1;
    self->slots = calloc(self->n_slots, sizeof(*self->slots));
    self->order = malloc((blocks->n + 1) * sizeof(*self->order));
    self->sums = malloc(BCD_PASS_COLS(self->trainer.job->n_workers) * sizeof(*self->sums));
    good = self->slots != NULL && self->order != NULL && self->sums != NULL;
    for (size_t i = 0; good && i < self->n_slots; i++) {
        good = slot_init(&self->slots[i], blocks->greatest);
    }
    return good ? PSD_OK : psd_error_set(err, PSD_NOMEM, "%zu blocks in flight", self->n_slots);
}

static void run_done(run_t *self)
{
    for (size_t i = 0; self->slots != NULL && i < self->n_slots; i++) {
        slot_done(&self->slots[i]);
    }
    free(self->slots);
    free(self->order);
    free(self->sums);
    bcd_trainer_done(&self->trainer);
}

/* Lists the features of a block that are not skipped, and the changes of
 * their slopes. */
static void measure_block(bcd_trainer_t *self, slot_t *slot, size_t block)
{
    const bcd_blocks_t *blocks = &self->blocks;

    slot->n = 0;
    for (size_t k = blocks->starts[block]; k < blocks->starts[block + 1]; k++) {
        uint32_t j = blocks->features[k];
        double *pushed = &self->pushed[2 * (size_t)j];
        double *delta = &slot->deltas[2 * slot->n];
        double g = 0;
        double u = 0;

        if (self->weights[j].is_skipped) {
            continue;
        }
        ex_columns_slope(&self->columns, j, self->weights[j].delta, &g, &u);
        delta[0] = g - pushed[0];
        delta[1] = u - pushed[1];
        pushed[0] = g;
        pushed[1] = u;
        slot->features[slot->n] = j;
        slot->rows[slot->n] = self->samples->keys[j];
        slot->n++;
    }
}

/* Sends the slopes of a block, and asks for the sums. */
static psd_status_t start_block(run_t *self, slot_t *slot, size_t block, psd_error_t *err)
{
    bcd_trainer_t *trainer = &self->trainer;
    psd_status_t rc = ex_job_wait(trainer->job, &slot->push, err);

    if (rc != PSD_OK) {
        return rc;
    }
    measure_block(trainer, slot, block);
    self->n_sent += slot->n;
    psd_select_rows(slot->select, slot->rows, slot->n);
    if (slot->n > 0) {
        rc = psd_push_start(trainer->slopes, slot->select, slot->deltas, 2 * slot->n, NULL,
                            &slot->push, err);
    }
    if (rc == PSD_OK) {
        rc = psd_clock(trainer->job->client, err);
    }
    if (rc == PSD_OK && slot->n > 0) {
        rc = psd_pull_start(trainer->slopes, slot->select, slot->sums, 2 * slot->n, NULL,
                            &slot->pull, err);
    }
    return rc;
}

/* Makes the steps of a block: the same in all workers. */
static psd_status_t finish_block(run_t *self, slot_t *slot, psd_error_t *err)
{
    bcd_trainer_t *trainer = &self->trainer;
    psd_status_t rc = ex_job_wait(trainer->job, &slot->pull, err);

    for (size_t i = 0; rc == PSD_OK && i < slot->n; i++) {
        uint32_t j = slot->features[i];
        double d =
            bcd_step(&trainer->weights[j], &self->rule, slot->sums[2 * i], slot->sums[2 * i + 1]);

        if (d != 0) {
            ex_columns_move(&trainer->columns, j, d);
        }
    }
    slot->n = 0;
    return rc;
}

/* The blocks 0 .. n - 1, with at most `delay` of them in flight after the
 * one being measured. */
static psd_status_t run_blocks(run_t *self, size_t n, size_t delay, psd_error_t *err)
{
    size_t n_slots = delay + 1;
    psd_status_t rc = PSD_OK;

    for (size_t b = 0; b < n; b++) {
        self->order[b] = b;
    }
    for (size_t b = n; b > 1 && self->trainer.options->order == 0; b--) {
        size_t other = (size_t)(next_random(self) % b);
        size_t block = self->order[other];

        self->order[other] = self->order[b - 1];
        self->order[b - 1] = block;
    }
    for (size_t k = 0; rc == PSD_OK && k < n + n_slots; k++) {
        slot_t *slot = &self->slots[k % n_slots];

        if (k >= n_slots && k - n_slots < n) {
            rc = finish_block(self, slot, err);
        }
        if (rc == PSD_OK && k < n) {
            rc = start_block(self, slot, self->order[k], err);
        }
    }
    return rc;
}

/* The slopes of a lost worker stay in the sums while the weights change:
 * from then on no step reduces F for certain. */
static psd_status_t check_all_ended(const run_t *self, psd_error_t *err)
{
    uint32_t n_workers = self->trainer.job->n_workers;

    for (uint32_t w = 0; w < n_workers; w++) {
        if (self->sums[N_PASS + n_workers + w] == 0) {
            return psd_error_set(err, PSD_WORKER_LOST,
                                 "worker %" PRIu32 " is gone before the end of pass %" PRIu32
                                 "; restart the job",
                                 w, self->n_passes + 1);
        }
    }
    return PSD_OK;
}

/* Adds this worker's part to the sums of the pass, and gets them. Puts the
 * greatest violation of all in the first worker's place. */
static psd_status_t sum_pass(run_t *self, psd_error_t *err)
{
    bcd_trainer_t *trainer = &self->trainer;
    uint32_t n_workers = trainer->job->n_workers;
    size_t n = BCD_PASS_COLS(n_workers);
    uint64_t row = self->n_passes;
    double violation = 0;
    psd_status_t rc = PSD_OK;

    memset(self->sums, 0, n * sizeof(*self->sums));
    self->sums[PASS_LOSS] = ex_columns_loss(&trainer->columns);
    self->sums[PASS_SENT] = (double)self->n_sent;
    for (size_t j = 0; j < trainer->columns.n; j++) {
        const bcd_weight_t *weight = &trainer->weights[j];

        if (trainer->is_owned[j]) {
            self->sums[PASS_PENALTY] += fabs(weight->w);
            self->sums[PASS_NONZEROS] += weight->w != 0;
            self->sums[PASS_ACTIVE] += !weight->is_skipped;
        }
        if (!weight->is_skipped) {
            violation = fmax(violation, weight->violation);
        }
    }
    self->sums[N_PASS + trainer->job->worker] = violation;
    self->sums[N_PASS + n_workers + trainer->job->worker] = 1;
    rc = psd_push(trainer->passes, &row, 1, self->sums, n, err);
    if (rc == PSD_OK) {
        rc = psd_clock(trainer->job->client, err);
    }
    if (rc == PSD_OK) {
        rc = psd_pull(trainer->passes, &row, 1, self->sums, n, err);
    }
    if (rc == PSD_OK) {
        rc = check_all_ended(self, err);
    }
    for (uint32_t w = 1; w < n_workers; w++) {
        self->sums[N_PASS] = fmax(self->sums[N_PASS], self->sums[N_PASS + w]);
    }
    return rc;
}

static void tell_pass(const run_t *self, const bcd_result_t *result, const char *what)
{
    (void)printf("%7.1f s  pass %" PRIu32 "  F %.6g  loss %.5f  nonzeros "
                 "%" PRIu64 "  active %.0f  sent %.0f  violation %.3g%s\n",
                 ex_now_s() - self->start_s, result->n_passes, result->f, result->loss,
                 result->n_nonzeros, self->sums[PASS_ACTIVE], self->sums[PASS_SENT],
                 self->sums[N_PASS], what);
    (void)fflush(stdout); /* a pipe would keep it until the end */
}

/* One pass over n blocks. */
static psd_status_t run_pass(run_t *self, size_t n, size_t delay, bcd_result_t *result,
                             psd_error_t *err)
{
    const bcd_options_t *options = self->trainer.options;
    psd_status_t rc = PSD_OK;

    self->n_sent = 0;
    rc = run_blocks(self, n, delay, err);
    if (rc == PSD_OK) {
        rc = bcd_trainer_save(&self->trainer, err);
    }
    if (rc == PSD_OK) {
        rc = sum_pass(self, err);
    }
    self->n_passes++;
    result->n_passes = self->n_passes;
    result->loss = self->sums[PASS_LOSS] / self->trainer.n_samples;
    result->f = options->c * self->sums[PASS_LOSS] + self->sums[PASS_PENALTY];
    result->n_nonzeros = (uint64_t)self->sums[PASS_NONZEROS];
    return rc;
}

static void activate_all(bcd_trainer_t *self)
{
    for (size_t j = 0; j < self->columns.n; j++) {
        self->weights[j].is_skipped = false;
    }
}

/* Passes over all blocks, until F has stood still in two successive ones.
 * The second looks at all weights. Weights that it finds skippable are
 * skipped from the next pass on, so that nothing is sent in vain. */
static psd_status_t run_passes(run_t *self, bcd_result_t *result, psd_error_t *err)
{
    bcd_trainer_t *trainer = &self->trainer;
    const bcd_options_t *options = trainer->options;
    double before = INFINITY;
    bool still = false;
    psd_status_t rc = PSD_OK;

    for (uint32_t pass = 0; rc == PSD_OK && pass < options->passes && !result->has_converged;
         pass++) {
        const char *what = "";

        rc = run_pass(self, trainer->blocks.n, options->delay, result, err);
        self->rule.skip = options->kkt == EX_YES
                              ? self->sums[N_PASS] / trainer->n_samples * options->kkt_ratio
                              : -1;
        if (fabs(before - result->f) <= options->epsilon * result->f) {
            result->has_converged = still;
            what = still ? "  converged again" : "  converged: all are active";
            activate_all(trainer);
            still = true;
        } else {
            still = false;
        }
        before = result->f;
        if (rc == PSD_OK && trainer->job->worker == 0) {
            tell_pass(self, result, what);
        }
    }
    return rc;
}

static psd_status_t run_all(run_t *self, bcd_result_t *result, psd_error_t *err)
{
    const bcd_trainer_t *trainer = &self->trainer;
    uint32_t n_prior = trainer->blocks.n_prior > 0 ? trainer->options->prior_passes : 0;
    psd_status_t rc = run_init(self, err);

    if (rc == PSD_OK && trainer->job->worker == 0) {
        (void)printf("%zu blocks, %zu of them first\n", trainer->blocks.n, trainer->blocks.n_prior);
    }
    for (uint32_t pass = 0; rc == PSD_OK && pass < n_prior; pass++) {
        rc = run_pass(self, trainer->blocks.n_prior, 0, result, err);
        if (rc == PSD_OK && trainer->job->worker == 0) {
            tell_pass(self, result, "  first groups");
        }
    }
    return rc == PSD_OK ? run_passes(self, result, err) : rc;
}

/* Waits for all, gives worker 0 the model, and drops the tables of this run. */
static psd_status_t end_all(run_t *self, ex_model_t *ret_model, psd_error_t *err)
{
    static const char *const TABLES[] = {"size",   "greatest", "owners", "places",
                                         "groups", "slopes",   "passes"};
    bcd_trainer_t *trainer = &self->trainer;
    psd_status_t rc = ex_job_meet(trainer->job, err);

    if (rc != PSD_OK || trainer->job->worker != 0) {
        return rc;
    }
    rc = ex_weights_pull(trainer->job, trainer->table, ret_model, err);
    psd_table_close(&trainer->slopes);
    psd_table_close(&trainer->passes);
    for (size_t i = 0; rc == PSD_OK && i < EX_COUNT(TABLES); i++) {
        char name[EX_NAME_SIZE];

        bcd_trainer_name(trainer, TABLES[i], name);
        rc = ex_job_drop(trainer->job, name, err);
    }
    return rc;
}

psd_status_t bcd_train(ex_job_t *job, const bcd_options_t *options, ex_samples_t *samples,
                       bcd_result_t *ret_result, ex_model_t *ret_model, psd_error_t *err)
{
    run_t self = {0};
    bcd_result_t result = {0};
    psd_status_t rc = bcd_trainer_init(&self.trainer, job, options, samples, err);

    result.n_samples = self.trainer.n_samples;
    if (rc == PSD_OK) {
        rc = run_all(&self, &result, err);
    }
    if (rc == PSD_OK) {
        rc = end_all(&self, ret_model, err);
    }
    run_done(&self);
    *ret_result = result;
    return rc;
}
