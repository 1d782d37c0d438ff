/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper - a process that removes a test's directory after its end
 *
 * What     Waits until the test has ended in any way, and removes what it left,
 *          also files that its programs still write.
 * Owner    The caller waits for it, when it has closed the descriptor.
 * Threads  Start it before others.
 */
#ifndef PS_TESTS_KEEPER_H
#define PS_TESTS_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

/* It acts when *ret_fd is closed. false: the reason is on stderr. */
bool keeper_start(const char *path, pid_t *ret_keeper, int *ret_fd);
#endif
