/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_interrupt - what SIGINT and SIGTERM do
 *
 * What     Without a call here they end pscli at once, as signals do. The
 *          handler's state is global, because a signal has no other way to
 *          find it.
 */
#ifndef PS_CLI_INTERRUPT_H
#define PS_CLI_INTERRUPT_H

#include <stdbool.h>

/* From now on an interrupt first unlinks that file (copied; NULL: none any
 * more), then ends pscli with exit code 130. */
void ps_interrupt_unlink(const char *path);
/* From now on the first interrupt only sets a flag, so that a command can
 * clean up; the second one ends pscli. */
void ps_interrupt_hold(void);
/* True when a held interrupt came. */
bool ps_interrupt_came(void);
#endif
