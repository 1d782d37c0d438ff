/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a job's overlay, and their plan. */
#include "server/nodes/overlay_job.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overlay/overlay_fixed.h"

#define AHEAD_MS 3600000 /* another registry member's wall clock, at most */
#define COLOURS_MAX 4u   /* that many trees at most: each has a last worker of its own */

void ps_overlay_job_done(ps_overlay_job_t *self)
{
    ps_relay_facts_done(&self->facts);
    self->capacity = 0;
}

/* ---- members ---- */

/* Only the client that joined lends. What the others of its worker push is added to that, before
 * anything else is: so the shard has to do it, and nobody is to wait for it here. */
static bool lends(const ps_worker_t *worker)
{
    return worker->state == PS_WORKER_RUNNING && worker->n_members == 1;
}

/* The worker that said it is there, in the same life. */
static const ps_worker_t *worker_of(const ps_job_t *job, const ps_relay_member_t *member)
{
    const ps_worker_t *worker = ps_job_worker(job, member->worker);

    return worker != NULL && lends(worker) && worker->joins == member->joins ? worker : NULL;
}

/* Forgets who is gone, or has got another client. True when anything is not as it was. */
static bool tidy(ps_relay_facts_t *facts, const ps_job_t *job)
{
    size_t before = facts->n_members;
    size_t n = 0;

    for (size_t i = 0; i < before; i++) {
        if (worker_of(job, &facts->members[i]) != NULL) {
            facts->members[n++] = facts->members[i];
        }
    }
    facts->n_members = n;
    return n < before;
}

/* Enters one who is not there yet, or listens elsewhere. */
static psd_status_t enter(ps_overlay_job_t *self, const ps_worker_t *worker, const char *relay,
                          bool *ret_changed, psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    size_t i = ps_relay_facts_find(facts, worker->worker);

    if (!lends(worker) || (i == SIZE_MAX && facts->n_members >= PS_OVERLAY_WORKERS_MAX)) {
        return PSD_OK;
    }
    if (i == SIZE_MAX) {
        if (!ps_grow(&facts->members, &self->capacity, facts->n_members + 1,
                     sizeof *facts->members)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
        }
        for (i = facts->n_members; i > 0 && facts->members[i - 1].worker > worker->worker; i--) {
            facts->members[i] = facts->members[i - 1];
        }
        facts->n_members++;
    } else if (strcmp(facts->members[i].relay, relay) == 0) {
        return PSD_OK;
    }
    facts->members[i] = (ps_relay_member_t){
        .worker = worker->worker, .joins = worker->joins, .members = worker->n_members};
    (void)snprintf(facts->members[i].relay, sizeof facts->members[i].relay, "%s", relay);
    *ret_changed = true;
    return PSD_OK;
}

/* ---- plan ---- */

static psd_status_t make_plan(ps_relay_facts_t *facts, psd_error_t *err)
{
    uint32_t positions[PS_OVERLAY_WORKERS_MAX];
    uint32_t n = (uint32_t)facts->n_members;
    uint32_t n_colours = n < 1 ? 1 : n < COLOURS_MAX ? n : COLOURS_MAX;
    uint32_t *parents = ps_alloc((size_t)n * n_colours, sizeof *parents);

    if (parents == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    for (uint32_t i = 0; i < n; i++) {
        positions[i] = facts->members[i].worker;
    }
    for (uint32_t i = 0; i < n && i < COLOURS_MAX; i++) {
        ps_overlay_fixed(positions, n, i, parents + (size_t)i * n);
    }
    ps_free(facts->parents);
    facts->parents = parents;
    facts->n_colours = n_colours;
    return PSD_OK;
}

psd_status_t ps_overlay_job_beat(ps_overlay_job_t *self, const ps_job_t *job,
                                 const ps_worker_t *worker, const char *relay, uint64_t clock,
                                 uint64_t known, uint64_t unix_ms, const ps_id_t *key,
                                 psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    bool changed = false;
    psd_status_t rc = PSD_OK;

    if (!ps_relay_endpoint_is_good(relay)) {
        return psd_error_set(err, PSD_INVALID, "a relay at \"%.80s\"; allowed: tcp://HOST:PORT",
                             relay);
    }
    if (worker->state != PS_WORKER_RUNNING) {
        return PSD_OK;
    }
    known = known > unix_ms + AHEAD_MS ? 0 : known;
    changed = tidy(facts, job) || known > facts->version;
    rc = enter(self, worker, relay, &changed, err);
    if (rc == PSD_OK && changed) {
        rc = make_plan(facts, err);
    }
    if (rc != PSD_OK) {
        facts->n_members = 0; /* the next heartbeat begins again */
        return rc;
    }
    if (changed) {
        facts->key = facts->version == 0 ? *key : facts->key;
        facts->version = facts->version > known ? facts->version : known;
        facts->version = facts->version < unix_ms ? unix_ms : facts->version + 1;
        facts->clock = clock + 1;
    }
    return PSD_OK;
}

/* ---- view ---- */

/* Whom it sends to, for each colour: "worker 3", "nodes". */
static bool add_way(const ps_relay_facts_t *facts, size_t i, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);
    ps_doc_t *to = doc == NULL ? NULL : ps_doc_add_array(doc, "sends_to");
    bool fits = to != NULL && ps_doc_set_u64(doc, "worker", facts->members[i].worker) &&
                ps_doc_set_text(doc, "relay", facts->members[i].relay);

    for (uint32_t colour = 0; fits && colour < facts->n_colours; colour++) {
        uint32_t parent = facts->parents[colour * facts->n_members + i];
        char text[32] = "nodes";

        if (parent != PS_OVERLAY_NODES) {
            (void)snprintf(text, sizeof text, "worker %u", facts->members[parent].worker);
        }
        fits = ps_doc_append_text(to, text);
    }
    return fits;
}

bool ps_overlay_job_view(const ps_overlay_job_t *self, ps_doc_t *doc)
{
    const ps_relay_facts_t *facts = &self->facts;
    ps_doc_t *overlay = ps_doc_add_object(doc, "overlay");
    ps_doc_t *workers = overlay == NULL ? NULL : ps_doc_add_array(overlay, "workers");
    bool fits = workers != NULL && ps_doc_set_text(overlay, "policy", "tree") &&
                ps_doc_set_u64(overlay, "plan", facts->version) &&
                ps_doc_set_u64(overlay, "clock", facts->clock);

    for (size_t i = 0; fits && i < facts->n_members; i++) {
        fits = add_way(facts, i, workers);
    }
    return fits;
}
