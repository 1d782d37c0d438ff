/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping. */
#include <sched.h>

#include "base/alloc.h"
#include "train/blocks/blocks.h"
#include "train/courier/courier.h"
#include "train/setup/setup.h"
#include "train/train.h"
#include "transport/threads/fork.h"
#include "transport/threads/thread.h"

/* ---- making and destroying ----------------------------------------------- */

static bool init_mutex(psd_train_t *self)
{
    self->has_mutex = ps_cond_init(&self->changed) == 0;
    if (self->has_mutex && pthread_mutex_init(&self->mutex, NULL) != 0) {
        (void)pthread_cond_destroy(&self->changed);
        self->has_mutex = false;
    }
    return self->has_mutex;
}

psd_train_t *psd_train_new(void *user)
{
    psd_train_t *self = ps_alloc(1, sizeof *self);

    if (self == NULL) {
        return NULL;
    }
    self->user = user;
    self->n_forks = ps_fork_count();
    TAILQ_INIT(&self->items);
    TAILQ_INIT(&self->parcels);
    TAILQ_INIT(&self->intents);
    ps_train_options_init(&self->options);
    self->why = psd_error_new();
    self->call = psd_call_new();
    if (self->why == NULL || self->call == NULL || !init_mutex(self)) {
        psd_train_destroy(&self);
    }
    return self;
}

static void free_sums(const psd_train_t *self, ps_sums_t **sums_p)
{
    for (uint32_t i = 0; *sums_p != NULL && i < self->n_tables; i++) {
        ps_sums_done(&(*sums_p)[i]);
    }
    ps_free(*sums_p);
    *sums_p = NULL;
}

static void free_trainers(psd_train_t *self)
{
    for (uint32_t i = 0; self->trainers != NULL && i < self->options.n_trainers; i++) {
        psd_trainer_t *trainer = &self->trainers[i];

        free_sums(self, &trainer->sums);
        psd_error_destroy(&trainer->fault_err);
    }
    ps_free(self->trainers);
    self->trainers = NULL;
    free_sums(self, &self->merged);
    free_sums(self, &self->drift);
    free_sums(self, &self->later);
    ps_binder_done(&self->binder);
}

/* Frees the memory of the threads, which have ended. */
static void free_work(psd_train_t *self)
{
    while (!TAILQ_EMPTY(&self->items)) {
        ps_item_t *item = TAILQ_FIRST(&self->items);

        TAILQ_REMOVE(&self->items, item, in_list);
        ps_item_destroy(&item);
    }
    while (!TAILQ_EMPTY(&self->parcels)) {
        ps_parcel_t *parcel = TAILQ_FIRST(&self->parcels);

        TAILQ_REMOVE(&self->parcels, parcel, in_list);
        ps_parcel_destroy(&parcel);
    }
    free_trainers(self);
    for (uint32_t i = 0; i < self->n_caches; i++) {
        ps_cache_done(&self->caches[i]);
    }
    self->n_caches = 0;
    for (uint32_t i = 0; i < self->n_locks; i++) {
        (void)pthread_mutex_destroy(&self->locks[i]);
    }
    ps_free(self->locks);
    self->locks = NULL;
    ps_intents_free(self);
    ps_kept_done(&self->kept);
    self->n_locks = 0;
}

/* The caller destroys it before its end. */
static void give_up(psd_train_t *self)
{
    ps_train_lock(self);
    if (self->failed == PSD_OK) {
        self->failed = PSD_CLOSED;
        (void)psd_error_set(self->why, PSD_CLOSED, "the training was destroyed before it ended");
        ps_train_tell(self);
    }
    ps_train_unlock(self);
    if (self->phase == PS_TRAIN_RUNNING) {
        ps_train_stop(self);
    } else {
        ps_train_leave_failed(self);
    }
}

void psd_train_destroy(psd_train_t **self_p)
{
    psd_train_t *self = self_p == NULL ? NULL : *self_p;
    bool is_forked = self != NULL && ps_fork_is_since(self->n_forks);

    if (self == NULL) {
        return;
    }
    if (is_forked && self->phase == PS_TRAIN_RUNNING) {
        ps_fork_keep(self); /* its threads may have been using any of it */
        *self_p = NULL;
        return;
    }
    if (self->phase != PS_TRAIN_NEW && self->phase != PS_TRAIN_ENDED && !is_forked) {
        give_up(self);
    }
    for (uint32_t i = 0; i < self->n_tables; i++) {
        psd_table_close(&self->tables[i]);
    }
    ps_first_close(self);
    psd_work_close(&self->work);
    psd_close(&self->client);
    psd_call_destroy(&self->call);
    psd_error_destroy(&self->why);
    ps_train_options_done(&self->options);
    if (self->has_mutex) {
        (void)pthread_cond_destroy(&self->changed);
        (void)pthread_mutex_destroy(&self->mutex);
    }
    ps_free(self);
    *self_p = NULL;
}

void psd_train_on_load(psd_train_t *self, psd_train_load_t *call)
{
    self->on_load = call;
}

void psd_train_on(psd_train_t *self, psd_train_event_t event, psd_train_call_t *call)
{
    if ((unsigned)event < PS_TRAIN_EVENTS) {
        /* cppcheck takes the pointer to a function for a number. */
        /* cppcheck-suppress AssignmentAddressToInteger */
        self->on[event] = call;
    }
}

/* ---- threads ------------------------------------------------------------- */

static psd_status_t init_sums(const psd_train_t *self, ps_sums_t **ret_sums, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *ret_sums = ps_alloc(self->n_tables, sizeof **ret_sums);
    if (*ret_sums == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for sums of deltas");
    }
    for (uint32_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
        rc = ps_sums_init(&(*ret_sums)[i], &self->shapes[i], err);
    }
    return rc;
}

/* While sums are added up no trainer works: as many threads as trainers, but no
 * more than cores that they may run on. */
static psd_status_t init_binder(psd_train_t *self, psd_error_t *err)
{
    uint32_t n = self->options.n_trainers;
    cpu_set_t set;

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0 && (uint32_t)CPU_COUNT(&set) < n) {
        n = (uint32_t)CPU_COUNT(&set);
    }
    return ps_binder_init(&self->binder, n, err);
}

static psd_status_t init_trainers(psd_train_t *self, psd_error_t *err)
{
    psd_status_t rc = init_sums(self, &self->merged, err);

    if (rc == PSD_OK) {
        rc = init_binder(self, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->trainers = ps_alloc(self->options.n_trainers, sizeof *self->trainers);
    if (self->trainers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for trainers");
    }
    for (uint32_t i = 0; rc == PSD_OK && i < self->options.n_trainers; i++) {
        psd_trainer_t *trainer = &self->trainers[i];

        trainer->train = self;
        trainer->id = i;
        trainer->fault_err = psd_error_new();
        rc = trainer->fault_err == NULL ? psd_error_set(err, PSD_NOMEM, "no memory for trainers")
                                        : init_sums(self, &trainer->sums, err);
    }
    return rc;
}

static psd_status_t init_locks(psd_train_t *self, psd_error_t *err)
{
    if (self->options.lock != PS_LOCK_LOCKED) {
        return PSD_OK;
    }
    self->locks = ps_alloc(self->options.n_locks, sizeof *self->locks);
    if (self->locks == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for locks");
    }
    while (self->n_locks < self->options.n_locks) {
        if (pthread_mutex_init(&self->locks[self->n_locks], NULL) != 0) {
            return psd_error_set(err, PSD_FAILED, "a lock cannot be made");
        }
        self->n_locks++;
    }
    return PSD_OK;
}

static psd_status_t init_kept(psd_train_t *self, psd_error_t *err)
{
    const ps_train_options_t *options = &self->options;
    bool outer = options->outer_every > 0;
    const ps_kept_rule_t rule = {.n_blocks = options->fetch_every,
                                 .staleness = options->staleness,
                                 .max_bytes = (uint64_t)options->keep_bytes,
                                 .bsp = self->max_delay == 0,
                                 .n_parts = outer ? options->outer_fragments : 0,
                                 .turn = psd_clock_count(self->client) - 1, /* one configured it */
                                 .overlap = options->outer_overlap};

    self->keeps = options->fetch_every > 1 || options->staleness >= 0 || outer;
    return self->keeps ? ps_kept_init(&self->kept, &rule, self->shapes, self->n_tables, err)
                       : PSD_OK;
}

static psd_status_t init_work(psd_train_t *self, psd_error_t *err)
{
    uint32_t n_caches = self->options.pipeline == 1 ? 2 : 1;
    psd_status_t rc = init_trainers(self, err);

    if (rc == PSD_OK) {
        rc = init_locks(self, err);
    }
    if (rc == PSD_OK) {
        rc = init_kept(self, err);
    }
    if (rc == PSD_OK && self->options.outer_every > 0) {
        rc = init_sums(self, &self->drift, err);
    }
    if (rc == PSD_OK && self->options.outer_every > 0) {
        rc = init_sums(self, &self->later, err);
    }
    while (rc == PSD_OK && self->n_caches < n_caches) {
        rc = ps_cache_init(&self->caches[self->n_caches], self->shapes, self->n_tables, err);
        self->n_caches += rc == PSD_OK ? 1 : 0;
    }
    return rc;
}

/* Call-backs run in the loader and in the trainers: these threads, and those
 * that they start, have the caller's signal mask. */
static bool start_threads(psd_train_t *self)
{
    self->has_courier = ps_thread_start(&self->courier, ps_courier_run, self) == 0;
    if (!self->has_courier) {
        return false;
    }
    self->loader.train = self;
    self->has_loader = pthread_create(&self->loader.thread, NULL, ps_loader_run, self) == 0;
    if (!self->has_loader) {
        return false;
    }
    while (self->n_started < self->options.n_trainers) {
        psd_trainer_t *trainer = &self->trainers[self->n_started];

        if (pthread_create(&trainer->thread, NULL, ps_trainer_run, trainer) != 0) {
            return false;
        }
        self->n_started++;
    }
    return true;
}

psd_status_t psd_train_begin(psd_train_t *self, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = PSD_OK;

    if (self->phase != PS_TRAIN_READY) {
        return psd_error_set(err, PSD_INVALID,
                             "psd_train_begin is called once, after psd_train_config_end");
    }
    if (self->on[PSD_TRAIN_STEP] == NULL) {
        return psd_error_set(err, PSD_INVALID, "no call-back is set for PSD_TRAIN_STEP");
    }
    psd_call_set_timeout_ms(self->call, self->options.timeout_ms);
    psd_call_set_borrow(self->call, true);
    rc = init_work(self, err);
    if (rc != PSD_OK) {
        free_work(self);
        return rc;
    }
    self->phase = PS_TRAIN_RUNNING;
    self->begun_ms = ps_train_now_ms();
    self->told_ms = self->begun_ms;
    if (!start_threads(self)) {
        rc = psd_error_set(err, PSD_FAILED, "a thread cannot be started");
        ps_train_fail(self, rc, err);
        ps_train_stop(self);
        ps_train_leave_failed(self);
        self->phase = PS_TRAIN_ENDED;
    }
    return rc;
}

void ps_train_stop(psd_train_t *self)
{
    ps_train_lock(self);
    self->stop = true;
    ps_train_tell(self);
    ps_train_unlock(self);
    for (uint32_t i = 0; i < self->n_started; i++) {
        (void)pthread_join(self->trainers[i].thread, NULL);
    }
    self->n_started = 0;
    if (self->has_loader) {
        (void)pthread_join(self->loader.thread, NULL);
        self->has_loader = false;
    }
    if (self->has_courier) {
        (void)pthread_join(self->courier, NULL);
        self->has_courier = false;
    }
    free_work(self);
}
