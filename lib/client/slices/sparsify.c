/* SPDX-License-Identifier: Apache-2.0 */
/* Thinning: each row gets a place, its values are added to those held back
 * there, and values that are large enough are sent. All memory is allocated
 * before a value changes. */
#include "client/slices/sparsify.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/map.h"
#include "base/rng.h"

#define NO_PLACE SIZE_MAX

/* What ps_sparsify_undo has to do. */
typedef enum undo { UNDO_NOTHING = 0, UNDO_PUSH, UNDO_REST } undo_t;

struct ps_sparsify {
    ps_type_t type;
    uint32_t n_cols;
    size_t places_max;
    ps_rng_t rng;
    /* what is held back; row p of it lies at held + p * n_cols */
    ps_map_t place_of; /* row -> its place + 1, as a pointer */
    uint64_t *rows;    /* owned; of each place */
    uint64_t *seen_in; /* owned; the push that touched it last */
    double *held;      /* owned */
    size_t n_places;
    size_t rows_capacity;
    size_t seen_capacity;
    size_t held_capacity;
    uint64_t n_pushes;
    /* the push under way */
    size_t *places; /* owned; of each of its rows, or NO_PLACE */
    size_t places_capacity;
    double *sizes; /* owned; of the values touched */
    size_t sizes_capacity;
    /* as it was before that */
    undo_t undo;
    double *before; /* owned; PUSH: of each place touched, in their order */
    size_t before_capacity;
    size_t n_rows;          /* PUSH: rows, whose places are above */
    ps_map_t places_before; /* REST: place_of, … */
    size_t n_before;        /* … and n_places; rows and held stay as they are */
    ps_buffer_t out_rows;
    ps_buffer_t out_counts;
    ps_buffer_t out_cols;
    ps_buffer_t out_values;
};

ps_sparsify_t *ps_sparsify_new(ps_type_t type, uint32_t n_cols, uint64_t limit_bytes, uint64_t seed)
{
    ps_sparsify_t *self = ps_alloc(1, sizeof *self);

    if (self != NULL) {
        self->type = type;
        self->n_cols = n_cols;
        self->places_max =
            (size_t)(limit_bytes / (sizeof(double) * (uint64_t)n_cols + PS_SPARSIFY_ROW_COST));
        self->rng.state = seed;
    }
    return self;
}

void ps_sparsify_destroy(ps_sparsify_t **self_p)
{
    ps_sparsify_t *self = self_p == NULL ? NULL : *self_p;

    if (self == NULL) {
        return;
    }
    *self_p = NULL;
    ps_map_done(&self->place_of);
    ps_map_done(&self->places_before);
    ps_free(self->before);
    ps_free(self->rows);
    ps_free(self->seen_in);
    ps_free(self->held);
    ps_free(self->places);
    ps_free(self->sizes);
    ps_buffer_done(&self->out_rows);
    ps_buffer_done(&self->out_counts);
    ps_buffer_done(&self->out_cols);
    ps_buffer_done(&self->out_values);
    ps_free(self);
}

static double *held_at(const ps_sparsify_t *self, size_t place)
{
    return self->held + place * self->n_cols;
}

static double load(const ps_sparsify_t *self, const uint8_t *values, size_t i)
{
    return self->type == PS_TYPE_F32 ? (double)ps_load_f32(values + sizeof(float) * i)
                                     : ps_load_f64(values + sizeof(double) * i);
}

/* ---- room ---------------------------------------------------------------- */

/* The place of a row, a fresh one of zeros if it has none. false: no memory. */
static bool find_place(ps_sparsify_t *self, uint64_t row, size_t *ret_place)
{
    uintptr_t known = (uintptr_t)ps_map_get(&self->place_of, row);
    size_t place = self->n_places;

    if (known != 0) {
        *ret_place = (size_t)known - 1;
        return true;
    }
    if (place >= self->places_max) {
        *ret_place = NO_PLACE;
        return true;
    }
    if (!ps_grow(&self->rows, &self->rows_capacity, place + 1, sizeof *self->rows) ||
        !ps_grow(&self->seen_in, &self->seen_capacity, place + 1, sizeof *self->seen_in) ||
        !ps_grow(&self->held, &self->held_capacity, place + 1, sizeof *self->held * self->n_cols) ||
        !ps_map_put(&self->place_of, row, (void *)(uintptr_t)(place + 1))) {
        return false;
    }
    self->rows[place] = row;
    self->seen_in[place] = 0;
    memset(held_at(self, place), 0, sizeof(double) * self->n_cols);
    self->n_places++;
    *ret_place = place;
    return true;
}

/* Room to send n_rows rows whole. */
static bool make_out(ps_sparsify_t *self, size_t n_rows)
{
    size_t n_values = 0;

    self->out_rows.size = 0;
    self->out_counts.size = 0;
    self->out_cols.size = 0;
    self->out_values.size = 0;
    return !__builtin_mul_overflow(n_rows, (size_t)self->n_cols, &n_values) &&
           n_values <= SIZE_MAX / sizeof(double) &&
           ps_buffer_reserve(&self->out_rows, n_rows * sizeof(uint64_t)) &&
           ps_buffer_reserve(&self->out_counts, n_rows * sizeof(uint32_t)) &&
           ps_buffer_reserve(&self->out_cols, n_values * sizeof(uint32_t)) &&
           ps_buffer_reserve(&self->out_values, n_values * ps_type_size(self->type));
}

static uint64_t row_at(const ps_thin_rows_t *rows, size_t i)
{
    return rows->rows == NULL ? rows->first_row + i : rows->rows[i];
}

static bool make_room(ps_sparsify_t *self, const ps_thin_rows_t *rows, bool holds)
{
    size_t n = rows->n_rows;

    if (!make_out(self, n) ||
        !ps_grow(&self->places, &self->places_capacity, n, sizeof *self->places)) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        self->places[i] = NO_PLACE;
        if (holds && !find_place(self, row_at(rows, i), &self->places[i])) {
            return false;
        }
    }
    return ps_grow(&self->sizes, &self->sizes_capacity, n, sizeof *self->sizes * self->n_cols) &&
           (!holds ||
            ps_grow(&self->before, &self->before_capacity, n, sizeof *self->before * self->n_cols));
}

/* ---- sending ------------------------------------------------------------- */

/* Room for all of this was made: adding cannot fail. */
static void add(ps_buffer_t *to, const void *bytes, size_t size)
{
    memcpy(to->data + to->size, bytes, size);
    to->size += size;
}

/* Sends a value and returns what of it the type cannot hold; a sum beyond the
 * type is sent as infinite, for the server to see, and nothing of it waits. */
static double send_value(ps_sparsify_t *self, uint32_t col, double value)
{
    add(&self->out_cols, &col, sizeof col);
    if (self->type == PS_TYPE_F32) {
        float sent = (float)value;

        add(&self->out_values, &sent, sizeof sent);
        return isfinite(sent) ? value - (double)sent : 0;
    }
    add(&self->out_values, &value, sizeof value);
    return 0;
}

/* After the values of a row: adds the row, if it had any. */
static void end_row(ps_sparsify_t *self, uint64_t row, size_t cols_before)
{
    uint32_t count = (uint32_t)((self->out_cols.size - cols_before) / sizeof count);

    if (count > 0) {
        add(&self->out_rows, &row, sizeof row);
        add(&self->out_counts, &count, sizeof count);
    }
}

static ps_thinned_t what_is_out(const ps_sparsify_t *self)
{
    bool one = self->n_cols == 1;

    /* malloc aligns for every type */
    return (ps_thinned_t){.rows = (const uint64_t *)(const void *)self->out_rows.data,
                          .n_rows = self->out_rows.size / sizeof(uint64_t),
                          .counts =
                              one ? NULL : (const uint32_t *)(const void *)self->out_counts.data,
                          .cols = one ? NULL : (const uint32_t *)(const void *)self->out_cols.data,
                          .values = self->out_values.data,
                          .n_values = self->out_values.size / ps_type_size(self->type)};
}

/* ---- choosing ------------------------------------------------------------ */

static double size_of(double value)
{
    return isfinite(value) ? fabs(value) : (double)INFINITY;
}

/* The k-th largest of n sizes, 1 <= k <= n: Hoare's selection, which puts them
 * into another order. */
static double kth_largest(double *sizes, size_t n, size_t k)
{
    size_t first = 0;
    size_t last = n - 1;
    size_t wanted = k - 1;

    while (first < last) {
        double pivot = sizes[first + (last - first) / 2];
        size_t i = first;
        size_t j = last;

        for (;;) {
            double swap = 0;

            while (sizes[i] > pivot) {
                i++;
            }
            while (sizes[j] < pivot) {
                j--;
            }
            if (i >= j) {
                break;
            }
            swap = sizes[i];
            sizes[i++] = sizes[j];
            sizes[j--] = swap;
        }
        if (wanted <= j) {
            last = j;
        } else {
            first = j + 1;
        }
    }
    return sizes[wanted];
}

/* Which values are sent: all above `least`, and n_equal of those equal to
 * it. */
typedef struct choice {
    double least;
    size_t n_equal;
} choice_t;

static choice_t choose_top(ps_sparsify_t *self, double share, size_t n)
{
    size_t k = (size_t)ceil(share * (double)n);
    choice_t choice = {.n_equal = 0};
    size_t n_above = 0;

    if (n == 0) {
        return choice;
    }
    k = k < 1 ? 1 : k > n ? n : k;
    choice.least = kth_largest(self->sizes, n, k);
    for (size_t i = 0; i < n; i++) {
        n_above += self->sizes[i] > choice.least ? 1 : 0;
    }
    choice.n_equal = k - n_above;
    return choice;
}

static bool is_chosen(choice_t *choice, double value)
{
    double size = size_of(value);

    if (!(size > 0) || size < choice->least) {
        return false;
    }
    if (size > choice->least) {
        return true;
    }
    if (choice->n_equal == 0) {
        return false;
    }
    choice->n_equal--;
    return true;
}

/* ---- a push -------------------------------------------------------------- */

/* The next place of the push that was not seen since n_pushes counted; *i_p is
 * the row from which on to look. NO_PLACE: there is none. */
static size_t next_place(ps_sparsify_t *self, size_t n_rows, size_t *i_p)
{
    while (*i_p < n_rows) {
        size_t place = self->places[(*i_p)++];

        if (place != NO_PLACE && self->seen_in[place] != self->n_pushes) {
            self->seen_in[place] = self->n_pushes;
            return place;
        }
    }
    return NO_PLACE;
}

/* Copies what is held at all places of the push to where it can be undone, or
 * back. */
static void copy_before(ps_sparsify_t *self, size_t n_rows, bool back)
{
    double *before = self->before;
    size_t i = 0;
    size_t place = 0;

    self->n_pushes++;
    while ((place = next_place(self, n_rows, &i)) != NO_PLACE) {
        double *held = held_at(self, place);

        memcpy(back ? held : before, back ? before : held, sizeof *held * self->n_cols);
        before += self->n_cols;
    }
}

/* Adds the push to what is held; the sizes of all values that it touches, each
 * once, are counted. */
static size_t take_in(ps_sparsify_t *self, size_t n_rows, const uint8_t *values)
{
    size_t n = 0;
    size_t at = 0;
    size_t place = 0;

    for (size_t i = 0; i < n_rows; i++) {
        double *held = self->places[i] == NO_PLACE ? NULL : held_at(self, self->places[i]);

        for (uint32_t c = 0; held != NULL && c < self->n_cols; c++) {
            held[c] += load(self, values, i * self->n_cols + c);
        }
    }
    self->n_pushes++;
    while ((place = next_place(self, n_rows, &at)) != NO_PLACE) {
        for (uint32_t c = 0; c < self->n_cols; c++) {
            self->sizes[n++] = size_of(held_at(self, place)[c]);
        }
    }
    return n;
}

/* Sends the values of one place. */
static void send_place(ps_sparsify_t *self, size_t place, choice_t *choice)
{
    double *held = held_at(self, place);
    size_t cols_before = self->out_cols.size;

    for (uint32_t c = 0; c < self->n_cols; c++) {
        if (is_chosen(choice, held[c])) {
            held[c] = send_value(self, c, held[c]);
        }
    }
    end_row(self, self->rows[place], cols_before);
}

/* A row without a place, or of a push that holds nothing back: each value is
 * sent times `scale` with probability 1 / scale. */
static void send_row(ps_sparsify_t *self, uint64_t row, const uint8_t *values, double keep)
{
    size_t cols_before = self->out_cols.size;

    for (uint32_t c = 0; c < self->n_cols; c++) {
        double value = load(self, values, c);

        if (keep < 1 && ps_rng_f64(&self->rng) >= keep) {
            continue;
        }
        if (size_of(value) > 0) {
            (void)send_value(self, c, value / keep);
        }
    }
    end_row(self, row, cols_before);
}

static void forget_before(ps_sparsify_t *self)
{
    ps_map_done(&self->places_before);
    self->undo = UNDO_NOTHING;
}

psd_status_t ps_sparsify_push(ps_sparsify_t *self, const ps_filter_t *filter,
                              const ps_thin_rows_t *rows, const void *values,
                              ps_thinned_t *ret_thinned, psd_error_t *err)
{
    bool holds = filter->thin != PS_THIN_SKIP;
    double keep = holds ? 1 : 1 - filter->thin_amount;
    size_t row_size = self->n_cols * ps_type_size(self->type);
    choice_t choice = {.least = filter->thin_amount, .n_equal = SIZE_MAX};
    size_t n = 0;

    if (!make_room(self, rows, holds)) {
        return psd_error_set(err, PSD_NOMEM, "no memory to thin a push");
    }
    forget_before(self);
    if (holds) {
        copy_before(self, rows->n_rows, false);
        self->n_rows = rows->n_rows;
        self->undo = UNDO_PUSH;
    }
    n = take_in(self, rows->n_rows, values);
    if (filter->thin == PS_THIN_TOPK) {
        choice = choose_top(self, filter->thin_amount, n);
    }
    self->n_pushes++; /* marks the places that were sent */
    for (size_t i = 0; i < rows->n_rows; i++) {
        size_t place = self->places[i];

        if (place == NO_PLACE) {
            send_row(self, row_at(rows, i), (const uint8_t *)values + i * row_size, keep);
        } else if (self->seen_in[place] != self->n_pushes) {
            self->seen_in[place] = self->n_pushes;
            send_place(self, place, &choice);
        }
    }
    *ret_thinned = what_is_out(self);
    return PSD_OK;
}

psd_status_t ps_sparsify_rest(ps_sparsify_t *self, ps_thinned_t *ret_thinned, psd_error_t *err)
{
    if (!make_out(self, self->n_places)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the values held back");
    }
    forget_before(self);
    for (size_t place = 0; place < self->n_places; place++) {
        const double *held = held_at(self, place);
        size_t cols_before = self->out_cols.size;

        for (uint32_t c = 0; c < self->n_cols; c++) {
            if (size_of(held[c]) > 0) {
                (void)send_value(self, c, held[c]);
            }
        }
        end_row(self, self->rows[place], cols_before);
    }
    self->places_before = self->place_of;
    self->n_before = self->n_places;
    self->place_of = (ps_map_t){.slots = NULL};
    self->n_places = 0;
    self->undo = UNDO_REST;
    *ret_thinned = what_is_out(self);
    return PSD_OK;
}

void ps_sparsify_undo(ps_sparsify_t *self)
{
    if (self->undo == UNDO_PUSH) {
        copy_before(self, self->n_rows, true);
    } else if (self->undo == UNDO_REST) {
        self->place_of = self->places_before;
        self->n_places = self->n_before;
        self->places_before = (ps_map_t){.slots = NULL};
    }
    forget_before(self);
}

size_t ps_sparsify_n_held(const ps_sparsify_t *self)
{
    return self->n_places;
}
