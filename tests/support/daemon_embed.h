/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon_embed - the psd of a test as a server inside the test's process
 *
 * What     With PSD_TEST_SERVER=embed daemon_start and its like start a server of
 *          libpsd_server.so ($PSD_SERVER_LIBRARY) in place of a process: the same
 *          directory, the same configuration, the same files. What is of a process
 *          (signals, options, kill -9) is not there.
 * Threads  Confined to one.
 */
#ifndef PS_TESTS_DAEMON_EMBED_H
#define PS_TESTS_DAEMON_EMBED_H

#include <stdbool.h>

/* The environment asks for it. */
bool daemon_embed_is_on(void);
/* Starts one. config: the path of a configuration, as the tests write them (one line
 * for a key, a section, or a section with its keys in braces); it need not be there.
 * NULL: it did not get ready; the reason is on stderr. */
void *daemon_embed_start(const char *data_dir, const char *config, const char *log);
/* Takes NULL, nulls *server_p. */
void daemon_embed_stop(void **server_p);
#endif
