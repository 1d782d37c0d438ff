/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of psd-mnist. */
#ifndef MNIST_OPTIONS_H
#define MNIST_OPTIONS_H

#include "../common/job/job.h"

typedef enum mnist_network_kind {
    MNIST_SOFTMAX, /* one layer, from zero */
    MNIST_MLP      /* a hidden layer of rectified units */
} mnist_network_kind_t;

typedef struct mnist_options {
    bool help;
    const char *train;
    const char *test; /* NULL: nothing is measured */
    const char *table;
    const char *save;
    const char *predict;
    const char *scores;
    uint32_t network; /* of mnist_network_kind_t */
    uint32_t hidden;
    uint32_t epochs;
    uint32_t minibatch; /* of all workers together */
    double step;
    double momentum;
    uint32_t outer_every;     /* 0: no outer steps */
    uint32_t outer_fragments; /* of the parameters */
    uint32_t outer_overlap;   /* minibatches from a push to its pull */
    uint32_t average;         /* EX_YES or EX_NO */
    uint64_t seed;
    double report_s;
    ex_job_options_t job;
} mnist_options_t;

/* Errors: PSD_USAGE. */
PSD_MUST_CHECK psd_status_t mnist_options_read(mnist_options_t *self, int argc, char **argv,
                                               psd_error_t *err);
void mnist_help(void);
#endif
