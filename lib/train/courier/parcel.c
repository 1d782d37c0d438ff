/* SPDX-License-Identifier: Apache-2.0 */
/* Parcels for the courier: one block's pulls, one push, the end of a clock, the
 * request for another slice. */
#include "base/alloc.h"
#include "train/courier/courier.h"

static void destroy_select(psd_select_t **select_p)
{
    psd_select_destroy(select_p);
}

void ps_parcel_destroy(ps_parcel_t **self_p)
{
    ps_parcel_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (size_t i = 0; i < self->n_sheaves; i++) {
        ps_sheaf_done(&self->sheaves[i]);
    }
    ps_free(self->sheaves);
    for (size_t i = 0; i < self->n_cols; i++) {
        ps_free(self->cols[i]);
    }
    ps_free(self->cols);
    ps_free(self->tickets);
    if (self->ahead) {
        ps_cache_done(self->cache);
        ps_free(self->cache);
    }
    ps_free(self);
    *self_p = NULL;
}

void ps_parcel_send(psd_train_t *self, ps_parcel_t **parcel_p)
{
    ps_parcel_t *parcel = *parcel_p;

    TAILQ_INSERT_TAIL(&self->parcels, parcel, in_list);
    self->n_parcels++;
    self->n_pushes += parcel->kind == PS_PARCEL_PUSH ? 1 : 0;
    *parcel_p = NULL;
    ps_train_tell(self);
}

ps_parcel_t *ps_parcel_new_ahead(const psd_train_t *self, psd_error_t *err)
{
    ps_parcel_t *parcel = ps_alloc(1, sizeof *parcel);

    if (parcel != NULL) {
        parcel->kind = PS_PARCEL_PULL;
        parcel->cache = ps_alloc(1, sizeof *parcel->cache);
        parcel->ahead = parcel->cache != NULL;
    }
    if (parcel == NULL || parcel->cache == NULL ||
        ps_cache_init(parcel->cache, self->shapes, self->n_tables, err) != PSD_OK) {
        (void)psd_error_set(err, PSD_NOMEM, "no memory for a pull");
        ps_parcel_destroy(&parcel);
    }
    return parcel;
}

/* Room for one more ticket, which is made before anything is started. */
static psd_status_t reserve_ticket(ps_parcel_t *parcel, psd_error_t *err)
{
    if (!ps_grow(&parcel->tickets, &parcel->tickets_capacity, parcel->n_tickets + 1,
                 sizeof *parcel->tickets)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a ticket");
    }
    return PSD_OK;
}

static psd_status_t start_pull(psd_train_t *self, ps_parcel_t *parcel, size_t table,
                               const psd_select_t *select, void *values, size_t n_values,
                               psd_error_t *err)
{
    psd_status_t rc = reserve_ticket(parcel, err);

    if (rc == PSD_OK) {
        rc = psd_pull_start(self->tables[table], select, values, n_values, self->call,
                            &parcel->tickets[parcel->n_tickets], err);
    }
    if (rc == PSD_OK) {
        parcel->n_tickets++;
    }
    return rc;
}

/* The columns of a table's elements; the parcel's, as pulls that have not ended
 * read them. NULL: no memory. */
static const uint32_t *add_cols(ps_parcel_t *parcel, const ps_cache_table_t *table)
{
    uint32_t *cols = NULL;

    if (!ps_grow(&parcel->cols, &parcel->cols_capacity, parcel->n_cols + 1, sizeof *parcel->cols)) {
        return NULL;
    }
    cols = ps_alloc_raw(table->n_elements, sizeof *cols);
    for (size_t i = 0; cols != NULL && i < table->n_elements; i++) {
        cols[i] = table->elements[i].col;
    }
    parcel->cols[parcel->n_cols] = cols;
    parcel->n_cols += cols != NULL ? 1 : 0;
    return cols;
}

static psd_status_t pull_elements(psd_train_t *self, ps_parcel_t *parcel, size_t number,
                                  psd_select_t *select, psd_error_t *err)
{
    const ps_cache_table_t *table = &parcel->cache->tables[number];
    const uint32_t *cols = NULL;
    psd_status_t rc = PSD_OK;

    if (table->n_groups == 0) {
        return PSD_OK;
    }
    cols = add_cols(parcel, table);
    if (cols == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for columns");
    }
    for (size_t i = 0; rc == PSD_OK && i < table->n_groups; i++) {
        const ps_element_group_t *group = &table->groups[i];

        psd_select_rows(select, table->element_rows.rows + group->first_row, group->n_rows);
        psd_select_cols(select, cols + group->first_value, group->n_cols);
        rc =
            start_pull(self, parcel, number, select,
                       (char *)table->element_values + group->first_value * table->shape.value_size,
                       group->n_rows * group->n_cols, err);
    }
    self->counts.cells_pulled += table->n_elements;
    return rc;
}

static psd_status_t pull_table(psd_train_t *self, ps_parcel_t *parcel, size_t number,
                               psd_error_t *err)
{
    const ps_cache_table_t *table = &parcel->cache->tables[number];
    PSD_AUTO(destroy_select) psd_select_t *select = psd_select_new();
    uint64_t n_rows = table->n_missing;
    psd_status_t rc = PSD_OK;

    if (select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a selection");
    }
    if (table->whole) {
        psd_select_all_rows(select);
    } else {
        psd_select_rows(select, table->rows.rows, table->n_missing);
    }
    if (n_rows > 0) {
        rc = start_pull(self, parcel, number, select, table->values,
                        (size_t)n_rows * table->shape.n_cols, err);
        self->counts.rows_pulled += n_rows;
    }
    return rc == PSD_OK ? pull_elements(self, parcel, number, select, err) : rc;
}

static psd_status_t push_sheaf(psd_train_t *self, ps_parcel_t *parcel, size_t number,
                               psd_error_t *err)
{
    const ps_sheaf_t *sheaf = &parcel->sheaves[number];
    PSD_AUTO(destroy_select) psd_select_t *select = NULL;
    psd_status_t rc = PSD_OK;

    if (sheaf->n_values == 0) {
        return PSD_OK;
    }
    select = psd_select_new();
    if (select == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a selection");
    }
    psd_select_rows(select, sheaf->rows, sheaf->n_rows);
    if (!sheaf->whole) {
        psd_select_sparse(select, sheaf->counts, sheaf->cols);
    }
    rc = reserve_ticket(parcel, err);
    if (rc == PSD_OK) {
        rc = psd_push_start(self->tables[number], select, sheaf->values, sheaf->n_values,
                            self->call, &parcel->tickets[parcel->n_tickets], err);
    }
    if (rc == PSD_OK) {
        parcel->n_tickets++;
        self->counts.entries_pushed += sheaf->n_values;
    }
    return rc;
}

psd_status_t ps_parcel_start(psd_train_t *self, ps_parcel_t *parcel, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    switch (parcel->kind) {
    case PS_PARCEL_PULL:
        for (size_t i = 0; rc == PSD_OK && i < self->n_tables; i++) {
            rc = pull_table(self, parcel, i, err);
        }
        break;
    case PS_PARCEL_PUSH:
        for (size_t i = 0; rc == PSD_OK && i < parcel->n_sheaves; i++) {
            rc = push_sheaf(self, parcel, i, err);
        }
        break;
    case PS_PARCEL_SLICE:
        ps_slice_start(self);
        break;
    case PS_PARCEL_CLOCK:
    default:
        rc = psd_clock(self->client, err);
        break;
    }
    return rc;
}
