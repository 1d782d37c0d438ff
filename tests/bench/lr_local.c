/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lr_local - the calls of examples/lr with the tables in the caller's memory
 *
 * What     Linked with the example in place of libpsd: a job of one worker
 * whose tables are stores of the server's own code, so that the arithmetic, and
 * so the model, is the same to the bit. What psd costs the example is the
 * difference between the two programs. A push is applied and a pull is answered
 * when it is started; nothing is sent, awaited or checked but lengths and rows.
 * Range keys only.
 *          The tables belong to the program, as those of a server do: all of
 *          its clients see them, and the last one that closes ends them.
 * Threads  one
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "client/slices/select.h"
#include "client/requests/spec.h"
#include "model/store/store.h"
#include "psd.h"

#define N_TABLES 8

struct psd_options {
    uint32_t timeout_ms;
};

struct psd_call {
    bool ends_clock;
};

struct psd_table {
    psd_client_t *client; /* that opened it last */
    ps_table_spec_t spec; /* owned */
    ps_store_t *store;    /* owned; NULL: there is no such table */
    ps_payload_t *batch;  /* owned; what a call is about, for the store */
};

struct psd_client {
    uint64_t clock;
};

static struct {
    psd_table_t tables[N_TABLES];
    size_t n_clients; /* that are connected */
} server;

psd_options_t *psd_options_new(void)
{
    return calloc(1, sizeof(psd_options_t));
}

void psd_options_destroy(psd_options_t **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

void psd_options_set_timeout_ms(psd_options_t *self, uint32_t timeout_ms)
{
    self->timeout_ms = timeout_ms;
}

/* Nothing of this is ever waited for. */
void psd_options_set_on_wait(psd_options_t *self, psd_on_wait_t *on_wait, void *user)
{
    (void)self;
    (void)on_wait;
    (void)user;
}

const char *psd_version(void)
{
    return "local";
}

psd_status_t psd_connect(const char *endpoint, const psd_options_t *options,
                         psd_client_t **ret_client, psd_error_t *err)
{
    psd_client_t *client = calloc(1, sizeof(*client));

    (void)endpoint;
    (void)options;
    if (client == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a client");
    }
    server.n_clients++;
    *ret_client = client;
    return PSD_OK;
}

static void table_done(psd_table_t *self)
{
    ps_store_destroy(&self->store);
    ps_payload_destroy(&self->batch);
    ps_table_spec_done(&self->spec);
}

void psd_close(psd_client_t **client_p)
{
    if (*client_p == NULL) {
        return;
    }
    server.n_clients--;
    for (size_t i = 0; server.n_clients == 0 && i < N_TABLES; i++) {
        table_done(&server.tables[i]);
    }
    free(*client_p);
    *client_p = NULL;
}

psd_status_t psd_join(psd_client_t *client, const char *job, int64_t worker, uint32_t n_workers,
                      int32_t max_delay, psd_error_t *err)
{
    (void)client;
    (void)job;
    (void)worker;
    (void)max_delay;
    if (n_workers > 1) {
        return psd_error_set(err, PSD_UNSUPPORTED, "%" PRIu32 " workers; this build has one",
                             n_workers);
    }
    return PSD_OK;
}

psd_status_t psd_fail(psd_client_t *client, const char *reason, uint32_t timeout_ms,
                      psd_error_t *err)
{
    (void)client;
    (void)reason;
    (void)timeout_ms;
    (void)err;
    return PSD_OK;
}

psd_status_t psd_leave(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    (void)client;
    (void)timeout_ms;
    (void)err;
    return PSD_OK;
}

uint32_t psd_first_worker(const psd_client_t *client)
{
    (void)client;
    return 0;
}

uint32_t psd_lost_workers(const psd_client_t *client)
{
    (void)client;
    return 0;
}

psd_status_t psd_clock(psd_client_t *client, psd_error_t *err)
{
    (void)err;
    client->clock++;
    return PSD_OK;
}

uint64_t psd_clock_count(const psd_client_t *client)
{
    return client->clock;
}

psd_status_t psd_barrier(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    return psd_leave(client, timeout_ms, err);
}

psd_status_t psd_wait(psd_client_t *client, psd_ticket_t ticket, uint32_t timeout_ms,
                      psd_error_t *err)
{
    (void)ticket;
    return psd_leave(client, timeout_ms, err);
}

psd_status_t psd_wait_all(psd_client_t *client, uint32_t timeout_ms, psd_error_t *err)
{
    return psd_leave(client, timeout_ms, err);
}

psd_call_t *psd_call_new(void)
{
    return calloc(1, sizeof(psd_call_t));
}

void psd_call_destroy(psd_call_t **self_p)
{
    free(*self_p);
    *self_p = NULL;
}

void psd_call_set_ends_clock(psd_call_t *self, bool ends)
{
    self->ends_clock = ends;
}

static psd_table_t *find(const char *name)
{
    for (size_t i = 0; i < N_TABLES; i++) {
        if (server.tables[i].store != NULL && strcmp(server.tables[i].spec.name, name) == 0) {
            return &server.tables[i];
        }
    }
    return NULL;
}

psd_status_t psd_table_open(psd_client_t *client, const char *name, psd_table_t **ret_table,
                            psd_error_t *err)
{
    psd_table_t *table = find(name);

    if (table == NULL) {
        return psd_error_set(err, PSD_NO_TABLE, "no table \"%s\"", name);
    }
    table->client = client;
    *ret_table = table;
    return PSD_OK;
}

static psd_status_t make(const char *name, const psd_spec_t *spec, psd_table_t **ret_table,
                         psd_error_t *err)
{
    ps_bytes_t none = {0};
    psd_table_t *table = server.tables;
    psd_status_t rc = PSD_OK;

    while (table->store != NULL) {
        table++;
        assert(table < server.tables + N_TABLES);
    }
    rc = ps_table_spec_copy(&spec->spec, &table->spec, err);
    if (rc != PSD_OK) {
        return rc;
    }
    assert(strlen(name) <= PS_NAME_MAX);
    memcpy(table->spec.name, name, strlen(name) + 1);
    ps_table_spec_settle(&table->spec, 1);
    rc = ps_table_spec_check(&table->spec, err);
    if (rc == PSD_OK) {
        rc = ps_store_new(&table->spec, 0, &table->store, err);
    }
    table->batch = ps_payload_new(none, none, none, NULL, NULL);
    if (rc == PSD_OK && table->batch == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for table \"%s\"", name);
    }
    if (rc != PSD_OK) {
        table_done(table);
        return rc;
    }
    *ret_table = table;
    return PSD_OK;
}

psd_status_t psd_table_ensure(psd_client_t *client, const char *name, const psd_spec_t *spec,
                              psd_table_t **ret_table, psd_error_t *err)
{
    psd_status_t rc = psd_table_open(client, name, ret_table, NULL);

    if (rc != PSD_OK) {
        rc = make(name, spec, ret_table, err);
    }
    if (rc == PSD_OK) {
        (*ret_table)->client = client;
    }
    return rc;
}

void psd_table_close(psd_table_t **self_p)
{
    *self_p = NULL;
}

psd_status_t psd_table_drop(psd_client_t *client, const char *name, psd_error_t *err)
{
    psd_table_t *table = NULL;
    psd_status_t rc = psd_table_open(client, name, &table, err);

    if (rc == PSD_OK) {
        table_done(table);
    }
    return rc;
}

const char *psd_table_name(const psd_table_t *self)
{
    return self->spec.name;
}

const char *psd_table_type(const psd_table_t *self)
{
    return ps_type_name(self->spec.type);
}

uint64_t psd_table_rows(const psd_table_t *self)
{
    return self->spec.n_rows;
}

uint32_t psd_table_cols(const psd_table_t *self)
{
    return self->spec.n_cols;
}

/* Says to the store what a call is about. The payload borrows the caller's
 * arrays for the time of the call. */
static psd_status_t describe(psd_table_t *table, const psd_select_t *select, size_t n_values,
                             ps_slice_t *ret_slice, psd_error_t *err)
{
    psd_select_t plain = {0};
    psd_status_t rc = ps_select_check(select, &table->spec, n_values, &plain, err);
    bool listed = plain.rows_are == PS_SELECT_LIST;

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_slice = (ps_slice_t){
        .rows = listed ? PS_ROWS_LIST : PS_ROWS_RANGE,
        .type = table->spec.type,
        .n_rows = plain.n_rows,
        .first_row = plain.first_row,
        .n_cols = table->spec.n_cols,
    };
    table->batch->keys = (ps_bytes_t){0};
    table->batch->n_spans = 0;
    if (listed) {
        table->batch->keys =
            (ps_bytes_t){(const uint8_t *)plain.rows, plain.n_rows * sizeof(*plain.rows)};
    }
    return PSD_OK;
}

psd_status_t psd_push_start(psd_table_t *table, const psd_select_t *select, const void *values,
                            size_t n_values, const psd_call_t *call, psd_ticket_t *ret_ticket,
                            psd_error_t *err)
{
    ps_bytes_t span = {values, n_values * ps_type_size(table->spec.type)};
    ps_slice_t slice = {0};
    psd_status_t rc = describe(table, select, n_values, &slice, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (call != NULL && call->ends_clock) {
        table->client->clock++;
    }
    slice.n_values = n_values;
    table->batch->spans = &span;
    table->batch->n_spans = 1;
    rc = ps_store_push(table->store, &slice, table->batch, err);
    if (rc == PSD_OK) {
        *ret_ticket = 1;
    }
    table->batch->spans = NULL; /* it was borrowed */
    table->batch->n_spans = 0;
    return rc;
}

psd_status_t psd_pull_start(psd_table_t *table, const psd_select_t *select, void *ret_values,
                            size_t n_values, const psd_call_t *call, psd_ticket_t *ret_ticket,
                            psd_error_t *err)
{
    PSD_AUTO(ps_payload_destroy) ps_payload_t *got = NULL;
    ps_slice_t slice = {0};
    ps_slice_t answer = {0};
    uint64_t n_done = 0;
    psd_status_t rc = describe(table, select, n_values, &slice, err);

    (void)call;
    if (rc != PSD_OK || n_values == 0) {
        return rc;
    }
    rc = ps_store_gather(table->store, &slice, table->batch, SIZE_MAX, (ps_room_t){NULL, 0},
                         &answer, &got, &n_done, err);
    if (rc == PSD_OK) {
        assert(n_done == slice.n_rows && got->n_spans == 1);
        memcpy(ret_values, got->spans[0].data, got->spans[0].size);
        *ret_ticket = 1;
    }
    return rc;
}

psd_status_t psd_push(psd_table_t *table, const uint64_t *rows, size_t n_rows, const void *values,
                      size_t n_values, psd_error_t *err)
{
    psd_select_t select = {.rows = rows, .n_rows = n_rows};
    psd_ticket_t ticket = 0;

    return psd_push_start(table, &select, values, n_values, NULL, &ticket, err);
}

psd_status_t psd_pull(psd_table_t *table, const uint64_t *rows, size_t n_rows, void *ret_values,
                      size_t n_values, psd_error_t *err)
{
    psd_select_t select = {.rows = rows, .n_rows = n_rows};
    psd_ticket_t ticket = 0;

    return psd_pull_start(table, &select, ret_values, n_values, NULL, &ticket, err);
}

/* Only tables with hash keys need these. */
psd_status_t psd_fetch(psd_table_t *table, const psd_select_t *select, bool sparse, size_t max_rows,
                       const psd_call_t *call, psd_result_t **ret_result, psd_error_t *err)
{
    (void)select;
    (void)sparse;
    (void)max_rows;
    (void)call;
    (void)ret_result;
    return psd_error_set(err, PSD_UNSUPPORTED, "table \"%s\" has hash keys", table->spec.name);
}

void psd_result_destroy(psd_result_t **self_p)
{
    *self_p = NULL;
}

size_t psd_result_count(const psd_result_t *self)
{
    (void)self;
    return 0;
}

void psd_result_row(const psd_result_t *self, size_t i, uint64_t *ret_row, size_t *ret_n,
                    const void **ret_values, const uint32_t **ret_cols)
{
    (void)self;
    (void)i;
    *ret_row = 0;
    *ret_values = NULL;
    (void)ret_n;
    (void)ret_cols;
}
