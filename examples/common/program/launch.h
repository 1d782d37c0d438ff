/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launch - which worker of how many this process is, by its launcher
 *
 * What     PSD_WORKER and PSD_WORKERS, as pscli run sets them. With PSD_ENDPOINT
 *          mpi: workers are ranks of MPI, and mpirun says which.
 */
#ifndef EX_LAUNCH_H
#define EX_LAUNCH_H

/* The text of a variable; borrowed. NULL: none says it. */
const char *ex_launch_rank(void);
const char *ex_launch_size(void);
#endif
