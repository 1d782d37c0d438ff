/* SPDX-License-Identifier: Apache-2.0 */
#include "launch.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* psd's own name first; those of MPI libraries after it. */
static const char *const RANKS[] = {"PSD_WORKER", "OMPI_COMM_WORLD_RANK", "PMI_RANK"};
static const char *const SIZES[] = {"PSD_WORKERS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE"};

static const char *first_of(const char *const *names, size_t n)
{
    const char *endpoint = getenv("PSD_ENDPOINT");
    const char *text = NULL;

    if (endpoint == NULL || strcmp(endpoint, "mpi:") != 0) {
        n = 1;
    }
    for (size_t i = 0; text == NULL && i < n; i++) {
        text = getenv(names[i]);
    }
    return text;
}

const char *ex_launch_rank(void)
{
    return first_of(RANKS, sizeof RANKS / sizeof *RANKS);
}

const char *ex_launch_size(void)
{
    return first_of(SIZES, sizeof SIZES / sizeof *SIZES);
}
