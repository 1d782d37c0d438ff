/* SPDX-License-Identifier: Apache-2.0 */
/* Images of an idx file. A worker keeps all of them, as bytes: 47 MB of MNIST.
 */
#include "images.h"

#include <stdlib.h>
#include <string.h>

#include "../common/samples/load.h"

#define BATCH 1000

static psd_status_t fit(mnist_images_t *self, size_t n, psd_error_t *err)
{
    size_t room = self->room;
    uint8_t *more = NULL;

    if (n <= room) {
        return PSD_OK;
    }
    room = n + room / 2;
    more = realloc(self->pixels, room * self->n_pixels);
    if (more == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu images", n);
    }
    self->pixels = more;
    more = realloc(self->classes, room);
    if (more == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu images", n);
    }
    self->classes = more;
    self->room = room;
    return PSD_OK;
}

/* Sample i of the batch. */
static psd_status_t add(mnist_images_t *self, const psd_samples_t *batch, size_t i,
                        psd_error_t *err)
{
    const size_t *groups = psd_samples_groups(batch);
    const size_t *starts = psd_samples_starts(batch);
    const float *values = psd_samples_values(batch) + starts[groups[i]];
    size_t n_pixels = starts[groups[i + 1]] - starts[groups[i]];
    float label = psd_samples_labels(batch)[i];
    uint8_t *pixels = self->pixels + self->n * self->n_pixels;

    if (n_pixels != self->n_pixels) {
        return psd_error_set(err, PSD_INVALID, "image %zu has %zu pixels, not %zu", self->n,
                             n_pixels, self->n_pixels);
    }
    if (!(label >= 0 && label < MNIST_CLASSES) || label != (float)(int)label) {
        return psd_error_set(err, PSD_INVALID, "image %zu has class %g; 0 .. %d are", self->n,
                             (double)label, MNIST_CLASSES - 1);
    }
    for (size_t p = 0; p < n_pixels; p++) {
        if (!(values[p] >= 0 && values[p] <= 255) || values[p] != (float)(int)values[p]) {
            return psd_error_set(err, PSD_INVALID,
                                 "image %zu has a pixel of %g; whole numbers "
                                 "from 0 to 255 are",
                                 self->n, (double)values[p]);
        }
        pixels[p] = (uint8_t)values[p];
    }
    self->classes[self->n++] = (uint8_t)label;
    return PSD_OK;
}

static psd_status_t take(void *user, const psd_samples_t *batch, psd_error_t *err)
{
    mnist_images_t *self = user;
    psd_status_t rc = PSD_OK;

    if (self->n == 0) {
        self->n_pixels = psd_samples_starts(batch)[1];
    }
    if (self->n_pixels == 0) {
        return psd_error_set(err, PSD_INVALID, "image 0 has no pixels");
    }
    rc = fit(self, self->n + psd_samples_count(batch), err);
    for (size_t i = 0; rc == PSD_OK && i < psd_samples_count(batch); i++) {
        rc = add(self, batch, i, err);
    }
    return rc;
}

psd_status_t mnist_images_load(mnist_images_t *ret_images, const char *path, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    memset(ret_images, 0, sizeof *ret_images);
    rc = ex_read(path, "idx", BATCH, take, ret_images, err);
    return rc == PSD_OK && ret_images->n == 0
               ? psd_error_set(err, PSD_INVALID, "%s: it has no images", path)
               : rc;
}

void mnist_images_done(mnist_images_t *self)
{
    free(self->pixels);
    free(self->classes);
    memset(self, 0, sizeof *self);
}

void mnist_images_get(const mnist_images_t *self, size_t i, float *ret_pixels)
{
    const uint8_t *pixels = self->pixels + i * self->n_pixels;

    for (size_t p = 0; p < self->n_pixels; p++) {
        ret_pixels[p] = (float)pixels[p] / 255;
    }
}
