/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of ps_exec share. */
#ifndef PS_CLI_EXEC_INNER_H
#define PS_CLI_EXEC_INNER_H

#include <signal.h>
#include <sys/types.h>

#include "cli/launch/exec.h"
#include "cli/launch/record.h"

#define PS_EXEC_LINE_MAX 65536 /* bytes of one setting */

typedef struct ps_exec_line {
    int fd; /* of the program's stdout or stderr; -1: closed, or not read */
    size_t n;
    char text[PS_EXEC_RECORD_TEXT_MAX];
} ps_exec_line_t;

typedef struct ps_exec {
    const ps_exec_args_t *args;
    uint32_t rank, size;
    pid_t launcher;   /* our parent */
    pid_t pid;        /* of the program, and of its group; 0: none runs */
    int signals;      /* a signalfd */
    sigset_t mask;    /* before it */
    bool input_open;  /* orders may come */
    bool go;          /* all settings came */
    bool again;       /* a failed program waits for an order … */
    bool waits;       /* … now */
    uint64_t gone_ms; /* when the launcher was gone; 0: it is there */
    bool killed;      /* … and the program was killed */
    int exit, signal; /* of the program that ended last */
    int early;        /* the first signal to end that came before the program; 0: none */
    ps_buffer_t input;
    ps_exec_line_t lines[2];
} ps_exec_t;

/* ---- exec_input.c ---- */

/* Reads settings until "go". Errors: PSD_DEADLINE, PSD_CLOSED, PSD_INVALID, PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_exec_read_settings(ps_exec_t *self, psd_error_t *err);
/* Takes the orders that have come; notes the end of the input. Errors: PSD_IO, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_exec_read_orders(ps_exec_t *self, psd_error_t *err);

/* ---- exec_serve.c ---- */

/* Where PSD_ENDPOINT is "embed:" and an endpoint: the program's node listens at an address
 * that other hosts reach. Errors: PSD_FAILED there is no way to the endpoint's host;
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_exec_serve(psd_error_t *err);

/* ---- exec_program.c ---- */

/* Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_exec_start(ps_exec_t *self, psd_error_t *err);
/* Whether a run that sends that signal ends: INT, TERM, HUP and KILL. */
bool ps_exec_is_end(int number);
/* A signal for the program and what it started. Before there is one: a signal to end is kept,
 * others are passed over. */
void ps_exec_signal(ps_exec_t *self, int number);
/* Reads output that has come and sends it on. */
void ps_exec_read_output(ps_exec_t *self);
/* Waits for what has ended. When that is the program, ends the rest of its group, sends its
 * last output and how it ended. */
void ps_exec_reap(ps_exec_t *self);
/* Kills the processes that are children of the helper now. */
void ps_exec_sweep(void);
/* Ends all processes that the program started, in whatever group, and waits for them: at most
 * 1 s, as one in the kernel may not end. No program may run. */
void ps_exec_end_rest(void);
/* Nobody can hear us any more. */
void ps_exec_note_gone(ps_exec_t *self);
/* How it ended: exit and signal. */
void ps_exec_tell_end(ps_exec_t *self);
/* One record, if there is a launch id. */
void ps_exec_tell(ps_exec_t *self, ps_exec_record_kind_t kind, const char *text, size_t size);
#endif
