/* SPDX-License-Identifier: Apache-2.0 */
/* The configuration: client, tables, initial values. */
#include <inttypes.h>

#include "base/alloc.h"
#include "client/requests/table.h"
#include "train/courier/courier.h"
#include "train/setup/setup.h"

static psd_status_t check_config(const psd_train_t *self, psd_error_t *err)
{
    if (self->phase == PS_TRAIN_CONFIG) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_INVALID,
                         "this is done between psd_train_config_begin and "
                         "psd_train_config_end");
}

psd_status_t ps_train_connect(const psd_train_t *self, psd_client_t **ret_client, psd_error_t *err)
{
    psd_options_t *options = psd_options_new();
    psd_status_t rc = PSD_OK;

    if (options == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    psd_options_set_timeout_ms(options, self->options.timeout_ms);
    rc = psd_connect(self->options.endpoint, options, ret_client, err);
    psd_options_destroy(&options);
    return rc;
}

psd_status_t psd_train_config_begin(psd_train_t *self, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    const ps_train_options_t *options = &self->options;
    uint64_t n_clocks = 0;
    psd_status_t rc = PSD_OK;

    if (self->phase != PS_TRAIN_NEW) {
        return psd_error_set(err, PSD_INVALID, "the configuration has begun already");
    }
    rc = ps_train_options_environment(&self->options, err);
    if (rc == PSD_OK) {
        rc = ps_outer_check_options(options, err);
    }
    if (rc == PSD_OK) {
        rc = ps_slice_check(self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_train_connect(self, &self->client, err);
    }
    if (rc == PSD_OK) {
        rc = ps_train_agree(self, &self->n_workers, &self->max_delay, err);
    }
    if (rc == PSD_OK) {
        rc = ps_outer_check_delay(self, err);
    }
    if (rc == PSD_OK) {
        rc = psd_join(self->client, options->job, options->worker, options->n_workers,
                      self->max_delay, err);
    }
    if (rc == PSD_OK) {
        rc = ps_slice_open(self, err);
    }
    if (rc != PSD_OK) {
        psd_close(&self->client);
        return rc;
    }
    n_clocks = psd_clock_count(self->client);
    self->worker = psd_worker(self->client);
    self->late = n_clocks > 0;
    self->first_clock = self->late ? n_clocks - 1 : 0; /* one configured it */
    if (options->outer_every > 0) {
        self->first_clock *= options->outer_every;
    }
    self->phase = PS_TRAIN_CONFIG;
    return PSD_OK;
}

psd_status_t psd_train_table(psd_train_t *self, const char *name, const psd_spec_t *spec,
                             uint32_t *ret_table, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_table_t *table = NULL;
    psd_status_t rc = check_config(self, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (self->n_tables == PS_TRAIN_TABLES_MAX) {
        return psd_error_set(err, PSD_LIMIT, "table \"%.80s\" is one too many; allowed: %d", name,
                             PS_TRAIN_TABLES_MAX);
    }
    rc = psd_table_ensure(self->client, name, spec, &table, err);
    if (rc == PSD_OK) {
        rc = ps_outer_check_table(self, table, err);
    }
    if (rc != PSD_OK) {
        psd_table_close(&table);
        return rc;
    }
    self->tables[self->n_tables] = table;
    self->shapes[self->n_tables] = (ps_shape_t){.n_rows = psd_table_rows(table),
                                                .n_cols = psd_table_cols(table),
                                                .type = table->spec.type,
                                                .value_size = psd_table_value_size(table),
                                                .adds = table->spec.updater.kind == PS_UPDATER_ADD,
                                                .sparse = table->spec.row_format == PS_ROW_SPARSE};
    *ret_table = self->n_tables++;
    return PSD_OK;
}

psd_status_t psd_train_add_to_server(psd_train_t *self, uint32_t table, const uint64_t *rows,
                                     size_t n_rows, const void *values, size_t n_values,
                                     psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_status_t rc = check_config(self, err);
    bool adds = false;

    if (rc != PSD_OK) {
        return rc;
    }
    if (table >= self->n_tables) {
        return psd_error_set(err, PSD_INVALID, "table is %" PRIu32 "; there are %" PRIu32, table,
                             self->n_tables);
    }
    rc = ps_first_check(self, table, false, err);
    if (rc == PSD_OK) {
        rc = ps_first_begin(self, table, &adds, err);
    }
    if (rc != PSD_OK || !adds) {
        return rc;
    }
    rc = psd_push(self->tables[table], rows, n_rows, values, n_values, err);
    if (rc != PSD_OK) {
        self->first[table].partly = true;
    }
    return rc;
}

psd_status_t psd_train_config_end(psd_train_t *self, psd_error_t *err)
{
    if (ps_train_enter(self, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    uint32_t timeout_ms = self->options.timeout_ms;
    psd_status_t rc = check_config(self, err);

    /* Acknowledged adds are applied whatever happens to this worker: at once,
     * or under BSP when the clock closes. */
    if (rc == PSD_OK) {
        rc = psd_flush(self->client, timeout_ms, err);
    }
    if (rc == PSD_OK) {
        rc = ps_first_end(self, err);
    }
    /* When all workers have come, their values have. They did not wait for a
     * worker that joins again: the first clock has ended without it. */
    if (rc == PSD_OK && psd_clock_count(self->client) == 0) {
        rc = psd_clock(self->client, err);
    }
    if (rc == PSD_OK && !self->late) {
        rc = psd_barrier(self->client, timeout_ms, err);
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "end the configuration");
    }
    ps_first_close(self);
    self->phase = PS_TRAIN_READY;
    return PSD_OK;
}

psd_client_t *psd_train_client(psd_train_t *self)
{
    return self->phase == PS_TRAIN_RUNNING ? NULL : self->client;
}

psd_table_t *psd_train_table_handle(psd_train_t *self, uint32_t table)
{
    return self->phase == PS_TRAIN_RUNNING || table >= self->n_tables ? NULL : self->tables[table];
}

uint32_t psd_train_worker(const psd_train_t *self)
{
    return self->worker;
}

uint32_t psd_train_workers(const psd_train_t *self)
{
    return self->n_workers;
}

int32_t psd_train_max_delay(const psd_train_t *self)
{
    return self->max_delay;
}
