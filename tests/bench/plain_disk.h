/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plain_disk - how fast a disk takes and gives a plain file
 *
 * What     A file of 512 MiB in a directory, which is removed again: written in
 *          long blocks and flushed, or read when it is not in memory.
 * Units    MB/s; 0: it could not be
 */
#ifndef PS_TESTS_PLAIN_DISK_H
#define PS_TESTS_PLAIN_DISK_H

#include <stdbool.h>

/* is_direct: past the system's memory. */
double plain_disk_write(const char *dir, bool is_direct);
double plain_disk_read(const char *dir);
#endif
