/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon - a psd process for one test, on ports that the kernel chose
 *
 * What     Starts $PSD_PROGRAM on loopback in a directory of its own and waits
 *          until it is ready; ends it; removes what it left. With
 *          PSD_TEST_SERVER=embed it is a server in this process (daemon_embed.h).
 * Owner    The caller; daemon_drop, also of one that did not start. A process
 *          whose test dies is killed by the kernel.
 * Threads  Confined to one; start it before the test has threads.
 */
#ifndef PS_TESTS_DAEMON_H
#define PS_TESTS_DAEMON_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/temp_dir.h"

typedef struct daemon {
    temp_dir_t dir;     /* its data directory is dir/data, its log dir/log */
    pid_t pid;          /* 0: it does not run, or in this process */
    void *embed;        /* the server in this process; NULL: there is none */
    char control[256];  /* "tcp://127.0.0.1:40001" */
    char ipc[256];      /* "ipc://…" */
    const char *option; /* of this start; NULL: none */
} daemon_t;

/* Starts one in a fresh directory. config is the text of a configuration
 * file, or NULL. false: it did not get ready; the reason is on stderr. */
bool daemon_start(daemon_t *self, const char *config);
/* Starts it again in the same directory, on other ports. */
bool daemon_restart(daemon_t *self);
/* The same with one more option. */
bool daemon_restart_with(daemon_t *self, const char *option);
/* Sends the signal and waits for the end. true: it ended by that signal or
 * with exit code 0. */
bool daemon_end(daemon_t *self, int signal_number);
/* Stops all of its threads where they are, until a SIGCONT; waits until they
 * have stopped. */
bool daemon_freeze(daemon_t *self);
/* Ends it if it runs, prints its log if `failed`, removes its directory. */
void daemon_drop(daemon_t *self, bool failed);
#endif
