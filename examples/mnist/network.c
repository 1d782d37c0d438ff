/* SPDX-License-Identifier: Apache-2.0 */
/* One or two dense layers: forwards, backwards. */
#include "network.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/random.h"

static psd_status_t init_layer(mnist_network_t *self, mnist_layer_t *layer, size_t at,
                               psd_error_t *err)
{
    size_t n_weights = layer->inputs * layer->outputs;
    psd_status_t rc = psd_matrix_view(self->parameters + at, layer->inputs, layer->outputs,
                                      layer->outputs, &layer->weights, err);

    if (rc == PSD_OK) {
        rc = psd_matrix_view(self->slopes + at, layer->inputs, layer->outputs, layer->outputs,
                             &layer->w_slope, err);
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_new(self->room, layer->outputs, &layer->out, err);
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_new(self->room, layer->outputs, &layer->out_slope, err);
    }
    layer->bias = self->parameters + at + n_weights;
    layer->b_slope = self->slopes + at + n_weights;
    return rc;
}

psd_status_t mnist_network_init(mnist_network_t *self, size_t n_pixels, size_t hidden, size_t room,
                                psd_error_t *err)
{
    psd_status_t rc = PSD_OK;
    size_t at = 0;

    memset(self, 0, sizeof *self);
    self->room = room;
    self->n_layers = hidden > 0 ? 2 : 1;
    for (size_t l = 0; l < self->n_layers; l++) {
        mnist_layer_t *layer = &self->layers[l];

        layer->inputs = l == 0 ? n_pixels : hidden;
        layer->outputs = l + 1 == self->n_layers ? MNIST_CLASSES : hidden;
        self->n += (layer->inputs + 1) * layer->outputs;
    }
    self->parameters = calloc(self->n, sizeof *self->parameters);
    self->slopes = calloc(self->n, sizeof *self->slopes);
    if (self->parameters == NULL || self->slopes == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "%zu parameters", self->n);
    } else {
        rc = psd_matrix_new(room, n_pixels, &self->in, err);
    }
    for (size_t l = 0; rc == PSD_OK && l < self->n_layers; l++) {
        mnist_layer_t *layer = &self->layers[l];

        rc = init_layer(self, layer, at, err);
        at += (layer->inputs + 1) * layer->outputs;
    }
    if (rc != PSD_OK) {
        mnist_network_done(self);
    }
    return rc;
}

void mnist_network_done(mnist_network_t *self)
{
    for (size_t l = 0; l < MNIST_LAYERS_MAX; l++) {
        psd_matrix_destroy(&self->layers[l].weights);
        psd_matrix_destroy(&self->layers[l].w_slope);
        psd_matrix_destroy(&self->layers[l].out);
        psd_matrix_destroy(&self->layers[l].out_slope);
    }
    psd_matrix_destroy(&self->in);
    free(self->parameters);
    free(self->slopes);
    memset(self, 0, sizeof *self);
}

/* A number of the standard normal distribution: Box and Muller, 1958. */
static double normal(uint64_t *random)
{
    double u = 1 - ex_random_real(random); /* never 0 */
    double v = ex_random_real(random);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

void mnist_network_start(mnist_network_t *self, uint64_t seed)
{
    uint64_t random = seed;

    memset(self->parameters, 0, self->n * sizeof *self->parameters);
    for (size_t l = 0; self->n_layers > 1 && l < self->n_layers; l++) {
        const mnist_layer_t *layer = &self->layers[l];
        double size = sqrt(2.0 / (double)layer->inputs);
        float *weights = psd_matrix_values(layer->weights);

        for (size_t i = 0; i < layer->inputs * layer->outputs; i++) {
            weights[i] = (float)(size * normal(&random));
        }
    }
}

/* The first n rows of it; the caller destroys the view. */
static psd_status_t rows(const psd_matrix_t *all, size_t n, psd_matrix_t **ret, psd_error_t *err)
{
    return psd_matrix_slice_rows(all, 0, n, ret, err);
}

/* The input of a layer: the images, or the output of the layer before. */
static const psd_matrix_t *input_of(const mnist_network_t *self, size_t l)
{
    return l == 0 ? self->in : self->layers[l - 1].out;
}

/* out = in W + b, rectified if another layer follows. */
static psd_status_t forwards(mnist_network_t *self, size_t l, size_t n, psd_error_t *err)
{
    const mnist_layer_t *layer = &self->layers[l];
    psd_matrix_t *in = NULL;
    psd_matrix_t *out = NULL;
    psd_status_t rc = rows(input_of(self, l), n, &in, err);

    if (rc == PSD_OK) {
        rc = rows(layer->out, n, &out, err);
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_multiply(1, in, false, layer->weights, false, 0, out, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        float *row = psd_matrix_values(out) + i * layer->outputs;

        for (size_t o = 0; o < layer->outputs; o++) {
            row[o] += layer->bias[o];
            if (l + 1 < self->n_layers && row[o] < 0) {
                row[o] = 0;
            }
        }
    }
    psd_matrix_destroy(&out);
    psd_matrix_destroy(&in);
    return rc;
}

/* Turns a row of scores into probabilities; returns that of the true class. */
static mnist_verdict_t judge(float *row, uint8_t truth)
{
    mnist_verdict_t verdict = {0};
    double sum = 0;

    for (uint8_t c = 1; c < MNIST_CLASSES; c++) {
        if (row[c] > row[verdict.class]) {
            verdict.class = c;
        }
    }
    float greatest = row[verdict.class];

    for (size_t c = 0; c < MNIST_CLASSES; c++) {
        sum += exp((double)row[c] - (double)greatest);
    }
    verdict.loss = log(sum) - ((double)row[truth] - (double)greatest);
    for (size_t c = 0; c < MNIST_CLASSES; c++) {
        row[c] = (float)(exp((double)row[c] - (double)greatest) / sum);
    }
    return verdict;
}

psd_status_t mnist_network_look(mnist_network_t *self, const mnist_images_t *images,
                                const uint32_t *list, size_t n, mnist_verdict_t *ret_verdicts,
                                psd_error_t *err)
{
    float *scores = psd_matrix_values(self->layers[self->n_layers - 1].out);
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < n; i++) {
        mnist_images_get(images, list[i], psd_matrix_values(self->in) + i * images->n_pixels);
    }
    for (size_t l = 0; rc == PSD_OK && l < self->n_layers; l++) {
        rc = forwards(self, l, n, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        ret_verdicts[i] = judge(scores + i * MNIST_CLASSES, images->classes[list[i]]);
    }
    return rc;
}

/* Gradients of a layer's parameters, and of its input from another layer. */
static psd_status_t backwards(mnist_network_t *self, size_t l, size_t n, psd_error_t *err)
{
    const mnist_layer_t *layer = &self->layers[l];
    psd_matrix_t *in = NULL;
    psd_matrix_t *slope = NULL;
    psd_matrix_t *in_slope = NULL;
    psd_status_t rc = rows(input_of(self, l), n, &in, err);

    if (rc == PSD_OK) {
        rc = rows(layer->out_slope, n, &slope, err);
    }
    if (rc == PSD_OK) {
        rc = psd_matrix_multiply(1, in, true, slope, false, 0, layer->w_slope, err);
    }
    memset(layer->b_slope, 0, layer->outputs * sizeof *layer->b_slope);
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        const float *row = psd_matrix_values(slope) + i * layer->outputs;

        for (size_t o = 0; o < layer->outputs; o++) {
            layer->b_slope[o] += row[o];
        }
    }
    if (rc == PSD_OK && l > 0) {
        rc = rows(self->layers[l - 1].out_slope, n, &in_slope, err);
        if (rc == PSD_OK) {
            rc = psd_matrix_multiply(1, slope, false, layer->weights, true, 0, in_slope, err);
        }
        /* A unit with output 0 has no gradient. */
        for (size_t i = 0; rc == PSD_OK && i < n * layer->inputs; i++) {
            if (psd_matrix_values(in)[i] <= 0) {
                psd_matrix_values(in_slope)[i] = 0;
            }
        }
    }
    psd_matrix_destroy(&in_slope);
    psd_matrix_destroy(&slope);
    psd_matrix_destroy(&in);
    return rc;
}

psd_status_t mnist_network_learn(mnist_network_t *self, const mnist_images_t *images,
                                 const uint32_t *list, size_t n, size_t n_all, psd_error_t *err)
{
    const mnist_layer_t *last = &self->layers[self->n_layers - 1];
    const float *probabilities = psd_matrix_values(last->out);
    float *slopes = psd_matrix_values(last->out_slope);
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; i < n; i++) {
        for (size_t c = 0; c < MNIST_CLASSES; c++) {
            size_t at = i * MNIST_CLASSES + c;
            float is_true = c == images->classes[list[i]] ? 1.0f : 0.0f;

            slopes[at] = (probabilities[at] - is_true) / (float)n_all;
        }
    }
    for (size_t l = self->n_layers; rc == PSD_OK && l > 0; l--) {
        rc = backwards(self, l - 1, n, err);
    }
    return rc;
}
