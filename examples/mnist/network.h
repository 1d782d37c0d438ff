/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist_network - one or two dense layers, on psd_linalg
 *
 * What     Classes by softmax of X W + b, or of relu(X W1 + b1) W2 + b2. All
 *          parameters lie in one array, as the table has them: W by rows, then
 *          b, layer by layer. The array is not copied: matrices are views of
 *          it.
 * Owner    the caller; mnist_network_done
 */
#ifndef MNIST_NETWORK_H
#define MNIST_NETWORK_H

#include <stddef.h>
#include <stdint.h>

#include "images.h"
#include "psd_linalg.h"

#define MNIST_LAYERS_MAX 2

typedef struct mnist_layer {
    size_t inputs, outputs;
    psd_matrix_t *weights; /* view of the parameters, inputs x outputs */
    psd_matrix_t *w_slope; /* view of the slopes */
    float *bias, *b_slope; /* outputs of each */
    psd_matrix_t *out;     /* room x outputs */
    psd_matrix_t *out_slope;
} mnist_layer_t;

typedef struct mnist_network {
    size_t n_layers;
    size_t n;    /* parameters */
    size_t room; /* images that it takes at once */
    mnist_layer_t layers[MNIST_LAYERS_MAX];
    float *parameters;
    float *slopes;    /* of the mean loss, by parameter */
    psd_matrix_t *in; /* room x pixels */
} mnist_network_t;

/* hidden 0: one layer. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t mnist_network_init(mnist_network_t *self, size_t n_pixels,
                                               size_t hidden, size_t room, psd_error_t *err);
void mnist_network_done(mnist_network_t *self);
/* First parameters: zero for one layer; else weights of variance 2 / inputs
 * (He et al., ICCV 2015), biases zero. */
void mnist_network_start(mnist_network_t *self, uint64_t seed);

/* The network's output for an image. */
typedef struct mnist_verdict {
    double loss; /* -log of the probability of its class */
    uint8_t class;
} mnist_verdict_t;

/* The outputs for the images listed, n <= room. */
PSD_MUST_CHECK psd_status_t mnist_network_look(mnist_network_t *self, const mnist_images_t *images,
                                               const uint32_t *list, size_t n,
                                               mnist_verdict_t *ret_verdicts, psd_error_t *err);
/* After a forward pass: the gradient of the sum of their losses / n_all. */
PSD_MUST_CHECK psd_status_t mnist_network_learn(mnist_network_t *self, const mnist_images_t *images,
                                                const uint32_t *list, size_t n, size_t n_all,
                                                psd_error_t *err);
/* A text file of sizes and parameters. Errors: PSD_IO; load: PSD_INVALID
 * naming the line; load gives ret_network, with room for `room` images. */
PSD_MUST_CHECK psd_status_t mnist_network_save(const mnist_network_t *self, const char *path,
                                               psd_error_t *err);
PSD_MUST_CHECK psd_status_t mnist_network_load(mnist_network_t *ret_network, const char *path,
                                               size_t room, psd_error_t *err);
#endif
