/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk - a disk that tears, fails, fills up and forgets
 *
 * What     A ps_disk in memory. Every call that changes something is a numbered
 *          operation. A crash keeps what was flushed, and of what was not any
 *          choice of 512-byte sectors, lengths and names that the seed takes.
 *          A flush that fails has persisted such a choice, and what it left
 *          out is never flushed any more unless it is written again.
 * Shape    Directories are only prefixes of paths. The operations on names that
 *          were not flushed are lost from some point on, in their order.
 * Owner    The caller. After a crash the files that it has open are to be
 *          closed; they do nothing any more.
 */
#ifndef PS_TESTS_SIM_DISK_H
#define PS_TESTS_SIM_DISK_H

#include "base/rng.h"
#include "storage/disk/disk.h"

typedef enum sim_disk_fault {
    SIM_DISK_SOUND = 0,
    SIM_DISK_CRASH = 1, /* in the midst of the operation; then all calls fail */
    SIM_DISK_FAIL = 2   /* it fails with PSD_IO; a write leaves a part of it */
} sim_disk_fault_t;

typedef struct sim_disk sim_disk_t;

/* Aborts when there is no memory, as everything here: tests count those of the
 * code that they test. */
sim_disk_t *sim_disk_new(uint64_t seed);
void sim_disk_destroy(sim_disk_t **self_p);
ps_disk_t *sim_disk_face(sim_disk_t *self);

/* Operations until now. */
uint64_t sim_disk_ops(const sim_disk_t *self);
/* Operation number `op` (0: the first ever) and `times` - 1 behind it meet this
 * fault. */
void sim_disk_plan(sim_disk_t *self, uint64_t op, uint64_t times, sim_disk_fault_t fault);
/* Only flushes meet the planned faults; op counts as before. */
void sim_disk_only_flushes(sim_disk_t *self, bool only);
/* That all files together have. */
uint64_t sim_disk_bytes(const sim_disk_t *self);
/* All files together have at most so many bytes; UINT64_MAX at first. */
void sim_disk_set_capacity(sim_disk_t *self, uint64_t bytes);
/* The planned crash has happened. */
bool sim_disk_crashed(const sim_disk_t *self);
/* Loss of power now, or after a planned crash: what lasts is taken, and the
 * disk is sound. */
void sim_disk_restart(sim_disk_t *self);

/* Beside all calls: what a file holds, the bits of mask flipped at a place, cut
 * to a length. The file is there. */
ps_bytes_t sim_disk_content(sim_disk_t *self, const char *path);
void sim_disk_flip(sim_disk_t *self, const char *path, uint64_t offset, uint8_t mask);
void sim_disk_cut(sim_disk_t *self, const char *path, uint64_t size);
bool sim_disk_has(sim_disk_t *self, const char *path);
void sim_disk_drop(sim_disk_t *self, const char *path);
/* Number of files; name of file i, borrowed until the next change. */
size_t sim_disk_count(const sim_disk_t *self);
const char *sim_disk_name(const sim_disk_t *self, size_t i);
#endif
