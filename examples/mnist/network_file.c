/* SPDX-License-Identifier: Apache-2.0 */
/* A network as a text file: a line of sizes, then a parameter a line. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "../common/program/number.h"
#include "../common/program/output.h"
#include "network.h"

#define SIZE_MOST 100000000u

static psd_status_t io_failed(const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
}

static bool write_all(const mnist_network_t *self, FILE *file)
{
    bool good = fprintf(file, "psd-mnist 1 %zu %zu\n", self->layers[0].inputs,
                        self->n_layers > 1 ? self->layers[0].outputs : 0) > 0;

    for (size_t i = 0; good && i < self->n; i++) {
        good = fprintf(file, "%.9g\n", (double)self->parameters[i]) > 0;
    }
    return good;
}

psd_status_t mnist_network_save(const mnist_network_t *self, const char *path, psd_error_t *err)
{
    ex_output_t output;
    psd_status_t rc = ex_output_open(&output, path, err);

    return rc == PSD_OK ? ex_output_finish(&output, write_all(self, output.file), err) : rc;
}

/* The next word of a line as a number up to SIZE_MOST. */
static bool read_size(char **rest, size_t *ret_size)
{
    const char *word = strtok_r(NULL, " \n", rest);
    uint64_t size = 0;

    if (word == NULL || !ex_number_u64(word, &size) || size > SIZE_MOST) {
        return false;
    }
    *ret_size = (size_t)size;
    return true;
}

static psd_status_t read_sizes(FILE *file, const char *path, size_t *ret_pixels, size_t *ret_hidden,
                               psd_error_t *err)
{
    char line[128] = "";
    char *rest = NULL;
    const char *name = NULL;
    size_t version = 0;

    if (fgets(line, sizeof line, file) != NULL) {
        name = strtok_r(line, " \n", &rest);
    }
    if (name == NULL || strcmp(name, "psd-mnist") != 0 || !read_size(&rest, &version) ||
        version != 1 || !read_size(&rest, ret_pixels) || !read_size(&rest, ret_hidden) ||
        *ret_pixels < 1 || *ret_pixels > SIZE_MOST / MNIST_CLASSES ||
        *ret_hidden > SIZE_MOST / (*ret_pixels + MNIST_CLASSES)) {
        return psd_error_set(err, PSD_INVALID, "%s:1: not a model of psd-mnist, version 1", path);
    }
    return PSD_OK;
}

static psd_status_t read_parameters(FILE *file, const char *path, mnist_network_t *network,
                                    psd_error_t *err)
{
    char line[128];

    for (size_t i = 0; i < network->n; i++) {
        double value = 0;

        if (fgets(line, sizeof line, file) == NULL) {
            return psd_error_set(err, PSD_INVALID, "%s:%zu: ends here; %zu parameters are needed",
                                 path, i + 2, network->n);
        }
        line[strcspn(line, "\n")] = '\0';
        if (!ex_number_f64(line, &value) || value > 1e30 || value < -1e30) {
            return psd_error_set(err, PSD_INVALID, "%s:%zu: \"%s\" is not a number", path, i + 2,
                                 line);
        }
        network->parameters[i] = (float)value;
    }
    if (fgets(line, sizeof line, file) != NULL) {
        return psd_error_set(err, PSD_INVALID, "%s:%zu: more than %zu parameters", path,
                             network->n + 2, network->n);
    }
    return PSD_OK;
}

psd_status_t mnist_network_load(mnist_network_t *ret_network, const char *path, size_t room,
                                psd_error_t *err)
{
    FILE *file = fopen(path, "re");
    size_t n_pixels = 0;
    size_t hidden = 0;
    psd_status_t rc = PSD_OK;

    if (file == NULL) {
        return io_failed(path, err);
    }
    rc = read_sizes(file, path, &n_pixels, &hidden, err);
    if (rc == PSD_OK) {
        rc = mnist_network_init(ret_network, n_pixels, hidden, room, err);
    }
    if (rc == PSD_OK) {
        rc = read_parameters(file, path, ret_network, err);
        if (rc != PSD_OK) {
            mnist_network_done(ret_network);
        }
    }
    (void)fclose(file);
    return rc;
}
