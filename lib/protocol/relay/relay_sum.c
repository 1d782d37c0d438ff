/* SPDX-License-Identifier: Apache-2.0 */
/* Who is whole, and the additions that may be made. */
#include "protocol/relay/relay_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "model/updaters/finite.h"

/* ---- lots ---- */

void ps_relay_lot_done(ps_relay_lot_t *self)
{
    for (uint16_t i = 0; i < self->n_spans; i++) {
        ps_payload_destroy(&self->spans[i].payload);
    }
    ps_free(self->spans);
    ps_free(self->from);
    *self = (ps_relay_lot_t){.from = NULL};
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory for deltas that are passed on");
}

static bool make_room(size_t n_from, size_t n_spans, ps_relay_lot_t *ret)
{
    *ret = (ps_relay_lot_t){.from = ps_alloc(n_from, sizeof(ps_bundle_from_t)),
                            .spans = ps_alloc(n_spans, sizeof(ps_relay_span_t))};
    return ret->from != NULL && ret->spans != NULL;
}

psd_status_t ps_relay_lot_copy(const ps_relay_lot_t *lot, ps_relay_lot_t *ret_lot, psd_error_t *err)
{
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t copy = {.from = NULL};

    if (!make_room(lot->n_from, lot->n_spans, &copy)) {
        return no_memory(err);
    }
    memcpy(copy.from, lot->from, lot->n_from * sizeof *lot->from);
    copy.n_from = lot->n_from;
    for (uint16_t i = 0; i < lot->n_spans; i++) {
        copy.spans[i] = lot->spans[i];
        copy.spans[i].payload = ps_payload_own(lot->spans[i].payload);
        if (copy.spans[i].payload == NULL) {
            return no_memory(err);
        }
        copy.n_spans++;
    }
    *ret_lot = copy;
    copy = (ps_relay_lot_t){.from = NULL};
    return PSD_OK;
}

uint64_t ps_relay_lot_bytes(const ps_relay_lot_t *self)
{
    uint64_t bytes = self->n_from * sizeof *self->from + self->n_spans * sizeof *self->spans;

    for (uint16_t i = 0; i < self->n_spans; i++) {
        bytes += ps_payload_size(self->spans[i].payload);
    }
    return bytes;
}

/* ---- contributors ---- */

typedef struct entry {
    const ps_bundle_from_t *from;
    size_t lot;
} entry_t;

static int by_client(const void *left, const void *right)
{
    const ps_bundle_from_t *a = ((const entry_t *)left)->from;
    const ps_bundle_from_t *b = ((const entry_t *)right)->from;

    if (a->worker != b->worker) {
        return a->worker < b->worker ? -1 : 1;
    }
    if (a->member != b->member) {
        return a->member < b->member ? -1 : 1;
    }
    return (a->first_seq > b->first_seq) - (a->first_seq < b->first_seq);
}

/* All contributors, in order; those of lots that travel alone are left out. NULL: no memory. */
static entry_t *list_entries(const ps_relay_lot_t *const *lots, size_t n_lots, const bool *alone,
                             size_t *ret_n)
{
    size_t n = 0;
    entry_t *entries = NULL;

    for (size_t i = 0; i < n_lots; i++) {
        n += lots[i]->n_from;
    }
    entries = ps_alloc_raw(n, sizeof *entries);
    *ret_n = 0;
    for (size_t i = 0; entries != NULL && i < n_lots; i++) {
        for (uint16_t k = 0; (alone == NULL || !alone[i]) && k < lots[i]->n_from; k++) {
            entries[(*ret_n)++] = (entry_t){.from = &lots[i]->from[k], .lot = i};
        }
    }
    if (*ret_n > 1) {
        qsort(entries, *ret_n, sizeof *entries, by_client);
    }
    return entries;
}

/* The ranges of one client, one after the other. */
static bool follows(const ps_bundle_from_t *a, const ps_bundle_from_t *b)
{
    return a->session == b->session && a->joins == b->joins && a->last_seq + 1 == b->first_seq;
}

static bool same_client(const ps_bundle_from_t *a, const ps_bundle_from_t *b)
{
    return a->worker == b->worker && a->member == b->member;
}

/* The place after the entries of the client that begins at i; *ret_good: they follow each
 * other, and no clock ends between them (any_order: the clocks that end can be counted). */
static size_t client_end(bool any_order, const entry_t *entries, size_t n, size_t i, bool *ret_good)
{
    uint32_t marks = entries[i].from->marks;
    size_t end = i + 1;

    *ret_good = true;
    while (end < n && same_client(entries[end].from, entries[i].from)) {
        *ret_good = *ret_good && follows(entries[end - 1].from, entries[end].from) &&
                    (any_order || entries[end - 1].from->marks == 0);
        marks += entries[end].from->marks;
        end++;
    }
    *ret_good = *ret_good && marks <= UINT8_MAX;
    return end;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
    return (bits[i / 64] >> (i % 64) & 1) != 0;
}

/* The place after the entries of the worker that begins at i; *ret_good: they may be added. */
static size_t worker_end(const ps_relay_sum_args_t *args, const entry_t *entries, size_t n,
                         size_t i, bool *ret_good)
{
    uint32_t worker = entries[i].from->worker;
    uint32_t number = ps_relay_tree_find(args->tree, worker);
    uint32_t joins = entries[i].from->joins;
    uint32_t members = 0;
    bool is_whole = number != UINT32_MAX && !has_bit(args->went, worker);
    bool is_joined = true;

    while (i < n && entries[i].from->worker == worker) {
        bool good = true;

        is_whole =
            is_whole && entries[i].from->member == members++ && entries[i].from->joins == joins;
        i = client_end(args->any_order, entries, n, i, &good);
        is_joined = is_joined && good;
        is_whole = is_whole && entries[i - 1].from->marks;
    }
    is_whole = is_whole && members == ps_relay_tree_members(args->tree, number);
    *ret_good = is_joined && (is_whole || args->any_order);
    return i;
}

psd_status_t ps_relay_sum_look(const ps_relay_sum_args_t *args, const ps_relay_lot_t *const *lots,
                               size_t n_lots, bool *ret_alone, psd_error_t *err)
{
    bool changed = true;

    memset(ret_alone, 0, n_lots * sizeof *ret_alone);
    while (changed) {
        size_t n = 0;
        PSD_AUTO(ps_free_at) entry_t *entries = list_entries(lots, n_lots, ret_alone, &n);

        if (entries == NULL) {
            return no_memory(err);
        }
        changed = false;
        for (size_t i = 0, end = 0; i < n; i = end) {
            bool good = true;

            end = worker_end(args, entries, n, i, &good);
            for (size_t k = i; !good && k < end; k++) {
                ret_alone[entries[k].lot] = true;
                changed = true;
            }
        }
    }
    return PSD_OK;
}

/* ---- parts ---- */

typedef struct part {
    uint32_t first;
    uint32_t n;
    const ps_bundle_from_t *from; /* the first contributor of a single position */
    const ps_relay_span_t *span;  /* until it was added to another one */
} part_t;

typedef struct work {
    const ps_relay_sum_args_t *args;
    part_t *parts;          /* owned */
    ps_relay_span_t *folds; /* owned; each worker's own deltas, where they were several */
    size_t n_parts;
    size_t n_folds;
    bool *has; /* owned; workers of the plan that are there, by number */
    ps_relay_lot_t *lot;
    bool fits;
} work_t;

static void work_done(work_t *self)
{
    for (size_t i = 0; i < self->n_folds; i++) {
        ps_payload_destroy(&self->folds[i].payload);
    }
    ps_free(self->folds);
    ps_free(self->parts);
    ps_free(self->has);
}

static int by_place(const void *left, const void *right)
{
    const part_t *a = left;
    const part_t *b = right;
    entry_t from_a = {.from = a->from};
    entry_t from_b = {.from = b->from};

    return a->first != b->first ? (a->first > b->first) - (a->first < b->first)
                                : by_client(&from_a, &from_b);
}

static const ps_bundle_from_t *contributor_at(const ps_relay_lot_t *lot, uint32_t first)
{
    uint16_t i = 0;

    while (i + 1 < lot->n_from && lot->from[i].worker < first) {
        i++;
    }
    return &lot->from[i];
}

static void list_parts(work_t *self, const ps_relay_lot_t *const *lots, size_t n_lots)
{
    for (size_t i = 0; i < n_lots; i++) {
        for (uint16_t k = 0; k < lots[i]->n_spans; k++) {
            const ps_relay_span_t *span = &lots[i]->spans[k];

            self->parts[self->n_parts++] = (part_t){.first = span->first,
                                                    .n = span->n,
                                                    .from = contributor_at(lots[i], span->first),
                                                    .span = span};
        }
    }
    if (self->n_parts > 1) {
        qsort(self->parts, self->n_parts, sizeof *self->parts, by_place);
    }
}

static bool is_finite(const ps_relay_span_t *span)
{
    for (size_t i = 0; span->payload != NULL && i < span->payload->n_spans; i++) {
        const ps_bytes_t *values = &span->payload->spans[i];

        if (!ps_finite_all(span->slice.type, values->data,
                           values->size / ps_type_size(span->slice.type))) {
            return false;
        }
    }
    return true;
}

/* Adds n parts into *ret. in_turn: they are taken as neighbours, whatever positions they have. */
static psd_status_t add(const work_t *self, const part_t *parts, size_t n, bool in_turn,
                        ps_relay_span_t *ret, psd_error_t *err)
{
    const ps_combine_args_t args = {.type = self->args->type,
                                    .first_col = self->args->first_col,
                                    .width = self->args->width,
                                    .divisor = 1};
    PSD_AUTO(ps_free_at) ps_combine_part_t *list = ps_alloc_raw(n, sizeof *list);

    if (list == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        list[i] = (ps_combine_part_t){.first = in_turn ? (uint32_t)i : parts[i].first,
                                      .n = in_turn ? 1 : parts[i].n,
                                      .slice = &parts[i].span->slice,
                                      .payload = parts[i].span->payload};
    }
    return ps_combine(&args, list, n, &ret->slice, &ret->payload, err);
}

/* ---- each worker's own deltas, one after the other ---- */

static psd_status_t fold(work_t *self, psd_error_t *err)
{
    size_t n = 0;

    for (size_t i = 0, end = 0; i < self->n_parts; i = end) {
        ps_relay_span_t *sum = &self->folds[self->n_folds];
        psd_status_t rc = PSD_OK;

        end = i + 1;
        while (end < self->n_parts && self->parts[end].first == self->parts[i].first) {
            self->fits = self->fits && self->parts[i].n == 1 && self->parts[end].n == 1;
            end++;
        }
        self->parts[n] = self->parts[i];
        if (end - i > 1 && self->fits) {
            *sum = (ps_relay_span_t){.first = self->parts[i].first, .n = 1};
            rc = add(self, &self->parts[i], end - i, false, sum, err);
            if (rc != PSD_OK) {
                return rc;
            }
            self->n_folds++;
            self->fits = is_finite(sum);
            self->parts[n].span = sum;
        }
        n++;
    }
    self->n_parts = n;
    return PSD_OK;
}

static bool meet(const work_t *self)
{
    for (size_t i = 1; i < self->n_parts; i++) {
        if (self->parts[i].first - self->parts[i - 1].first < self->parts[i - 1].n) {
            return true;
        }
    }
    return false;
}

/* ---- intervals ---- */

/* The smallest aligned interval that has both parts' positions. */
static void cover(const part_t *left, const part_t *right, uint32_t *ret_first, uint32_t *ret_n)
{
    uint32_t n = left->n > right->n ? left->n : right->n;

    while (left->first / n != right->first / n) {
        n *= 2;
    }
    *ret_first = left->first / n * n;
    *ret_n = n;
}

static void emit(work_t *self, ps_relay_span_t span)
{
    self->lot->spans[self->lot->n_spans++] = span;
}

static void emit_part(work_t *self, const part_t *part)
{
    ps_relay_span_t span = *part->span;

    (void)ps_payload_keep(span.payload);
    emit(self, span);
}

/* Parts [from, end) as few spans as can be; the stack is as deep as the tree. */
static psd_status_t emit_parts(work_t *self, size_t from, size_t end, psd_error_t *err)
{
    ps_relay_span_t sum = {.payload = NULL};
    size_t middle = from + 1;
    psd_status_t rc = PSD_OK;

    if (end - from == 1) {
        emit_part(self, &self->parts[from]);
        return PSD_OK;
    }
    cover(&self->parts[from], &self->parts[end - 1], &sum.first, &sum.n);
    if (ps_relay_tree_covers(self->args->tree, sum.first, sum.n, self->has)) {
        rc = add(self, &self->parts[from], end - from, false, &sum, err);
        if (rc != PSD_OK) {
            return rc;
        }
        if (is_finite(&sum)) {
            emit(self, sum);
            return PSD_OK;
        }
        ps_payload_destroy(&sum.payload);
    }
    while (self->parts[middle].first - sum.first < sum.n / 2) {
        middle++;
    }
    rc = emit_parts(self, from, middle, err);
    return rc == PSD_OK ? emit_parts(self, middle, end, err) : rc;
}

/* All as one span. */
static psd_status_t emit_any(work_t *self, psd_error_t *err)
{
    ps_relay_span_t sum = {.payload = NULL};
    part_t last = self->parts[0];
    psd_status_t rc = PSD_OK;

    if (self->n_parts == 1) {
        emit_part(self, &self->parts[0]);
        return PSD_OK;
    }
    for (size_t i = 1; i < self->n_parts; i++) {
        const part_t *part = &self->parts[i];

        last = part->first + part->n > last.first + last.n ? *part : last;
    }
    cover(&self->parts[0], &last, &sum.first, &sum.n);
    rc = add(self, self->parts, self->n_parts, true, &sum, err);
    if (rc == PSD_OK && !is_finite(&sum)) {
        ps_payload_destroy(&sum.payload);
        self->fits = false;
        return PSD_OK;
    }
    if (rc == PSD_OK) {
        emit(self, sum);
    }
    return rc;
}

/* ---- one lot ---- */

/* The contributors, each client once. */
static void join_contributors(work_t *self, const entry_t *entries, size_t n)
{
    for (size_t i = 0, end = 0; i < n; i = end) {
        ps_bundle_from_t from = *entries[i].from;
        bool good = true;
        uint32_t number = ps_relay_tree_find(self->args->tree, from.worker);

        end = client_end(self->args->any_order, entries, n, i, &good);
        from.last_seq = entries[end - 1].from->last_seq;
        from.tail = entries[end - 1].from->tail;
        for (size_t k = i + 1; k < end; k++) {
            from.marks = (uint8_t)(from.marks + entries[k].from->marks);
            from.has_check = from.has_check && entries[k].from->has_check;
            from.check += entries[k].from->check;
        }
        self->lot->from[self->lot->n_from++] = from;
        if (number != UINT32_MAX) {
            self->has[number] = true;
        }
    }
}

static psd_status_t make(work_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (self->n_parts == 0) {
        return PSD_OK;
    }
    if (self->args->any_order) {
        return emit_any(self, err);
    }
    rc = fold(self, err);
    self->fits = self->fits && !meet(self);
    return rc == PSD_OK && self->fits ? emit_parts(self, 0, self->n_parts, err) : rc;
}

static size_t count_parts(const ps_relay_lot_t *const *lots, size_t n_lots)
{
    size_t n = 0;

    for (size_t i = 0; i < n_lots; i++) {
        n += lots[i]->n_spans;
    }
    return n;
}

psd_status_t ps_relay_sum_make(const ps_relay_sum_args_t *args, const ps_relay_lot_t *const *lots,
                               size_t n_lots, bool *ret_fits, ps_relay_lot_t *ret_lot,
                               psd_error_t *err)
{
    size_t n_spans = count_parts(lots, n_lots);
    size_t n_from = 0;
    PSD_AUTO(ps_free_at) entry_t *entries = list_entries(lots, n_lots, NULL, &n_from);
    PSD_AUTO(ps_relay_lot_done) ps_relay_lot_t lot = {.from = NULL};
    PSD_AUTO(work_done)
    work_t work = {.args = args,
                   .parts = ps_alloc(n_spans, sizeof(part_t)),
                   .folds = ps_alloc(n_spans, sizeof(ps_relay_span_t)),
                   .has = ps_alloc(args->tree->n_workers, sizeof(bool)),
                   .lot = &lot,
                   .fits = n_from <= PS_BUNDLE_FROM_MAX && n_spans <= PS_COMBINE_POSITIONS};
    psd_status_t rc = PSD_OK;

    *ret_fits = false;
    if (!work.fits) {
        return PSD_OK;
    }
    if (entries == NULL || work.parts == NULL || work.folds == NULL || work.has == NULL ||
        !make_room(n_from, n_spans, &lot)) {
        return no_memory(err);
    }
    join_contributors(&work, entries, n_from);
    list_parts(&work, lots, n_lots);
    rc = make(&work, err);
    if (rc == PSD_OK && work.fits && lot.n_spans <= PS_BUNDLE_SPANS_MAX) {
        *ret_fits = true;
        *ret_lot = lot;
        lot = (ps_relay_lot_t){.from = NULL};
    }
    return rc;
}
