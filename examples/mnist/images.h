/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mnist_images - images and their classes, as bytes in memory
 *
 * Shape    n images of n_pixels bytes; classes below MNIST_CLASSES
 * Owner    the caller; mnist_images_done
 */
#ifndef MNIST_IMAGES_H
#define MNIST_IMAGES_H

#include <stddef.h>
#include <stdint.h>

#include "psd_data.h"

#define MNIST_CLASSES 10

typedef struct mnist_images {
    size_t n, room;
    size_t n_pixels;
    uint8_t *pixels;
    uint8_t *classes;
} mnist_images_t;

/* Errors: those of psd_reader_open and psd_reader_next; PSD_INVALID an image
 * that is not of bytes, has no class, or has another size. */
PSD_MUST_CHECK psd_status_t mnist_images_load(mnist_images_t *ret_images, const char *path,
                                              psd_error_t *err);
void mnist_images_done(mnist_images_t *self);
/* Image i as floats of 0 .. 1. */
void mnist_images_get(const mnist_images_t *self, size_t i, float *ret_pixels);
#endif
