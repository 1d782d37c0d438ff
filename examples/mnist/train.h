/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist_train - a worker's part of the training, and what is measured
 *
 * What     The parameters are the rows of one table of f32 that adds. All
 *          workers draw the same order of the images, and each computes its
 *          part of every minibatch: under BSP the clock adds the parts up, so
 *          that the result is that of one worker, except for rounding. A step
 *          with momentum is -step g + momentum (w - w before), of which every
 *          worker has its part of g, and all know w and w before from their
 *          pulls: worker 0 pushes the rest.
 *          With --outer-every each worker takes such steps in a copy of its own
 *          (common/job/outer.h), and the table's updater is nesterov over the
 *          mean of the workers. It is measured and saved as the table has it.
 */
#ifndef MNIST_TRAIN_H
#define MNIST_TRAIN_H

#include "images.h"
#include "network.h"
#include "options.h"

/* test: NULL, or what worker 0 measures after each epoch. The network has
 * room for a minibatch; afterwards it has the last parameters, or their
 * means. */
PSD_MUST_CHECK psd_status_t mnist_train(const mnist_options_t *options, ex_job_t *job,
                                        mnist_network_t *network, const mnist_images_t *train,
                                        const mnist_images_t *test, psd_error_t *err);
/* Prints accuracy and loss of all images; ret_classes: NULL, or room for the
 * class of each. */
PSD_MUST_CHECK psd_status_t mnist_measure(const char *what, mnist_network_t *network,
                                          const mnist_images_t *images, uint8_t *ret_classes,
                                          psd_error_t *err);
#endif
