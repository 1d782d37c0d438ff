/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of psd-mf. */
#ifndef MF_OPTIONS_H
#define MF_OPTIONS_H

#include "../common/job/job.h"

typedef enum mf_method {
    MF_SGD, /* stochastic gradient descent */
    MF_ALS  /* alternating least squares */
} mf_method_t;

typedef struct mf_options {
    bool help;
    const char *train;
    const char *table;
    const char *save;
    const char *predict;
    const char *test;
    const char *scores;
    uint32_t method;     /* of mf_method_t */
    uint32_t factors;    /* beside the bias */
    uint32_t epochs;     /* 0: of the method */
    uint32_t blocks;     /* clocks of an epoch of SGD */
    uint32_t test_every; /* rating i is test when i mod that is that - 1 */
    double step;
    double decay;
    double lambda; /* NaN: of the method */
    uint64_t seed;
    ex_job_options_t job;
} mf_options_t;

/* Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t mf_options_read(mf_options_t *self, int argc, char **argv,
                                            psd_error_t *err);
void mf_help(void);
#endif
