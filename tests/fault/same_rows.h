/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_rows - whether the registries of several nodes are the same
 *
 * What     Compares registry.db of data directories whose psd has ended: the
 *          hash of the loaded state, and every row of every table.
 * Threads  Confined to one.
 */
#ifndef PS_TESTS_SAME_ROWS_H
#define PS_TESTS_SAME_ROWS_H

#include <stdbool.h>
#include <stdint.h>

/* The place of the last command. false: why is on stderr. */
bool same_rows_applied(const char *dir, uint64_t *ret_index);
/* Applies to one what it lacks of the commands that the other has, from the other's log:
 * members that ended at different commands are the same when they are at the same one.
 * false: why is on stderr. */
bool same_rows_bring(const char *dir, const char *other);
/* false: they differ, or one cannot be read; the first difference is on
 * stderr. */
bool same_rows_compare(const char *dir, const char *other);
#endif
