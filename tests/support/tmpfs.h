/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tmpfs - small disks for one test, which can be filled and emptied
 *
 * What     A mount namespace that this process moves to, so that no other
 *          process sees its mounts; the kernel removes it with the last
 *          process.
 * Threads  Before the process has any: a thread moves alone.
 */
#ifndef PS_TESTS_TMPFS_H
#define PS_TESTS_TMPFS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the machine allows it; if not, the reason is on stderr. */
bool tmpfs_can(void);
/* For these, false: the reason is on stderr. */
bool tmpfs_enter(void);
bool tmpfs_mount(const char *path, uint64_t bytes);
void tmpfs_unmount(const char *path);
/* Fills the rest of the disk with one file; removes that file. */
bool tmpfs_fill(const char *path);
bool tmpfs_empty(const char *path);
#endif
