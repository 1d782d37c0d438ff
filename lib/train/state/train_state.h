/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/train/state: a training as its threads share it
 *
 * It is       The struct with its one mutex, failing, waiting, items, progress.
 * It uses     values, lib/include, lib/transport/threads, lib/base.
 * It ignores  What the threads do: they stand above.
 * Start at    struct psd_train.
 */
/*
 * psd_train - the state of a training, and which thread works on what
 *
 * Items, blocks and marks of clocks, pass the loader one by one, then all
 * trainers together, in their order. An item is numbered from 1.
 *
 * One mutex guards everything below marked "guarded"; one condition variable is
 * signalled at every change. Call-backs run without the mutex.
 */
#ifndef PS_TRAIN_TRAIN_STATE_H
#define PS_TRAIN_TRAIN_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "psd_train.h"
#include "train/values/binder.h"
#include "train/values/cache.h"
#include "train/values/kept.h"
#include "train/values/sums.h"

#define PS_TRAIN_TABLES_MAX 64
#define PS_TRAIN_EVENTS 5
#define PS_TRAIN_JOB_SIZE 64
#define PS_REASON_SIZE 160 /* of the text that says what a training waits for */
#define PS_WHY_SIZE 512    /* of a node's text about a slice */

typedef enum ps_train_lock {
    PS_LOCK_IMMUTABLE = 0,
    PS_LOCK_FREE = 1,
    PS_LOCK_LOCKED = 2
} ps_train_lock_t;

typedef struct ps_train_options {
    char *endpoint; /* owned; NULL: psd_connect's own */
    char *job;      /* owned; NULL: psd_join's own */
    int64_t worker;
    uint32_t n_workers;
    int32_t max_delay;
    uint32_t n_trainers;
    uint32_t pipeline; /* 0 off, 1 on */
    uint32_t max_blocks;
    uint32_t push_every;
    uint32_t fetch_every;
    int64_t staleness; /* PS_KEPT_NEVER: off */
    int64_t keep_bytes;
    uint32_t outer_every;     /* clocks of the training in one of psd's; 0: each is one */
    uint32_t outer_fragments; /* 1 .. */
    uint32_t outer_overlap;
    ps_train_lock_t lock;
    uint32_t n_locks;
    uint32_t timeout_ms;
    uint32_t progress_ms;
    char *queue; /* owned; NULL: no work queue */
    uint32_t n_slices;
    uint32_t n_epochs;
    uint32_t said; /* bits of the options that the program has set, in the table's order */
} ps_train_options_t;

typedef enum ps_train_phase {
    PS_TRAIN_NEW = 0,
    PS_TRAIN_CONFIG = 1,
    PS_TRAIN_READY = 2,
    PS_TRAIN_RUNNING = 3,
    PS_TRAIN_ENDED = 4
} ps_train_phase_t;

typedef enum ps_item_kind {
    PS_ITEM_BLOCK = 0,
    PS_ITEM_CLOCK_BEGIN = 1,
    PS_ITEM_CLOCK_END = 2,
    PS_ITEM_SLICE = 3, /* the caller wants another slice */
    PS_ITEM_REST = 4   /* outer steps: all that is left is to be sent */
} ps_item_kind_t;

typedef struct ps_item {
    TAILQ_ENTRY(ps_item) in_list;
    uint64_t number;
    ps_item_kind_t kind;
    void *block; /* owned, by free_block */
    psd_train_free_t *free_block;
    ps_cache_t *cache; /* of a block that is loaded; borrowed */
    uint64_t n_block;  /* of blocks: their own number, from 1 */
    bool ends_clock;   /* psd's clock ends with it */
    uint64_t n_clock;  /* of psd's since the training began, that it belongs to; from 1 */
    uint32_t n_inner;  /* clocks of the training that ended before it in that one */
    bool pulled;       /* guarded: its pulls are over */
    bool ready;        /* guarded: the loader has finished it */
    uint32_t n_left;   /* guarded: trainers that have not finished it */
} ps_item_t;
TAILQ_HEAD(ps_items, ps_item);

typedef enum ps_parcel_kind {
    PS_PARCEL_PULL = 0,
    PS_PARCEL_PUSH = 1,
    PS_PARCEL_CLOCK = 2,
    PS_PARCEL_SLICE = 3
} ps_parcel_kind_t;

typedef struct ps_parcel {
    TAILQ_ENTRY(ps_parcel) in_list;
    ps_parcel_kind_t kind;
    ps_cache_t *cache;   /* PULL: where to; borrowed, ahead: owned */
    bool ahead;          /* PULL: no block waits for it; it is kept */
    uint64_t n_block;    /* PULL, PUSH: for error texts */
    ps_sheaf_t *sheaves; /* PUSH: owned; one for each table */
    size_t n_sheaves;
    uint32_t **cols; /* PULL: owned, as each list is; of elements */
    size_t n_cols;   /* such lists: one for each table that has some */
    size_t cols_capacity;
    psd_ticket_t *tickets; /* owned; those started and not ended */
    size_t n_tickets;
    size_t tickets_capacity;
    bool *done_p; /* PULL: guarded; set when it is over */
} ps_parcel_t;
TAILQ_HEAD(ps_parcels, ps_parcel);

typedef struct ps_intent ps_intent_t;
TAILQ_HEAD(ps_intents, ps_intent);

/* What a thread is doing; guarded. */
typedef struct ps_doing {
    const char *what; /* static; NULL: it waits for work */
    uint64_t n_block; /* 0: no block */
} ps_doing_t;

struct psd_trainer {
    psd_train_t *train;
    uint32_t id;
    pthread_t thread;
    ps_doing_t doing;
    ps_cache_t *cache; /* of the block under work; NULL: none */
    ps_sums_t *sums;   /* owned; one for each table */
    uint64_t n_adds;
    uint64_t n_done; /* psd_trainer_done in this item */
    bool says_done;
    psd_status_t fault;     /* the first invalid access */
    psd_error_t *fault_err; /* owned */
    char apart[128];        /* no line is shared: every add writes to n_adds */
};

struct psd_loader {
    psd_train_t *train;
    pthread_t thread;
    ps_doing_t doing;
    ps_cache_t *cache; /* of the block that is loaded */
};

typedef struct ps_train_counts {
    _Atomic uint64_t blocks;
    _Atomic uint64_t clocks;
    _Atomic uint64_t rows_asked;
    _Atomic uint64_t rows_pulled;
    _Atomic uint64_t cells_asked;
    _Atomic uint64_t cells_pulled;
    _Atomic uint64_t adds;
    _Atomic uint64_t entries_pushed;
    _Atomic uint64_t done;
    _Atomic uint64_t total;
} ps_train_counts_t;

/* What the courier does for the next slice. */
typedef enum ps_slice_step {
    PS_SLICE_NONE = 0,
    PS_SLICE_PUSHES = 1,
    PS_SLICE_SAY = 2,
    PS_SLICE_ASK = 3
} ps_slice_step_t;

typedef struct ps_train_slice {
    /* guarded */
    bool wanted;    /* the caller has asked, and has not got one yet */
    bool counting;  /* the one before may not be counted yet */
    bool here;      /* the answer: */
    uint64_t epoch; /* of the slice that this worker has; 0: it has none */
    uint32_t slice;
    char why[PS_WHY_SIZE]; /* it takes so long */

    /* the courier's */
    ps_slice_step_t step;
    bool asking;       /* a question is under way */
    bool waits;        /* none was free when it was asked last */
    uint64_t again_ms; /* when to ask again */
    uint64_t clock;    /* when it was asked */
} ps_train_slice_t;

/* The state of this worker's initial values of one table. */
typedef struct ps_first {
    psd_table_t *marks; /* owned */
    uint64_t row;       /* of them */
    bool known;
    bool adds;   /* this run adds them */
    bool partly; /* an add failed: they stay BEGUN */
} ps_first_t;

struct psd_train {
    void *user;
    unsigned n_forks; /* before it was made */
    psd_train_load_t *on_load;
    psd_train_call_t *on[PS_TRAIN_EVENTS];
    psd_train_progress_t *on_progress;
    ps_train_options_t options;
    ps_train_phase_t phase;

    /* The caller's thread's; the courier's while it runs. */
    psd_client_t *client;                     /* owned */
    psd_table_t *tables[PS_TRAIN_TABLES_MAX]; /* owned */
    psd_call_t *call;                         /* owned; of pulls and pushes */
    psd_work_t *work;                         /* owned; NULL: no queue */
    bool late;                  /* the job's first clock had ended when this worker joined */
    uint64_t first_clock;       /* training clocks that had ended then */
    psd_client_t *first_client; /* owned; of first; NULL: none is needed */
    ps_first_t first[PS_TRAIN_TABLES_MAX];

    ps_shape_t shapes[PS_TRAIN_TABLES_MAX];
    uint32_t n_tables;
    uint32_t worker;
    uint32_t n_workers; /* of the job */
    int32_t max_delay;

    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool has_mutex;

    /* guarded */
    struct ps_items items;     /* pushed and not done; owned */
    uint64_t n_items;          /* pushed so far */
    uint64_t n_blocks;         /* the same of blocks */
    uint64_t n_clocks;         /* of psd's that items have ended so far */
    uint32_t n_inner;          /* of the training's, since the last of those */
    uint64_t n_prefetched;     /* pulls ahead that are over */
    uint32_t n_open;           /* blocks not done */
    bool stop;                 /* threads are to end when nothing is left to do */
    psd_status_t failed;       /* they are to end now */
    psd_error_t *why;          /* owned; of failed */
    struct ps_parcels parcels; /* handed over and not started; owned */
    uint32_t n_parcels;        /* handed over and not over */
    uint32_t n_pushes;         /* the same of pushes */
    bool unflushed;            /* pushes or marks are not acknowledged */
    const char *waits_for;     /* what the courier waits for; static */
    ps_train_slice_t slice;    /* half of it */

    /* the caller's thread's */
    bool in_clock;
    bool has_rest; /* outer steps: clocks ended, and all that is left was not sent since */
    bool has_courier;
    bool has_loader;
    uint32_t n_started; /* trainers that have threads */
    pthread_t courier;

    psd_loader_t loader;
    psd_trainer_t *trainers; /* owned; options.n_trainers */
    ps_cache_t caches[2];
    uint32_t n_caches;
    pthread_mutex_t *locks; /* owned; LOCKED only */
    uint32_t n_locks;       /* that are initialised */

    bool keeps;                /* rows are kept */
    ps_kept_t kept;            /* its own lock guards it, and intents and drift */
    struct ps_intents intents; /* owned */
    ps_sums_t *drift; /* owned; outer steps: what trainers added to each table and was not sent */
    ps_sums_t *later; /* owned; outer steps: room for what the next push leaves */

    ps_sums_t *merged;  /* owned; of the trainer that came last to an item */
    ps_binder_t binder; /* as merged */
    uint32_t n_unsent;  /* blocks since sums were sent; as merged */
    bool says_done;     /* trainers count what is done; as merged */
    uint64_t told_ms;   /* of progress; as merged */

    _Atomic uint64_t begun_ms; /* 0: it has not */
    _Atomic uint64_t ended_ms; /* the same */

    ps_train_counts_t counts;
};

/* Begins every public call: clears err. Errors: PSD_CLOSED: this process was
 * forked after the training was made. */
PSD_MUST_CHECK psd_status_t ps_train_enter(const psd_train_t *self, psd_error_t *err);

void ps_train_lock(psd_train_t *self);
void ps_train_unlock(psd_train_t *self);
/* Wakes all threads that wait for a change of a guarded member. Locked. */
void ps_train_tell(psd_train_t *self);
/* Waits for the next change. Locked. */
void ps_train_await(psd_train_t *self);
/* The same until a time of ps_train_now_ms at the latest. */
void ps_train_await_until(psd_train_t *self, uint64_t until_ms);
uint64_t ps_train_now_ms(void);
/* Ends the training with that, unless something failed before. Not locked. */
void ps_train_fail(psd_train_t *self, psd_status_t rc, const psd_error_t *why);
/* The same, locked. */
void ps_train_fail_locked(psd_train_t *self, psd_status_t rc, const psd_error_t *why);
/* If it failed: leaves the job with the reason, so that no worker waits for it.
 * For the thread that uses the client. Not locked. */
void ps_train_leave_failed(psd_train_t *self);
/* PSD_OK, or what it failed with. Locked. */
PSD_MUST_CHECK psd_status_t ps_train_check(const psd_train_t *self, psd_error_t *err);

/* ---- progress.c ---- */

/* Counts a block, or the end of a clock (n_blocks 0), that is done; no trainer
 * works. */
void ps_train_progress_add(psd_train_t *self, uint64_t n_blocks);
/* Runs the progress call-back when it is due; last: for the last time. */
void ps_train_progress_tell(psd_train_t *self, bool last);

/* ---- items ---- */

/* Frees a block and its item. */
void ps_item_destroy(ps_item_t **self_p);
/* Appends an item to the others. Locked. */
void ps_item_add(psd_train_t *self, ps_item_t *item);
/* It runs and has not failed. Errors: PSD_INVALID; what it failed with. */
PSD_MUST_CHECK psd_status_t ps_train_check_running(psd_train_t *self, psd_error_t *err);
/* What the training waits for, in words. Locked. */
void ps_train_print_reason(const psd_train_t *self, char ret_text[PS_REASON_SIZE]);
#endif
