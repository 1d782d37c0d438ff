/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_disk - a disk that tears, fails, fills up and forgets
 *
 * What     A ps_disk in memory. Every call that changes something is a numbered
 *          operation. A crash keeps what was flushed, and a random choice (by
 *          the seed) of the unflushed 512-byte sectors, lengths and names. A
 *          flush that fails has persisted such a choice; the rest is never
 *          flushed unless it is written again.
 * Shape    Directories are only prefixes of paths. Unflushed operations on
 *          names are lost from some point on, in their order.
 * Owner    The caller. After a crash the caller must close its open files; they
 *          do nothing any more.
 */
#ifndef PS_TESTS_SIM_DISK_H
#define PS_TESTS_SIM_DISK_H

#include "base/rng.h"
#include "storage/disk/disk.h"

typedef enum sim_disk_fault {
    SIM_DISK_SOUND = 0,
    SIM_DISK_CRASH = 1, /* in the middle of the operation; then all calls fail */
    SIM_DISK_FAIL = 2   /* it fails with PSD_IO; a write leaves a part of it */
} sim_disk_fault_t;

typedef struct sim_disk sim_disk_t;

/* Aborts when there is no memory, like everything here: tests count only the
 * allocations of the tested code. */
sim_disk_t *sim_disk_new(uint64_t seed);
void sim_disk_destroy(sim_disk_t **self_p);
ps_disk_t *sim_disk_face(sim_disk_t *self);

/* Operations until now. */
uint64_t sim_disk_ops(const sim_disk_t *self);
/* Operation number `op` (0: the first ever) and the `times` - 1 after it get
 * this fault. */
void sim_disk_plan(sim_disk_t *self, uint64_t op, uint64_t times, sim_disk_fault_t fault);
/* Only flushes get the planned faults; op counts as before. */
void sim_disk_only_flushes(sim_disk_t *self, bool only);
/* From now on a loss of power spoils each sector of the file that is written and not
 * flushed, whatever was there before. A file that gets its name later is another. */
void sim_disk_spoil(sim_disk_t *self, const char *path);
/* That all files together have. */
uint64_t sim_disk_bytes(const sim_disk_t *self);
/* Limits the bytes of all files together; UINT64_MAX at first. */
void sim_disk_set_capacity(sim_disk_t *self, uint64_t bytes);
/* The planned crash has happened. */
bool sim_disk_crashed(const sim_disk_t *self);
/* Power fails now, or after a planned crash: keeps what lasts, and the disk
 * works again. */
void sim_disk_restart(sim_disk_t *self);

/* Outside the operations: the content of a file, flipping bits of mask at a
 * place, cutting to a length. The file must exist. */
ps_bytes_t sim_disk_content(sim_disk_t *self, const char *path);
void sim_disk_flip(sim_disk_t *self, const char *path, uint64_t offset, uint8_t mask);
void sim_disk_cut(sim_disk_t *self, const char *path, uint64_t size);
bool sim_disk_has(sim_disk_t *self, const char *path);
void sim_disk_drop(sim_disk_t *self, const char *path);
/* Number of files; name of file i, borrowed until the next change. */
size_t sim_disk_count(const sim_disk_t *self);
const char *sim_disk_name(const sim_disk_t *self, size_t i);
#endif
