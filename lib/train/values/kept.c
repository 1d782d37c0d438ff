/* SPDX-License-Identifier: Apache-2.0 */
/* Which rows are kept, how long, and which are evicted when there is no
 * room. */
#include "train/values/kept.h"

#include <string.h>

#include "base/alloc.h"

#define FOUND_BYTES 32 /* of a row's place in the map, at worst */

psd_status_t ps_kept_init(ps_kept_t *self, const ps_kept_rule_t *rule, const ps_shape_t *shapes,
                          size_t n_tables, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (ps_kept_t){.rule = *rule, .clock = 1};
    TAILQ_INIT(&self->unused);
    TAILQ_INIT(&self->intended);
    self->has_mutex = pthread_mutex_init(&self->mutex, NULL) == 0;
    if (!self->has_mutex) {
        return psd_error_set(err, PSD_FAILED, "a lock cannot be made");
    }
    self->tables = ps_alloc(n_tables, sizeof *self->tables);
    if (self->tables == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for kept rows");
    }
    for (size_t i = 0; rc == PSD_OK && i < n_tables; i++) {
        self->tables[i].shape = shapes[i];
        rc = ps_sums_init(&self->tables[i].open, &shapes[i], err);
        self->n_tables++;
    }
    return rc;
}

static void free_list(struct ps_kept_rows *list)
{
    while (!TAILQ_EMPTY(list)) {
        ps_kept_row_t *entry = TAILQ_FIRST(list);

        TAILQ_REMOVE(list, entry, in_list);
        ps_free(entry);
    }
}

void ps_kept_done(ps_kept_t *self)
{
    if (!self->has_mutex) {
        return;
    }
    free_list(&self->unused);
    free_list(&self->intended);
    for (size_t i = 0; i < self->n_tables; i++) {
        ps_map_done(&self->tables[i].rows);
        ps_sums_done(&self->tables[i].open);
    }
    ps_free(self->tables);
    (void)pthread_mutex_destroy(&self->mutex);
    *self = (ps_kept_t){.has_mutex = false};
}

void ps_kept_lock(ps_kept_t *self)
{
    (void)pthread_mutex_lock(&self->mutex);
}

void ps_kept_unlock(ps_kept_t *self)
{
    (void)pthread_mutex_unlock(&self->mutex);
}

/* ---- entries ------------------------------------------------------------- */

/* UINT64_MAX: more than can be counted. */
static uint64_t values_bytes(const ps_shape_t *shape, bool whole)
{
    uint64_t n_rows = whole ? shape->n_rows : 1;
    uint64_t n = 0;

    return __builtin_mul_overflow(n_rows, shape->n_cols * shape->value_size, &n) ? UINT64_MAX : n;
}

uint64_t ps_kept_row_bytes(const ps_shape_t *shape)
{
    return sizeof(ps_kept_row_t) + FOUND_BYTES + values_bytes(shape, false);
}

static ps_kept_row_t *find(const ps_kept_t *self, ps_kept_key_t key)
{
    const ps_kept_table_t *table = &self->tables[key.table];

    return key.whole ? table->whole : ps_map_get(&table->rows, key.row);
}

/* Puts it last into the list that it belongs to. */
static void enlist(ps_kept_t *self, ps_kept_row_t *entry)
{
    if (entry->until > 0) {
        TAILQ_INSERT_TAIL(&self->intended, entry, in_list);
    } else {
        TAILQ_INSERT_TAIL(&self->unused, entry, in_list);
        self->n_unused += entry->n_bytes;
    }
}

static void delist(ps_kept_t *self, ps_kept_row_t *entry)
{
    if (entry->until > 0) {
        TAILQ_REMOVE(&self->intended, entry, in_list);
    } else {
        TAILQ_REMOVE(&self->unused, entry, in_list);
        self->n_unused -= entry->n_bytes;
    }
}

static void drop(ps_kept_t *self, ps_kept_row_t *entry)
{
    ps_kept_table_t *table = &self->tables[entry->key.table];

    delist(self, entry);
    self->n_bytes -= entry->n_bytes;
    if (entry->key.whole) {
        table->whole = NULL;
    } else {
        (void)ps_map_remove(&table->rows, entry->key.row);
    }
    ps_free(entry);
}

/* Evicts the least recently used rows. Intended rows have their room, whether
 * they are here yet or not; the others share the rest. false: rows in flight
 * take all of it. */
static bool make_room(ps_kept_t *self, uint64_t n_bytes, bool intended)
{
    uint64_t all = self->rule.max_bytes;
    uint64_t unused = intended ? all : all - self->n_reserved;
    ps_kept_row_t *entry = TAILQ_FIRST(&self->unused);

    if (n_bytes > unused) {
        return false;
    }
    while ((self->n_bytes > all - n_bytes || self->n_unused > unused - n_bytes) && entry != NULL) {
        ps_kept_row_t *next = TAILQ_NEXT(entry, in_list);

        if (!entry->coming) {
            drop(self, entry);
        }
        entry = next;
    }
    return self->n_bytes <= all - n_bytes && self->n_unused <= unused - n_bytes;
}

static ps_kept_row_t *add(ps_kept_t *self, ps_kept_key_t key, uint64_t until)
{
    ps_kept_table_t *table = &self->tables[key.table];
    uint64_t n = values_bytes(&table->shape, key.whole);
    uint64_t n_bytes = sizeof(ps_kept_row_t) + FOUND_BYTES;
    ps_kept_row_t *entry = NULL;

    if (__builtin_add_overflow(n_bytes, n, &n_bytes) || !make_room(self, n_bytes, until > 0)) {
        return NULL;
    }
    entry = ps_alloc(1, (size_t)n_bytes);
    if (entry == NULL || (!key.whole && !ps_map_put(&table->rows, key.row, entry))) {
        ps_free(entry);
        return NULL;
    }
    if (key.whole) {
        table->whole = entry;
    }
    entry->key = key;
    entry->until = until;
    entry->n_bytes = n_bytes;
    self->n_bytes += n_bytes;
    enlist(self, entry);
    return entry;
}

/* ---- reading and asking -------------------------------------------------- */

uint64_t ps_kept_turn(const ps_kept_t *self)
{
    return (self->rule.turn + self->clock - 1) % self->rule.n_parts;
}

/* No clock that had the key's turn has ended since, or it has just ended. */
static bool is_part_fresh(const ps_kept_t *self, ps_kept_key_t key, ps_kept_time_t fetched,
                          ps_kept_time_t now)
{
    uint64_t n = self->rule.n_parts;
    uint64_t over = now.clock - 1; /* the last clock that counts as ended */
    uint64_t since = 0;            /* clocks from that of the key's turn to it */

    if (now.inner < self->rule.overlap && over > 0) {
        over--;
    }
    if (!key.whole && over > 0) {
        uint64_t turn = (self->rule.turn + over - 1) % n;

        since = (turn + n - key.row % n) % n;
    }
    return over < fetched.clock + since;
}

static bool is_fresh(const ps_kept_t *self, ps_kept_key_t key, ps_kept_time_t fetched,
                     ps_kept_time_t now)
{
    if (self->rule.n_parts > 0) {
        return is_part_fresh(self, key, fetched, now);
    }
    if (now.block > 0 && fetched.block > 0 && now.block - fetched.block < self->rule.n_blocks) {
        return true;
    }
    return self->rule.staleness >= 0 &&
           (now.clock <= fetched.clock ||
            now.clock - fetched.clock <= (uint64_t)self->rule.staleness);
}

/* Its last use is now. */
static void touch(ps_kept_t *self, ps_kept_row_t *entry)
{
    delist(self, entry);
    enlist(self, entry);
}

const void *ps_kept_read(ps_kept_t *self, ps_kept_key_t key, ps_kept_time_t now)
{
    const ps_kept_table_t *table = &self->tables[key.table];
    size_t row_bytes = table->shape.n_cols * table->shape.value_size;
    ps_kept_row_t *entry = find(self, key);
    const char *values = NULL;

    if (!key.whole && table->whole != NULL && table->whole->here &&
        is_fresh(self, table->whole->key, table->whole->fetched, now)) {
        entry = table->whole;
    }
    if (entry == NULL || !entry->here || !is_fresh(self, entry->key, entry->fetched, now)) {
        return NULL;
    }
    touch(self, entry);
    values = entry->values;
    return entry->key.whole && !key.whole ? values + key.row * row_bytes : values;
}

uint64_t ps_kept_pull(ps_kept_t *self)
{
    return ++self->n_pulls;
}

bool ps_kept_is_coming(const ps_kept_t *self, ps_kept_key_t key)
{
    const ps_kept_row_t *entry = find(self, key);

    return entry != NULL && entry->coming;
}

bool ps_kept_ask(ps_kept_t *self, ps_kept_key_t key, uint64_t pull, ps_kept_time_t now,
                 uint64_t until)
{
    ps_kept_row_t *entry = NULL;

    if (!self->tables[key.table].shape.adds && self->rule.n_parts == 0) {
        return false; /* only the server knows what pushes make of it */
    }
    entry = find(self, key);
    if (entry == NULL) {
        entry = add(self, key, until);
    }
    if (entry == NULL) {
        return false;
    }
    entry->asked = now;
    entry->pull = pull;
    entry->coming = true;
    entry->spoiled = false;
    return true;
}

void ps_kept_take(ps_kept_t *self, ps_kept_key_t key, uint64_t pull, const void *values)
{
    const ps_shape_t *shape = &self->tables[key.table].shape;
    ps_kept_row_t *entry = find(self, key);

    if (entry == NULL || !entry->coming || entry->pull != pull) {
        return;
    }
    entry->coming = false;
    if (!entry->spoiled) {
        memcpy(entry->values, values, (size_t)values_bytes(shape, key.whole));
        entry->fetched = entry->asked;
        entry->here = true;
    } else if (!entry->here) {
        drop(self, entry);
    }
}

void ps_kept_take_cache(ps_kept_t *self, const ps_cache_t *cache)
{
    ps_kept_lock(self);
    for (size_t i = 0; i < cache->n_tables; i++) {
        const ps_cache_table_t *table = &cache->tables[i];
        size_t size = table->shape.n_cols * table->shape.value_size;

        if (table->whole && table->n_missing > 0) {
            ps_kept_take(self, ps_kept_whole_key(i), cache->pull, table->values);
        }
        for (size_t k = 0; !table->whole && k < table->n_missing; k++) {
            ps_kept_take(self, ps_kept_row_key(i, table->rows.rows[k]), cache->pull,
                         (const char *)table->values + k * size);
        }
    }
    ps_kept_unlock(self);
}

/* ---- intents ------------------------------------------------------------- */

bool ps_kept_reserve(ps_kept_t *self, uint64_t n_bytes)
{
    if (n_bytes > self->rule.max_bytes - self->n_reserved) {
        return false;
    }
    self->n_reserved += n_bytes;
    (void)make_room(self, 0, false); /* what is under way may stay */
    return true;
}

void ps_kept_release(ps_kept_t *self, uint64_t n_bytes)
{
    self->n_reserved -= n_bytes;
}

void ps_kept_intend(ps_kept_t *self, ps_kept_key_t key, uint64_t until)
{
    ps_kept_row_t *entry = find(self, key);

    if (entry != NULL && entry->until < until) {
        delist(self, entry);
        entry->until = until;
        enlist(self, entry);
    }
}

/* A clock has begun: intents that end with the clock before are over. */
static void end_intents(ps_kept_t *self)
{
    ps_kept_row_t *entry = TAILQ_FIRST(&self->intended);

    while (entry != NULL) {
        ps_kept_row_t *next = TAILQ_NEXT(entry, in_list);

        if (entry->until < self->clock) {
            delist(self, entry);
            entry->until = 0;
            enlist(self, entry);
        }
        entry = next;
    }
    (void)make_room(self, 0, false);
}

/* ---- own pushes ---------------------------------------------------------- */

static void add_value(ps_type_t type, void *value, const void *delta)
{
    int32_t i32[2];
    int64_t i64[2];
    float f32[2];
    double f64[2];

    switch (type) {
    case PS_TYPE_I32:
        memcpy(&i32[0], value, sizeof *i32);
        memcpy(&i32[1], delta, sizeof *i32);
        i32[0] = (int32_t)((uint32_t)i32[0] + (uint32_t)i32[1]);
        memcpy(value, i32, sizeof *i32);
        break;
    case PS_TYPE_I64:
        memcpy(&i64[0], value, sizeof *i64);
        memcpy(&i64[1], delta, sizeof *i64);
        i64[0] = (int64_t)((uint64_t)i64[0] + (uint64_t)i64[1]);
        memcpy(value, i64, sizeof *i64);
        break;
    case PS_TYPE_F32:
        memcpy(&f32[0], value, sizeof *f32);
        memcpy(&f32[1], delta, sizeof *f32);
        f32[0] += f32[1];
        memcpy(value, f32, sizeof *f32);
        break;
    case PS_TYPE_F64:
    default:
        memcpy(&f64[0], value, sizeof *f64);
        memcpy(&f64[1], delta, sizeof *f64);
        f64[0] += f64[1];
        memcpy(value, f64, sizeof *f64);
        break;
    }
}

/* Adds entries of a sheaf's row to an entry's values from `at` on. */
static void change_row(const ps_shape_t *shape, ps_kept_row_t *entry, size_t at,
                       const ps_sheaf_t *sheaf, size_t first, uint32_t n)
{
    size_t size = shape->value_size;

    entry->spoiled = entry->coming;
    for (uint32_t i = 0; entry->here && i < n; i++) {
        size_t cell = at + sheaf->cols[first + i];

        add_value(shape->type, entry->values + cell * size,
                  (const char *)sheaf->values + (first + i) * size);
    }
}

static void change(ps_kept_t *self, uint32_t number, const ps_sheaf_t *sheaf)
{
    ps_kept_table_t *table = &self->tables[number];
    size_t first = 0;

    for (size_t i = 0; i < sheaf->n_rows; i++) {
        ps_kept_row_t *entry = ps_map_get(&table->rows, sheaf->rows[i]);

        if (entry != NULL) {
            change_row(&table->shape, entry, 0, sheaf, first, sheaf->counts[i]);
        }
        if (table->whole != NULL) {
            change_row(&table->shape, table->whole, (size_t)sheaf->rows[i] * table->shape.n_cols,
                       sheaf, first, sheaf->counts[i]);
        }
        first += sheaf->counts[i];
    }
}

void ps_kept_move(ps_kept_t *self, uint32_t table, const ps_sheaf_t *sheaf)
{
    change(self, table, sheaf);
}

/* Records the changes that take effect at the end of the clock. */
static bool add_open(ps_sums_t *open, const ps_sheaf_t *sheaf)
{
    const char *value = sheaf->values;
    size_t at = 0;

    for (size_t i = 0; i < sheaf->n_rows; i++) {
        uint32_t n = sheaf->whole ? open->shape.n_cols : 1;

        for (uint32_t k = 0; k < sheaf->counts[i]; k += n, at += n) {
            uint32_t col = sheaf->whole ? 0 : sheaf->cols[at];

            if (!ps_sums_add(open, sheaf->rows[i], col, value, n)) {
                return false;
            }
            value += n * open->shape.value_size;
        }
    }
    return true;
}

psd_status_t ps_kept_push(ps_kept_t *self, uint32_t table, const ps_sheaf_t *sheaf,
                          psd_error_t *err)
{
    if (!self->tables[table].shape.adds || self->rule.n_parts > 0) {
        return PSD_OK;
    }
    if (!self->rule.bsp) {
        change(self, table, sheaf);
        return PSD_OK;
    }
    return add_open(&self->tables[table].open, sheaf)
               ? PSD_OK
               : psd_error_set(err, PSD_NOMEM, "no memory for kept rows");
}

/* No row of a table may be read again, nor the rows in flight. */
static void forget(struct ps_kept_rows *list, ps_kept_t *self, uint32_t table)
{
    ps_kept_row_t *entry = TAILQ_FIRST(list);

    while (entry != NULL) {
        ps_kept_row_t *next = TAILQ_NEXT(entry, in_list);

        if (entry->key.table == table && entry->coming) {
            entry->spoiled = true;
            entry->here = false;
        } else if (entry->key.table == table) {
            drop(self, entry);
        }
        entry = next;
    }
}

/* The pushes of a clock to a table take effect. */
static psd_status_t close_table(ps_kept_t *self, uint32_t number, psd_error_t *err)
{
    PSD_AUTO(ps_sheaf_done) ps_sheaf_t sheaf = {.n_rows = 0};
    ps_sums_t *open = &self->tables[number].open;
    psd_status_t rc = ps_sums_bind(open, &sheaf, err);

    if (rc == PSD_OK) {
        change(self, number, &sheaf);
    } else if (rc == PSD_RANGE || rc == PSD_NOT_FINITE) {
        /* Each push is valid by itself, so the server accepts it; the result is
         * fetched. */
        psd_error_clear(err);
        forget(&self->unused, self, number);
        forget(&self->intended, self, number);
        rc = PSD_OK;
    }
    ps_sums_clear(open);
    return rc;
}

psd_status_t ps_kept_mark(ps_kept_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
        if (self->tables[i].open.n_touched > 0) {
            rc = close_table(self, i, err);
        }
    }
    self->clock++;
    end_intents(self);
    return rc;
}

void ps_kept_forget(ps_kept_t *self)
{
    for (uint32_t i = 0; i < self->n_tables; i++) {
        forget(&self->unused, self, i);
        forget(&self->intended, self, i);
        ps_sums_clear(&self->tables[i].open);
    }
}
