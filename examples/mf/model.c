/* SPDX-License-Identifier: Apache-2.0 */
/* The model, in memory and as a text file. */
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../common/program/number.h"
#include "../common/program/output.h"

#define ROWS_MOST 100000000u
#define WIDTH_MOST 4096u

psd_status_t mf_side_init(mf_side_t *self, const uint64_t *ids, size_t n, size_t width,
                          psd_error_t *err)
{
    self->ids = calloc(n + 1, sizeof *self->ids);
    self->rows = calloc(n * width + 1, sizeof *self->rows);
    if (self->ids == NULL || self->rows == NULL) {
        return psd_error_set(err, PSD_NOMEM, "%zu rows of %zu", n, width);
    }
    if (ids != NULL) {
        memcpy(self->ids, ids, n * sizeof *ids);
    }
    self->n = n;
    return PSD_OK;
}

void mf_model_done(mf_model_t *self)
{
    free(self->users.ids);
    free(self->users.rows);
    free(self->items.ids);
    free(self->items.rows);
    memset(self, 0, sizeof *self);
}

const float *mf_side_find(const mf_side_t *self, uint64_t id, size_t width)
{
    size_t low = 0;
    size_t high = self->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (self->ids[middle] < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < self->n && self->ids[low] == id ? self->rows + low * width : NULL;
}

double mf_model_predict(const mf_model_t *self, const float *user, const float *item)
{
    double sum = self->mean;

    if (user != NULL) {
        sum += (double)user[0];
    }
    if (item != NULL) {
        sum += (double)item[0];
    }
    for (size_t k = 1; user != NULL && item != NULL && k < self->width; k++) {
        sum += (double)user[k] * (double)item[k];
    }
    return sum;
}

static psd_status_t io_failed(const char *path, psd_error_t *err)
{
    char reason[128];

    return psd_error_set(err, PSD_IO, "%s: %s", path, strerror_r(errno, reason, sizeof reason));
}

static bool write_side(const mf_side_t *side, size_t width, FILE *file)
{
    bool good = true;

    for (size_t i = 0; good && i < side->n; i++) {
        good = fprintf(file, "%" PRIu64, side->ids[i]) > 0;
        for (size_t k = 0; good && k < width; k++) {
            good = fprintf(file, " %.9g", (double)side->rows[i * width + k]) > 0;
        }
        good = good && fputc('\n', file) != EOF;
    }
    return good;
}

static bool write_all(const mf_model_t *self, FILE *file)
{
    return fprintf(file, "psd-mf 1 %zu %zu %zu %.17g\n", self->width, self->users.n, self->items.n,
                   self->mean) > 0 &&
           write_side(&self->users, self->width, file) &&
           write_side(&self->items, self->width, file);
}

psd_status_t mf_model_save(const mf_model_t *self, const char *path, psd_error_t *err)
{
    ex_output_t output;
    psd_status_t rc = ex_output_open(&output, path, err);

    return rc == PSD_OK ? ex_output_finish(&output, write_all(self, output.file), err) : rc;
}

/* An open model file: its next line, cut into words. */
typedef struct lines {
    FILE *file;
    const char *path;
    char *text; /* owned */
    size_t room;
    size_t number;
} lines_t;

static psd_status_t bad_line(const lines_t *lines, psd_error_t *err)
{
    return psd_error_set(err, PSD_INVALID, "%s:%zu: not what psd-mf writes", lines->path,
                         lines->number);
}

/* Reads a row and its id, which must ascend. */
static psd_status_t read_row(lines_t *lines, mf_side_t *side, size_t i, size_t width,
                             psd_error_t *err)
{
    char *rest = NULL;
    char *word = NULL;
    bool good = getline(&lines->text, &lines->room, lines->file) > 0;

    lines->number++;
    word = good ? strtok_r(lines->text, " \n", &rest) : NULL;
    good = word != NULL && ex_number_u64(word, &side->ids[i]) &&
           (i == 0 || side->ids[i] > side->ids[i - 1]);
    for (size_t k = 0; good && k < width; k++) {
        double value = 0;

        word = strtok_r(NULL, " \n", &rest);
        good = word != NULL && ex_number_f64(word, &value) && value < 1e30 && value > -1e30;
        side->rows[i * width + k] = (float)value;
    }
    return good && strtok_r(NULL, " \n", &rest) == NULL ? PSD_OK : bad_line(lines, err);
}

static psd_status_t read_side(lines_t *lines, mf_side_t *side, size_t n, size_t width,
                              psd_error_t *err)
{
    psd_status_t rc = mf_side_init(side, NULL, n, width, err);

    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        rc = read_row(lines, side, i, width, err);
    }
    return rc;
}

/* "psd-mf 1 WIDTH USERS ITEMS MEAN" */
static bool read_head(lines_t *lines, mf_model_t *model, size_t *ret_users, size_t *ret_items)
{
    uint64_t numbers[4] = {0};
    char *rest = NULL;
    const char *word = NULL;

    if (getline(&lines->text, &lines->room, lines->file) <= 0) {
        return false;
    }
    word = strtok_r(lines->text, " \n", &rest);
    if (word == NULL || strcmp(word, "psd-mf") != 0) {
        return false;
    }
    for (size_t i = 0; i < 4; i++) {
        word = strtok_r(NULL, " \n", &rest);
        if (word == NULL || !ex_number_u64(word, &numbers[i])) {
            return false;
        }
    }
    word = strtok_r(NULL, " \n", &rest);
    model->width = (size_t)numbers[1];
    *ret_users = (size_t)numbers[2];
    *ret_items = (size_t)numbers[3];
    return numbers[0] == 1 && word != NULL && ex_number_f64(word, &model->mean);
}

psd_status_t mf_model_load(mf_model_t *ret_model, const char *path, psd_error_t *err)
{
    lines_t lines = {.file = fopen(path, "re"), .path = path, .number = 1};
    size_t n_users = 0;
    size_t n_items = 0;
    psd_status_t rc = PSD_OK;

    memset(ret_model, 0, sizeof *ret_model);
    if (lines.file == NULL) {
        return io_failed(path, err);
    }
    if (!read_head(&lines, ret_model, &n_users, &n_items) || ret_model->width < 1 ||
        ret_model->width > WIDTH_MOST || n_users > ROWS_MOST / ret_model->width ||
        n_items > ROWS_MOST / ret_model->width) {
        rc = bad_line(&lines, err);
    }
    if (rc == PSD_OK) {
        rc = read_side(&lines, &ret_model->users, n_users, ret_model->width, err);
    }
    if (rc == PSD_OK) {
        rc = read_side(&lines, &ret_model->items, n_items, ret_model->width, err);
    }
    free(lines.text);
    (void)fclose(lines.file);
    if (rc != PSD_OK) {
        mf_model_done(ret_model);
    }
    return rc;
}
