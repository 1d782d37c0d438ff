/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_exec - the helper beside a worker that a launcher starts
 *
 * What     Finds rank and size in the launcher's variables, starts the program in a process
 *          group of its own, passes signals on, and ends it when its launcher is gone: when
 *          the helper's parent has ended or, where it reads, when standard input has. Nothing
 *          that the program started outlives the helper. With a launch id everything goes to
 *          pscli as records (record.h); without one, output is left alone.
 * Input    Settings, a line each: "dir DIR", "set NAME=VALUE", "again" (wait for an order
 *          after a failure), "go"; then orders: "signal N", "start RANK". In a line, "\\n" is
 *          a newline and "\\\\" a backslash.
 * Threads  one
 */
#ifndef PS_CLI_EXEC_H
#define PS_CLI_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/launch/quote.h"

typedef struct ps_exec_args {
    const char *launch;      /* the launch id; NULL: started by hand */
    bool reads;              /* settings and orders come on standard input */
    const char *const *argv; /* NULL-terminated */
} ps_exec_args_t;

/*
 * Runs the program until it has ended.
 *
 * ret_exit  out  its exit code; 128 + N when signal N ended it
 *
 * Errors: PSD_INVALID rank and size cannot be told, with the variable; PSD_IO; PSD_DEADLINE
 * no settings came; PSD_NOMEM. With a launch id pscli has been told, too.
 */
PSD_MUST_CHECK psd_status_t ps_exec(const ps_exec_args_t *args, int *ret_exit, psd_error_t *err);

/*
 * Rank and size: PSD_WORKER and PSD_WORKERS, else those of Open MPI, of PMI, of PMIx under
 * Slurm, of Slurm inside a step (a batch script has SLURM_PROCID too, and is no worker of
 * several), of an indexed job of Kubernetes; else 0 of 1.
 *
 * get  in  works as getenv
 *
 * Errors: PSD_INVALID naming the variable.
 */
PSD_MUST_CHECK psd_status_t ps_exec_rank(char *(*get)(const char *name), uint32_t *ret_rank,
                                         uint32_t *ret_size, psd_error_t *err);

/* Appends the settings that ps_exec reads: the directory and NAME=VALUE words. again: it
 * waits for an order after a failure. false: no memory. */
PSD_MUST_CHECK bool ps_exec_settings(ps_buffer_t *to, const char *dir, const ps_words_t *variables,
                                     bool again);
#endif
