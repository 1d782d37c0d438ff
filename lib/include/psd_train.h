/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_train - training driven by data: blocks in, model out
 *
 *     psd_train_t *train = psd_train_new(&my_job);
 *     psd_train_set(train, "trainers", "4", err);
 *     psd_train_on_load(train, ask_for_what_the_block_needs);
 *     psd_train_on(train, PSD_TRAIN_STEP, learn_from_the_block);
 *
 *     psd_train_config_begin(train, err);
 *     psd_train_table(train, "weights", spec, &weights, err);
 *     psd_train_config_end(train, err);
 *
 *     psd_train_begin(train, err);
 *     while (…) {
 *         psd_train_clock_begin(train, err);
 *         psd_train_push_block(train, block, free_block, 60000, err);
 *         psd_train_clock_end(train, err);
 *     }
 *     psd_train_end(train, 60000, err);
 *     psd_train_destroy(&train);
 *
 * What     The caller feeds blocks of data. For each one a loader thread runs
 *          the caller's load call-back, which names the parameters that the
 *          block needs, and has them fetched into a cache; then all trainer
 *          threads work on the block together, read the cache and add deltas.
 *          Deltas of all trainers are summed up here, and what was touched is
 *          sent once. While they train on one block the next one is loaded.
 * Owner    A block is the caller's until psd_train_push_block has taken it;
 *          from then on its free call-back is called exactly once.
 * Threads  psd_train_t: one thread at a time. A loader or trainer handle is
 *          that of the call-back it was given to, until that returns. Threads
 *          of call-backs have the signal mask of psd_train_begin's caller.
 * Errors   The first failure, of a call-back, a pull or a push, ends the
 *          training: threads stop, and every later call says what the failure
 *          was. Blocks that were not done stay until psd_train_destroy, which
 *          frees them.
 */
#ifndef PSD_TRAIN_H
#define PSD_TRAIN_H

#include "psd.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct psd_train psd_train_t;
typedef struct psd_loader psd_loader_t;
typedef struct psd_trainer psd_trainer_t;

/* Names the parameters that a block needs, with psd_loader_…; may parse the
 * block, too. Runs in the loader's thread. */
typedef psd_status_t psd_train_load_t(void *user, psd_loader_t *loader, void *block,
                                      psd_error_t *err);
/* Runs in each trainer's thread; block is NULL at the ends of a clock. */
typedef psd_status_t psd_train_call_t(void *user, psd_trainer_t *trainer, void *block,
                                      psd_error_t *err);
/*
 * How far the training is: what psd_trainer_done has said, or blocks; of how
 * much, 0: nobody knows; done in a second, since psd_train_begin; seconds that
 * are left at that rate, < 0: nobody knows. Runs in a trainer's thread behind a
 * block, when no trainer works, and a last time in psd_train_end.
 */
typedef void psd_train_progress_t(void *user, uint64_t done, uint64_t total, double rate,
                                  double left_s);
/* Called once when nobody works on the block any more. */
typedef void psd_train_free_t(void *block);

/* When a call-back is called. Each trainer sees CLOCK_BEGIN, then for each
 * block ITERATION_BEGIN, STEP, ITERATION_END, then CLOCK_END; no trainer begins
 * with a block or mark before all have done with the one before. Deltas may be
 * added in all of them. */
typedef enum psd_train_event {
    PSD_TRAIN_CLOCK_BEGIN = 0,
    PSD_TRAIN_ITERATION_BEGIN = 1,
    PSD_TRAIN_STEP = 2,
    PSD_TRAIN_ITERATION_END = 3,
    PSD_TRAIN_CLOCK_END = 4
} psd_train_event_t;

/* ---- before the configuration ---- */

/* user goes to every call-back. NULL when there is no memory. */
PSD_EXPORT psd_train_t *psd_train_new(void *user);
/* Ends what still runs (its pushes may be applied or not), frees the blocks,
 * closes the client. Takes NULL, nulls *self_p. In a forked child of a process
 * whose training runs nothing is freed, for its threads may have been at work
 * on any of it. */
PSD_EXPORT void psd_train_destroy(psd_train_t **self_p);
/*
 * key         value
 * endpoint    as psd_connect; default: its own
 * job, worker, workers, max-delay
 *             as psd_join; default: from the environment. The job's max_delay
 *             is the greatest that any of its workers wants; a negative one,
 *             without a bound, is greater than all others
 * trainers    threads that train, 1 .. 256, default 1
 * pipeline    on, off; default on: while a block is trained on, the next one is
 *             loaded, with what had been pushed before the block. off: it is
 *             loaded behind the pushes of the block
 * max-blocks  blocks pushed and not yet done, 1 .. 4096, default 4
 * push-every  deltas are sent behind so many blocks, and always at the end of
 *             a clock; 0: only there. Default 1
 * fetch-every a row that was fetched for a block may be read by so many blocks,
 *             that one counted, without being asked for again; 1 .. 1000000,
 *             default 1
 * staleness   the same for clocks: what was fetched in clock c may be read
 *             until clock c + staleness ends; 0: in clock c only; off; default
 *             off. With both, either allows it: see "Rows that are kept" below
 * keep-bytes  that kept rows take at most; default 268435456
 * lock        immutable, lock-free, locked; default immutable: the cache stays
 *             as it was loaded. Else an add changes it too: lock-free: adds of
 *             several threads to one value may get lost in the cache, never on
 *             the server; locked: they do not
 * locks       how many locks the rows share, 1 .. 65536, default 100
 * queue       a work queue of the job, of which psd_train_next_slice gives
 *             slices; default: none
 * slices, epochs
 *             of the queue, as psd_work_open: 1 .. 1048576, no default; 0 ..
 *             1000000000, 0 without end, default 1
 * timeout-ms  deadline of each pull, push and meeting; default 60000
 * progress-ms the progress call-back waits so long at least; default 1000
 *
 * Errors: PSD_INVALID, naming key, value and what is allowed; also when the
 * configuration has begun.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_set(psd_train_t *self, const char *key,
                                                     const char *value, psd_error_t *err);
/* NULL: none, the default. */
PSD_EXPORT void psd_train_on_load(psd_train_t *self, psd_train_load_t *call);
PSD_EXPORT void psd_train_on(psd_train_t *self, psd_train_event_t event, psd_train_call_t *call);

PSD_EXPORT void psd_train_on_progress(psd_train_t *self, psd_train_progress_t *call);
/* What there is to do, in blocks or in what psd_trainer_done counts; 0, the
 * default: nobody knows. At any time from any thread. */
PSD_EXPORT void psd_train_set_total(psd_train_t *self, uint64_t total);

/* ---- configuration ---- */

/* Connects and joins the job, and opens its queue if options name one. Errors:
 * those of psd_connect, psd_join and psd_work_open. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_config_begin(psd_train_t *self, psd_error_t *err);
/* A table of the training, made if it is not there (psd_table_ensure). Tables
 * are numbered 0, 1, … in the order of these calls. Errors: those of
 * psd_table_ensure; PSD_LIMIT it would be the 65th. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_table(psd_train_t *self, const char *name,
                                                       const psd_spec_t *spec, uint32_t *ret_table,
                                                       psd_error_t *err);
/*
 * First values: whole rows, added to what the table has. Every worker's count:
 * what the table has in the end is the sum over all of them, so either one
 * worker adds (psd_train_worker is 0), or each adds its share. They come once
 * for each rank of the job and each table, until that is dropped: in a later
 * life of the worker, or of the whole job, the call does nothing when they have
 * come, and adds them when they have not, which the others did not wait for. A
 * table "JOB.first.ACK.REPLICAS" remembers it.
 *
 * Errors: PSD_FAILED an earlier life ended between its first add to this table
 * and psd_train_config_end, or an add of it failed, so that nobody knows
 * whether all have come: nothing is added; those of psd_push.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_add_to_server(psd_train_t *self, uint32_t table,
                                                               const uint64_t *rows, size_t n_rows,
                                                               const void *values, size_t n_values,
                                                               psd_error_t *err);
/*
 * First values from a regular file of text, as psd_train_dump or `pscli table
 * export` write it; packed with gzip or zstd it may be. Worker 0 adds them, as
 * with psd_train_add_to_server, when the whole file has been read and found
 * good; the others do nothing. A line is "row col:value col:value ...", columns
 * ascending; one that begins with # is passed over. Memory does not grow with
 * the file.
 *
 * Errors: PSD_RANGE, PSD_TYPE, PSD_NOT_FINITE, PSD_INVALID, naming file and
 * line: nothing was added; PSD_IO, PSD_DAMAGED; those of
 * psd_train_add_to_server.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_load(psd_train_t *self, uint32_t table,
                                                      const char *path, psd_error_t *err);
/* Everybody sees all first values behind this: waits for all workers. It ends
 * the job's first clock. Errors: PSD_DEADLINE naming who is missing. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_config_end(psd_train_t *self, psd_error_t *err);

/* ---- training ---- */

/* Starts the threads. Errors: PSD_INVALID there is no STEP call-back, or the
 * configuration has not ended; PSD_NOMEM; PSD_FAILED no thread to be had. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_begin(psd_train_t *self, psd_error_t *err);
/* Blocks that are pushed between these two are one clock. Neither waits.
 * Errors: PSD_INVALID in the wrong order; PSD_NOMEM; what the training failed
 * with. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_clock_begin(psd_train_t *self, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_clock_end(psd_train_t *self, psd_error_t *err);
/*
 * Takes a block, behind those that were pushed before; waits while max-blocks
 * are not done.
 *
 * free_block  in  NULL: nothing is to be freed
 *
 * Errors: the block is still the caller's: PSD_DEADLINE naming what is waited
 * for; PSD_INVALID no clock has begun, or a slice is still asked for;
 * PSD_NOMEM; what the training failed with.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_push_block(psd_train_t *self, void *block,
                                                            psd_train_free_t *free_block,
                                                            uint32_t timeout_ms, psd_error_t *err);
/*
 * A slice from the queue of the options, for the blocks that the caller pushes
 * next; waits while others have all that are left. By that the slice before is
 * done: when all that was pushed for it has been trained on and is acknowledged
 * it is counted, and the next one asked for. Deltas that push-every holds back
 * are sent then. No block of a slice is loaded while the one before is trained
 * on: a slice should be many blocks.
 *
 * The slice is this worker's until the next call has given another one, or
 * says that there is none. One of which a block, a pull or a push has failed,
 * or whose worker is lost or ends the training before that, is not counted:
 * others get it. So each is counted once, and trained on at least once; see
 * "A work queue of the job" in psd/job.h.
 *
 * What CLOCK_END call-backs add is pushed after a slice that is asked for in
 * the clock was counted: programs that add deltas there ask between two clocks.
 *
 * It may be called in a clock or between two. After PSD_DEADLINE the clock does
 * not end before the call has given a slice. In the clock that has its pushes
 * a checkpoint of the job has them exactly when it counts the slice; between
 * two a checkpoint may have the pushes and give the slice once more. While it
 * waits the worker finishes clocks (psd_work_next), and nothing of before is
 * kept when it has; a clock that has begun goes on behind them. With max-delay
 * < 0 it finishes none: in a clock it may then hold a checkpoint up. While a
 * checkpoint is begun slices wait for psd_checkpoint_wait: who calls that in
 * the same thread looks at it also behind PSD_DEADLINE.
 *
 * timeout_ms  in   0: looks only
 * ret_epoch   out  1, 2, …; 0: all epochs are over, and there is no slice
 * ret_slice   out  0 .. slices - 1
 *
 * Errors: PSD_DEADLINE naming what is waited for: the training goes on to ask,
 * and takes no block; call again, what was given meanwhile is not lost.
 * PSD_INVALID there is no queue; PSD_NOMEM; what the training failed with,
 * those of psd_work_next and psd_work_done for instance. A node that is busy or
 * stops is asked again.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_next_slice(psd_train_t *self, uint32_t timeout_ms,
                                                            uint64_t *ret_epoch,
                                                            uint32_t *ret_slice, psd_error_t *err);
/*
 * Rows that are kept
 *
 * With fetch-every > 1, or a staleness, rows and whole tables that blocks ask
 * for are kept, and read again as these allow; single elements are always asked
 * for, and so are rows of tables with another updater than add. A row counts as
 * fetched in clock c when c - 1 of this worker's clocks had ended as its pull
 * was handed over; the block that it was pulled for always reads it. A kept row
 * shows no less of this worker's own pushes than a pull in its place would:
 * each push is added to it when it is sent (under BSP: when its clock ends). Of
 * others' pushes it shows what the pull did. What was not read longest goes
 * when there is no room.
 *
 * psd_train_intent  Rows that blocks will read in the clocks from .. to (the
 *          first psd_train_clock_begin begins clock 1). At the beginning of
 *          each clock those are fetched which it or, with a staleness above 0,
 *          the next one intends to read and could not. They are kept until
 *          `to` has ended, whatever else is read; a row that gets too old
 *          meanwhile is fetched anew in the same way. Clocks that have begun
 *          already take what they still can.
 *
 * Errors: PSD_INVALID there is no staleness, no such table, it does not add, or
 * the clocks are no range; PSD_RANGE; PSD_LIMIT with other intents they would
 * take more than keep-bytes; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_intent(psd_train_t *self, uint32_t table,
                                                        const uint64_t *rows, size_t n_rows,
                                                        uint64_t from, uint64_t to,
                                                        psd_error_t *err);
/* Waits until all that was pushed is done, and its deltas are acknowledged; and
 * the slice counted, if the next one was asked for.
 * Errors: PSD_DEADLINE naming what is waited for; what the training failed
 * with. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_wait(psd_train_t *self, uint32_t timeout_ms,
                                                      psd_error_t *err);
/* The same, then stops the threads and leaves the job: others do not wait for
 * this worker any more. Errors: as psd_train_wait; PSD_INVALID in a clock. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_end(psd_train_t *self, uint32_t timeout_ms,
                                                     psd_error_t *err);

/* The client, for the caller's own calls, from psd_train_config_begin to
 * psd_train_begin, and behind psd_train_end; NULL at other times. Borrowed. */
PSD_EXPORT psd_client_t *psd_train_client(psd_train_t *self);
/* The handle of a table, at the same times; else NULL. Borrowed. */
PSD_EXPORT psd_table_t *psd_train_table_handle(psd_train_t *self, uint32_t table);
/*
 * Writes a table as text, at the same times: a line for each row in ascending
 * order, of tables with row format dense with all columns, else with those that
 * are not 0, and without empty rows. The file is there when it is whole;
 * packed, when its name ends with .gz or .zst; "-", and what else names
 * standard output, is that. Memory does not grow with the table. What others
 * push meanwhile may be in it or not.
 *
 * Errors: PSD_INVALID the training runs, no such table, or a name that ends
 * with .xz, .bz2, .zip or .lz4; PSD_IO; those of psd_pull and psd_fetch.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_dump(psd_train_t *self, uint32_t table,
                                                      const char *path, psd_error_t *err);
/* This worker's rank, and how many workers the job has, as a share of an input
 * wants them; the max_delay that was agreed. From psd_train_config_begin on. */
PSD_EXPORT uint32_t psd_train_worker(const psd_train_t *self);
PSD_EXPORT uint32_t psd_train_workers(const psd_train_t *self);
PSD_EXPORT int32_t psd_train_max_delay(const psd_train_t *self);
/* Clocks of the training that had ended when this worker joined, of which the
 * one of the configuration is none: 0 in a new job; in one that was resumed
 * from a checkpoint, or is joined late, where its input goes on. From
 * psd_train_config_begin on, in any thread. */
PSD_EXPORT uint64_t psd_train_first_clock(const psd_train_t *self);
/*
 * A count since psd_train_begin, at any time from any thread; 0 for another
 * word:
 *
 * blocks, clocks            done
 * rows-asked, rows-pulled   rows that load call-backs named, each time; that
 *                           were transferred (of whole tables: all)
 * cells-asked, cells-pulled the same of elements
 * adds                      values that trainers added
 * entries-pushed            values that left the process
 * done, total               progress, as the call-back tells it
 */
PSD_EXPORT uint64_t psd_train_count(const psd_train_t *self, const char *what);

/* As the progress call-back tells them, at any time from any thread. */
PSD_EXPORT double psd_train_rate(const psd_train_t *self);
PSD_EXPORT double psd_train_left_s(const psd_train_t *self);

/* ---- in the load call-back ---- */

/* The block needs all rows of a table (of range keys), these rows, one element.
 * What is named several times comes once; a whole table takes in its rows, a
 * row its elements. Errors: PSD_INVALID no such table, or of hash keys and
 * wanted whole; PSD_RANGE; PSD_NOMEM. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_loader_table(psd_loader_t *self, uint32_t table,
                                                        psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_loader_rows(psd_loader_t *self, uint32_t table,
                                                       const uint64_t *rows, size_t n_rows,
                                                       psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_loader_element(psd_loader_t *self, uint32_t table,
                                                          uint64_t row, uint32_t col,
                                                          psd_error_t *err);

/* ---- in a trainer's call-back ---- */

/* 0 .. n - 1, and n. */
PSD_EXPORT uint32_t psd_trainer_id(const psd_trainer_t *self);
PSD_EXPORT uint32_t psd_trainer_count(const psd_trainer_t *self);
/* This trainer's part of 0 .. n - 1: *ret_first .. *ret_end - 1. The parts of
 * all trainers are all of it, each thing once, and differ by one at most. */
PSD_EXPORT void psd_trainer_share(const psd_trainer_t *self, size_t n, size_t *ret_first,
                                  size_t *ret_end);
/*
 * A value of the cache. What the load call-back did not ask for, or is no
 * number of the table's type (i64 of f32 …), reads as 0 and fails the
 * iteration when the call-back has returned, naming table and row.
 */
PSD_EXPORT double psd_trainer_get_f64(psd_trainer_t *self, uint32_t table, uint64_t row,
                                      uint32_t col);
PSD_EXPORT int64_t psd_trainer_get_i64(psd_trainer_t *self, uint32_t table, uint64_t row,
                                       uint32_t col);
/* Copies a whole row of n_values (the table's columns) of the table's type;
 * false: it is not in the cache, as above. */
PSD_EXPORT bool psd_trainer_get_row(psd_trainer_t *self, uint32_t table, uint64_t row,
                                    void *ret_values, size_t n_values);
/* Where a whole row lies, in the table's type, until the call-back returns;
 * NULL: it is not in the cache, as above. With another lock than immutable
 * other trainers may be writing to it: read with psd_trainer_get_… then. */
PSD_EXPORT const void *psd_trainer_row(psd_trainer_t *self, uint32_t table, uint64_t row);
/* Adds to one value. Sums are kept in double or int64 here and rounded to the
 * table's type when they are sent. What cannot be (no such column, another
 * type's, not finite, no memory) fails the iteration when the call-back has
 * returned. */
PSD_EXPORT void psd_trainer_add_f64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                                    double delta);
PSD_EXPORT void psd_trainer_add_i64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                                    int64_t delta);
/* Adds to a whole row: n_values of the table's type. */
PSD_EXPORT void psd_trainer_add_row(psd_trainer_t *self, uint32_t table, uint64_t row,
                                    const void *deltas, size_t n_values);

/* So much more is done. Whoever never calls it has blocks counted. */
PSD_EXPORT void psd_trainer_done(psd_trainer_t *self, uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
