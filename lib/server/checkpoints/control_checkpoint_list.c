/* SPDX-License-Identifier: Apache-2.0 */
/* pscli checkpoint list, inspect, drop. */
#include "server/checkpoints/control_checkpoint.h"

#include <string.h>

#include "storage/snapshot/checkpoint_chain.h"

#define TABLES_MAX 65536

typedef struct listing {
    const char *dir;
    const char *making; /* that is being made; "": none is */
    ps_doc_t *array;
} listing_t;

/* What a line of the list shows. */
static bool add_summary(const ps_doc_t *manifest, ps_doc_t *item)
{
    const ps_doc_t *array = NULL;
    const char *consistent = "?";
    const char *parent = NULL;
    uint64_t sum = 0;
    uint64_t created = 0;
    uint64_t bytes = 0;
    size_t n_tables = 0;

    if (ps_doc_get_text(manifest, "consistent", 32, &consistent, NULL) != PSD_OK ||
        ps_doc_get_u64(manifest, "created_unix_ms", 0, UINT64_MAX, &created, NULL) != PSD_OK ||
        ps_chain_parent(manifest, &parent, &sum, NULL) != PSD_OK ||
        ps_doc_get_u64(manifest, "bytes", 0, UINT64_MAX, &bytes, NULL) != PSD_OK) {
        return ps_doc_set_text(item, "state", "damaged");
    }
    if (ps_doc_get_array(manifest, "tables", TABLES_MAX, &array, NULL) == PSD_OK) {
        n_tables = ps_doc_count(array);
    }
    return ps_doc_set_text(item, "state", "whole") &&
           ps_doc_set_text(item, "consistent", consistent) &&
           ps_doc_set_text(item, "since", parent) && ps_doc_set_u64(item, "tables", n_tables) &&
           ps_doc_set_u64(item, "bytes", bytes) && ps_doc_set_u64(item, "created_unix_ms", created);
}

static psd_status_t add_listed(void *context, const char *name, psd_error_t *err)
{
    const listing_t *self = context;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    ps_doc_t *item = ps_doc_append_object(self->array);
    bool fits = item != NULL && ps_doc_set_text(item, "name", name);
    psd_status_t rc = ps_checkpoint_read(ps_disk_real(), self->dir, name, &manifest, NULL, NULL);

    if (rc == PSD_OK) {
        fits = fits && add_summary(manifest, item);
    } else {
        fits = fits && ps_doc_set_text(item, "state",
                                       rc != PSD_NO_CHECKPOINT           ? "damaged"
                                       : strcmp(name, self->making) == 0 ? "being made"
                                                                         : "unfinished");
    }
    return fits ? PSD_OK : ps_control_no_memory(err);
}

psd_status_t ps_control_checkpoint_list(ps_control_t *self, ps_control_request_t *request,
                                        psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    listing_t listing = {.array = ps_doc_add_array(request->reply, "checkpoints")};
    psd_status_t rc = ps_control_checkpoint_dir(self, &dir, err);

    if (rc != PSD_OK || listing.array == NULL) {
        return rc != PSD_OK ? rc : ps_control_no_memory(err);
    }
    listing.dir = (const char *)dir.data;
    listing.making = self->checkpoint.number != 0 && self->checkpoint.kind == PS_CHECKPOINT_CREATE
                         ? self->checkpoint.name
                         : "";
    return ps_checkpoint_list(ps_disk_real(), listing.dir, add_listed, &listing, err);
}

psd_status_t ps_control_checkpoint_inspect(ps_control_t *self, ps_control_request_t *request,
                                           psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    const char *name = NULL;
    psd_status_t rc = ps_control_checkpoint_name(request, &name, err);

    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_read(ps_disk_real(), (const char *)dir.data, name, &manifest, NULL, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return ps_doc_print(manifest, &text) && ps_buffer_append(&text, "", 1) &&
                   ps_doc_set_text(request->reply, "manifest", (const char *)text.data)
               ? PSD_OK
               : ps_control_no_memory(err);
}

/* ---- drop ---- */

typedef struct family {
    const char *dir;
    const char *parent;
} family_t;

static psd_status_t check_child(void *context, const char *name, psd_error_t *err)
{
    const family_t *self = context;
    PSD_AUTO(ps_doc_destroy) ps_doc_t *manifest = NULL;
    const char *parent = "";
    uint64_t sum = 0;
    psd_status_t rc = PSD_OK;

    if (strcmp(name, self->parent) == 0) {
        return PSD_OK;
    }
    rc = ps_checkpoint_read(ps_disk_real(), self->dir, name, &manifest, NULL, err);
    if (rc == PSD_OK) {
        rc = ps_chain_parent(manifest, &parent, &sum, err);
    }
    if (rc == PSD_DAMAGED || rc == PSD_NO_CHECKPOINT) {
        psd_error_clear(err);
        return PSD_OK; /* it needs no parent any more */
    }
    if (rc != PSD_OK) {
        return psd_error_wrap(err, rc, "it is not known whether checkpoint \"%s\" needs \"%s\"",
                              name, self->parent);
    }
    if (strcmp(parent, self->parent) != 0) {
        return PSD_OK;
    }
    return psd_error_set(err, PSD_DENIED,
                         "checkpoint \"%s\" was made since \"%s\" and needs "
                         "its rows; drop that one first",
                         name, parent);
}

/* PSD_OK when no work under way needs it. */
static psd_status_t check_use(ps_control_t *self, const char *name, psd_error_t *err)
{
    const ps_checkpoint_work_t *work = &self->checkpoint;
    const char *parent = "";
    uint64_t sum = 0;

    if (work->number == 0) {
        return PSD_OK;
    }
    if (work->manifest != NULL && ps_chain_parent(work->manifest, &parent, &sum, NULL) != PSD_OK) {
        parent = "";
    }
    return strcmp(work->name, name) == 0 || strcmp(parent, name) == 0
               ? ps_control_checkpoint_is_free(self, err)
               : PSD_OK;
}

psd_status_t ps_control_checkpoint_drop(ps_control_t *self, ps_control_request_t *request,
                                        psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t dir = {0};
    family_t family = {.dir = NULL};
    psd_status_t rc = ps_control_checkpoint_name(request, &family.parent, err);

    if (rc == PSD_OK) {
        rc = check_use(self, family.parent, err);
    }
    if (rc == PSD_OK) {
        rc = ps_control_checkpoint_dir(self, &dir, err);
    }
    if (rc == PSD_OK) {
        family.dir = (const char *)dir.data;
        rc = ps_checkpoint_list(ps_disk_real(), family.dir, check_child, &family, err);
    }
    if (rc == PSD_OK) {
        rc = ps_checkpoint_drop(ps_disk_real(), family.dir, family.parent, err);
    }
    return rc != PSD_OK || (ps_doc_set_text(request->reply, "name", family.parent) &&
                            ps_doc_set_bool(request->reply, "dropped", true))
               ? rc
               : ps_control_no_memory(err);
}
