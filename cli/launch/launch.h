/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room cli/launch: workers on other hosts
 *
 * It is       Lists of hosts; the commands of ssh, mpirun and srun that start workers; the
 *             helper that runs beside a worker there, and what it tells; manifests as text.
 * It uses     output and run; lib/base, lib/transport for time.
 * It ignores  Jobs and psd: jobs (cmd_run.c) starts the commands, and asks the registry.
 * Start at    launch.h for commands, exec.h for the helper.
 */
/*
 * ps_launch - how one run starts its workers
 *
 * What     The command of a launcher, as words: for pscli, where settings go to the helper by
 *          standard input (ssh, slurm) or by the environment (mpi, whose mpirun hands standard
 *          input to one rank only); or to paste, where the command has them all.
 * Owner    The caller (ps_launch_done); it borrows words and lists until then.
 */
#ifndef PS_CLI_LAUNCH_H
#define PS_CLI_LAUNCH_H

#include <limits.h>

#include "cli/launch/hosts.h"
#include "cli/launch/record.h"

typedef enum ps_launcher {
    PS_LAUNCH_LOCAL = 0, /* in the order of the words of --launcher */
    PS_LAUNCH_SSH,
    PS_LAUNCH_MPI,
    PS_LAUNCH_SLURM,
    PS_LAUNCH_KUBERNETES,
    PS_LAUNCH_YARN
} ps_launcher_t;

typedef struct ps_launch {
    ps_launcher_t kind;
    char id[PS_LAUNCH_ID_SIZE]; /* random */
    uint32_t n;                 /* workers */
    ps_hosts_t hosts;           /* owned; none: this one, or those of Slurm */
    const char *ssh;            /* the ssh command; borrowed */
    const char *more;           /* more options of mpirun or srun; NULL: none */
    bool oversubscribe;
    uint32_t n_servers;      /* of --servers; 0: none */
    bool embeds;             /* … which are nodes in the first workers' processes */
    bool by_ranks;           /* … which meet over MPI: rank 0 has the registry */
    bool restarts;           /* workers that fail may be started again */
    char pscli[PATH_MAX];    /* of the helper, on the hosts */
    char dir[PATH_MAX];      /* where workers run */
    ps_words_t variables;    /* owned; NAME=VALUE for every worker */
    const char *const *argv; /* the program; NULL-terminated; borrowed */
} ps_launch_t;

void ps_launch_done(ps_launch_t *self);
/* "ssh", "mpirun", "srun": the program that it runs. */
const char *ps_launch_engine(const ps_launch_t *self);
/* How many processes of the engine there are: one a worker with ssh, else one. */
uint32_t ps_launch_engines(const ps_launch_t *self);
/* Where worker `rank` runs, in words: a host, or "mpirun". */
const char *ps_launch_place(const ps_launch_t *self, uint32_t rank);
/* Fills id, pscli (unless it is set) and dir. Errors: PSD_IO. */
PSD_MUST_CHECK psd_status_t ps_launch_settle(ps_launch_t *self, psd_error_t *err);
/*
 * Takes from this process's environment what workers get: all PSD_ variables and aliases of
 * other systems, LD_LIBRARY_PATH, and those whose names `more` (NULL: none) lists, with commas
 * between them. Errors: PSD_USAGE one of those is not set; PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_launch_take_environment(ps_launch_t *self, const char *more,
                                                       psd_error_t *err);
/* Adds or replaces one. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_launch_set(ps_launch_t *self, const char *name, const char *value,
                                          psd_error_t *err);
/* Makes this process's environment that of an engine: without a rank, and for mpi with the
 * workers' variables, which its command only names. Once, before the first engine. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_launch_export(const ps_launch_t *self, psd_error_t *err);

/*
 * The command that starts worker `rank` (ssh), or all of them.
 *
 * to_paste   in   with all settings in it, for a terminal
 * ret_words  out  appended to; zeroed by the caller before
 *
 * Errors: PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_launch_command(const ps_launch_t *self, uint32_t rank, bool to_paste,
                                              ps_words_t *ret_words, psd_error_t *err);
/* What goes to the helper's standard input first. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_launch_settings(const ps_launch_t *self, uint32_t rank,
                                               ps_buffer_t *to, psd_error_t *err);
/* Whether helpers read settings and orders from standard input. */
bool ps_launch_reads(const ps_launch_t *self);

/* ---- launch_engine.c ---- */

/* Whether the engine is there, of a kind and version that psd knows, and alive. Errors:
 * PSD_FAILED it is missing or does not answer; PSD_IO; PSD_UNSUPPORTED another program or version;
 * PSD_LIMIT its answer has no end; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_launch_check(const ps_launch_t *self, psd_error_t *err);
/* The hosts of a Slurm allocation, by their addresses. Without one: the first node of the site
 * that is another host, else one that is this host. Errors: PSD_FAILED, PSD_IO, PSD_USAGE more
 * hosts than PS_HOSTS_MAX, PSD_LIMIT, PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_launch_read_slurm(ps_hosts_t *ret_hosts, psd_error_t *err);
/*
 * One line that says why an engine failed before a worker started, from what it wrote.
 *
 * ret_line  out  PS_LAUNCH_WHY_SIZE bytes
 */
#define PS_LAUNCH_WHY_SIZE 400
void ps_launch_why(const char *text, char ret_line[PS_LAUNCH_WHY_SIZE]);
#endif
