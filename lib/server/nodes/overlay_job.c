/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a job's overlay, and their plan. */
#include "server/nodes/overlay_job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overlay/overlay_fixed.h"

#define AHEAD_MS 3600000 /* another registry member's wall clock, at most */

void ps_overlay_job_done(ps_overlay_job_t *self)
{
    ps_relay_facts_done(&self->facts);
    ps_overlay_pilot_done(&self->pilot);
    self->is_auto = false;
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
static psd_status_t enter(ps_overlay_job_t *self, const ps_worker_t *worker,
                          const ps_overlay_beat_t *beat, bool *ret_changed, psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    bool is_auto = beat->report != NULL && beat->report->is_auto;
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
    } else if (strcmp(facts->members[i].relay, beat->relay) == 0) {
        return PSD_OK;
    }
    facts->members[i] = (ps_relay_member_t){
        .worker = worker->worker, .joins = worker->joins, .members = worker->n_members};
    (void)snprintf(facts->members[i].relay, sizeof facts->members[i].relay, "%s", beat->relay);
    facts->members[i].is_auto = is_auto;
    *ret_changed = true;
    return PSD_OK;
}

/* ---- plan ---- */

/* Room for the parents of all members, in n_colours colours. */
static uint32_t *new_parents(ps_relay_facts_t *facts, uint32_t n_colours, psd_error_t *err)
{
    uint32_t *parents = ps_alloc(facts->n_members * n_colours, sizeof *parents);

    if (parents == NULL) {
        (void)psd_error_set(err, PSD_NOMEM, "no memory for a plan");
        return NULL;
    }
    ps_free(facts->parents);
    facts->parents = parents;
    facts->n_colours = n_colours;
    return parents;
}

static void list_positions(const ps_relay_facts_t *facts, uint32_t *ret_positions)
{
    for (size_t i = 0; i < facts->n_members; i++) {
        ret_positions[i] = facts->members[i].worker;
    }
}

/* Who sends to whom, as the pilot has it. */
static psd_status_t take_plan(ps_overlay_job_t *self, psd_error_t *err)
{
    const ps_overlay_plan_t *plan = &self->pilot.plan;
    ps_relay_facts_t *facts = &self->facts;
    uint32_t *parents = new_parents(facts, plan->n_colours < 1 ? 1 : plan->n_colours, err);

    if (parents == NULL) {
        return PSD_NOMEM;
    }
    if (facts->n_members > 0) {
        memcpy(parents, plan->parents, facts->n_members * plan->n_colours * sizeof *parents);
    }
    return PSD_OK;
}

static psd_status_t fix_plan(ps_relay_facts_t *facts, const uint32_t *positions, psd_error_t *err)
{
    uint32_t n = (uint32_t)facts->n_members;
    uint32_t n_colours = n < 1 ? 1 : n < PS_OVERLAY_COLOURS ? n : PS_OVERLAY_COLOURS;
    uint32_t *parents = new_parents(facts, n_colours, err);

    for (uint32_t i = 0; parents != NULL && n > 0 && i < n_colours; i++) {
        ps_overlay_fixed(positions, n, i, parents + (size_t)i * n);
    }
    return parents == NULL ? PSD_NOMEM : PSD_OK;
}

/* Members have come or gone. */
static psd_status_t make_plan(ps_overlay_job_t *self, psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    uint32_t positions[PS_OVERLAY_WORKERS_MAX];
    psd_status_t rc = PSD_OK;

    list_positions(facts, positions);
    self->is_auto = facts->n_members > 0;
    for (size_t i = 0; i < facts->n_members; i++) {
        self->is_auto = self->is_auto && facts->members[i].is_auto;
    }
    if (!self->is_auto) {
        return fix_plan(facts, positions, err);
    }
    rc = ps_overlay_pilot_begin(&self->pilot, (uint32_t)facts->n_members, err);
    return rc == PSD_OK ? take_plan(self, err) : rc;
}

/* What a member has measured. The first one's clocks are the job's. */
static psd_status_t hear_report(ps_overlay_job_t *self, const ps_worker_t *worker,
                                const ps_overlay_beat_t *beat, bool *ret_changed, psd_error_t *err)
{
    const ps_relay_facts_t *facts = &self->facts;
    const ps_overlay_report_t *report = beat->report;
    uint32_t positions[PS_OVERLAY_WORKERS_MAX];
    size_t place = ps_relay_facts_find(facts, worker->worker);
    const ps_overlay_said_t said = {
        .clock = report->clock,
        .at_us = beat->now_us > report->ago_us ? beat->now_us - report->ago_us : 0,
        .now_us = beat->now_us,
        .bytes = report->bytes,
        .has_plan = beat->known == facts->version};

    if (place == SIZE_MAX) {
        return PSD_OK;
    }
    for (uint32_t i = 0; said.has_plan && i < report->n_links; i++) {
        const ps_overlay_link_t *link = &report->links[i];
        size_t to =
            link->to == PS_OVERLAY_NODES ? facts->n_members : ps_relay_facts_find(facts, link->to);

        if (to != SIZE_MAX) {
            ps_overlay_pilot_link(&self->pilot, (uint32_t)place, (uint32_t)to, link->bytes,
                                  link->us);
        }
    }
    if (place != 0) {
        return PSD_OK;
    }
    list_positions(facts, positions);
    return ps_overlay_pilot_heard(&self->pilot, positions, &said, ret_changed, err);
}

static void make_newer(ps_relay_facts_t *facts, const ps_overlay_beat_t *beat, uint64_t known)
{
    facts->key = facts->version == 0 ? *beat->key : facts->key;
    facts->version = facts->version > known ? facts->version : known;
    facts->version = facts->version < beat->unix_ms ? beat->unix_ms : facts->version + 1;
    facts->clock = beat->clock + 1;
}

psd_status_t ps_overlay_job_beat(ps_overlay_job_t *self, const ps_job_t *job,
                                 const ps_worker_t *worker, const ps_overlay_beat_t *beat,
                                 psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    uint64_t known = beat->known > beat->unix_ms + AHEAD_MS ? 0 : beat->known;
    bool changed = false;
    psd_status_t rc = PSD_OK;

    if (!ps_relay_endpoint_is_good(beat->relay)) {
        return psd_error_set(err, PSD_INVALID, "a relay at \"%.80s\"; allowed: tcp://HOST:PORT",
                             beat->relay);
    }
    if (worker->state != PS_WORKER_RUNNING) {
        return PSD_OK;
    }
    changed = tidy(facts, job) || (known > 0 && facts->version == 0);
    rc = enter(self, worker, beat, &changed, err);
    if (rc == PSD_OK && changed) {
        rc = make_plan(self, err);
    } else if (rc == PSD_OK && self->is_auto && beat->report != NULL) {
        rc = hear_report(self, worker, beat, &changed, err);
        if (rc == PSD_OK && changed) {
            rc = take_plan(self, err);
        }
    }
    if (rc != PSD_OK) {
        facts->n_members = 0; /* the next heartbeat begins again */
        facts->n_colours = 1;
        return rc;
    }
    if (changed || known > facts->version) {
        make_newer(facts, beat, known);
    }
    return PSD_OK;
}

bool ps_overlay_job_to_doc(const ps_overlay_job_t *self, ps_doc_t *doc)
{
    ps_relay_facts_t facts = self->facts;

    if (self->is_auto && !self->pilot.choice.uses_tree) {
        facts.n_members = 0;
        facts.n_colours = 1;
    }
    return ps_relay_facts_to_doc(&facts, doc);
}

/* ---- view ---- */

/* What was measured, in bytes per second. */
static bool add_links(const ps_overlay_job_t *self, ps_doc_t *array)
{
    const ps_relay_facts_t *facts = &self->facts;
    uint32_t n = self->pilot.rates == NULL ? 0 : (uint32_t)facts->n_members;
    bool fits = true;

    for (uint32_t from = 0; fits && from < n; from++) {
        for (uint32_t to = 0; fits && to <= n; to++) {
            double rate = ps_overlay_pilot_rate(&self->pilot, from, to);
            ps_doc_t *doc = rate > 0 ? ps_doc_append_object(array) : NULL;

            fits = rate <= 0 ||
                   (doc != NULL && ps_doc_set_u64(doc, "from", facts->members[from].worker) &&
                    (to == n || ps_doc_set_u64(doc, "to", facts->members[to].worker)) &&
                    ps_doc_set_u64(doc, "bytes_s", (uint64_t)fmin(rate, 1e15)));
        }
    }
    return fits;
}

/* What the pilot has measured, and why it has chosen as it did. */
static bool add_pilot(const ps_overlay_job_t *self, ps_doc_t *overlay)
{
    const ps_overlay_pilot_t *pilot = &self->pilot;
    bool is_tree = pilot->choice.uses_tree;
    uint64_t wait =
        pilot->choice.wait_until > pilot->turn ? pilot->choice.wait_until - pilot->turn : 0;
    ps_doc_t *links = ps_doc_add_array(overlay, "links");

    return links != NULL && ps_doc_set_text(overlay, "uses", is_tree ? "tree" : "star") &&
           ps_doc_set_u64(overlay, "clock_us", (uint64_t)(pilot->clock_s * 1e6)) &&
           ps_doc_set_u64(overlay, "star_us", (uint64_t)(pilot->star_s * 1e6)) &&
           ps_doc_set_u64(overlay, "promised_us",
                          is_tree ? (uint64_t)(pilot->plan.seconds * 1e6) : 0) &&
           ps_doc_set_u64(overlay, "clock_bytes", (uint64_t)pilot->bytes) &&
           ps_doc_set_u64(overlay, "next_try", wait) && add_links(self, links);
}

/* Whom it sends to, for each colour: "worker 3", "nodes"; and where it is, without its key. */
static bool add_way(const ps_relay_facts_t *facts, size_t i, ps_doc_t *array)
{
    char relay[PS_ENDPOINT_MAX + 1];
    ps_doc_t *doc = ps_doc_append_object(array);
    ps_doc_t *to = doc == NULL ? NULL : ps_doc_add_array(doc, "sends_to");
    bool fits = to != NULL && ps_doc_set_u64(doc, "worker", facts->members[i].worker);

    (void)snprintf(relay, sizeof relay, "%.*s", (int)strcspn(facts->members[i].relay, "#"),
                   facts->members[i].relay);
    fits = fits && ps_doc_set_text(doc, "relay", relay);

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
    bool fits = workers != NULL &&
                ps_doc_set_text(overlay, "policy", self->is_auto ? "auto" : "tree") &&
                ps_doc_set_u64(overlay, "plan", facts->version) &&
                ps_doc_set_u64(overlay, "clock", facts->clock) &&
                (!self->is_auto || add_pilot(self, overlay));

    for (size_t i = 0; fits && i < facts->n_members; i++) {
        fits = add_way(facts, i, workers);
    }
    return fits;
}
