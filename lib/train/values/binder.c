/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a push of what was summed up. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "train/values/binder_task.h"

#define LARGE 32768 /* slots that are worth waking a crew for */
#define AHEAD 8     /* items, of which the cells are fetched early */

/* What one member does: of items begin .. end - 1, all of some rows. */
typedef struct ps_binder_part {
    size_t begin, end;
    size_t n_rows, n_values;       /* that it makes of them */
    size_t first_row, first_value; /* where they stand in the sheaf */
    psd_status_t rc;
    psd_error_t *err; /* owned; NULL: no memory, or none */
} part_t;

void ps_sheaf_done(ps_sheaf_t *self)
{
    ps_free(self->rows);
    ps_free(self->counts);
    ps_free(self->cols);
    ps_free(self->values);
    *self = (ps_sheaf_t){.n_rows = 0};
}

void ps_sheaf_negate(ps_sheaf_t *self, ps_type_t type)
{
    for (size_t i = 0; i < self->n_values; i++) {
        switch (type) {
        case PS_TYPE_I32:
            ((uint32_t *)self->values)[i] = 0U - ((uint32_t *)self->values)[i];
            break;
        case PS_TYPE_I64:
            ((uint64_t *)self->values)[i] = 0U - ((uint64_t *)self->values)[i];
            break;
        case PS_TYPE_F32:
            ((float *)self->values)[i] = -((float *)self->values)[i];
            break;
        case PS_TYPE_F64:
        default:
            ((double *)self->values)[i] = -((double *)self->values)[i];
            break;
        }
    }
}

psd_status_t ps_binder_init(ps_binder_t *self, uint32_t n_members, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (ps_binder_t){.crew = NULL};
    self->counts = ps_alloc(n_members, sizeof *self->counts);
    self->parts = ps_alloc(n_members, sizeof *self->parts);
    if (self->counts == NULL || self->parts == NULL) {
        ps_binder_done(self);
        return psd_error_set(err, PSD_NOMEM, "no memory for sums of deltas");
    }
    rc = ps_crew_start(1, &self->alone, err);
    if (rc == PSD_OK && n_members > 1) {
        rc = ps_crew_start(n_members, &self->crew, err);
    }
    if (rc != PSD_OK) {
        ps_binder_done(self);
    }
    return rc;
}

void ps_binder_done(ps_binder_t *self)
{
    ps_crew_stop(&self->crew);
    ps_crew_stop(&self->alone);
    ps_free(self->counts);
    ps_free(self->parts);
    ps_free(self->keys);
    ps_free(self->items);
    ps_free(self->spare);
    *self = (ps_binder_t){.crew = NULL};
}

/* ---- items of the same cells ----------------------------------------------
 */

static uint64_t mask_of(const ps_binder_task_t *task, const ps_key_item_t *item)
{
    size_t slot = 0;
    const ps_sums_t *sums = NULL;

    if (task->sums[0]->width == 1) {
        return 1; /* it was touched */
    }
    sums = ps_binder_locate(task, item, &slot);
    return sums->masks[slot];
}

/* The end of the items of the same cells as the one at `at`. */
static size_t same_cells(const ps_binder_task_t *task, size_t at, size_t end)
{
    const ps_key_item_t *items = task->binder->items;
    size_t i = at + 1;

    while (i < end && items[i].key == items[at].key &&
           (!task->by_row ||
            ps_binder_chunk_of(task, &items[i]) == ps_binder_chunk_of(task, &items[at]))) {
        i++;
    }
    return i;
}

/* The trainers in their order; there are few of them. */
static void sort_by_place(ps_key_item_t *items, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        ps_key_item_t item = items[i];
        size_t at = i;

        for (; at > 0 && items[at - 1].place > item.place; at--) {
            items[at] = items[at - 1];
        }
        items[at] = item;
    }
}

/* ---- adding up ----------------------------------------------------------- */

static psd_status_t refuse(ps_type_t type, ps_number_t number, psd_error_t *err)
{
    return type == PS_TYPE_I32 ? psd_error_set(err, PSD_RANGE,
                                               "the sum of deltas is %" PRId64
                                               "; allowed in i32: %" PRId32 "..%" PRId32,
                                               number.i64, INT32_MIN, INT32_MAX)
                               : psd_error_set(err, PSD_NOT_FINITE,
                                               "the sum of deltas is %g, which is not a "
                                               "finite number of the table's type",
                                               number.f64);
}

/* Whether the type can hold the number that is put. */
static inline bool put_number(ps_type_t type, ps_number_t number, void *values, size_t at)
{
    switch (type) {
    case PS_TYPE_I32:
        ((int32_t *)values)[at] = (int32_t)number.i64;
        return number.i64 >= INT32_MIN && number.i64 <= INT32_MAX;
    case PS_TYPE_I64:
        ((int64_t *)values)[at] = number.i64;
        return true;
    case PS_TYPE_F32:
        ((float *)values)[at] = (float)number.f64;
        return isfinite((float)number.f64);
    case PS_TYPE_F64:
    default:
        ((double *)values)[at] = number.f64;
        return isfinite(number.f64);
    }
}

/* Made for each type by itself: the switch stands outside of the loop then. */
static inline psd_status_t put_each(ps_type_t type, const ps_number_t *numbers, uint32_t n,
                                    void *values, size_t at, psd_error_t *err)
{
    bool fits = true;

    for (uint32_t i = 0; i < n; i++) {
        fits &= put_number(type, numbers[i], values, at + i);
    }
    for (uint32_t i = 0; !fits && i < n; i++) {
        if (!put_number(type, numbers[i], values, at + i)) {
            return refuse(type, numbers[i], err);
        }
    }
    return PSD_OK;
}

static psd_status_t put_numbers(ps_type_t type, const ps_number_t *numbers, uint32_t n,
                                void *values, size_t at, psd_error_t *err)
{
    switch (type) {
    case PS_TYPE_I32:
        return put_each(PS_TYPE_I32, numbers, n, values, at, err);
    case PS_TYPE_I64:
        return put_each(PS_TYPE_I64, numbers, n, values, at, err);
    case PS_TYPE_F32:
        return put_each(PS_TYPE_F32, numbers, n, values, at, err);
    case PS_TYPE_F64:
    default:
        return put_each(PS_TYPE_F64, numbers, n, values, at, err);
    }
}

/* Gives each member whole rows. */
static void cut_items(const ps_binder_task_t *task)
{
    const ps_key_item_t *items = task->binder->items;
    uint32_t n_parts = ps_crew_size(task->crew);
    size_t begin = 0;

    for (uint32_t i = 0; i < n_parts; i++) {
        size_t end = ps_crew_cut(task->n, i + 1, n_parts);

        end = end < begin ? begin : end;
        while (end > 0 && end < task->n &&
               ps_binder_row_of(task, &items[end]) == ps_binder_row_of(task, &items[end - 1])) {
            end++;
        }
        task->binder->parts[i] = (part_t){.begin = begin, .end = end, .rc = PSD_OK};
        begin = end;
    }
}

static void count_part(void *arg, uint32_t member, uint32_t n_members)
{
    const ps_binder_task_t *task = arg;
    ps_key_item_t *items = task->binder->items;
    part_t part = task->binder->parts[member];
    size_t next = 0;

    (void)n_members;
    for (size_t at = part.begin; at < part.end; at = next) {
        uint64_t mask = 0;

        next = same_cells(task, at, part.end);
        if (!task->by_row) {
            sort_by_place(items + at, next - at);
        }
        for (size_t i = at; i < next; i++) {
            mask |= mask_of(task, &items[i]);
        }
        part.n_values += (size_t)__builtin_popcountll(mask);
        part.n_rows += at == part.begin ||
                       ps_binder_row_of(task, &items[at]) != ps_binder_row_of(task, &items[at - 1]);
    }
    task->binder->parts[member] = part;
}

/* The sums of the cells of items at .. next - 1, in room unless one has them
 * all; gives which there are. */
static const ps_number_t *add_up(const ps_binder_task_t *task, size_t at, size_t next,
                                 ps_number_t *room, uint64_t *ret_mask)
{
    const ps_key_item_t *items = task->binder->items;
    bool is_float = ps_type_is_float(task->sums[0]->shape.type);
    uint32_t width = task->sums[0]->width;
    size_t slot = 0;
    const ps_sums_t *sums = ps_binder_locate(task, &items[at], &slot);
    const ps_number_t *first = sums->cells + slot * width;

    *ret_mask = sums->masks[slot];
    if (next == at + 1) {
        return first;
    }
    memcpy(room, first, width * sizeof *room);
    for (size_t i = at + 1; i < next; i++) {
        sums = ps_binder_locate(task, &items[i], &slot);
        *ret_mask |= sums->masks[slot];
        ps_sums_add_slot(sums, slot, is_float, room);
    }
    return room;
}

/* The cells that there are, side by side: moved to room, which may be the cells
 * themselves, unless they are so already. Gives their columns and their number. */
static const ps_number_t *keep_touched(const ps_number_t *cells, uint64_t mask, uint32_t col,
                                       ps_number_t *room, uint32_t *ret_cols, uint32_t *ret_n)
{
    uint32_t n = 0;

    if (mask != 0 && (mask & (mask + 1)) == 0) {
        *ret_n = (uint32_t)(PS_SUMS_WIDTH_MAX - __builtin_clzll(mask));
        for (uint32_t i = 0; i < *ret_n; i++) {
            ret_cols[i] = col + i;
        }
        return cells;
    }
    for (; mask != 0; mask &= mask - 1, n++) {
        uint32_t i = (uint32_t)__builtin_ctzll(mask);

        room[n] = cells[i];
        ret_cols[n] = col + i;
    }
    *ret_n = n;
    return room;
}

static void fetch_early(const ps_binder_task_t *task, size_t at, size_t end)
{
    if (at + AHEAD < end) {
        size_t slot = 0;
        const ps_sums_t *sums = ps_binder_locate(task, &task->binder->items[at + AHEAD], &slot);

        __builtin_prefetch(sums->cells + slot * sums->width);
        __builtin_prefetch(sums->masks + slot);
    }
}

static psd_status_t fill_part(const ps_binder_task_t *task, const part_t *part, psd_error_t *err)
{
    const ps_key_item_t *items = task->binder->items;
    const ps_shape_t *shape = &task->sums[0]->shape;
    const ps_sheaf_t *sheaf = &task->sheaf;
    ps_number_t room[PS_SUMS_WIDTH_MAX];
    size_t row = part->first_row; /* where the next one goes */
    size_t value = part->first_value;
    size_t next = 0;

    for (size_t at = part->begin; at < part->end; at = next) {
        uint64_t key = ps_binder_row_of(task, &items[at]);
        uint32_t col = ps_binder_chunk_of(task, &items[at]) * task->sums[0]->width;
        const ps_number_t *cells = NULL;
        psd_status_t rc = PSD_OK;
        uint64_t mask = 0;
        uint32_t n = 0;

        fetch_early(task, at, part->end);
        next = same_cells(task, at, part->end);
        cells = add_up(task, at, next, room, &mask);
        if (row == part->first_row || sheaf->rows[row - 1] != key) {
            sheaf->rows[row] = key;
            sheaf->counts[row++] = 0;
        }
        cells = keep_touched(cells, mask, col, room, sheaf->cols + value, &n);
        rc = put_numbers(shape->type, cells, n, sheaf->values, value, err);
        if (rc != PSD_OK) {
            return psd_error_wrap(err, rc, "row %" PRIu64, key);
        }
        sheaf->counts[row - 1] += n;
        value += n;
    }
    return PSD_OK;
}

static void fill(void *arg, uint32_t member, uint32_t n_members)
{
    const ps_binder_task_t *task = arg;
    part_t *part = &task->binder->parts[member];

    (void)n_members;
    part->rc = fill_part(task, part, NULL);
    if (part->rc != PSD_OK) { /* once more, for its words */
        part->err = psd_error_new();
        part->rc = fill_part(task, part, part->err);
    }
}

/* Room for what the members will put into the sheaf, and where each does. */
static psd_status_t make_room(ps_binder_task_t *task, psd_error_t *err)
{
    const ps_shape_t *shape = &task->sums[0]->shape;
    ps_sheaf_t *sheaf = &task->sheaf;

    for (uint32_t i = 0; i < ps_crew_size(task->crew); i++) {
        part_t *part = &task->binder->parts[i];

        part->first_row = sheaf->n_rows;
        part->first_value = sheaf->n_values;
        sheaf->n_rows += part->n_rows;
        sheaf->n_values += part->n_values;
    }
    sheaf->rows = ps_alloc_raw(sheaf->n_rows, sizeof *sheaf->rows);
    sheaf->counts = ps_alloc_raw(sheaf->n_rows, sizeof *sheaf->counts);
    sheaf->cols = ps_alloc_raw(sheaf->n_values, sizeof *sheaf->cols);
    sheaf->values = ps_alloc_raw(sheaf->n_values, shape->value_size);
    if (sheaf->rows == NULL || sheaf->counts == NULL || sheaf->cols == NULL ||
        sheaf->values == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    sheaf->whole = sheaf->n_values == sheaf->n_rows * shape->n_cols;
    return PSD_OK;
}

/* The first part's failure, if one failed. */
static psd_status_t gather(const ps_binder_task_t *task, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; i < ps_crew_size(task->crew); i++) {
        part_t *part = &task->binder->parts[i];

        if (rc == PSD_OK && part->rc != PSD_OK) {
            rc = psd_error_set(err, part->rc, "%s", psd_error_text(part->err));
        }
        psd_error_destroy(&part->err);
    }
    return rc;
}

psd_status_t ps_binder_bind(ps_binder_t *self, const ps_sums_t *const *sums, size_t n,
                            ps_sheaf_t *ret_sheaf, psd_error_t *err)
{
    ps_binder_task_t task = {
        .binder = self, .sums = sums, .n_sums = n, .n_chunks = sums[0]->n_chunks};
    psd_status_t rc = PSD_OK;

    for (size_t k = 0; k < n; k++) {
        task.starts[k] = task.n;
        task.n += sums[k]->n_touched;
    }
    if (task.n >= UINT32_MAX) {
        return psd_error_set(err, PSD_LIMIT,
                             "trainers added to %zu places; allowed: less than "
                             "2^32 in a push",
                             task.n);
    }
    task.crew = self->crew != NULL && task.n >= LARGE ? self->crew : self->alone;
    rc = ps_binder_sort(&task, err);
    if (rc == PSD_OK) {
        cut_items(&task);
        ps_crew_run(task.crew, count_part, &task);
        rc = make_room(&task, err);
    }
    if (rc == PSD_OK) {
        ps_crew_run(task.crew, fill, &task);
        rc = gather(&task, err);
    }
    if (rc != PSD_OK) {
        ps_sheaf_done(&task.sheaf);
        return rc;
    }
    *ret_sheaf = task.sheaf;
    return PSD_OK;
}

psd_status_t ps_sums_bind(const ps_sums_t *self, ps_sheaf_t *ret_sheaf, psd_error_t *err)
{
    PSD_AUTO(ps_binder_done) ps_binder_t binder = {.crew = NULL};
    psd_status_t rc = PSD_OK;

    if (self->n_touched == 0) {
        *ret_sheaf = (ps_sheaf_t){.n_rows = 0};
        return PSD_OK;
    }
    rc = ps_binder_init(&binder, 1, err);
    return rc == PSD_OK ? ps_binder_bind(&binder, &self, 1, ret_sheaf, err) : rc;
}
