/* SPDX-License-Identifier: Apache-2.0 */
/* Pushes whose values are written in place. */
#include "client/requests/draft.h"

#include <assert.h>

#include "base/alloc.h"
#include "client/requests/call.h"
#include "model/tables/partition.h"

static void free_memory(psd_draft_t *self)
{
    ps_block_done(&self->block);
    ps_free(self->memory);
    self->memory = NULL;
}

static void destroy(psd_draft_t *self)
{
    if (self->client != NULL) {
        TAILQ_REMOVE(&self->client->drafts, self, in_list);
    }
    free_memory(self);
    ps_free(self);
}

void ps_drafts_sweep(psd_client_t *client)
{
    psd_draft_t *next = NULL;

    for (psd_draft_t *draft = TAILQ_FIRST(&client->drafts); draft != NULL; draft = next) {
        next = TAILQ_NEXT(draft, in_list);
        if (draft->is_committed &&
            atomic_load_explicit(&draft->n_holders, memory_order_acquire) == 0) {
            destroy(draft);
        }
    }
}

void ps_drafts_done(psd_client_t *client)
{
    ps_drafts_sweep(client);
    while (!TAILQ_EMPTY(&client->drafts)) {
        psd_draft_t *draft = TAILQ_FIRST(&client->drafts);

        if (draft->is_committed) { /* its holders are threads of the parent's */
            assert(ps_client_is_forked(client));
            destroy(draft);
            continue;
        }
        TAILQ_REMOVE(&client->drafts, draft, in_list);
        draft->client = NULL;
        free_memory(draft);
    }
}

/* The number of values of the selection; SIZE_MAX: more than possible. The
 * selection is not checked yet. */
static size_t count_values(const psd_select_t *select, const ps_table_spec_t *spec)
{
    size_t n = 0;

    const uint32_t *counts = select->counts != NULL ? select->counts : select->lengths;

    if (counts == NULL) {
        return __builtin_mul_overflow(select->n_rows, ps_select_width(select, spec), &n) ? SIZE_MAX
                                                                                         : n;
    }
    for (size_t i = 0; i < select->n_rows; i++) {
        if (__builtin_add_overflow(n, counts[i], &n)) {
            return SIZE_MAX;
        }
    }
    return n;
}

/* A block of the lane to the first row's partition, else of the heap. */
static bool take_memory(psd_draft_t *self, size_t size)
{
    psd_client_t *client = self->client;
    const ps_table_spec_t *spec = &self->table->spec;
    uint64_t link = 0;
    uint32_t partition = 0;

    if (size > 0 && self->select.n_rows > 0) {
        partition = ps_row_slice_of(spec, ps_select_row(&self->select, 0)) * spec->n_col_slices;
    }
    if (ps_session_link_of(client->session, self->table->known->id, partition, &link) &&
        link < client->n_links && client->broken == PSD_OK &&
        ps_socket_take_block(client->links[link].socket, size, &self->block)) {
        return true;
    }
    self->memory = ps_alloc_raw(size == 0 ? 1 : size, 1);
    return self->memory != NULL;
}

/* Lengths stay as they are: the commit spells them out. */
static psd_status_t begin(psd_draft_t *self, const psd_select_t *select, psd_error_t *err)
{
    PSD_AUTO(ps_free_at) uint32_t *cols = NULL;
    const ps_table_spec_t *spec = &self->table->spec;
    psd_select_t plain = {.all_rows = false};
    psd_select_t spelled = {.all_rows = false};
    psd_status_t rc = ps_select_check_places(select, spec, &plain, err);

    if (rc == PSD_OK) {
        self->n_values = count_values(&plain, spec);
        spelled = plain;
        rc = ps_select_spell(&spelled, spec, self->n_values, &cols, err);
    }
    if (rc == PSD_OK) {
        rc = ps_select_check(&spelled, spec, self->n_values, &self->select, err);
        self->select = plain;
    }
    if (rc == PSD_OK && !take_memory(self, self->n_values * ps_type_size(spec->type))) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for %zu values", self->n_values);
    }
    return rc;
}

psd_status_t psd_push_begin(psd_table_t *table, const psd_select_t *select, psd_draft_t **ret_draft,
                            void **ret_values, size_t *ret_n_values, psd_error_t *err)
{
    if (ps_client_enter(table->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }

    psd_client_t *client = table->client;
    psd_draft_t *self = NULL;
    psd_status_t rc = PSD_OK;

    if (select == NULL) {
        return psd_error_set(err, PSD_INVALID, "select is NULL");
    }
    ps_drafts_sweep(client);
    self = ps_alloc(1, sizeof *self);
    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a push");
    }
    self->client = client;
    self->table = table;
    TAILQ_INSERT_TAIL(&client->drafts, self, in_list);
    rc = begin(self, select, err);
    if (rc != PSD_OK) {
        destroy(self);
        return psd_error_wrap(err, rc, "push to table \"%s\"", table->spec.name);
    }
    *ret_draft = self;
    *ret_values = self->memory != NULL ? self->memory : self->block.data;
    *ret_n_values = self->n_values;
    return PSD_OK;
}

psd_status_t psd_push_commit(psd_draft_t **draft_p, const psd_call_t *call,
                             psd_ticket_t *ret_ticket, psd_error_t *err)
{
    psd_draft_t *self = *draft_p;
    ps_call_t started = {.kind = PS_REQUEST_PUSH, .options = call, .borrow = true, .draft = self};
    psd_status_t rc = PSD_OK;

    psd_error_clear(err);
    if (self->client == NULL) {
        return psd_error_set(err, PSD_CLOSED, "client is closed");
    }
    if (ps_client_enter(self->client, err) != PSD_OK) {
        return PSD_CLOSED;
    }
    started.table = self->table;
    started.select = &self->select;
    started.values = self->memory != NULL ? self->memory : self->block.data;
    started.n_values = self->n_values;
    rc = ps_call_start(&started, ret_ticket, err);
    if (rc == PSD_OK) {
        self->is_committed = true;
        *draft_p = NULL;
    }
    return rc;
}

void psd_push_abandon(psd_draft_t **draft_p)
{
    if (draft_p != NULL && *draft_p != NULL) {
        destroy(*draft_p);
        *draft_p = NULL;
    }
}
