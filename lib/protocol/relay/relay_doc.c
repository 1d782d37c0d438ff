/* SPDX-License-Identifier: Apache-2.0 */
/* Plans in JSON, and what of them a relay wants to know. */
#include "protocol/relay/relay_doc.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/relay/relay.h"

#define KEY_DIGITS 64 /* of a public key, base 16 */

void ps_relay_facts_done(ps_relay_facts_t *self)
{
    ps_free(self->members);
    ps_free(self->parents);
    *self = (ps_relay_facts_t){.version = 0};
}

static bool is_key(const char *digits)
{
    return strlen(digits) == KEY_DIGITS && strspn(digits, "0123456789abcdef") == KEY_DIGITS;
}

bool ps_relay_endpoint_is_good(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  ".:-_[]";
    static const char prefix[] = "tcp://";
    size_t address = strcspn(text, "#");

    return address > strlen(prefix) && strlen(text) <= PS_ENDPOINT_MAX &&
           strncmp(text, prefix, strlen(prefix)) == 0 &&
           strspn(text + strlen(prefix), allowed) == address - strlen(prefix) &&
           (text[address] == '\0' || is_key(text + address + 1));
}

/* ---- writing ---- */

static bool add_member(const ps_relay_member_t *member, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL && ps_doc_set_u64(doc, "worker", member->worker) &&
           ps_doc_set_u64(doc, "joins", member->joins) &&
           ps_doc_set_u64(doc, "members", member->members) &&
           ps_doc_set_text(doc, "relay", member->relay);
}

bool ps_relay_facts_to_doc(const ps_relay_facts_t *self, ps_doc_t *doc)
{
    ps_doc_t *members = ps_doc_add_array(doc, "workers");
    ps_doc_t *parents = ps_doc_add_array(doc, "parents");
    bool fits = members != NULL && parents != NULL && ps_doc_set_u64(doc, "plan", self->version) &&
                ps_doc_set_u64(doc, "clock", self->clock) &&
                ps_doc_set_id(doc, "key", &self->key) &&
                ps_doc_set_u64(doc, "colours", self->n_colours);

    for (size_t i = 0; fits && i < self->n_members; i++) {
        fits = add_member(&self->members[i], members);
    }
    for (size_t i = 0; fits && i < self->n_members * self->n_colours; i++) {
        uint32_t parent = self->parents[i];

        fits = ps_doc_append_u64(parents, parent == PS_OVERLAY_NODES ? 0 : UINT64_C(1) + parent);
    }
    return fits;
}

/* ---- reading ---- */

static psd_status_t read_number(const ps_doc_t *doc, const char *key, uint64_t min, uint64_t max,
                                uint32_t *ret, psd_error_t *err)
{
    uint64_t value = 0;
    psd_status_t rc = ps_doc_get_u64(doc, key, min, max, &value, err);

    *ret = (uint32_t)value;
    return rc;
}

static psd_status_t read_member(const ps_doc_t *doc, ps_relay_member_t *ret, psd_error_t *err)
{
    const char *relay = "";
    psd_status_t rc = read_number(doc, "worker", 0, PS_COMBINE_POSITIONS - 1, &ret->worker, err);

    if (rc == PSD_OK) {
        rc = read_number(doc, "joins", 0, UINT32_MAX, &ret->joins, err);
    }
    if (rc == PSD_OK) {
        rc = read_number(doc, "members", 1, UINT32_MAX, &ret->members, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_text(doc, "relay", PS_ENDPOINT_MAX, &relay, err);
    }
    if (rc == PSD_OK && !ps_relay_endpoint_is_good(relay)) {
        rc = psd_error_set(err, PSD_PROTO, "worker %u has its relay at no address of tcp",
                           ret->worker);
    }
    if (rc == PSD_OK) {
        (void)snprintf(ret->relay, sizeof ret->relay, "%s", relay);
    }
    return rc;
}

static psd_status_t read_members(const ps_doc_t *array, ps_relay_facts_t *self, psd_error_t *err)
{
    size_t n = ps_doc_count(array);
    psd_status_t rc = PSD_OK;

    self->members = ps_alloc(n, sizeof *self->members);
    if (self->members == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    while (rc == PSD_OK && self->n_members < n) {
        ps_relay_member_t *member = &self->members[self->n_members];
        const ps_doc_t *doc = NULL;

        rc = ps_doc_at_object(array, self->n_members, &doc, err);
        if (rc == PSD_OK) {
            rc = read_member(doc, member, err);
        }
        if (rc == PSD_OK && self->n_members > 0 && member->worker <= member[-1].worker) {
            rc = psd_error_set(err, PSD_PROTO, "workers of a plan do not ascend");
        }
        self->n_members++;
    }
    return rc;
}

static psd_status_t read_parents(const ps_doc_t *array, ps_relay_facts_t *self, psd_error_t *err)
{
    size_t n = self->n_members * self->n_colours;
    psd_status_t rc = PSD_OK;

    if (ps_doc_count(array) != n) {
        return psd_error_set(err, PSD_PROTO, "a plan of %zu workers and %u colours has %zu parents",
                             self->n_members, self->n_colours, ps_doc_count(array));
    }
    self->parents = ps_alloc(n, sizeof *self->parents);
    if (self->parents == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i++) {
        uint64_t parent = 0;

        rc = ps_doc_at_u64(array, i, &parent, err);
        if (rc == PSD_OK && parent > self->n_members) {
            rc = psd_error_set(err, PSD_PROTO, "a plan names a parent that it does not have");
        }
        self->parents[i] = parent == 0 ? PS_OVERLAY_NODES : (uint32_t)(parent - 1);
    }
    return rc;
}

psd_status_t ps_relay_facts_from_doc(const ps_doc_t *doc, ps_relay_facts_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_relay_facts_done) ps_relay_facts_t self = {.version = 0};
    const ps_doc_t *members = NULL;
    const ps_doc_t *parents = NULL;
    psd_status_t rc = ps_doc_get_u64(doc, "plan", 1, UINT64_MAX, &self.version, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "clock", 0, UINT64_MAX, &self.clock, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_id(doc, "key", &self.key, err);
    }
    if (rc == PSD_OK) {
        rc = read_number(doc, "colours", 1, PS_OVERLAY_COLOURS_MAX, &self.n_colours, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "workers", PS_OVERLAY_WORKERS_MAX, &members, err);
    }
    if (rc == PSD_OK) {
        rc = read_members(members, &self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(
            doc, "parents", (size_t)PS_OVERLAY_WORKERS_MAX * PS_OVERLAY_COLOURS_MAX, &parents, err);
    }
    if (rc == PSD_OK) {
        rc = read_parents(parents, &self, err);
    }
    if (rc == PSD_OK) {
        *ret = self;
        self = (ps_relay_facts_t){.version = 0};
    }
    return rc;
}

/* ---- use ---- */

size_t ps_relay_facts_find(const ps_relay_facts_t *self, uint32_t worker)
{
    for (size_t i = 0; i < self->n_members; i++) {
        if (self->members[i].worker == worker) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool ps_relay_facts_keep_to(const ps_relay_facts_t *self, uint32_t worker, const ps_may_t *may,
                            bool rows)
{
    size_t me = ps_relay_facts_find(self, worker);
    bool keeps = true;

    for (size_t i = 0; keeps && i < self->n_members * self->n_colours; i++) {
        size_t from = i % self->n_members;
        uint32_t parent = self->parents[i];

        if (parent == PS_OVERLAY_NODES) {
            continue;
        }
        if (from == me) {
            keeps = ps_may_has(may, self->members[parent].worker);
        } else if (parent == me && rows) {
            keeps = ps_may_has(may, self->members[from].worker);
        }
    }
    return keeps;
}

psd_status_t ps_relay_facts_give(const ps_relay_facts_t *self, struct ps_relay *relay,
                                 psd_error_t *err)
{
    const uint64_t rates[PS_OVERLAY_COLOURS_MAX] = {0};
    PSD_AUTO(ps_free_at) uint32_t *positions = ps_alloc(2 * self->n_members, sizeof *positions);
    ps_relay_plan_t plan = {.version = self->version,
                            .clock = self->clock,
                            .n_workers = (uint32_t)self->n_members,
                            .n_colours = self->n_colours,
                            .positions = positions,
                            .parents = self->parents,
                            .rates = rates};

    if (positions == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    plan.members = positions + self->n_members;
    for (size_t i = 0; i < self->n_members; i++) {
        positions[i] = self->members[i].worker;
        positions[self->n_members + i] = self->members[i].members;
    }
    return ps_relay_take_plan(relay, &plan, err);
}
