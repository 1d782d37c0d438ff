/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_files - what happens when psd has no descriptor left
 *
 * What     Every connection is a file. When libzmq cannot accept one, it ends
 *          the process at a unix socket and spins at a tcp port. So psd has its
 *          own accept4, which libzmq calls. When no descriptor is left, it
 *          gives up a spare one, accepts the connection with it, and closes
 *          both.
 * Threads  any
 */
#ifndef PS_DAEMON_FILES_H
#define PS_DAEMON_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the spare descriptor; before the first port is open. */
void ps_files_start(void);
/* Whether the process is out of descriptors now, or was within the last 5 s.
 * Logs when that begins and when it has ended. Call it each second. */
bool ps_files_are_out(uint64_t now_ms);
#endif
