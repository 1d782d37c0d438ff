/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles in bytes, and back. */
#include "wire/records/bundle.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"

#define ALIGN 8
#define CHECK_BYTES 8 /* of a contributor's check */

void ps_bundle_done(ps_bundle_t *self)
{
    ps_free(self->from);
    ps_free(self->spans);
    *self = (ps_bundle_t){.from = NULL};
}

static size_t padding(size_t size)
{
    return (ALIGN - size % ALIGN) % ALIGN;
}

/* ---- writing ---- */

static bool add_part(uint64_t part, uint64_t *total)
{
    uint64_t padded = 0;

    return !__builtin_add_overflow(part, padding((size_t)part), &padded) &&
           !__builtin_add_overflow(*total, padded, total);
}

bool ps_bundle_is_checked(const ps_bundle_from_t *from, size_t n_from)
{
    for (size_t i = 0; i < n_from; i++) {
        if (!from[i].has_check) {
            return false;
        }
    }
    return n_from > 0;
}

static size_t checks_size(const ps_bundle_t *self)
{
    return ps_bundle_is_checked(self->from, self->n_from) ? (size_t)self->n_from * CHECK_BYTES : 0;
}

bool ps_bundle_size(const ps_bundle_t *self, size_t *ret_size)
{
    uint64_t total = (uint64_t)self->n_from * PS_BUNDLE_FROM +
                     (uint64_t)self->n_spans * PS_BUNDLE_SPAN + checks_size(self);

    for (uint16_t i = 0; i < self->n_spans; i++) {
        uint64_t keys = 0;
        uint64_t index = 0;
        uint64_t values = 0;

        if (!ps_slice_sizes(&self->spans[i].slice, &keys, &index, &values) ||
            !add_part(keys, &total) || !add_part(index, &total) || !add_part(values, &total)) {
            return false;
        }
    }
    *ret_size = (size_t)total;
    return total <= SIZE_MAX;
}

static void write_from(const ps_bundle_from_t *from, uint8_t *to)
{
    memset(to, 0, PS_BUNDLE_FROM);
    ps_store_u64(to, from->session);
    ps_store_u64(to + 8, from->first_seq);
    ps_store_u64(to + 16, from->last_seq);
    ps_store_u32(to + 24, from->worker);
    ps_store_u32(to + 28, from->member);
    ps_store_u32(to + 32, from->joins);
    to[36] = from->marks;
    to[37] = from->tail;
}

static void write_span(const ps_bundle_span_t *span, uint8_t *to)
{
    const ps_slice_t *slice = &span->slice;

    ps_store_u32(to, span->first);
    ps_store_u32(to + 4, span->n);
    ps_store_u16(to + 8, span->from);
    ps_store_u16(to + 10, span->n_from);
    to[12] = (uint8_t)slice->rows;
    to[13] = (uint8_t)slice->layout;
    to[14] = (uint8_t)slice->cols;
    to[15] = (uint8_t)slice->type;
    ps_store_u64(to + 16, slice->n_rows);
    ps_store_u64(to + 24, slice->first_row);
    ps_store_u64(to + 32, slice->n_values);
    ps_store_u32(to + 40, slice->first_col);
    ps_store_u32(to + 44, slice->n_cols);
}

static uint8_t *write_part(ps_bytes_t part, uint8_t *to)
{
    size_t pad = padding(part.size);

    if (part.size > 0) {
        memcpy(to, part.data, part.size);
    }
    memset(to + part.size, 0, pad);
    return to + part.size + pad;
}

static void write_checks(const ps_bundle_t *self, uint8_t *to)
{
    for (uint16_t i = 0; i < self->n_from; i++) {
        ps_store_u64(to + (size_t)i * CHECK_BYTES, self->from[i].check);
    }
}

void ps_bundle_write(const ps_bundle_t *self, uint8_t *to)
{
    for (uint16_t i = 0; i < self->n_from; i++) {
        write_from(&self->from[i], to);
        to += PS_BUNDLE_FROM;
    }
    for (uint16_t i = 0; i < self->n_spans; i++) {
        write_span(&self->spans[i], to);
        to += PS_BUNDLE_SPAN;
    }
    for (uint16_t i = 0; i < self->n_spans; i++) {
        to = write_part(self->spans[i].body.keys, to);
        to = write_part(self->spans[i].body.index, to);
        to = write_part(self->spans[i].body.values, to);
    }
    if (checks_size(self) > 0) {
        write_checks(self, to);
    }
}

/* ---- reading ---- */

static psd_status_t bad(psd_error_t *err, const char *what, uint32_t i, const char *field,
                        uint64_t value, const char *allowed)
{
    return psd_error_set(err, PSD_PROTO, "BUNDLE: %s %" PRIu32 ": %s is %" PRIu64 "; allowed: %s",
                         what, i, field, value, allowed);
}

static psd_status_t ends(psd_error_t *err)
{
    return psd_error_set(err, PSD_PROTO, "BUNDLE: the bytes end inside what its slices require");
}

static psd_status_t read_from(const uint8_t *at, uint16_t i, const ps_bundle_from_t *before,
                              ps_bundle_from_t *ret, psd_error_t *err)
{
    *ret = (ps_bundle_from_t){.session = ps_load_u64(at),
                              .first_seq = ps_load_u64(at + 8),
                              .last_seq = ps_load_u64(at + 16),
                              .worker = ps_load_u32(at + 24),
                              .member = ps_load_u32(at + 28),
                              .joins = ps_load_u32(at + 32),
                              .marks = at[36],
                              .tail = at[37]};
    if (ret->session == 0) {
        return bad(err, "contributor", i, "session", 0, "1 and more");
    }
    if (ret->first_seq == 0) {
        return bad(err, "contributor", i, "first_seq", 0, "1 and more");
    }
    if (ret->last_seq < ret->first_seq || ret->last_seq == UINT64_MAX) {
        return bad(err, "contributor", i, "last_seq", ret->last_seq,
                   "first_seq and more, below 2^64 - 1");
    }
    if (ret->worker >= PS_BUNDLE_POSITIONS) {
        return bad(err, "contributor", i, "worker", ret->worker, "0..4095");
    }
    if (ret->marks > ret->last_seq - ret->first_seq + 1) {
        return bad(err, "contributor", i, "marks", ret->marks, "one for each seq at most");
    }
    if (ret->tail > PS_BUNDLE_TAIL_MARK || (ret->tail == PS_BUNDLE_TAIL_MARK && ret->marks == 0) ||
        at[38] != 0 || at[39] != 0) {
        return bad(err, "contributor", i, "tail", ps_load_u32(at + 36) >> 8, "0..2; 2 with a mark");
    }
    if (before != NULL && (ret->worker < before->worker ||
                           (ret->worker == before->worker && ret->member <= before->member))) {
        return bad(err, "contributor", i, "member", ret->member,
                   "contributors ascend by worker, then member");
    }
    return PSD_OK;
}

static int by_number(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static psd_status_t check_sessions(const ps_bundle_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint64_t *sessions = ps_alloc_raw(self->n_from, sizeof *sessions);

    if (sessions == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a bundle");
    }
    for (uint16_t i = 0; i < self->n_from; i++) {
        sessions[i] = self->from[i].session;
    }
    qsort(sessions, self->n_from, sizeof *sessions, by_number);
    for (uint16_t i = 1; i < self->n_from; i++) {
        if (sessions[i] == sessions[i - 1]) {
            return psd_error_set(err, PSD_PROTO,
                                 "BUNDLE: session %" PRIu64 " contributes twice; allowed: once",
                                 sessions[i]);
        }
    }
    return PSD_OK;
}

/* Of [first, first + n). */
static bool has_position(const ps_bundle_span_t *span, uint32_t position)
{
    return position >= span->first && position - span->first < span->n;
}

/* Its positions, and whose they are. */
static psd_status_t check_span(const ps_bundle_t *self, uint16_t i, psd_error_t *err)
{
    const ps_bundle_span_t *span = &self->spans[i];
    const ps_bundle_span_t *before = i == 0 ? NULL : &self->spans[i - 1];

    if (span->n == 0 || (span->n & (span->n - 1)) != 0 || span->n > PS_BUNDLE_POSITIONS) {
        return bad(err, "span", i, "n", span->n, "powers of two to 4096");
    }
    if (span->first % span->n != 0 || span->first >= PS_BUNDLE_POSITIONS) {
        return bad(err, "span", i, "first", span->first, "multiples of n below 4096");
    }
    if (before != NULL && span->first < before->first + before->n) {
        return bad(err, "span", i, "first", span->first, "spans ascend and do not meet");
    }
    if (span->n_from == 0 || span->from >= self->n_from ||
        span->n_from > self->n_from - span->from) {
        return bad(err, "span", i, "n_from", span->n_from, "contributors that there are");
    }
    for (uint16_t k = 0; k < self->n_from; k++) {
        bool is_of = k >= span->from && k - span->from < span->n_from;

        if (has_position(span, self->from[k].worker) != is_of) {
            return bad(err, "span", i, "from", span->from,
                       "all contributors at its positions, and no others");
        }
    }
    return PSD_OK;
}

static psd_status_t read_span(const uint8_t *at, uint16_t i, ps_bundle_span_t *ret,
                              psd_error_t *err)
{
    if (at[12] > PS_ROWS_RANGE) {
        return bad(err, "span", i, "rows", at[12], "0 (LIST), 1 (RANGE)");
    }
    if (at[13] > PS_LAYOUT_SPARSE) {
        return bad(err, "span", i, "layout", at[13], "0..1");
    }
    if (at[14] > PS_COLS_LIST) {
        return bad(err, "span", i, "cols", at[14], "0..2");
    }
    if (at[15] < PS_TYPE_I32 || at[15] > PS_TYPE_F64) {
        return bad(err, "span", i, "type", at[15], "1..4");
    }
    *ret = (ps_bundle_span_t){.first = ps_load_u32(at),
                              .n = ps_load_u32(at + 4),
                              .from = ps_load_u16(at + 8),
                              .n_from = ps_load_u16(at + 10),
                              .slice = {.rows = (ps_rows_kind_t)at[12],
                                        .layout = (ps_layout_t)at[13],
                                        .cols = (ps_cols_kind_t)at[14],
                                        .type = (ps_type_t)at[15],
                                        .n_rows = ps_load_u64(at + 16),
                                        .first_row = ps_load_u64(at + 24),
                                        .n_values = ps_load_u64(at + 32),
                                        .first_col = ps_load_u32(at + 40),
                                        .n_cols = ps_load_u32(at + 44)}};
    if (ret->slice.rows != PS_ROWS_RANGE && ret->slice.first_row != 0) {
        return bad(err, "span", i, "first_row", ret->slice.first_row, "0 as rows is LIST");
    }
    if (ret->slice.cols != PS_COLS_RANGE && ret->slice.first_col != 0) {
        return bad(err, "span", i, "first_col", ret->slice.first_col, "0 as cols is not RANGE");
    }
    if (ret->slice.n_rows == 0) {
        return bad(err, "span", i, "n_rows", 0, "1 and more");
    }
    return PSD_OK;
}

static bool take_part(ps_cursor_t *cursor, uint64_t size, ps_bytes_t *ret)
{
    uint8_t zeros[ALIGN] = {0};
    size_t pad = padding((size_t)size);

    if (size > cursor->rest.size) {
        return false;
    }
    *ret = ps_cursor_take(cursor, (size_t)size);
    ps_cursor_copy(cursor, zeros, pad);
    return !cursor->failed && memcmp(zeros, (const uint8_t[ALIGN]){0}, ALIGN) == 0;
}

/* Keys, index and values of a span; a dense one has all its values. */
static psd_status_t read_body(ps_cursor_t *cursor, uint16_t i, ps_bundle_span_t *span,
                              psd_error_t *err)
{
    const ps_slice_t *slice = &span->slice;
    uint64_t keys = 0;
    uint64_t index = 0;
    uint64_t values = 0;
    uint64_t sum = 0;

    if (!ps_slice_sizes(slice, &keys, &index, &values) ||
        (slice->layout == PS_LAYOUT_DENSE && slice->n_values == 0)) {
        return bad(err, "span", i, "n_values", slice->n_values, "what rows and columns require");
    }
    if (!take_part(cursor, keys, &span->body.keys) ||
        !take_part(cursor, index, &span->body.index) ||
        !take_part(cursor, values, &span->body.values)) {
        return ends(err);
    }
    for (uint64_t k = 0; slice->layout == PS_LAYOUT_SPARSE && k < slice->n_rows; k++) {
        sum += ps_load_u32(span->body.index.data + sizeof(uint32_t) * k);
    }
    if (slice->layout == PS_LAYOUT_SPARSE && sum != slice->n_values) {
        return bad(err, "span", i, "n_values", slice->n_values, "the sum of its counts");
    }
    return PSD_OK;
}

static psd_status_t read_lists(ps_cursor_t *cursor, ps_bundle_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint16_t i = 0; rc == PSD_OK && i < self->n_from; i++) {
        const uint8_t *at = ps_cursor_take(cursor, PS_BUNDLE_FROM).data;

        rc = read_from(at, i, i == 0 ? NULL : &self->from[i - 1], &self->from[i], err);
    }
    if (rc == PSD_OK) {
        rc = check_sessions(self, err);
    }
    for (uint16_t i = 0; rc == PSD_OK && i < self->n_spans; i++) {
        rc = read_span(ps_cursor_take(cursor, PS_BUNDLE_SPAN).data, i, &self->spans[i], err);
        if (rc == PSD_OK) {
            rc = check_span(self, i, err);
        }
    }
    return rc;
}

/* What comes after the spans: a check for each contributor, or nothing. */
static psd_status_t read_checks(ps_cursor_t *cursor, ps_bundle_t *self, psd_error_t *err)
{
    size_t size = cursor->rest.size;

    if (size == 0) {
        return PSD_OK;
    }
    if (size != (size_t)self->n_from * CHECK_BYTES) {
        return psd_error_set(err, PSD_PROTO,
                             "BUNDLE: %zu bytes after its end; allowed: 0, or %d for each of %u "
                             "contributors",
                             size, CHECK_BYTES, (unsigned)self->n_from);
    }
    for (uint16_t i = 0; i < self->n_from; i++) {
        self->from[i].has_check = true;
        self->from[i].check = ps_load_u64(ps_cursor_take(cursor, CHECK_BYTES).data);
    }
    return PSD_OK;
}

static psd_status_t check_counts(ps_bytes_t bytes, uint16_t n_from, uint16_t n_spans,
                                 psd_error_t *err)
{
    if (n_from == 0 || n_from > PS_BUNDLE_FROM_MAX) {
        return psd_error_set(err, PSD_PROTO, "BUNDLE.n_from is %u; allowed: 1..%d", n_from,
                             PS_BUNDLE_FROM_MAX);
    }
    if (n_spans > PS_BUNDLE_SPANS_MAX) {
        return psd_error_set(err, PSD_PROTO, "BUNDLE.n_spans is %u; allowed: 0..%d", n_spans,
                             PS_BUNDLE_SPANS_MAX);
    }
    return bytes.size < (size_t)n_from * PS_BUNDLE_FROM + (size_t)n_spans * PS_BUNDLE_SPAN
               ? ends(err)
               : PSD_OK;
}

psd_status_t ps_bundle_read(ps_bytes_t bytes, uint16_t n_from, uint16_t n_spans,
                            ps_bundle_t *ret_bundle, psd_error_t *err)
{
    PSD_AUTO(ps_bundle_done) ps_bundle_t self = {.n_from = n_from, .n_spans = n_spans};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    psd_status_t rc = check_counts(bytes, n_from, n_spans, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self.from = ps_alloc(n_from, sizeof *self.from);
    self.spans = ps_alloc(n_spans, sizeof *self.spans);
    if (self.from == NULL || self.spans == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a bundle");
    }
    rc = read_lists(&cursor, &self, err);
    for (uint16_t i = 0; rc == PSD_OK && i < n_spans; i++) {
        rc = read_body(&cursor, i, &self.spans[i], err);
    }
    if (rc == PSD_OK) {
        rc = read_checks(&cursor, &self, err);
    }
    if (rc == PSD_OK) {
        *ret_bundle = self;
        self = (ps_bundle_t){.from = NULL};
    }
    return rc;
}

/* ---- in a payload ---- */

psd_status_t ps_bundle_open(const ps_payload_t *payload, uint32_t n_from, uint32_t n_spans,
                            ps_bundle_t *ret_bundle, psd_error_t *err)
{
    if (payload == NULL || payload->n_spans != 1 || n_from > UINT16_MAX || n_spans > UINT16_MAX) {
        return psd_error_set(err, PSD_PROTO, "BUNDLE: its body is not one part");
    }
    return ps_bundle_read(payload->spans[0], (uint16_t)n_from, (uint16_t)n_spans, ret_bundle, err);
}

static void release_holder(void *owner)
{
    ps_payload_t *holder = owner;

    ps_payload_destroy(&holder);
}

ps_payload_t *ps_bundle_span_payload(const ps_bundle_span_t *span, ps_payload_t *payload)
{
    ps_payload_t *holder = ps_payload_keep(payload);
    ps_payload_t *part = ps_payload_new(span->body.keys, span->body.index, span->body.values,
                                        holder, release_holder);

    if (part == NULL) {
        ps_payload_destroy(&holder);
    }
    return part;
}

ps_payload_t *ps_bundle_unchecked(const ps_bundle_t *self, ps_payload_t *payload)
{
    ps_payload_t *holder = ps_payload_keep(payload);
    ps_payload_t *part = NULL;
    ps_bytes_t bytes = payload->spans[0];

    if (checks_size(self) == 0) {
        return holder;
    }
    bytes.size -= checks_size(self);
    part =
        ps_payload_new((ps_bytes_t){NULL, 0}, (ps_bytes_t){NULL, 0}, bytes, holder, release_holder);
    if (part == NULL) {
        ps_payload_destroy(&holder);
    }
    return part;
}
