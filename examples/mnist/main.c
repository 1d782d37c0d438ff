/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-mnist - softmax regression and a small neural network on images
 *
 * What     A user's program: it sees <psd.h>, <psd_data.h> and <psd_linalg.h>.
 *          Each process is one worker, which computes its part of every
 *          minibatch; the parameters are a table on the server.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/program.h"
#include "options.h"
#include "train.h"

#define MEASURE_ROOM 1000 /* images of one forward pass */

static psd_status_t check_size(const mnist_images_t *images, size_t n_pixels, psd_error_t *err)
{
    return images->n_pixels == n_pixels
               ? PSD_OK
               : psd_error_set(err, PSD_SHAPE, "test images of %zu pixels, a model of %zu",
                               images->n_pixels, n_pixels);
}

/* Joins, learns, leaves; the first worker prints and saves. */
static psd_status_t learn(const mnist_options_t *options, mnist_network_t *network,
                          const mnist_images_t *train, const mnist_images_t *test, psd_error_t *err)
{
    ex_job_t job = {0};
    double start_s = ex_now_s();
    psd_status_t rc = ex_job_open(&job, &options->job, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = mnist_train(options, &job, network, train, test->n > 0 ? test : NULL, err);
    if (rc == PSD_OK && ex_job_is_first(&job)) {
        printf("trained %zu parameters on %zu images, %u workers, %.1f s\n", network->n, train->n,
               job.n_workers, ex_now_s() - start_s);
        if (options->save != NULL) {
            rc = mnist_network_save(network, options->save, err);
        }
    }
    if (rc == PSD_OK) {
        rc = ex_job_leave(&job, err);
    }
    ex_job_close(&job);
    return rc;
}

static psd_status_t train(const mnist_options_t *options, mnist_images_t *images,
                          mnist_images_t *test, psd_error_t *err)
{
    mnist_network_t network = {0};
    size_t room = options->minibatch > MEASURE_ROOM ? options->minibatch : MEASURE_ROOM;
    size_t hidden = options->network == MNIST_MLP ? options->hidden : 0;
    psd_status_t rc = mnist_images_load(images, options->train, err);

    if (rc == PSD_OK && options->test != NULL) {
        rc = mnist_images_load(test, options->test, err);
        if (rc == PSD_OK) {
            rc = check_size(test, images->n_pixels, err);
        }
    }
    if (rc == PSD_OK) {
        rc = mnist_network_init(&network, images->n_pixels, hidden, room, err);
    }
    if (rc == PSD_OK) {
        rc = learn(options, &network, images, test, err);
    }
    mnist_network_done(&network);
    return rc;
}

static psd_status_t write_classes(const char *path, const uint8_t *classes, size_t n,
                                  psd_error_t *err)
{
    FILE *file = fopen(path, "we");
    bool good = file != NULL;
    char reason[128];

    for (size_t i = 0; good && i < n; i++) {
        good = fprintf(file, "%u\n", classes[i]) > 0;
    }
    if (file != NULL) {
        good = fclose(file) == 0 && good;
    }
    return good ? PSD_OK
                : psd_error_set(err, PSD_IO, "%s: %s", path,
                                strerror_r(errno, reason, sizeof reason));
}

static psd_status_t predict(const mnist_options_t *options, mnist_images_t *test, psd_error_t *err)
{
    mnist_network_t network = {0};
    uint8_t *classes = NULL;
    psd_status_t rc = mnist_network_load(&network, options->predict, MEASURE_ROOM, err);

    if (rc == PSD_OK) {
        rc = mnist_images_load(test, options->test, err);
    }
    if (rc == PSD_OK) {
        rc = check_size(test, network.layers[0].inputs, err);
    }
    if (rc == PSD_OK) {
        classes = calloc(test->n, 1);
        rc = classes == NULL ? psd_error_set(err, PSD_NOMEM, "%zu classes", test->n)
                             : mnist_measure("test", &network, test, classes, err);
    }
    if (rc == PSD_OK && options->scores != NULL && classes != NULL) {
        rc = write_classes(options->scores, classes, test->n, err);
    }
    free(classes);
    mnist_network_done(&network);
    return rc;
}

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    mnist_options_t options;
    mnist_images_t images = {0};
    mnist_images_t test = {0};
    psd_status_t rc = mnist_options_read(&options, argc, argv, err);

    if (rc == PSD_OK && options.help) {
        mnist_help();
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        rc = options.predict != NULL ? predict(&options, &test, err)
                                     : train(&options, &images, &test, err);
    }
    mnist_images_done(&images);
    mnist_images_done(&test);
    return rc;
}

int main(int argc, char **argv)
{
    return ex_program("psd-mnist", run, argc, argv);
}
