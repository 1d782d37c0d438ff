/* SPDX-License-Identifier: Apache-2.0 */
/* The model, in memory and as a text file. */
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/number.h"
#include "../common/program/output.h"
#include "options.h"

#define FIRST_ROOM 1024
#define HEAD "psd-fm 2 "

void fm_model_done(fm_model_t *self)
{
    free(self->keys);
    free(self->weights);
    free(self->slots);
    free(self->factors);
    memset(self, 0, sizeof(*self));
}

/* Makes *array_p longer; false: it is as it was. */
static bool lengthen(void *array_p, size_t n, size_t size)
{
    void **place = array_p;
    void *more = realloc(*place, n * size);

    if (more != NULL) {
        *place = more;
    }
    return more != NULL;
}

static psd_status_t grow(fm_model_t *self, psd_error_t *err)
{
    size_t room = self->room == 0 ? FIRST_ROOM : 2 * self->room;

    if (!lengthen(&self->keys, room, sizeof(*self->keys)) ||
        !lengthen(&self->weights, room, sizeof(*self->weights)) ||
        !lengthen(&self->slots, room, sizeof(*self->slots))) {
        return psd_error_set(err, PSD_NOMEM, "model of %zu keys", room);
    }
    self->room = room;
    return PSD_OK;
}

static psd_status_t add_factors(fm_model_t *self, const float *factors, psd_error_t *err)
{
    size_t room = self->slots_room == 0 ? FIRST_ROOM : 2 * self->slots_room;

    if (self->n_slots == self->slots_room) {
        if (room >= FM_NO_SLOT ||
            !lengthen(&self->factors, room, self->dim * sizeof(*self->factors))) {
            return psd_error_set(err, PSD_NOMEM, "%zu embeddings", room);
        }
        self->slots_room = room;
    }
    memcpy(self->factors + self->n_slots * self->dim, factors, self->dim * sizeof(*factors));
    self->n_slots++;
    return PSD_OK;
}

psd_status_t fm_model_add(fm_model_t *self, uint64_t key, float weight, const float *factors,
                          psd_error_t *err)
{
    uint32_t slot = FM_NO_SLOT;
    psd_status_t rc = PSD_OK;

    if (self->n == self->room) {
        rc = grow(self, err);
    }
    if (rc == PSD_OK && factors != NULL) {
        slot = (uint32_t)self->n_slots;
        rc = add_factors(self, factors, err);
    }
    if (rc == PSD_OK) {
        self->keys[self->n] = key;
        self->weights[self->n] = weight;
        self->slots[self->n++] = slot;
    }
    return rc;
}

/* The place of each of the samples' features; those that the model lacks get
 * place n, which has weight 0. */
static void find_places(const fm_model_t *self, const ex_samples_t *samples, uint32_t *ret_places)
{
    size_t at = 0;

    for (size_t i = 0; i < samples->n_features; i++) {
        uint64_t key = samples->keys[i];

        while (at < self->n && self->keys[at] < key) {
            at++;
        }
        ret_places[i] = (uint32_t)(at < self->n && self->keys[at] == key ? at : self->n);
    }
}

psd_status_t fm_model_score(const fm_model_t *self, const ex_samples_t *samples,
                            double *ret_margins, psd_error_t *err)
{
    uint32_t *places = malloc((samples->n_features + 1) * sizeof(*places));
    uint32_t *slots = malloc((self->n + 1) * sizeof(*slots));
    float *weights = malloc((self->n + 1) * sizeof(*weights));
    double *sums = malloc((self->dim + 1) * sizeof(*sums));
    fm_view_t view = {.dim = self->dim,
                      .places = places,
                      .weights = weights,
                      .slots = slots,
                      .factors = self->factors};
    psd_status_t rc = PSD_OK;

    if (places == NULL || slots == NULL || weights == NULL || sums == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "scores of %zu samples", samples->n);
    } else {
        for (size_t i = 0; i < self->n; i++) {
            slots[i] = self->slots[i];
            weights[i] = self->weights[i];
        }
        slots[self->n] = FM_NO_SLOT;
        weights[self->n] = 0;
        find_places(self, samples, places);
        for (size_t i = 0; i < samples->n; i++) {
            ret_margins[i] = fm_margin(&view, samples, i, sums);
        }
    }
    free(places);
    free(slots);
    free(weights);
    free(sums);
    return rc;
}

/* %.9g restores a float to the bit. */
static bool write_lines(const fm_model_t *self, FILE *file)
{
    bool good = fprintf(file, HEAD "%zu %zu\n", self->dim, self->n) > 0;

    for (size_t i = 0; good && i < self->n; i++) {
        good = fprintf(file, "%" PRIu64 " %.9g", self->keys[i], (double)self->weights[i]) > 0;
        for (size_t k = 0; good && self->slots[i] != FM_NO_SLOT && k < self->dim; k++) {
            size_t at = (size_t)self->slots[i] * self->dim + k;

            good = fprintf(file, " %.9g", (double)self->factors[at]) > 0;
        }
        good = good && fputc('\n', file) != EOF;
    }
    return good;
}

psd_status_t fm_model_save(const fm_model_t *self, const char *path, psd_error_t *err)
{
    ex_output_t output;
    psd_status_t rc = ex_output_open(&output, path, err);

    return rc == PSD_OK ? ex_output_finish(&output, write_lines(self, output.file), err) : rc;
}

/* A model file that is being read. */
typedef struct lines {
    FILE *file;
    const char *path;
    char *text; /* the line; owned */
    size_t room;
    size_t number;   /* of the line */
    uint64_t n_keys; /* that there are by the head */
    bool is_cut;     /* the line has no end */
    float *factors;  /* room for an embedding; owned */
} lines_t;

static psd_status_t bad_line(const lines_t *lines, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s:%zu: is not %s", lines->path, lines->number, what);
}

/* "psd-fm 2 DIM KEYS" */
static psd_status_t read_head(lines_t *lines, fm_model_t *model, psd_error_t *err)
{
    uint64_t dim = 0;
    char *keys = NULL;

    lines->number = 1;
    if (getline(&lines->text, &lines->room, lines->file) <= 0 ||
        strchr(lines->text, '\n') == NULL) {
        return bad_line(lines, "\"" HEAD "DIM KEYS\"", err);
    }
    lines->text[strcspn(lines->text, "\n")] = '\0';
    keys = strrchr(lines->text, ' ');
    if (strncmp(lines->text, HEAD, strlen(HEAD)) != 0 || keys < lines->text + strlen(HEAD)) {
        return bad_line(lines, "\"" HEAD "DIM KEYS\"", err);
    }
    *keys++ = '\0';
    if (!ex_number_u64(lines->text + strlen(HEAD), &dim) || dim == 0 || dim > FM_DIM_MAX ||
        !ex_number_u64(keys, &lines->n_keys)) {
        return bad_line(lines, "\"" HEAD "DIM KEYS\"", err);
    }
    model->dim = (size_t)dim;
    lines->factors = calloc(model->dim, sizeof(*lines->factors));
    return lines->factors != NULL ? PSD_OK : psd_error_set(err, PSD_NOMEM, "an embedding");
}

static bool read_real(const char *word, float *ret_value)
{
    double value = 0;

    if (!ex_number_f64(word, &value) || !isfinite((float)value)) {
        return false;
    }
    *ret_value = (float)value;
    return true;
}

/* "key weight [v_1 … v_DIM]" */
static psd_status_t read_line(lines_t *lines, fm_model_t *model, psd_error_t *err)
{
    char *rest = NULL;
    char *word = strtok_r(lines->text, " \n", &rest);
    uint64_t key = 0;
    float weight = 0;
    size_t n = 0;
    bool good = word != NULL && ex_number_u64(word, &key);

    word = strtok_r(NULL, " \n", &rest);
    good = good && word != NULL && read_real(word, &weight);
    while (good && (word = strtok_r(NULL, " \n", &rest)) != NULL) {
        good = n < model->dim && read_real(word, &lines->factors[n++]);
    }
    if (!good || (n != 0 && n != model->dim)) {
        return bad_line(lines, "\"key weight\", or that and an embedding", err);
    }
    if (model->n > 0 && key <= model->keys[model->n - 1]) {
        return bad_line(lines, "after the one before: keys must ascend", err);
    }
    return fm_model_add(model, key, weight, n > 0 ? lines->factors : NULL, err);
}

psd_status_t fm_model_load(fm_model_t *ret_model, const char *path, psd_error_t *err)
{
    lines_t lines = {.file = fopen(path, "re"), .path = path};
    psd_status_t rc = PSD_OK;

    memset(ret_model, 0, sizeof(*ret_model));
    if (lines.file == NULL) {
        return psd_error_set(err, PSD_IO, "open %s: %s", path, strerror(errno));
    }
    rc = read_head(&lines, ret_model, err);
    while (rc == PSD_OK && getline(&lines.text, &lines.room, lines.file) > 0) {
        lines.number++;
        lines.is_cut = strchr(lines.text, '\n') == NULL;
        rc = read_line(&lines, ret_model, err);
    }
    if (rc == PSD_OK && ferror(lines.file) != 0) {
        rc = psd_error_set(err, PSD_IO, "read %s: %s", path, strerror(errno));
    }
    if (rc == PSD_OK && (ret_model->n != lines.n_keys || lines.is_cut)) {
        rc = psd_error_set(err, PSD_INVALID, "%s: %zu keys%s were found, of %" PRIu64, path,
                           ret_model->n, lines.is_cut ? ", the last one cut," : "", lines.n_keys);
    }
    free(lines.text);
    free(lines.factors);
    (void)fclose(lines.file); /* nothing was written */
    if (rc != PSD_OK) {
        fm_model_done(ret_model);
    }
    return rc;
}
