/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_files - what happens when psd has no descriptor left
 *
 * What     Every connection is a file. libzmq ends the process when it cannot
 *          accept one at a unix socket, and takes a whole processor asking
 *          again at a tcp port: so psd has an accept4 of its own, which libzmq
 *          calls. Without a descriptor it gives up a spare one, takes the
 *          connection with it, and hangs up.
 * Threads  any
 */
#ifndef PS_DAEMON_FILES_H
#define PS_DAEMON_FILES_H

#include <stdbool.h>
#include <stdint.h>

/* Takes the spare descriptor; before the first port is open. */
void ps_files_start(void);
/* Whether the process is out of descriptors now, or was within the last 5 s.
 * Logs when that begins, and when it has ended. To be asked each second. */
bool ps_files_are_out(uint64_t now_ms);
#endif
