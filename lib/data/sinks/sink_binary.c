/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples as matrices in binary files (format_binary.c says what they are):
 * NAME for group 0, NAME.ID for others, NAME.y for labels. A group that begins
 * late has empty rows in front. The .info files come last, and that of the
 * labels after all others, so that a data set that can be read is complete.
 */
#include "data/sinks/sink.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/streams/file_out.h"
#include "data/records/matrix_info.h"
#include "data/records/matrix_names.h"

#define FLUSH_BYTES ((size_t)32 << 10)
#define NAME_MAX_BYTES ((size_t)PATH_MAX - 32)

/* One array on its way into its file. */
typedef struct part {
    ps_file_out_t *file; /* owned; NULL: there is none */
    ps_buffer_t bytes;
} part_t;

typedef struct matrix {
    ps_matrix_info_t info; /* n_rows: written so far */
    char *name;            /* owned */
    part_t offsets, keys, values, about;
} matrix_t;

struct ps_sink {
    char *name;          /* owned */
    matrix_t **matrices; /* owned, n of them */
    size_t n, capacity;
    matrix_t labels;
    bool labelled; /* some are */
    uint64_t n_rows;
    psd_entries_t entries; /* of all samples */
};

/* ---- parts ---- */

static psd_status_t open_part(part_t *self, const char *name, const char *ending, psd_error_t *err)
{
    char path[PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s.%s", name, ending);
    return ps_file_out_open(path, 0666, &self->file, err);
}

static psd_status_t flush(part_t *self, psd_error_t *err)
{
    psd_status_t rc = self->bytes.size == 0
                          ? PSD_OK
                          : ps_file_out_write(self->file, self->bytes.data, self->bytes.size, err);

    self->bytes.size = 0;
    return rc;
}

static psd_status_t append(part_t *self, const void *bytes, size_t size, psd_error_t *err)
{
    if (!ps_buffer_append(&self->bytes, bytes, size)) {
        return ps_sample_no_memory(size, err);
    }
    return self->bytes.size >= FLUSH_BYTES ? flush(self, err) : PSD_OK;
}

static psd_status_t commit_part(part_t *self, psd_error_t *err)
{
    psd_status_t rc = self->file == NULL ? PSD_OK : flush(self, err);

    return rc == PSD_OK && self->file != NULL ? ps_file_out_commit(self->file, err) : rc;
}

static void close_part(part_t *self)
{
    ps_file_out_close(&self->file);
    ps_buffer_done(&self->bytes);
}

/* ---- matrices ---- */

static void close_matrix(matrix_t *self)
{
    close_part(&self->offsets);
    close_part(&self->keys);
    close_part(&self->values);
    close_part(&self->about);
    ps_free(self->name);
}

static psd_status_t open_parts(matrix_t *self, psd_error_t *err)
{
    const uint64_t zero = 0;
    psd_status_t rc = PSD_OK;

    if (self->info.type != PSD_ENTRIES_DENSE) {
        rc = open_part(&self->offsets, self->name, "offset", err);
        if (rc == PSD_OK) {
            rc = open_part(&self->keys, self->name, "index", err);
        }
        if (rc == PSD_OK) {
            rc = append(&self->offsets, &zero, sizeof zero, err);
        }
    }
    if (rc == PSD_OK && self->info.type != PSD_ENTRIES_BINARY) {
        rc = open_part(&self->values, self->name, "value", err);
    }
    return rc;
}

/* Sets it up for a group; suffix "" or ".ID" or ".y". */
static psd_status_t open_matrix(matrix_t *self, const char *name, const char *suffix,
                                ps_matrix_info_t info, psd_error_t *err)
{
    char whole[PATH_MAX + 16];

    (void)snprintf(whole, sizeof whole, "%s%s", name, suffix);
    self->info = info;
    self->info.value_size = sizeof(float);
    self->info.index_size = info.type == PSD_ENTRIES_DENSE ? 0 : sizeof(uint64_t);
    self->name = ps_strdup(whole);
    return self->name == NULL ? psd_error_set(err, PSD_NOMEM, "no memory to write %s", whole)
                              : open_parts(self, err);
}

static psd_status_t end_rows(matrix_t *self, uint64_t n_rows, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (; rc == PSD_OK && self->info.n_rows < n_rows; self->info.n_rows++) {
        if (self->info.type != PSD_ENTRIES_DENSE) {
            rc = append(&self->offsets, &self->info.n_entries, sizeof(uint64_t), err);
        }
    }
    return rc;
}

/* Completes all of its files, and puts none in its place. */
static psd_status_t complete(matrix_t *self, uint64_t n_rows, psd_error_t *err)
{
    part_t *const parts[] = {&self->offsets, &self->keys, &self->values, &self->about};
    psd_status_t rc = end_rows(self, n_rows, err);

    if (rc == PSD_OK) {
        rc = open_part(&self->about, self->name, "info", err);
    }
    if (rc == PSD_OK && !ps_matrix_info_print(&self->info, &self->about.bytes)) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory to write %s.info", self->name);
    }
    for (size_t i = 0; rc == PSD_OK && i < sizeof parts / sizeof parts[0]; i++) {
        rc = parts[i]->file == NULL ? PSD_OK : flush(parts[i], err);
    }
    return rc;
}

static psd_status_t commit_arrays(matrix_t *self, psd_error_t *err)
{
    psd_status_t rc = commit_part(&self->offsets, err);

    if (rc == PSD_OK) {
        rc = commit_part(&self->keys, err);
    }
    return rc == PSD_OK ? commit_part(&self->values, err) : rc;
}

/* ---- the whole ---- */

static void close_sink(ps_sink_t **self_p)
{
    ps_sink_t *self = *self_p;

    if (self != NULL) {
        for (size_t i = 0; i < self->n; i++) {
            close_matrix(self->matrices[i]);
            ps_free(self->matrices[i]);
        }
        ps_free(self->matrices);
        close_matrix(&self->labels);
        ps_free(self->name);
    }
    ps_free(self);
    *self_p = NULL;
}

/* Matrices of an older data set would be taken for some of this one. */
static psd_status_t refuse_old(const char *name, psd_error_t *err)
{
    PSD_AUTO(ps_matrix_names_done) ps_matrix_names_t old = {0};
    char path[PATH_MAX + 16];
    psd_status_t rc = PSD_OK;

    (void)snprintf(path, sizeof path, "%s.y.info", name);
    rc = ps_matrix_names_find(&old, path, err);
    if (rc == PSD_OK) {
        (void)snprintf(path, sizeof path, "%s.info", old.names[0]);
    } else if (rc != PSD_INVALID) {
        return psd_error_wrap(err, rc, "look for files of %s", name);
    }
    /* Labels may be there alone. */
    if (access(path, F_OK) == 0) {
        psd_error_clear(err);
        return psd_error_set(err, PSD_INVALID,
                             "%s exists: binary files are not overwritten, as files of groups that "
                             "the new data lacks would remain; remove them first",
                             path);
    }
    psd_error_clear(err);
    return PSD_OK; /* there is none */
}

static psd_status_t open_sink(const char *path, ps_sink_t **ret_sink, psd_error_t *err)
{
    PSD_AUTO(close_sink) ps_sink_t *self = NULL;
    const ps_matrix_info_t labels = {.type = PSD_ENTRIES_DENSE, .column_end = 1};
    psd_status_t rc = PSD_OK;

    if (strcmp(path, "-") == 0 || strlen(path) > NAME_MAX_BYTES) {
        return psd_error_set(err, PSD_INVALID,
                             "%.40s: binary writes files NAME.offset, "
                             "NAME.index, NAME.value and NAME.info; give NAME",
                             path);
    }
    if (ps_matrix_names_is_part(path)) {
        return psd_error_set(err, PSD_INVALID,
                             "%s: a name that ends with .y, .X or a dot and a whole number is read "
                             "as a part of the data set before the dot; give another NAME",
                             path);
    }
    rc = refuse_old(path, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self = ps_alloc(1, sizeof *self);
    if (self != NULL) {
        self->name = ps_strdup(path);
    }
    if (self == NULL || self->name == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write %s", path);
    }
    rc = open_matrix(&self->labels, path, ".y", labels, err);
    if (rc == PSD_OK) {
        *ret_sink = self;
        self = NULL;
    }
    return rc;
}

/* The place of a group's matrix, looked for from `from` on; n: there is none.
 */
static size_t find(const ps_sink_t *self, int64_t id, size_t from)
{
    for (size_t k = 0; k < self->n; k++) {
        size_t i = (from + k) % self->n;

        if (self->matrices[i]->info.id == id) {
            return i;
        }
    }
    return self->n;
}

static psd_status_t add_matrix(ps_sink_t *self, ps_matrix_info_t info, psd_error_t *err)
{
    char suffix[24] = "";
    matrix_t *matrix = ps_alloc(1, sizeof *matrix);

    if (matrix == NULL ||
        !ps_grow(&self->matrices, &self->capacity, self->n + 1, sizeof(matrix_t *))) {
        ps_free(matrix);
        return psd_error_set(err, PSD_NOMEM, "no memory for a matrix");
    }
    self->matrices[self->n++] = matrix;
    if (info.id != 0) {
        (void)snprintf(suffix, sizeof suffix, ".%" PRId64, info.id);
    }
    return open_matrix(matrix, self->name, suffix, info, err);
}

/* A dense matrix has the same columns in each row. */
static psd_status_t check_dense(const ps_sink_t *self, const psd_samples_t *samples, size_t i,
                                psd_error_t *err)
{
    size_t first = samples->groups[i];
    size_t n = samples->groups[i + 1] - first;

    if (samples->entries != PSD_ENTRIES_DENSE) {
        return PSD_OK;
    }
    for (size_t g = first; g < first + n; g++) {
        if (samples->starts[g] == samples->starts[g + 1]) {
            return psd_error_set(err, PSD_INVALID,
                                 "group %" PRId64 " has no values; dense "
                                 "matrices have a column at least",
                                 samples->group_ids[g]);
        }
    }
    if (self->n_rows == 0) {
        return PSD_OK;
    }
    for (size_t k = 0; k < n; k++) {
        size_t at = find(self, samples->group_ids[first + k], k);

        if (at == self->n || n != self->n ||
            self->matrices[at]->info.column_end !=
                samples->starts[first + k + 1] - samples->starts[first + k]) {
            return psd_error_set(err, PSD_INVALID,
                                 "group %" PRId64 " is not in all samples, or of other widths; "
                                 "dense matrices have as many columns each",
                                 samples->group_ids[first + k]);
        }
    }
    return n == self->n ? PSD_OK
                        : psd_error_set(err, PSD_INVALID,
                                        "it has %zu dense groups; those before "
                                        "have %zu",
                                        n, self->n);
}

static psd_status_t check(const ps_sink_t *self, const psd_samples_t *samples, size_t i,
                          psd_error_t *err)
{
    size_t first = samples->groups[i];
    size_t n_new = 0;

    if (self->n_rows > 0 && samples->entries != self->entries) {
        return psd_error_set(err, PSD_INVALID,
                             "its entries are of another kind than those "
                             "before");
    }
    for (size_t g = first; g < samples->groups[i + 1]; g++) {
        int64_t id = samples->group_ids[g];

        if (id < INT32_MIN || id > INT32_MAX) {
            return psd_error_set(err, PSD_INVALID, "group %" PRId64 "; ids have 32 bits", id);
        }
        for (size_t before = first; before < g; before++) {
            if (samples->group_ids[before] == id) {
                return psd_error_set(err, PSD_INVALID,
                                     "group %" PRId64 " is there twice; matrices have one row "
                                     "for each sample",
                                     id);
            }
        }
        n_new += find(self, id, g - first) == self->n ? 1 : 0;
    }
    if (self->n + n_new > PS_MATRICES_MAX) {
        return psd_error_set(err, PSD_INVALID, "more than %d groups: they can be merged",
                             PS_MATRICES_MAX);
    }
    return check_dense(self, samples, i, err);
}

/* Adds the group's entries as the next row. */
static psd_status_t write_row(ps_sink_t *self, matrix_t *matrix, const psd_samples_t *samples,
                              size_t g, psd_error_t *err)
{
    size_t first = samples->starts[g];
    size_t n = samples->starts[g + 1] - first;
    psd_status_t rc = end_rows(matrix, self->n_rows, err);

    if (rc == PSD_OK && matrix->keys.file != NULL) {
        for (size_t e = first; e < first + n; e++) {
            uint64_t key = samples->keys[e];
            uint64_t end = key + (key < UINT64_MAX ? 1 : 0);

            matrix->info.column_end = end > matrix->info.column_end ? end : matrix->info.column_end;
        }
        rc = append(&matrix->keys, samples->keys + first, n * sizeof(uint64_t), err);
    }
    if (rc == PSD_OK && matrix->values.file != NULL) {
        rc = append(&matrix->values, samples->values + first, n * sizeof(float), err);
    }
    matrix->info.n_entries += n;
    return rc == PSD_OK ? end_rows(matrix, self->n_rows + 1, err) : rc;
}

static psd_status_t write_sample(ps_sink_t *self, const psd_samples_t *samples, size_t i,
                                 psd_error_t *err)
{
    size_t first = samples->groups[i];
    psd_status_t rc = check(self, samples, i, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->entries = samples->entries;
    for (size_t g = first; rc == PSD_OK && g < samples->groups[i + 1]; g++) {
        int64_t id = samples->group_ids[g];
        size_t at = find(self, id, g - first);

        if (at == self->n) {
            bool dense = samples->entries == PSD_ENTRIES_DENSE;
            ps_matrix_info_t info = {.type = samples->entries,
                                     .id = id,
                                     .column_end =
                                         dense ? samples->starts[g + 1] - samples->starts[g] : 0};

            rc = add_matrix(self, info, err);
        }
        if (rc == PSD_OK) {
            rc = write_row(self, self->matrices[at], samples, g, err);
        }
    }
    if (rc == PSD_OK) {
        rc = append(&self->labels.values, &samples->labels[i], sizeof(float), err);
    }
    self->labelled = self->labelled || !isnan(samples->labels[i]);
    self->labels.info.n_entries++;
    self->labels.info.n_rows++;
    self->n_rows++;
    return rc;
}

static psd_status_t commit(ps_sink_t *self, psd_error_t *err)
{
    const ps_matrix_info_t none = {.type = PSD_ENTRIES_SPARSE};
    psd_status_t rc = self->n == 0 ? add_matrix(self, none, err) : PSD_OK;
    bool plain = rc == PSD_OK && self->n == 1 && self->matrices[0]->info.id == 0;

    /* One matrix without labels is read by its own name. */
    plain = plain && !self->labelled;
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        rc = complete(self->matrices[i], self->n_rows, err);
    }
    if (rc == PSD_OK && !plain) {
        rc = complete(&self->labels, self->n_rows, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        rc = commit_arrays(self->matrices[i], err);
    }
    if (rc == PSD_OK && !plain) {
        rc = commit_arrays(&self->labels, err);
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        rc = commit_part(&self->matrices[i]->about, err);
    }
    return rc == PSD_OK && !plain ? commit_part(&self->labels.about, err) : rc;
}

const ps_sink_kind_t ps_sink_binary = {
    .open = open_sink,
    .write = write_sample,
    .commit = commit,
    .close = close_sink,
};
