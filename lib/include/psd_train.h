/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd_train - data-driven training: blocks in, model out
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
 * What     The caller feeds blocks of data. For each block a loader thread runs
 *          the caller's load call-back, which names the parameters that the
 *          block needs; the library fetches them into a cache. Then all trainer
 *          threads work on the block together: they read the cache and add
 *          deltas. The library sums up the deltas of all trainers and sends
 *          each touched value once. While the trainers work on one block the
 *          loader loads the next one.
 * Owner    A block is the caller's until psd_train_push_block has taken it;
 *          from then on its free call-back is called exactly once.
 * Threads  psd_train_t: one thread at a time. A loader or trainer handle is
 *          valid only in the call-back that gets it, until that returns.
 *          Threads of call-backs have the signal mask of psd_train_begin's
 *          caller.
 * Errors   The first failure, of a call-back, a pull or a push, ends the
 *          training: the threads stop, and every later call returns that
 *          failure. psd_train_destroy frees the blocks that were not done.
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

/* Names the parameters that a block needs, with psd_loader_…; it may also parse
 * the block. Runs in the loader's thread. */
typedef psd_status_t psd_train_load_t(void *user, psd_loader_t *loader, void *block,
                                      psd_error_t *err);
/* Runs in each trainer's thread; block is NULL at the ends of a clock. */
typedef psd_status_t psd_train_call_t(void *user, psd_trainer_t *trainer, void *block,
                                      psd_error_t *err);
/*
 * Reports how far the training has come. Runs in a trainer's thread after a
 * block, when no trainer works, and a last time in psd_train_end.
 *
 * done    in  the sum of psd_trainer_done, or blocks
 * total   in  of how much; 0: unknown
 * rate    in  done per second, since psd_train_begin
 * left_s  in  seconds left at that rate; < 0: unknown
 */
typedef void psd_train_progress_t(void *user, uint64_t done, uint64_t total, double rate,
                                  double left_s);
/* Called once, when no thread works on the block any more. */
typedef void psd_train_free_t(void *block);

/* When a call-back is called. Each trainer sees CLOCK_BEGIN, then for each
 * block ITERATION_BEGIN, STEP, ITERATION_END, then CLOCK_END. No trainer starts
 * a block or a mark before all trainers have finished the one before. Deltas
 * may be added in all of them. */
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
/* Ends a training that still runs (its pushes may or may not be applied), frees
 * the blocks and closes the client. Takes NULL, nulls *self_p. In a forked
 * child of a process whose training runs it frees nothing, because the parent's
 * threads may have been using any of it. */
PSD_EXPORT void psd_train_destroy(psd_train_t **self_p);
/*
 * key         value
 * endpoint    as psd_connect; default: that of psd_connect
 * job, worker, workers, max-delay
 *             as psd_join; default: from the environment. The job's max_delay
 *             is the greatest that any of its workers wants; a negative one
 *             means no bound, and is greater than all others
 * trainers    trainer threads, 1 .. 256, default 1
 * pipeline    on, off; default on: while the trainers work on a block, the next
 *             one is loaded; it sees the pushes made before that block. off:
 *             the next one is loaded after the pushes of the block
 * max-blocks  blocks pushed and not yet done, 1 .. 4096, default 4
 * push-every  number of blocks after which deltas are sent; they are always
 *             sent at the end of a clock; 0: only there. Default 1
 * fetch-every number of blocks that may read a fetched row before it is fetched
 *             again, including the block that it was fetched for; 1 .. 1000000,
 *             default 1
 * staleness   the same in clocks: a row fetched in clock c may be read until
 *             clock c + staleness ends; 0: in clock c only; off; default off.
 *             With both set, either allows it: see "Rows that are kept" below
 * keep-bytes  maximum size of kept rows, in bytes; default 268435456
 * outer-every, outer-fragments, outer-overlap
 *             outer steps, see below: clocks of the training from one to the
 *             next, 0 .. 1000000, default 0: none; 1 .. 65536, default 1;
 *             clocks, 0 .. outer-every - 1, default 0. timeout-ms must be
 *             longer than workers are apart after outer-every clocks
 * lock        immutable, lock-free, locked; default immutable: the cache does
 *             not change after loading. Otherwise an add changes it too.
 *             lock-free: when several threads add to one value, adds may get
 *             lost in the cache, never on the server; locked: none is lost
 * locks       number of locks that the rows share, 1 .. 65536, default 100
 * queue       the work queue of the job from which psd_train_next_slice takes
 *             slices; default: none
 * slices, epochs
 *             of the queue, as psd_work_open: 1 .. 1048576, no default; 0 ..
 *             1000000000, 0 without end, default 1
 * timeout-ms  deadline of each pull, push and meeting of workers; default 60000
 * progress-ms minimum time between two progress call-backs; default 1000
 *
 * Errors: PSD_INVALID, naming key, value and what is allowed; also after the
 * configuration has begun.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_set(psd_train_t *self, const char *key,
                                                     const char *value, psd_error_t *err);
/* NULL: none, the default. */
PSD_EXPORT void psd_train_on_load(psd_train_t *self, psd_train_load_t *call);
PSD_EXPORT void psd_train_on(psd_train_t *self, psd_train_event_t event, psd_train_call_t *call);

PSD_EXPORT void psd_train_on_progress(psd_train_t *self, psd_train_progress_t *call);
/* The total amount of work, in blocks or in the units of psd_trainer_done; 0,
 * the default: unknown. At any time from any thread. */
PSD_EXPORT void psd_train_set_total(psd_train_t *self, uint64_t total);

/* ---- configuration ---- */

/* Connects and joins the job, and opens its queue if options name one. Errors:
 * PSD_INVALID an option does not go with outer-every; those of psd_connect,
 * psd_join and psd_work_open. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_config_begin(psd_train_t *self, psd_error_t *err);
/* Adds a table to the training; creates it if it does not exist
 * (psd_table_ensure). Tables are numbered 0, 1, … in the order of these calls.
 * Errors: those of psd_table_ensure; PSD_INVALID its combine, updater or type
 * does not go with outer-every; PSD_LIMIT it would be the 65th. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_table(psd_train_t *self, const char *name,
                                                       const psd_spec_t *spec, uint32_t *ret_table,
                                                       psd_error_t *err);
/*
 * Initial values: adds whole rows to the table. The table gets the sum over all
 * workers, so either one worker adds (psd_train_worker is 0), or each worker
 * adds its share. Each rank of the job adds them once to each table, until the
 * table is dropped. When the worker or the whole job starts again, the call
 * does nothing if they have been added. If they have not, it adds them,
 * although the other workers did not wait for that. The table
 * "JOB.first.ACK.REPLICAS" records it.
 *
 * The table's updater must be add or assign: others would change the values, and
 * their tables begin with `init`. A table with combine clock-mean
 * gets the mean over the workers: let each add all values.
 *
 * Errors: PSD_INVALID its updater is another one; PSD_FAILED an earlier run of
 * this worker ended between its first add to this table and
 * psd_train_config_end, or one of its adds failed. So it is unknown whether all
 * values have been added: the call adds nothing. Those of psd_push.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_add_to_server(psd_train_t *self, uint32_t table,
                                                               const uint64_t *rows, size_t n_rows,
                                                               const void *values, size_t n_values,
                                                               psd_error_t *err);
/*
 * Initial values from a regular text file, as psd_train_dump or `pscli table
 * export` write it; it may be compressed with gzip or zstd. Worker 0 reads and
 * checks the whole file, and then adds the values as psd_train_add_to_server
 * does; the other workers do nothing. A line is "row col:value col:value ...",
 * columns ascending; lines that begin with # are skipped. Memory does not grow
 * with the file.
 *
 * Errors: PSD_RANGE, PSD_TYPE, PSD_NOT_FINITE, PSD_INVALID, naming file and
 * line, or a table with combine clock-mean in a job of several workers: nothing
 * was added; PSD_IO, PSD_DAMAGED; those of psd_train_add_to_server.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_load(psd_train_t *self, uint32_t table,
                                                      const char *path, psd_error_t *err);
/* Waits for all workers; after it every worker sees all initial values. It ends
 * the job's first clock. Errors: PSD_DEADLINE naming the workers that are
 * missing. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_config_end(psd_train_t *self, psd_error_t *err);

/* ---- training ---- */

/* Starts the threads. Errors: PSD_INVALID there is no STEP call-back, or the
 * configuration has not ended; PSD_NOMEM; PSD_FAILED no thread can start. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_begin(psd_train_t *self, psd_error_t *err);
/* The blocks pushed between these two calls are one clock. Neither call waits.
 * Errors: PSD_INVALID in the wrong order; PSD_NOMEM; the failure of the
 * training. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_clock_begin(psd_train_t *self, psd_error_t *err);
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_clock_end(psd_train_t *self, psd_error_t *err);
/*
 * Takes a block; it comes after those pushed before. Waits while max-blocks
 * blocks are not done.
 *
 * free_block  in  NULL: there is nothing to free
 *
 * Errors, after which the block is still the caller's: PSD_DEADLINE naming what
 * it waits for; PSD_INVALID no clock has begun, or psd_train_next_slice still
 * waits for a slice; PSD_NOMEM; the failure of the training.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_push_block(psd_train_t *self, void *block,
                                                            psd_train_free_t *free_block,
                                                            uint32_t timeout_ms, psd_error_t *err);
/*
 * Gets a slice from the queue of the options, for the blocks that the caller
 * pushes next. Waits while other workers hold all remaining slices. The call
 * also finishes the slice before: when the trainers have worked on all of its
 * blocks and the pushes are acknowledged, that slice is counted, and then the
 * library asks for the next one. It first sends the deltas that push-every
 * holds back. No block of a slice is loaded while the trainers work on the
 * slice before, so a slice should be many blocks.
 *
 * The slice is this worker's until the next call has returned another one, or
 * says that there is none. A slice is not counted when a block, a pull or a
 * push of it fails, or when the worker is lost or ends the training before:
 * another worker gets it. So each slice is counted exactly once and trained on
 * at least once; see "A work queue of the job" in psd/job.h.
 *
 * Deltas that CLOCK_END call-backs add are pushed after a slice that is asked
 * for in that clock has been counted. Programs that add deltas there ask
 * between two clocks.
 *
 * The call may be made in a clock or between two. After PSD_DEADLINE the clock
 * does not end before the call has returned a slice. When it is made in the
 * clock of the slice's pushes, a checkpoint of the job has these pushes exactly
 * when it counts the slice. When it is made between two clocks, a checkpoint
 * may have the pushes, and the job resumed from it gets the slice once more.
 *
 * While the call waits the worker finishes clocks (psd_work_next). When it has,
 * no row fetched before is kept; a clock that has begun goes on after them.
 * With max-delay < 0 it finishes none, and in a clock it may then hold up a
 * checkpoint. While a checkpoint is in progress slices wait for
 * psd_checkpoint_wait: a program that calls that in the same thread must also
 * call it after PSD_DEADLINE.
 *
 * timeout_ms  in   0: looks only
 * ret_epoch   out  1, 2, …; 0: all epochs are over, and there is no slice
 * ret_slice   out  0 .. slices - 1
 *
 * Errors: PSD_DEADLINE naming what it waits for: the training goes on asking,
 * and takes no block; call again, a slice that was assigned meanwhile is not
 * lost. PSD_INVALID there is no queue; PSD_NOMEM; the failure of the training,
 * for instance those of psd_work_next and psd_work_done. When a node is busy or
 * stopping, the library retries.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_next_slice(psd_train_t *self, uint32_t timeout_ms,
                                                            uint64_t *ret_epoch,
                                                            uint32_t *ret_slice, psd_error_t *err);
/*
 * Outer steps
 *
 * With outer-every H, 1 or more, each worker trains a model of its own (DiLoCo).
 * Adds change what its later blocks read, and nothing is sent. After each H
 * clocks of the training each worker sends what it has added since the last
 * time, ends psd's clock, and fetches again what its blocks ask for. A table with
 * updater add gets the sum of the deltas; any other gets the sum's negative, as
 * a gradient: x_start - x_local. The updater runs once on the mean over the
 * workers that are still in the job: nesterov:alpha=0.7,momentum=0.9 is the outer
 * step of DiLoCo, nesterov:alpha=1,momentum=0 the mean of the models.
 * psd_train_end sends what is left, as one more outer step. Feed the same number
 * of clocks in all workers: one with more makes its last outer steps alone.
 *
 * outer-fragments P  An outer step sends, and fetches again, only the rows with
 *          row % P of one value, and the next step those of the next value. A
 *          whole table (psd_loader_table) is fetched whole at each step. The last
 *          step, of psd_train_end, sends all rows.
 * outer-overlap D    What was sent is fetched again D clocks later. Until then
 *          blocks read the worker's own values, and what they add meanwhile is
 *          added to what comes. So the worker does not wait for the others in
 *          these clocks. A row that is not kept, for lack of room or as it was
 *          not asked for, is fetched as soon as a block needs it.
 *
 * Needed   the three options alike in all workers; max-delay 0; lock lock-free
 *          or locked; no queue, push-every, fetch-every and staleness; tables
 *          of type f32 or f64 with combine clock-mean and an updater that adds or
 *          takes gradients
 * Time     After an outer step pulls wait until the slowest worker has finished
 *          the H clocks: timeout-ms must be longer than workers are apart then,
 *          or the training of the fast ones fails.
 * Rows     are kept between outer steps, of all updaters, as far as keep-bytes
 *          allows; single elements are fetched for each block.
 * Pipeline A block of an outer step is loaded when the step before was sent.
 *          Within a step a block may lack the adds of the block right before it,
 *          and of the marks around that one, and no others: two runs may differ
 *          in their bits.
 * First values  come from the table's init, or psd_train_add_to_server in each
 *          worker, for updater add.
 * Loss     A lost worker loses what it has added to each row since the outer
 *          step that last sent that row: with outer-fragments P, the adds of up to
 *          P outer steps. So does each worker of a job that is resumed from a
 *          checkpoint. Such a job is resumed with the same outer-every:
 *          psd_train_first_clock counts with it.
 */

/*
 * Rows that are kept
 *
 * With fetch-every > 1, or a staleness, the library keeps the rows and whole
 * tables that blocks ask for, and reuses them as these options allow. Single
 * elements are always fetched, and so are rows of tables whose updater is not
 * add. A row counts as fetched in clock c when c - 1 clocks of this worker had
 * ended as its pull was handed over. The block that it was pulled for always
 * reads it.
 *
 * A kept row shows at least as many of this worker's own pushes as a new pull
 * would: each push is added to it when it is sent (under BSP: when its clock
 * ends). Of other workers' pushes it shows those that the pull saw. When there
 * is no room, the least recently read row is evicted.
 *
 * psd_train_intent  Announces rows that blocks will read in the clocks from ..
 *          to (the first psd_train_clock_begin begins clock 1). At the start of
 *          each clock the library fetches the rows that this clock or, with a
 *          staleness above 0, the next one intends to read and could not. It
 *          keeps them until `to` has ended, whatever else is read. A row that
 *          gets too old meanwhile is fetched again in the same way. For clocks
 *          that have begun already it fetches what they can still use.
 *
 * Errors: PSD_INVALID there is no staleness, no such table, its updater is not
 * add, or from .. to is no range; PSD_RANGE; PSD_LIMIT with other intents the
 * rows would exceed keep-bytes; PSD_NOMEM.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_intent(psd_train_t *self, uint32_t table,
                                                        const uint64_t *rows, size_t n_rows,
                                                        uint64_t from, uint64_t to,
                                                        psd_error_t *err);
/* Waits until all pushed blocks are done and their deltas are acknowledged (with
 * outer-every: those of the outer steps that were made). If the next slice
 * was asked for, it also waits until the slice before is counted. Errors:
 * PSD_DEADLINE naming what it waits for; the failure of the training. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_wait(psd_train_t *self, uint32_t timeout_ms,
                                                      psd_error_t *err);
/* The same; then it stops the threads and leaves the job: other workers do not
 * wait for this one any more. Errors: as psd_train_wait; PSD_INVALID in a
 * clock. */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_end(psd_train_t *self, uint32_t timeout_ms,
                                                     psd_error_t *err);

/* The client, for the caller's own calls, from psd_train_config_begin to
 * psd_train_begin, and after psd_train_end; NULL at other times. Borrowed. */
PSD_EXPORT psd_client_t *psd_train_client(psd_train_t *self);
/* The handle of a table, at the same times; else NULL. Borrowed. */
PSD_EXPORT psd_table_t *psd_train_table_handle(psd_train_t *self, uint32_t table);
/*
 * Writes a table as text, at the same times: one line for each row, in
 * ascending order. Tables of row format dense have all columns; others have the
 * columns that are not 0, and no empty rows. The file appears when it is
 * complete. It is compressed when its name ends with .gz or .zst. "-", or
 * another name of standard output, writes there. Memory does not grow with the
 * table. Pushes that other workers make meanwhile may or may not be in it.
 *
 * Errors: PSD_INVALID the training runs, no such table, or a name that ends
 * with .xz, .bz2, .zip or .lz4; PSD_IO; those of psd_pull and psd_fetch.
 */
PSD_EXPORT PSD_MUST_CHECK psd_status_t psd_train_dump(psd_train_t *self, uint32_t table,
                                                      const char *path, psd_error_t *err);
/* This worker's rank and the number of workers of the job, as
 * psd_reader_options_set_share takes them; the max_delay that the workers
 * agreed on. From psd_train_config_begin on. */
PSD_EXPORT uint32_t psd_train_worker(const psd_train_t *self);
PSD_EXPORT uint32_t psd_train_workers(const psd_train_t *self);
PSD_EXPORT int32_t psd_train_max_delay(const psd_train_t *self);
/* Clocks of the training that had ended when this worker joined, not counting
 * the clock of the configuration. 0 in a new job. With outer-every H: H times
 * the outer steps that had ended. In a job that was resumed from a checkpoint,
 * or that this worker joins late, its input continues there. From
 * psd_train_config_begin on, in any thread. */
PSD_EXPORT uint64_t psd_train_first_clock(const psd_train_t *self);
/*
 * A count since psd_train_begin, at any time from any thread; 0 for an unknown
 * word:
 *
 * blocks, clocks            done
 * rows-asked, rows-pulled   rows that load call-backs named, each time; rows
 *                           that were transferred (of whole tables: all)
 * cells-asked, cells-pulled the same for elements
 * adds                      values that trainers added
 * entries-pushed            values that the process sent
 * done, total               progress, as the call-back gets it
 */
PSD_EXPORT uint64_t psd_train_count(const psd_train_t *self, const char *what);

/* As the progress call-back gets them, at any time from any thread. */
PSD_EXPORT double psd_train_rate(const psd_train_t *self);
PSD_EXPORT double psd_train_left_s(const psd_train_t *self);

/* ---- in the load call-back ---- */

/* The block needs all rows of a table (of range keys), these rows, one element.
 * What is named several times is fetched once; a whole table includes its rows,
 * a row its elements. Errors: PSD_INVALID no such table, or a whole table of
 * hash keys; PSD_RANGE; PSD_NOMEM. */
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
 * all trainers cover 0 .. n - 1 exactly once, and their sizes differ by one at
 * most. */
PSD_EXPORT void psd_trainer_share(const psd_trainer_t *self, size_t n, size_t *ret_first,
                                  size_t *ret_end);
/*
 * A value of the cache. A value that the load call-back did not ask for, or
 * that is of another type than the table's (i64 of f32 …), reads as 0. The
 * iteration then fails when the call-back has returned; the error names table
 * and row.
 */
PSD_EXPORT double psd_trainer_get_f64(psd_trainer_t *self, uint32_t table, uint64_t row,
                                      uint32_t col);
PSD_EXPORT int64_t psd_trainer_get_i64(psd_trainer_t *self, uint32_t table, uint64_t row,
                                       uint32_t col);
/* Copies a whole row of n_values (the table's columns) of the table's type;
 * false: it is not in the cache, as above. */
PSD_EXPORT bool psd_trainer_get_row(psd_trainer_t *self, uint32_t table, uint64_t row,
                                    void *ret_values, size_t n_values);
/* The address of a whole row, in the table's type, valid until the call-back
 * returns; NULL: it is not in the cache, as above. Unless the lock is
 * immutable, other trainers may be writing to it: read with psd_trainer_get_…
 * then. */
PSD_EXPORT const void *psd_trainer_row(psd_trainer_t *self, uint32_t table, uint64_t row);
/* Adds to one value. Sums are double or int64 here, and are rounded to the
 * table's type when they are sent. An add that is impossible (no such column,
 * another type, not finite, no memory) fails the iteration when the call-back
 * has returned. */
PSD_EXPORT void psd_trainer_add_f64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                                    double delta);
PSD_EXPORT void psd_trainer_add_i64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                                    int64_t delta);
/* Adds to a whole row: n_values of the table's type. */
PSD_EXPORT void psd_trainer_add_row(psd_trainer_t *self, uint32_t table, uint64_t row,
                                    const void *deltas, size_t n_values);

/* Adds n to the progress that is done. When no call-back ever calls it,
 * progress counts blocks. */
PSD_EXPORT void psd_trainer_done(psd_trainer_t *self, uint64_t n);

#ifdef __cplusplus
}
#endif

#endif
