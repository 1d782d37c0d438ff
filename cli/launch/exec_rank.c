/* SPDX-License-Identifier: Apache-2.0 */
/* Rank and size from a launcher's variables. */
#include <inttypes.h>

#include "base/text.h"
#include "cli/launch/exec.h"

#define WORKERS_MAX 4096

/* Where launchers put them, in the order in which psd looks. */
static const struct {
    const char *rank;
    const char *size;
    const char *only_with; /* a variable that must be there, too; NULL: none */
} PLACES[] = {
    {"PSD_WORKER", "PSD_WORKERS", NULL},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
    {"PMI_RANK", "PMI_SIZE", NULL},
    {"PMIX_RANK", "SLURM_NTASKS", NULL},
    {"SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_ID"},
    {"JOB_COMPLETION_INDEX", "PSD_WORKERS", NULL},
};

static bool has(char *(*get)(const char *name), const char *name)
{
    const char *text = get(name);

    return text != NULL && text[0] != '\0';
}

static psd_status_t read_number(char *(*get)(const char *name), const char *name, uint64_t min,
                                uint64_t max, uint32_t *ret, psd_error_t *err)
{
    uint64_t value = 0;

    if (!ps_text_u64(get(name), &value) || value < min || value > max) {
        return psd_error_set(err, PSD_INVALID, "%s is \"%.40s\"; allowed: %" PRIu64 "..%" PRIu64,
                             name, get(name), min, max);
    }
    *ret = (uint32_t)value;
    return PSD_OK;
}

psd_status_t ps_exec_rank(char *(*get)(const char *name), uint32_t *ret_rank, uint32_t *ret_size,
                          psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    uint32_t rank = 0;
    uint32_t size = 1;
    size_t i = 0;
    const size_t n = sizeof PLACES / sizeof PLACES[0];

    while (i < n && (!has(get, PLACES[i].rank) ||
                     (PLACES[i].only_with != NULL && !has(get, PLACES[i].only_with)))) {
        i++;
    }
    if (i < n) {
        rc = read_number(get, PLACES[i].rank, 0, WORKERS_MAX - 1, &rank, err);
        size = rank + 1;
    }
    if (rc == PSD_OK && i < n && has(get, PLACES[i].size)) {
        rc = read_number(get, PLACES[i].size, 1, WORKERS_MAX, &size, err);
    }
    if (rc == PSD_OK && rank >= size) {
        rc = psd_error_set(err, PSD_INVALID, "%s is %" PRIu32 ", and %s is %" PRIu32,
                           PLACES[i].rank, rank, PLACES[i].size, size);
    }
    if (rc == PSD_OK) {
        *ret_rank = rank;
        *ret_size = size;
    }
    return rc;
}
