/* SPDX-License-Identifier: Apache-2.0 */
/* What the command line of psd-word2vec says. */
#ifndef WV_OPTIONS_H
#define WV_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "../common/job/job.h"
#include "psd.h"

#define WV_BLOCK_LEAST 100

typedef enum wv_model { WV_SKIP_GRAM, WV_CBOW } wv_model_t;

typedef struct wv_options {
    const char *train;       /* NULL: vectors are read */
    const char *vectors;     /* such a file */
    const char *save;        /* NULL: vectors are not written */
    bool binary;             /* … as floats, not as text */
    const char *save_words;  /* the vocabulary; NULL: not written */
    const char *save_senses; /* … and how often each sense was met */
    const char *pairs;       /* of words, with how alike people find them */
    const char *questions;   /* of analogies */
    const char *near;        /* a word; prints those that are near to it */
    uint32_t model;          /* wv_model_t */
    uint32_t size;           /* of a vector */
    uint32_t window;         /* words on either side, at most */
    uint32_t negative;       /* draws for each pair; 0: none */
    bool hs;                 /* hierarchical softmax */
    double sample;           /* share of a word above which it is left out */
    uint64_t min_count;
    uint32_t senses;    /* of a frequent word */
    double sense_share; /* of the vocabulary that is frequent */
    uint32_t epochs;
    double alpha; /* the first step; 0: by the model */
    bool adagrad;
    uint32_t block; /* words of a block, at most */
    uint32_t trainers;
    bool no_pipeline;
    bool resume;       /* continue with the existing tables */
    const char *table; /* what names of tables begin with */
    uint64_t seed;
    double report_s; /* between lines of progress */
    ex_job_options_t job;
} wv_options_t;

/* Reads argv[1 .. argc - 1]; texts are borrowed from it. ret_help: help was
 * asked for and printed. Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t wv_options_read(wv_options_t *self, int argc, char **argv,
                                            bool *ret_help, psd_error_t *err);
#endif
