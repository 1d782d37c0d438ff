/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and adds of a trainer's call-back. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/updaters/finite.h"
#include "train/state/train_state.h"

uint32_t psd_trainer_id(const psd_trainer_t *self)
{
    return self->id;
}

uint32_t psd_trainer_count(const psd_trainer_t *self)
{
    return self->train->options.n_trainers;
}

void psd_trainer_share(const psd_trainer_t *self, size_t n, size_t *ret_first, size_t *ret_end)
{
    size_t count = self->train->options.n_trainers;
    size_t each = n / count;
    size_t rest = n % count; /* the first ones have one more */
    size_t id = self->id;

    *ret_first = id * each + (id < rest ? id : rest);
    *ret_end = *ret_first + each + (id < rest ? 1 : 0);
}

/* ---- what cannot be ------------------------------------------------------ */

static void set_fault(psd_trainer_t *self, psd_status_t rc, const char *format, ...)
    PSD_PRINTF(3, 4);

/* The first one counts; the call-back's end fails with it. */
static void set_fault(psd_trainer_t *self, psd_status_t rc, const char *format, ...)
{
    char text[256];
    va_list arguments;

    if (self->fault != PSD_OK) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    self->fault = psd_error_set(self->fault_err, rc, "%s", text);
}

static const char *name_of(const psd_trainer_t *self, uint32_t table)
{
    return psd_table_name(self->train->tables[table]);
}

/* The shape of the table; NULL: there is none, which is a fault. */
static const ps_shape_t *find_shape(psd_trainer_t *self, uint32_t table)
{
    if (table < self->train->n_tables) {
        return &self->train->shapes[table];
    }
    set_fault(self, PSD_INVALID, "table is %" PRIu32 "; there are %" PRIu32, table,
              self->train->n_tables);
    return NULL;
}

static bool check_type(psd_trainer_t *self, uint32_t table, bool is_float)
{
    if (ps_type_is_float(self->train->shapes[table].type) == is_float) {
        return true;
    }
    set_fault(self, PSD_TYPE, "table \"%s\" is of %s; allowed: _%s", name_of(self, table),
              psd_table_type(self->train->tables[table]), is_float ? "i64" : "f64");
    return false;
}

static void set_missing(psd_trainer_t *self, uint32_t table, uint64_t row)
{
    set_fault(self, PSD_INVALID,
              "row %" PRIu64 " of table \"%s\" is read, but the load call-back did not ask for it",
              row, name_of(self, table));
}

/* ---- one value of the cache ---------------------------------------------- */

/* Trainers may read and write a value at the same time when the cache is
 * lock-free; relaxed atomics say so, and cost nothing more than plain ones. */
static ps_number_t load(ps_type_t type, const void *at)
{
    int32_t i32 = 0;
    int64_t i64 = 0;
    float f32 = 0;
    double f64 = 0;

    switch (type) {
    case PS_TYPE_I32:
        __atomic_load((const int32_t *)at, &i32, __ATOMIC_RELAXED);
        return (ps_number_t){.i64 = i32};
    case PS_TYPE_I64:
        __atomic_load((const int64_t *)at, &i64, __ATOMIC_RELAXED);
        return (ps_number_t){.i64 = i64};
    case PS_TYPE_F32:
        __atomic_load((const float *)at, &f32, __ATOMIC_RELAXED);
        return (ps_number_t){.f64 = (double)f32};
    case PS_TYPE_F64:
    default:
        __atomic_load((const double *)at, &f64, __ATOMIC_RELAXED);
        return (ps_number_t){.f64 = f64};
    }
}

static void store(ps_type_t type, void *at, ps_number_t number)
{
    int32_t i32 = 0;
    float f32 = 0;

    switch (type) {
    case PS_TYPE_I32:
        i32 = (int32_t)number.i64;
        __atomic_store((int32_t *)at, &i32, __ATOMIC_RELAXED);
        break;
    case PS_TYPE_I64:
        __atomic_store((int64_t *)at, &number.i64, __ATOMIC_RELAXED);
        break;
    case PS_TYPE_F32:
        f32 = (float)number.f64;
        __atomic_store((float *)at, &f32, __ATOMIC_RELAXED);
        break;
    case PS_TYPE_F64:
    default:
        __atomic_store((double *)at, &number.f64, __ATOMIC_RELAXED);
        break;
    }
}

/* The lock of a row, taken; NULL: there are none. */
static pthread_mutex_t *lock_row(psd_trainer_t *self, uint32_t table, uint64_t row)
{
    psd_train_t *train = self->train;
    pthread_mutex_t *lock = NULL;

    if (train->options.lock == PS_LOCK_LOCKED) {
        lock = &train->locks[(table + row) % train->options.n_locks];
        (void)pthread_mutex_lock(lock);
    }
    return lock;
}

static void unlock_row(pthread_mutex_t *lock)
{
    if (lock != NULL) {
        (void)pthread_mutex_unlock(lock);
    }
}

static ps_number_t get(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                       bool is_float)
{
    const ps_shape_t *shape = find_shape(self, table);
    ps_number_t number = {.i64 = 0};
    const void *at = NULL;

    if (shape == NULL || !check_type(self, table, is_float)) {
        return number;
    }
    if (self->cache != NULL) {
        at = ps_cache_value(&self->cache->tables[table], row, col);
    }
    if (at == NULL) {
        set_missing(self, table, row);
    } else {
        pthread_mutex_t *lock = lock_row(self, table, row);

        number = load(shape->type, at);
        unlock_row(lock);
    }
    return number;
}

double psd_trainer_get_f64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col)
{
    return get(self, table, row, col, true).f64;
}

int64_t psd_trainer_get_i64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col)
{
    return get(self, table, row, col, false).i64;
}

const void *psd_trainer_row(psd_trainer_t *self, uint32_t table, uint64_t row)
{
    const void *at = NULL;

    if (find_shape(self, table) == NULL) {
        return NULL;
    }
    if (self->cache != NULL) {
        at = ps_cache_row(&self->cache->tables[table], row);
    }
    if (at == NULL) {
        set_missing(self, table, row);
    }
    return at;
}

static bool check_width(psd_trainer_t *self, uint32_t table, uint64_t row, size_t n_values)
{
    if (n_values == self->train->shapes[table].n_cols) {
        return true;
    }
    set_fault(self, PSD_SHAPE,
              "row %" PRIu64 " of table \"%s\": %zu values; it has %" PRIu32 " columns", row,
              name_of(self, table), n_values, self->train->shapes[table].n_cols);
    return false;
}

bool psd_trainer_get_row(psd_trainer_t *self, uint32_t table, uint64_t row, void *ret_values,
                         size_t n_values)
{
    const char *at = psd_trainer_row(self, table, row);
    const ps_shape_t *shape = NULL;
    pthread_mutex_t *lock = NULL;

    if (at == NULL || !check_width(self, table, row, n_values)) {
        return false;
    }
    shape = &self->train->shapes[table];
    if (self->train->options.lock == PS_LOCK_IMMUTABLE) {
        memcpy(ret_values, at, n_values * shape->value_size);
        return true;
    }
    lock = lock_row(self, table, row);
    for (size_t i = 0; i < n_values; i++) {
        ps_number_t number = load(shape->type, at + i * shape->value_size);

        store(shape->type, (char *)ret_values + i * shape->value_size, number);
    }
    unlock_row(lock);
    return true;
}

/* ---- adding -------------------------------------------------------------- */

static void add_number(ps_type_t type, ps_number_t *to, ps_number_t delta)
{
    if (ps_type_is_float(type)) {
        to->f64 += delta.f64;
    } else {
        to->i64 = (int64_t)((uint64_t)to->i64 + (uint64_t)delta.i64);
    }
}

static void add_at(ps_type_t type, void *at, ps_number_t delta)
{
    ps_number_t number = load(type, at);

    add_number(type, &number, delta);
    store(type, at, number);
}

/* Changes the cache's own value, if it has it. */
static void add_local(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                      ps_number_t delta)
{
    pthread_mutex_t *lock = NULL;
    void *at = NULL;

    if (self->cache == NULL) {
        return;
    }
    at = ps_cache_value(&self->cache->tables[table], row, col);
    if (at == NULL) {
        return; /* the block did not ask for it: no trainer reads it */
    }
    lock = lock_row(self, table, row);
    add_at(self->train->shapes[table].type, at, delta);
    unlock_row(lock);
}

/* The same with all columns of a row, of which the cache may have some only. */
static void add_local_row(psd_trainer_t *self, uint32_t table, uint64_t row, const char *deltas)
{
    const ps_shape_t *shape = &self->train->shapes[table];
    pthread_mutex_t *lock = NULL;
    char *at = NULL;

    if (self->cache == NULL) {
        return;
    }
    at = ps_cache_row(&self->cache->tables[table], row);
    if (at == NULL) {
        for (uint32_t col = 0; col < shape->n_cols; col++) {
            add_local(self, table, row, col, load(shape->type, deltas + col * shape->value_size));
        }
        return;
    }
    lock = lock_row(self, table, row);
    for (uint32_t col = 0; col < shape->n_cols; col++) {
        size_t place = col * shape->value_size;

        add_at(shape->type, at + place, load(shape->type, deltas + place));
    }
    unlock_row(lock);
}

static bool check_place(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col)
{
    const ps_shape_t *shape = &self->train->shapes[table];

    if (ps_shape_has_row(shape, row) && col < shape->n_cols) {
        return true;
    }
    set_fault(self, PSD_RANGE,
              "row %" PRIu64 ", column %" PRIu32 " of table \"%s\"; it has "
              "%" PRIu64 " rows, %" PRIu32 " columns",
              row, col, name_of(self, table), shape->n_rows, shape->n_cols);
    return false;
}

/* Table, type and place are checked. */
static void add(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col, ps_number_t delta)
{
    ps_sums_t *sums = &self->sums[table];
    ps_number_t *sum = ps_sums_at(sums, row, col);

    if (sum == NULL) {
        set_fault(self, PSD_NOMEM, "no memory for deltas");
        return;
    }
    self->n_adds++;
    add_number(sums->shape.type, sum, delta);
    if (self->train->options.lock != PS_LOCK_IMMUTABLE) {
        add_local(self, table, row, col, delta);
    }
}

static bool check_finite(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                         double delta)
{
    if (isfinite(delta)) {
        return true;
    }
    set_fault(self, PSD_NOT_FINITE,
              "row %" PRIu64 ", column %" PRIu32 " of table \"%s\": the "
              "delta is %g",
              row, col, name_of(self, table), delta);
    return false;
}

void psd_trainer_add_f64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                         double delta)
{
    if (find_shape(self, table) != NULL && check_type(self, table, true) &&
        check_place(self, table, row, col) && check_finite(self, table, row, col, delta)) {
        add(self, table, row, col, (ps_number_t){.f64 = delta});
    }
}

void psd_trainer_add_i64(psd_trainer_t *self, uint32_t table, uint64_t row, uint32_t col,
                         int64_t delta)
{
    if (find_shape(self, table) != NULL && check_type(self, table, false) &&
        check_place(self, table, row, col)) {
        add(self, table, row, col, (ps_number_t){.i64 = delta});
    }
}

/* The first value that is not finite is named. */
static bool check_finite_row(psd_trainer_t *self, uint32_t table, uint64_t row, const char *deltas)
{
    const ps_shape_t *shape = &self->train->shapes[table];

    if (ps_finite_all(shape->type, (const uint8_t *)deltas, shape->n_cols)) {
        return true;
    }
    for (uint32_t col = 0; col < shape->n_cols; col++) {
        ps_number_t delta = load(shape->type, deltas + col * shape->value_size);

        if (!check_finite(self, table, row, col, delta.f64)) {
            break;
        }
    }
    return false;
}

void psd_trainer_add_row(psd_trainer_t *self, uint32_t table, uint64_t row, const void *deltas,
                         size_t n_values)
{
    const ps_shape_t *shape = find_shape(self, table);

    if (shape == NULL || !check_width(self, table, row, n_values) ||
        !check_place(self, table, row, 0) || !check_finite_row(self, table, row, deltas)) {
        return;
    }
    if (!ps_sums_add(&self->sums[table], row, 0, deltas, shape->n_cols)) {
        set_fault(self, PSD_NOMEM, "no memory for deltas");
        return;
    }
    self->n_adds += shape->n_cols;
    if (self->train->options.lock != PS_LOCK_IMMUTABLE) {
        add_local_row(self, table, row, deltas);
    }
}
