/* SPDX-License-Identifier: Apache-2.0 */
/*
 * binary - matrices as they lie in memory, parameter_server's binary format
 *
 * A matrix NAME for each group, stored by rows: NAME.offset has, for each row
 * and one more, the number of entries in front of it (64 bits), NAME.index the
 * key of each entry (64 or 32 bits), NAME.value its value (double or float; not
 * where all are 1), NAME.info what it is. Dense ones have values only. Labels
 * are a dense matrix of one column. Numbers are little-endian. Rows of which
 * only a range is wanted are read from where they lie.
 */
#include "data/formats/feed.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "data/records/matrix_info.h"
#include "data/records/matrix_names.h"
#include "data/sinks/sink.h"
#include "data/streams/dump.h"

#define ROW_MAX ((uint64_t)1 << 24) /* entries */
#define OFFSET_SIZE 8

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "binary files are read as they lie");

typedef struct matrix {
    ps_matrix_info_t info;
    ps_dump_t offsets, keys, values;
    uint64_t next; /* number of the next entry */
} matrix_t;

struct ps_feed {
    char *path;
    matrix_t *matrices; /* owned, n of them */
    size_t n;
    matrix_t labels;
    bool labelled;
    bool one;                 /* group: it is there for each sample, also without entries */
    uint64_t first, row, end; /* of the share; the next one */
    uint64_t info_size;       /* bytes of the file that was named */
};

static bool knows(const char *path, const uint8_t *head, size_t size)
{
    return ps_matrix_names_end(path, ".info") && memmem(head, size, "type:", 5) != NULL &&
           memmem(head, size, "row_major:", 10) != NULL;
}

static bool is_dense(const matrix_t *self)
{
    return self->info.type == PSD_ENTRIES_DENSE;
}

static psd_status_t open_part(ps_dump_t *self, const char *name, const char *part, psd_error_t *err)
{
    char path[PATH_MAX + 16];

    (void)snprintf(path, sizeof path, "%s.%s", name, part);
    return ps_dump_open(self, path, err);
}

/* A dense matrix must have as many values as its .info says: without columns,
 * or without their values, a few bytes would be endless rows. */
static psd_status_t check_dense(const matrix_t *self, const char *path, psd_error_t *err)
{
    uint64_t n = self->info.n_rows;
    uint64_t width = self->info.column_end - self->info.column_begin;

    if (width > ROW_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%s: rows of more than %" PRIu64 " values", path,
                             ROW_MAX);
    }
    if (width == 0 && n > 0) {
        return psd_error_set(err, PSD_INVALID, "%s: %" PRIu64 " dense rows without a column", path,
                             n);
    }
    if (n > 0 && self->values.size / (width * self->info.value_size) < n) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s ends early: it has %" PRIu64 " bytes, of %" PRIu64
                             " rows of %" PRIu64 " values of %" PRIu32 " bytes",
                             self->values.path, self->values.size, n, width, self->info.value_size);
    }
    return PSD_OK;
}

static psd_status_t open_matrix(matrix_t *self, const char *name, psd_error_t *err)
{
    char path[PATH_MAX + 16];
    psd_status_t rc = PSD_OK;

    (void)snprintf(path, sizeof path, "%s.info", name);
    rc = ps_matrix_info_read(path, &self->info, err);
    if (rc == PSD_OK && !is_dense(self)) {
        rc = open_part(&self->offsets, name, "offset", err);
    }
    if (rc == PSD_OK && !is_dense(self)) {
        rc = open_part(&self->keys, name, "index", err);
    }
    if (rc == PSD_OK && self->info.type != PSD_ENTRIES_BINARY) {
        rc = open_part(&self->values, name, "value", err);
    }
    return rc == PSD_OK && is_dense(self) ? check_dense(self, path, err) : rc;
}

static void close_matrix(matrix_t *self)
{
    ps_dump_done(&self->offsets);
    ps_dump_done(&self->keys);
    ps_dump_done(&self->values);
}

static void close_feed(ps_feed_t **self_p)
{
    ps_feed_t *self = *self_p;

    if (self != NULL) {
        for (size_t i = 0; i < self->n; i++) {
            close_matrix(&self->matrices[i]);
        }
        close_matrix(&self->labels);
        ps_free(self->matrices);
        ps_free(self->path);
    }
    ps_free(self);
    *self_p = NULL;
}

static psd_status_t check_rows(const matrix_t *self, const char *name, const ps_feed_t *feed,
                               psd_error_t *err)
{
    if (self->info.n_rows == feed->matrices[0].info.n_rows) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "%s has %" PRIu64 " rows, where another matrix of "
                         "the same samples has %" PRIu64,
                         name, self->info.n_rows, feed->matrices[0].info.n_rows);
}

static psd_status_t open_labels(ps_feed_t *self, const ps_parser_t *parser,
                                const ps_matrix_names_t *names, psd_error_t *err)
{
    char name[PATH_MAX];
    const char *path = parser->labels_path;
    psd_status_t rc = PSD_OK;

    (void)snprintf(name, sizeof name, "%s",
                   path != NULL            ? path
                   : names->labels != NULL ? names->labels
                                           : "none");
    if (strcmp(name, "none") == 0) {
        return PSD_OK;
    }
    if (ps_matrix_names_end(name, ".info")) {
        name[strlen(name) - strlen(".info")] = '\0';
    }
    rc = open_matrix(&self->labels, name, err);
    self->labelled = true;
    if (rc == PSD_OK) {
        rc = check_rows(&self->labels, name, self, err);
    }
    if (rc == PSD_OK && (!is_dense(&self->labels) ||
                         self->labels.info.column_end - self->labels.info.column_begin != 1)) {
        return psd_error_set(err, PSD_INVALID, "%s: labels are a dense matrix of one column", name);
    }
    return rc;
}

/* Matrices of different kinds are sparse together. */
static psd_entries_t join_kinds(psd_entries_t kind, psd_entries_t next, size_t i)
{
    return i == 0 || kind == next ? next : PSD_ENTRIES_SPARSE;
}

static const char *name_of_kind(psd_entries_t kind)
{
    return kind == PSD_ENTRIES_DENSE    ? "values only"
           : kind == PSD_ENTRIES_BINARY ? "keys only"
                                        : "keys and values";
}

/* The first input says what entries are, for all: sparse ones can be any. */
static psd_status_t check_kind(const ps_feed_t *self, const ps_parser_t *parser, psd_error_t *err)
{
    psd_entries_t kind = PSD_ENTRIES_SPARSE;

    for (size_t i = 0; i < self->n; i++) {
        kind = join_kinds(kind, self->matrices[i].info.type, i);
    }
    if (kind == parser->entries || parser->entries == PSD_ENTRIES_SPARSE) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "%s: its entries are %s; those of %s, which is read "
                         "with it, are %s",
                         self->path, name_of_kind(kind),
                         parser->entries_path != NULL ? parser->entries_path : "the first input",
                         name_of_kind(parser->entries));
}

static psd_status_t open_all(ps_feed_t *self, const ps_parser_t *parser, const char *path,
                             psd_error_t *err)
{
    PSD_AUTO(ps_matrix_names_done) ps_matrix_names_t names = {0};
    struct stat about;
    psd_status_t rc = ps_matrix_names_find(&names, path, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->path = ps_strdup(path);
    self->matrices = ps_alloc(names.n, sizeof *self->matrices);
    if (self->path == NULL || self->matrices == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
    }
    for (; rc == PSD_OK && self->n < names.n; self->n++) {
        matrix_t *matrix = &self->matrices[self->n];

        rc = open_matrix(matrix, names.names[self->n], err);
        if (rc == PSD_OK) {
            rc = check_rows(matrix, names.names[self->n], self, err);
        }
    }
    if (rc == PSD_OK) {
        rc = check_kind(self, parser, err);
    }
    self->one = self->n == 1;
    self->info_size = stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
    return rc == PSD_OK ? open_labels(self, parser, &names, err) : rc;
}

/* What goes on from row `first` of the matrix to `end`. */
static psd_status_t go_to(matrix_t *self, uint64_t first, uint64_t end, psd_error_t *err)
{
    uint64_t width = self->info.column_end - self->info.column_begin;
    const uint8_t *bytes = NULL;
    psd_status_t rc = PSD_OK;

    if (is_dense(self)) {
        ps_dump_go(&self->values, first * width * self->info.value_size,
                   end * width * self->info.value_size);
        return PSD_OK;
    }
    ps_dump_go(&self->offsets, first * OFFSET_SIZE, (end + 1) * OFFSET_SIZE);
    rc = ps_dump_take(&self->offsets, OFFSET_SIZE, &bytes, err);
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(&self->next, bytes, OFFSET_SIZE);
    if (self->next > UINT64_MAX / 16) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: row %" PRIu64 " begins after %" PRIu64 " entries",
                             self->offsets.path, first, self->next);
    }
    ps_dump_go(&self->keys, self->next * self->info.index_size, UINT64_MAX);
    ps_dump_go(&self->values, self->next * self->info.value_size, UINT64_MAX);
    return PSD_OK;
}

/* Where the entries in front of row `end` end, so that no more is read. */
static psd_status_t bound(matrix_t *self, uint64_t end, psd_error_t *err)
{
    PSD_AUTO(ps_dump_done) ps_dump_t offsets = {.fd = -1};
    const uint8_t *bytes = NULL;
    uint64_t last = 0;
    psd_status_t rc = PSD_OK;

    if (is_dense(self)) {
        return PSD_OK;
    }
    rc = ps_dump_open(&offsets, self->offsets.path, err);
    if (rc == PSD_OK) {
        ps_dump_go(&offsets, end * OFFSET_SIZE, (end + 1) * OFFSET_SIZE);
        rc = ps_dump_take(&offsets, OFFSET_SIZE, &bytes, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(&last, bytes, OFFSET_SIZE);
    if (last < self->next || last > UINT64_MAX / 16) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: rows before %" PRIu64 " end after %" PRIu64
                             " entries, and begin after %" PRIu64,
                             offsets.path, end, last, self->next);
    }
    self->keys.end = last * self->info.index_size;
    self->values.end = last * self->info.value_size;
    return PSD_OK;
}

static psd_status_t go_to_share(ps_feed_t *self, const ps_parser_t *parser, ps_share_t share,
                                psd_error_t *err)
{
    uint64_t n = self->matrices[0].info.n_rows;
    ps_rows_t rows = ps_rows_of(parser, share, n);
    psd_status_t rc = PSD_OK;

    if (n > UINT64_MAX / 64 / ROW_MAX) {
        return psd_error_set(err, PSD_LIMIT, "%s: %" PRIu64 " rows", self->path, n);
    }
    self->first = rows.first;
    self->row = rows.first;
    self->end = rows.end;
    if (rows.first == rows.end) {
        return PSD_OK;
    }
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        rc = go_to(&self->matrices[i], rows.first, rows.end, err);
        if (rc == PSD_OK) {
            rc = bound(&self->matrices[i], rows.end, err);
        }
    }
    return rc == PSD_OK && self->labelled ? go_to(&self->labels, rows.first, rows.end, err) : rc;
}

static psd_status_t open_feed(const ps_parser_t *parser, const char *path, ps_share_t share,
                              ps_feed_t **ret_feed, psd_error_t *err)
{
    PSD_AUTO(close_feed) ps_feed_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to read %s", path);
    }
    rc = open_all(self, parser, path, err);
    if (rc == PSD_OK) {
        rc = go_to_share(self, parser, share, err);
    }
    if (rc == PSD_OK) {
        *ret_feed = self;
        self = NULL;
    }
    return rc;
}

static psd_status_t look(ps_parser_t *parser, const char *path, psd_error_t *err)
{
    PSD_AUTO(ps_matrix_names_done) ps_matrix_names_t names = {0};
    psd_status_t rc = ps_matrix_names_find(&names, path, err);

    for (size_t i = 0; rc == PSD_OK && i < names.n; i++) {
        char info_path[PATH_MAX + 16];
        ps_matrix_info_t info = {0};

        (void)snprintf(info_path, sizeof info_path, "%s.info", names.names[i]);
        rc = ps_matrix_info_read(info_path, &info, err);
        parser->entries = join_kinds(parser->entries, info.type, i);
    }
    parser->entries_path = path;
    return rc;
}

/* How many entries the next row has. */
static psd_status_t row_size(matrix_t *self, uint64_t row, size_t *ret_n, psd_error_t *err)
{
    const uint8_t *bytes = NULL;
    uint64_t end = 0;
    psd_status_t rc = PSD_OK;

    if (is_dense(self)) {
        *ret_n = (size_t)(self->info.column_end - self->info.column_begin);
        return PSD_OK;
    }
    rc = ps_dump_take(&self->offsets, OFFSET_SIZE, &bytes, err);
    if (rc != PSD_OK) {
        return rc;
    }
    memcpy(&end, bytes, OFFSET_SIZE);
    if (end < self->next || end - self->next > ROW_MAX) {
        return psd_error_set(err, PSD_DAMAGED,
                             "%s: row %" PRIu64 " begins after %" PRIu64
                             " entries and ends after %" PRIu64 "; rows of 0 .. %" PRIu64
                             " are allowed",
                             self->offsets.path, row, self->next, end, ROW_MAX);
    }
    *ret_n = (size_t)(end - self->next);
    self->next = end;
    return PSD_OK;
}

/* n numbers, float or double; *ret_finite false: not all are finite. */
static psd_status_t take_values(matrix_t *self, size_t n, float *ret_values, bool *ret_finite,
                                psd_error_t *err)
{
    const uint8_t *bytes = NULL;
    uint32_t faults = 0;
    psd_status_t rc = ps_dump_take(&self->values, n * self->info.value_size, &bytes, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->info.value_size == sizeof(float) && n > 0) {
        memcpy(ret_values, bytes, n * sizeof(float));
    } else {
        for (size_t i = 0; i < n; i++) {
            double wide = 0;

            memcpy(&wide, bytes + i * sizeof wide, sizeof wide);
            ret_values[i] = (float)wide;
        }
    }
    for (size_t i = 0; i < n; i++) {
        faults |= isfinite(ret_values[i]) ? 0U : 1U;
    }
    *ret_finite = faults == 0;
    return PSD_OK;
}

static psd_status_t take_keys(matrix_t *self, size_t n, uint64_t *ret_keys, psd_error_t *err)
{
    const uint8_t *bytes = NULL;
    psd_status_t rc = PSD_OK;

    if (is_dense(self)) {
        for (size_t i = 0; i < n; i++) {
            ret_keys[i] = i;
        }
        return PSD_OK;
    }
    rc = ps_dump_take(&self->keys, n * self->info.index_size, &bytes, err);
    if (rc != PSD_OK) {
        return rc;
    }
    if (self->info.index_size == sizeof(uint64_t) && n > 0) {
        memcpy(ret_keys, bytes, n * sizeof(uint64_t));
        return PSD_OK;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t key = 0;

        memcpy(&key, bytes + i * sizeof key, sizeof key);
        ret_keys[i] = key;
    }
    return PSD_OK;
}

/* Adds the row's entries; a group without any is there where there is but one.
 */
static psd_status_t take_row(ps_feed_t *self, matrix_t *matrix, psd_samples_t *samples,
                             bool *ret_finite, psd_error_t *err)
{
    size_t n = 0;
    psd_status_t rc = row_size(matrix, self->row, &n, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_samples_reserve(samples, 1, n)) {
        return ps_sample_no_memory(n * sizeof(float), err);
    }
    rc = take_keys(matrix, n, samples->keys + samples->n_entries, err);
    if (rc == PSD_OK && matrix->info.type == PSD_ENTRIES_BINARY) {
        for (size_t i = 0; i < n; i++) {
            samples->values[samples->n_entries + i] = 1;
        }
    } else if (rc == PSD_OK) {
        rc = take_values(matrix, n, samples->values + samples->n_entries, ret_finite, err);
    }
    if (rc == PSD_OK && (n > 0 || self->one)) {
        samples->n_entries += n;
        ps_samples_end_group(samples, matrix->info.id);
    }
    return rc;
}

static psd_status_t next_sample(ps_feed_t *self, psd_samples_t *samples, psd_error_t *err)
{
    float label = NAN;
    bool finite = true;
    bool all_finite = true;
    psd_status_t rc = PSD_OK;

    if (self->row == self->end) {
        return PSD_OK;
    }
    if (!ps_samples_reserve(samples, 1, 0)) {
        return ps_sample_no_memory(0, err);
    }
    if (self->labelled) {
        rc = take_values(&self->labels, 1, &label, &finite, err);
        label = finite ? label : NAN; /* which is none */
    }
    ps_samples_begin(samples, label);
    for (size_t i = 0; rc == PSD_OK && i < self->n; i++) {
        finite = true;
        rc = take_row(self, &self->matrices[i], samples, &finite, err);
        all_finite = all_finite && finite;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    self->row++;
    if (!all_finite) {
        return psd_error_set(err, PSD_INVALID, "%s: row %" PRIu64 ": a value is not finite",
                             self->path, self->row - 1);
    }
    ps_samples_end(samples);
    return PSD_OK;
}

/* Of the .info file, which is what was named: as much of it as of the rows. */
static uint64_t taken(const ps_feed_t *self)
{
    uint64_t n = self->end - self->first;

    return n == 0 ? self->info_size
                  : (uint64_t)((double)self->info_size * (double)(self->row - self->first) /
                               (double)n);
}

static const ps_feed_kind_t FEED = {
    .has_rows = true,
    .needs_no_parsing = true,
    .knows = knows,
    .look = look,
    .open = open_feed,
    .next = next_sample,
    .taken = taken,
    .close = close_feed,
};

const ps_sample_format_t ps_sample_format_binary = {
    .name = "binary",
    .about = "NAME.info of NAME.offset, NAME.index, NAME.value   (matrices)",
    .entries = PSD_ENTRIES_SPARSE,
    .feed = &FEED,
    .sink = &ps_sink_binary,
    .holds_groups = true,
};
