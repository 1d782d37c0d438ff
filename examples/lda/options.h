/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of psd-lda. */
#ifndef LDA_OPTIONS_H
#define LDA_OPTIONS_H

#include "../common/job/job.h"

typedef struct lda_options {
    bool help;
    const char *train;
    const char *format;
    uint32_t test_every; /* document i is held out when i mod that is that - 1;
                            0: none; EX_NOT_CHOSEN: 5, or 0 with --infer */
    uint32_t n_topics;
    double alpha;
    double beta;
    const char *table;
    const char *save;
    const char *warm; /* model whose words give initial topics */
    uint32_t sweeps;
    uint32_t n_steps; /* pairs of proposals */
    uint32_t blocks;  /* 0: one for each worker */
    uint64_t slice_bytes;
    const char *state; /* directory of blocks */
    uint32_t eval_every;
    uint64_t seed;
    const char *infer; /* model */
    const char *test;
    const char *document_topics;
    uint32_t burn; /* sweeps of each held-out document */
    uint32_t top;
    const char *names;
    ex_job_options_t job;
} lda_options_t;

/* Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t lda_options_read(lda_options_t *self, int argc, char **argv,
                                             psd_error_t *err);
void lda_help(void);
#endif
