/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_silent - which thread hangs when a psd does not answer
 *
 * What     A psd on this host shows in a page of memory which of its threads
 *          turn (transport/threads/turns.h); pscli can read that page even when
 *          psd answers nothing. For a psd on another host it can only name the
 *          port.
 */
#ifndef PS_CLI_SILENT_H
#define PS_CLI_SILENT_H

#include "cli/run/cli.h"

/* What is known of a psd that has not answered. */
typedef enum ps_silence {
    PS_SILENCE_NAMED = 1, /* err says which thread hangs, or that it is gone */
    PS_SILENCE_TURNS,     /* all of its threads turn: it is slow */
    PS_SILENCE_ELSEWHERE, /* it listens, and no more is known; err says so */
    PS_SILENCE_NOBODY     /* nothing listens there */
} ps_silence_t;

/* Looks until `until_s` (ps_cli_now_s) for a thread that hangs. waited_ms: how
 * long it has not answered. */
ps_silence_t ps_silent_look(const char *endpoint, uint64_t waited_ms, double until_s,
                            psd_error_t *err);
#endif
