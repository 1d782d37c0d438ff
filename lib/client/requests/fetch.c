/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows whose number or length only the server knows.
 *
 *   rows known, dense     an ordinary pull into the result
 *   sparse                answers are gathered; parts of a row that lie in
 *                         several column slices are put together
 *   rows of a hash table  each partition is asked for the rows present in its
 *                         part of the key space; where rows are split by
 *                         columns, only for their keys, and they are pulled
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/requests/call.h"
#include "client/requests/fetch.h"
#include "client/requests/result.h"
#include "client/requests/wait.h"
#include "model/tables/partition.h"

#define QUOTA_MAX ((size_t)1 << 40) /* rows */

typedef struct fetch {
    psd_table_t *table;
    psd_call_t options;
    psd_select_t select; /* plain */
    uint64_t deadline_ms;
    uint32_t timeout_ms; /* that deadline_ms was made of */
    bool sparse;
    size_t max_rows;      /* SIZE_MAX: no bound */
    bool is_about;        /* max_rows: more are welcome, if they need no further request */
    psd_result_t *result; /* owned */
} fetch_t;

static void fetch_done(fetch_t *self)
{
    psd_result_destroy(&self->result);
}

static psd_status_t no_memory(psd_error_t *err)
{
    return psd_error_set(err, PSD_NOMEM, "no memory to fetch");
}

static psd_status_t new_result(fetch_t *self, size_t max_rows, bool sparse, psd_error_t *err)
{
    psd_result_destroy(&self->result);
    return ps_result_new(self->table->spec.type, sparse, max_rows, &self->result, err);
}

/* Sends the cuts and waits for their answers. */
static psd_status_t run(fetch_t *self, ps_cuts_t *cuts, void *values, psd_error_t *err)
{
    uint64_t now_ms = ps_now_ms();
    ps_call_t call = {.table = self->table,
                      .kind = PS_REQUEST_PULL,
                      .options = &self->options,
                      .ret_values = values,
                      .result = values == NULL ? self->result : NULL};
    ps_ticket_t *ticket = NULL;
    psd_status_t rc = PSD_OK;

    self->options.has_timeout = true;
    self->options.timeout_ms =
        self->deadline_ms > now_ms ? (uint32_t)(self->deadline_ms - now_ms) : 0;
    rc = ps_call_start_cuts(&call, cuts, &ticket, err);
    if (rc == PSD_OK) {
        rc = ps_ticket_wait(self->table->client, ticket, UINT64_MAX, err);
    }
    return rc;
}

/* ---- rows that are known ------------------------------------------------- */

static int compare_keys(const void *left, const void *right)
{
    uint64_t a = 0;
    uint64_t b = 0;

    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return a < b ? -1 : a > b;
}

/* Ascending and each once; returns how many. */
static size_t sort_keys(uint64_t *keys, size_t n)
{
    size_t kept = 0;

    if (n == 0) {
        return 0;
    }
    qsort(keys, n, sizeof *keys, compare_keys);
    for (size_t i = 1; i < n; i++) {
        if (keys[i] != keys[kept]) {
            keys[++kept] = keys[i];
        }
    }
    return kept + 1;
}

/* Makes the list of rows a sorted one in memory of its own. */
static psd_status_t own_keys(fetch_t *self, uint64_t **ret_keys, psd_error_t *err)
{
    psd_select_t *select = &self->select;
    uint64_t *keys = NULL;

    if (select->rows_are == PS_SELECT_LIST) {
        keys = ps_alloc_raw(select->n_rows, sizeof *keys);
        if (keys == NULL) {
            return no_memory(err);
        }
        if (select->n_rows > 0) {
            memcpy(keys, select->rows, select->n_rows * sizeof *keys);
        }
        select->n_rows = sort_keys(keys, select->n_rows);
        select->rows = keys;
    }
    if (select->n_rows > self->max_rows) {
        select->n_rows = self->max_rows;
    }
    *ret_keys = keys;
    return PSD_OK;
}

static psd_status_t cut_known(const fetch_t *self, bool places, ps_cuts_t *cuts, psd_error_t *err)
{
    ps_cut_args_t args = {.spec = &self->table->spec,
                          .select = &self->select,
                          .sparse_answer = self->sparse,
                          .places = places,
                          .limit_bytes = ps_call_slice_bytes(self->table->client)};

    return ps_cut(&args, cuts, err);
}

/* Rows named by self->select, sorted, as in an ordinary pull. */
static psd_status_t fetch_dense(fetch_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_cuts_done) ps_cuts_t cuts = {.n = 0};
    const psd_select_t *select = &self->select;
    size_t width = ps_select_width(select, &self->table->spec);
    size_t value_size = ps_type_size(self->table->spec.type);
    size_t size = 0;
    psd_status_t rc = new_result(self, SIZE_MAX, false, err);

    if (rc != PSD_OK || select->n_rows == 0) {
        return rc;
    }
    if (__builtin_mul_overflow(select->n_rows, width, &size) ||
        __builtin_mul_overflow(size, value_size, &size) ||
        !ps_buffer_reserve(&self->result->values, size)) {
        return no_memory(err);
    }
    rc = cut_known(self, true, &cuts, err);
    if (rc == PSD_OK) {
        rc = run(self, &cuts, self->result->values.data, err);
    }
    self->result->values.size = size;
    for (size_t i = 0; rc == PSD_OK && i < select->n_rows; i++) {
        rc = ps_result_add_row(self->result, ps_select_row(select, i), i * width, width, err);
    }
    return rc;
}

/* ---- rows that only the server knows ------------------------------------- */

/* What was fetched of a partition: its rows before `next`, or all. */
typedef struct walk {
    uint64_t next;
    bool is_over;
} walk_t;

/* `quota` rows of a partition from walk->next to `last`, or some more. */
static psd_status_t walk_on(fetch_t *self, walk_t *walk, uint32_t partition, uint64_t last,
                            size_t quota, bool keys_only, psd_error_t *err)
{
    PSD_AUTO(ps_cuts_done) ps_cuts_t cuts = {.n = 0};
    psd_result_t *result = self->result;
    /* All keys are one more than a range can have. */
    uint64_t until = walk->next == 0 && last == UINT64_MAX ? last - 1 : last;
    psd_select_t select = self->select;
    const ps_present_args_t args = {.spec = &self->table->spec,
                                    .select = &select,
                                    .sparse = self->sparse,
                                    .keys_only = keys_only};
    psd_status_t rc = PSD_OK;

    select.all_rows = false;
    select.first_row = walk->next;
    select.n_rows = until - walk->next + 1;
    result->max_rows = result->n_rows + quota;
    rc = ps_cut_present(&args, partition, &cuts, err);
    if (rc == PSD_OK && cuts.n > 0) {
        rc = run(self, &cuts, NULL, err);
    }
    if (rc == PSD_OK && ps_result_is_full(result)) {
        until = result->rows[result->n_rows - 1].key;
    }
    walk->is_over = until == last;
    walk->next = until + 1;
    return rc;
}

/* Of the rows in the result those that no row can precede that is still to come: how many
 * there are. */
static size_t n_settled(const psd_result_t *result, const walk_t *walks, uint32_t n_walks)
{
    uint64_t before = UINT64_MAX;
    bool all = true;
    size_t n = 0;

    for (uint32_t i = 0; i < n_walks; i++) {
        if (!walks[i].is_over) {
            before = walks[i].next < before ? walks[i].next : before;
            all = false;
        }
    }
    for (size_t i = 0; i < result->n_rows; i++) {
        n += all || result->rows[i].key < before ? 1 : 0;
    }
    return n;
}

/* The first max_rows rows of a table whose partitions all have rows of any range: asks
 * each for its share, until no partition can have an earlier row. */
static psd_status_t fetch_scattered(fetch_t *self, bool keys_only, psd_error_t *err)
{
    uint32_t n_walks = self->table->spec.n_partitions;
    PSD_AUTO(ps_free_at) walk_t *walks = ps_alloc(n_walks, sizeof *walks);
    const psd_select_t *select = &self->select;
    uint64_t first = select->all_rows ? 0 : select->first_row;
    uint64_t last = select->all_rows ? UINT64_MAX : first + select->n_rows - 1;
    uint32_t n_open = n_walks;
    size_t n = 0;
    psd_status_t rc = walks == NULL ? no_memory(err) : PSD_OK;

    for (uint32_t i = 0; rc == PSD_OK && i < n_walks; i++) {
        walks[i].next = first;
    }
    while (rc == PSD_OK && n < self->max_rows && n_open > 0) {
        size_t share = (self->max_rows - n) / n_open;
        size_t quota = (share < QUOTA_MAX ? share + share / 8 : QUOTA_MAX) + 8;

        n_open = 0;
        for (uint32_t i = 0; rc == PSD_OK && i < n_walks; i++) {
            if (!walks[i].is_over) {
                self->deadline_ms =
                    self->is_about ? ps_now_ms() + self->timeout_ms : self->deadline_ms;
                rc = walk_on(self, &walks[i], i, last, quota, keys_only, err);
                n_open += walks[i].is_over ? 0 : 1;
            }
        }
        n = n_settled(self->result, walks, n_walks);
    }
    if (self->is_about) {
        self->max_rows = n;
    }
    return rc;
}

/* The rows present in the selected range of a hash table. With a bound, partitions that
 * have ranges of keys are asked one after the other, until there are enough. */
static psd_status_t fetch_present(fetch_t *self, bool keys_only, psd_error_t *err)
{
    PSD_AUTO(ps_cuts_done) ps_cuts_t cuts = {.n = 0};
    const ps_table_spec_t *spec = &self->table->spec;
    const ps_present_args_t args = {
        .spec = spec, .select = &self->select, .sparse = self->sparse, .keys_only = keys_only};
    bool stepwise = self->result->max_rows != SIZE_MAX;
    psd_status_t rc = PSD_OK;

    if (!self->select.all_rows && self->select.n_rows == 0) {
        return PSD_OK;
    }
    if (stepwise && spec->partition_by == PS_PARTITION_BY_HASH) {
        return fetch_scattered(self, keys_only, err);
    }
    for (uint32_t i = 0; rc == PSD_OK && i < spec->n_partitions; i++) {
        if (ps_result_is_full(self->result)) {
            return PSD_OK;
        }
        rc = ps_cut_present(&args, i, &cuts, err);
        if (rc == PSD_OK && stepwise) {
            rc = run(self, &cuts, NULL, err);
            ps_cuts_done(&cuts);
        }
    }
    if (rc == PSD_OK && cuts.n > 0) {
        rc = run(self, &cuts, NULL, err);
    }
    return rc;
}

/* Dense rows of a hash table that are split by columns: first which there are,
 * then the rows. */
static psd_status_t fetch_present_dense(fetch_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint64_t *keys = NULL;
    psd_status_t rc = new_result(self, SIZE_MAX, false, err);
    size_t n = 0;

    if (rc == PSD_OK) {
        rc = fetch_present(self, true, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    n = self->result->n_rows;
    keys = ps_alloc_raw(n, sizeof *keys);
    if (keys == NULL) {
        return no_memory(err);
    }
    for (size_t i = 0; i < n; i++) {
        keys[i] = self->result->rows[i].key;
    }
    n = sort_keys(keys, n);
    self->select.all_rows = false;
    self->select.rows_are = PS_SELECT_LIST;
    self->select.rows = keys;
    self->select.n_rows = n < self->max_rows ? n : self->max_rows;
    return fetch_dense(self, err);
}

static psd_status_t fetch_gathered(fetch_t *self, bool known, psd_error_t *err)
{
    PSD_AUTO(ps_cuts_done) ps_cuts_t cuts = {.n = 0};
    bool splits = self->table->spec.n_col_slices > 1;
    psd_status_t rc = new_result(self, splits ? SIZE_MAX : self->max_rows, self->sparse, err);

    if (rc == PSD_OK && !known) {
        rc = fetch_present(self, false, err);
    } else if (rc == PSD_OK) {
        rc = cut_known(self, false, &cuts, err);
        if (rc == PSD_OK && cuts.n > 0) {
            rc = run(self, &cuts, NULL, err);
        }
    }
    if (self->is_about && splits && !known) {
        self->max_rows = SIZE_MAX; /* all rows have come: parts of a row lie anywhere */
    }
    if (rc == PSD_OK) {
        rc = ps_result_finish(self->result, splits, self->max_rows, err);
    }
    return rc;
}

static psd_status_t fetch(fetch_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint64_t *keys = NULL;
    const ps_table_spec_t *spec = &self->table->spec;
    bool known = spec->keys == PS_KEYS_RANGE || self->select.rows_are == PS_SELECT_LIST;

    if (known) {
        psd_status_t rc = own_keys(self, &keys, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    if (self->sparse) {
        return fetch_gathered(self, known, err);
    }
    if (known) {
        return fetch_dense(self, err);
    }
    return spec->n_col_slices > 1 ? fetch_present_dense(self, err)
                                  : fetch_gathered(self, known, err);
}

static psd_status_t check(const fetch_t *self, const psd_select_t *select, psd_error_t *err)
{
    if (select == NULL || select->counts != NULL || select->lengths != NULL) {
        return psd_error_set(err, PSD_INVALID, "select is NULL, or of sparse rows to be pushed");
    }
    if (self->sparse && select->cols_are != PS_COLS_ALL) {
        return psd_error_set(err, PSD_INVALID,
                             "sparse rows come with all of their columns; "
                             "allowed: all columns selected");
    }
    return PSD_OK;
}

static psd_status_t fetch_by(psd_table_t *table, const psd_select_t *select, bool sparse,
                             size_t max_rows, bool is_about, const psd_call_t *call,
                             psd_result_t **ret_result, psd_error_t *err)
{
    PSD_AUTO(fetch_done)
    fetch_t self = {.table = table,
                    .sparse = sparse,
                    .max_rows = max_rows == 0 ? SIZE_MAX : max_rows,
                    .is_about = is_about,
                    .timeout_ms = table->client->options.timeout_ms};
    psd_status_t rc = check(&self, select, err);

    if (call != NULL) {
        self.options = *call;
        self.timeout_ms = call->has_timeout ? call->timeout_ms : self.timeout_ms;
    }
    self.deadline_ms = ps_now_ms() + self.timeout_ms;
    if (rc == PSD_OK) {
        rc = ps_select_check_places(select, &table->spec, &self.select, err);
    }
    if (rc == PSD_OK) {
        rc = fetch(&self, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "fetch from table \"%s\"", table->spec.name);
    }
    *ret_result = self.result;
    self.result = NULL;
    return PSD_OK;
}

psd_status_t psd_fetch(psd_table_t *table, const psd_select_t *select, bool sparse, size_t max_rows,
                       const psd_call_t *call, psd_result_t **ret_result, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    return fetch_by(table, select, sparse, max_rows, false, call, ret_result, err);
}

psd_status_t ps_fetch_about(psd_table_t *table, const psd_select_t *select, bool sparse,
                            size_t n_rows, const psd_call_t *call, psd_result_t **ret_result,
                            psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    return fetch_by(table, select, sparse, n_rows, true, call, ret_result, err);
}
