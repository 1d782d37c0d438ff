/* SPDX-License-Identifier: Apache-2.0 */
/* The weights that are not zero, and their file. */
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../program/number.h"
#include "../program/output.h"

#define FIRST_ROOM 1024
#define LINE_SIZE 128
#define HEAD "# "
#define HEAD_END " weights"

void ex_model_done(ex_model_t *self)
{
    free(self->rows);
    free(self->weights);
    memset(self, 0, sizeof(*self));
}

static psd_status_t grow(ex_model_t *self, psd_error_t *err)
{
    size_t room = self->room == 0 ? FIRST_ROOM : self->room * 2;
    uint64_t *rows = realloc(self->rows, room * sizeof(*rows));
    float *weights = NULL;

    if (rows != NULL) {
        self->rows = rows;
        weights = realloc(self->weights, room * sizeof(*weights));
    }
    if (weights == NULL) {
        return psd_error_set(err, PSD_NOMEM, "model of %zu weights", room);
    }
    self->weights = weights;
    self->room = room;
    return PSD_OK;
}

psd_status_t ex_model_add(ex_model_t *self, uint64_t row, float weight, psd_error_t *err)
{
    if (weight == 0) {
        return PSD_OK;
    }
    if (self->n == self->room) {
        psd_status_t rc = grow(self, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    self->rows[self->n] = row;
    self->weights[self->n] = weight;
    self->n++;
    return PSD_OK;
}

double ex_model_norm2(const ex_model_t *self)
{
    double sum = 0;

    for (size_t i = 0; i < self->n; i++) {
        sum += (double)self->weights[i] * (double)self->weights[i];
    }
    return sum;
}

void ex_model_pick(const ex_model_t *self, const uint64_t *rows, size_t n, float *ret_weights)
{
    size_t at = 0;

    for (size_t i = 0; i < n; i++) {
        while (at < self->n && self->rows[at] < rows[i]) {
            at++;
        }
        ret_weights[i] = at < self->n && self->rows[at] == rows[i] ? self->weights[at] : 0;
    }
}

/* The number of weights comes first, so that a truncated file is noticed.
 * %.9g restores a float to the bit. */
static bool write_lines(const ex_model_t *self, FILE *stream)
{
    if (fprintf(stream, HEAD "%zu" HEAD_END "\n", self->n) < 0) {
        return false;
    }
    for (size_t i = 0; i < self->n; i++) {
        if (fprintf(stream, "%" PRIu64 " %.9g\n", self->rows[i], (double)self->weights[i]) < 0) {
            return false;
        }
    }
    return true;
}

psd_status_t ex_model_save(const ex_model_t *self, const char *path, psd_error_t *err)
{
    ex_output_t output;
    psd_status_t rc = ex_output_open(&output, path, err);

    return rc == PSD_OK ? ex_output_finish(&output, write_lines(self, output.file), err) : rc;
}

/* Splits "index value" in place; false when the line is something else. */
static bool split_line(char *line, uint64_t *ret_row, double *ret_weight)
{
    char *end = line + strcspn(line, " \t");
    char *value = end + strspn(end, " \t");
    char *rest = value + strcspn(value, " \t");

    if (*end == '\0' || rest[strspn(rest, " \t")] != '\0') {
        return false;
    }
    *end = '\0';
    *rest = '\0';
    return ex_number_u64(line, ret_row) && ex_number_f64(value, ret_weight) &&
           isfinite((float)*ret_weight);
}

static psd_status_t load_line(ex_model_t *self, const char *path, size_t number, char *line,
                              psd_error_t *err)
{
    uint64_t row = 0;
    double weight = 0;

    /* fgets leaves no line end only where the line, or the file, is cut. */
    if (strchr(line, '\n') == NULL && strlen(line) == LINE_SIZE - 1) {
        return psd_error_set(err, PSD_INVALID, "%s:%zu: line is longer than %d bytes", path, number,
                             LINE_SIZE - 2);
    }
    line[strcspn(line, "#\r\n")] = '\0';
    if (line[strspn(line, " \t")] == '\0') {
        return PSD_OK;
    }
    if (!split_line(line, &row, &weight)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%zu: is not \"index value\" with a whole "
                             "number and a finite one",
                             path, number);
    }
    if (self->n > 0 && row <= self->rows[self->n - 1]) {
        return psd_error_set(err, PSD_INVALID,
                             "%s:%zu: index %" PRIu64 " follows %" PRIu64 "; indices must ascend",
                             path, number, row, self->rows[self->n - 1]);
    }
    return ex_model_add(self, row, (float)weight, err);
}

/* A head's "# N weights"; false: not a head. */
static bool read_head(const char *line, size_t *ret_n)
{
    char text[LINE_SIZE];
    uint64_t n = 0;
    size_t size = strcspn(line, "\r\n");
    size_t behind = strlen(HEAD_END);

    if (strncmp(line, HEAD, strlen(HEAD)) != 0 || size < strlen(HEAD) + behind ||
        strncmp(line + size - behind, HEAD_END, behind) != 0) {
        return false;
    }
    size -= strlen(HEAD) + behind;
    memcpy(text, line + strlen(HEAD), size);
    text[size] = '\0';
    if (!ex_number_u64(text, &n)) {
        return false;
    }
    *ret_n = (size_t)n;
    return true;
}

/* A file written by hand may lack its head. */
static psd_status_t check_whole(const ex_model_t *self, const char *path, const size_t *wanted,
                                bool is_cut, psd_error_t *err)
{
    if (wanted == NULL && self->n == 0) {
        return psd_error_set(err, PSD_INVALID, "%s: is empty; allowed: lines \"index value\"",
                             path);
    }
    if (wanted != NULL && self->n > *wanted) {
        return psd_error_set(err, PSD_INVALID, "%s: %zu weights of %zu were found", path, self->n,
                             *wanted);
    }
    if (wanted != NULL && (self->n < *wanted || is_cut)) {
        return psd_error_set(err, PSD_INVALID, "%s: is cut short: %zu weights of %zu were found%s",
                             path, self->n, *wanted, is_cut ? ", the last without a newline" : "");
    }
    return PSD_OK;
}

psd_status_t ex_model_load(ex_model_t *self, const char *path, psd_error_t *err)
{
    FILE *stream = fopen(path, "re");
    char line[LINE_SIZE];
    size_t wanted = 0;
    bool has_head = false;
    bool is_cut = false;
    psd_status_t rc = PSD_OK;

    memset(self, 0, sizeof(*self));
    if (stream == NULL) {
        return psd_error_set(err, PSD_IO, "open %s: %s", path, strerror(errno));
    }
    for (size_t number = 1; rc == PSD_OK && fgets(line, sizeof(line), stream) != NULL; number++) {
        size_t before = self->n;
        bool has_end = strchr(line, '\n') != NULL;

        has_head = has_head || (number == 1 && read_head(line, &wanted));
        rc = load_line(self, path, number, line, err);
        is_cut = !has_end && self->n > before;
    }
    if (rc == PSD_OK && ferror(stream) != 0) {
        rc = psd_error_set(err, PSD_IO, "read %s: %s", path, strerror(errno));
    }
    (void)fclose(stream); /* nothing was written */
    if (rc == PSD_OK) {
        rc = check_whole(self, path, has_head ? &wanted : NULL, is_cut, err);
    }
    if (rc != PSD_OK) {
        ex_model_done(self);
    }
    return rc;
}
