/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a job's overlay, and their plan. */
#include "server/nodes/overlay_job.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/overlay/overlay_sites.h"

#define AHEAD_MS 3600000 /* another registry member's wall clock, at most */

void ps_overlay_job_done(ps_overlay_job_t *self)
{
    ps_relay_facts_done(&self->facts);
    ps_overlay_pilot_done(&self->pilot);
    ps_overlay_matcher_done(&self->matcher);
    ps_relay_tally_done(&self->tally);
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

static const ps_overlay_rules_t *rules_of(const ps_overlay_beat_t *beat)
{
    static const ps_overlay_rules_t TREE = {.policy = PS_POLICY_TREE};

    return beat->report != NULL ? &beat->report->rules : &TREE;
}

/* The first one's rules are the plan's. */
static psd_status_t check_rules(ps_overlay_job_t *self, uint32_t rank,
                                const ps_overlay_beat_t *beat, psd_error_t *err)
{
    const ps_overlay_rules_t *rules = rules_of(beat);
    ps_overlay_misfit_t misfit = {.setting = ""};

    if (self->facts.n_members == 0) {
        self->rules = *rules;
    }
    return ps_overlay_rules_fit(rules, &self->rules, &misfit)
               ? PSD_OK
               : psd_error_set(err, PSD_JOB_MISMATCH,
                               "%s of worker %u is %s, and that of worker %u is %s; allowed: the "
                               "same for all workers of a job",
                               misfit.setting, rank, misfit.a, self->facts.members[0].worker,
                               misfit.b);
}

/* A place for one who is not there yet. */
static psd_status_t add_place(ps_overlay_job_t *self, uint32_t rank, size_t *ret_place,
                              psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    size_t i = facts->n_members;

    if (!ps_grow(&facts->members, &self->capacity, facts->n_members + 1, sizeof *facts->members)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    for (; i > 0 && facts->members[i - 1].worker > rank; i--) {
        facts->members[i] = facts->members[i - 1];
    }
    facts->n_members++;
    *ret_place = i;
    return PSD_OK;
}

/* Enters one who is not there yet, or listens elsewhere. */
static psd_status_t enter(ps_overlay_job_t *self, const ps_worker_t *worker,
                          const ps_overlay_beat_t *beat, bool *ret_changed, psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    size_t i = ps_relay_facts_find(facts, worker->worker);
    psd_status_t rc = PSD_OK;

    if (!lends(worker) || (i == SIZE_MAX && facts->n_members >= PS_OVERLAY_WORKERS_MAX)) {
        return PSD_OK;
    }
    if (i != SIZE_MAX && strcmp(facts->members[i].relay, beat->relay) == 0) {
        return PSD_OK;
    }
    rc = check_rules(self, worker->worker, beat, err);
    if (rc == PSD_OK && i == SIZE_MAX) {
        rc = add_place(self, worker->worker, &i, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    facts->members[i] = (ps_relay_member_t){
        .worker = worker->worker, .joins = worker->joins, .members = worker->n_members};
    (void)snprintf(facts->members[i].relay, sizeof facts->members[i].relay, "%s", beat->relay);
    facts->members[i].is_auto = rules_of(beat)->policy == PS_POLICY_AUTO;
    if (beat->report != NULL) {
        facts->members[i].may = beat->report->may;
        facts->members[i].site = beat->report->site;
    }
    *ret_changed = true;
    return PSD_OK;
}

/* ---- plan ---- */

/* Does the matcher make their plan? */
static bool plays(const ps_overlay_job_t *self)
{
    return ps_overlay_job_has_turns(self) && self->facts.n_members <= PS_OVERLAY_MATCHER_WORKERS;
}

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

/* Who is where: the members' numbers, and those of their sites. */
typedef struct map {
    uint32_t positions[PS_OVERLAY_WORKERS_MAX];
    uint32_t sites[PS_OVERLAY_WORKERS_MAX]; /* of each: the first one that is there */
    ps_overlay_sites_t all;                 /* borrows both */
} map_t;

static void draw_map(const ps_overlay_job_t *self, map_t *ret)
{
    const ps_relay_facts_t *facts = &self->facts;

    for (uint32_t i = 0; i < facts->n_members; i++) {
        ret->positions[i] = facts->members[i].worker;
        ret->sites[i] = 0;
        while (strcmp(facts->members[ret->sites[i]].site.name, facts->members[i].site.name) != 0) {
            ret->sites[i]++;
        }
    }
    ret->all = (ps_overlay_sites_t){.n_workers = (uint32_t)facts->n_members,
                                    .positions = ret->positions,
                                    .sites = ret->sites,
                                    .between = self->rules.between,
                                    .apart = self->rules.apart};
}

/* Are they in more than one? */
static bool has_sites(const map_t *map)
{
    bool has = false;

    for (uint32_t i = 0; i < map->all.n_workers; i++) {
        has = has || map->sites[i] != 0;
    }
    return has;
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

/* A site has one gateway for all partitions: several would share its slow link, and each one's
 * bundles would take as much longer as they have patience for. */
static uint32_t count_colours(const map_t *map)
{
    uint32_t n = has_sites(map) ? 1 : map->all.n_workers;

    return n < 1 ? 1 : n < PS_OVERLAY_COLOURS ? n : PS_OVERLAY_COLOURS;
}

static psd_status_t fix_plan(ps_relay_facts_t *facts, const map_t *map, psd_error_t *err)
{
    uint32_t n = (uint32_t)facts->n_members;
    uint32_t n_colours = count_colours(map);
    uint32_t *parents = new_parents(facts, n_colours, err);

    for (uint32_t i = 0; parents != NULL && n > 0 && i < n_colours; i++) {
        ps_overlay_sites_tree(&map->all, i, parents + (size_t)i * n);
    }
    return parents == NULL ? PSD_NOMEM : PSD_OK;
}

/* By what they say: all, or those that are listed; both ways, where rows go back. */
static bool may_send(const ps_overlay_job_t *self, size_t from, size_t to)
{
    const ps_relay_member_t *members = self->facts.members;

    return !self->rules.is_listed ||
           (ps_may_has(&members[from].may, members[to].worker) &&
            (!self->rules.both_ways || ps_may_has(&members[to].may, members[from].worker)));
}

/* Who may send to whom. */
static void list_ways(const ps_overlay_job_t *self, const map_t *map, bool *ret_may)
{
    size_t n = self->facts.n_members;

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++) {
            ret_may[i * n + j] =
                may_send(self, i, j) && ps_overlay_sites_may(&map->all, (uint32_t)i, (uint32_t)j);
        }
    }
}

/* A plan of the matcher. *ret_changed: it is not the one that there was. */
static psd_status_t play_plan(ps_overlay_job_t *self, const map_t *map, uint64_t now_us,
                              bool is_first, bool *ret_changed, psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    size_t n = facts->n_members;
    uint32_t n_colours = count_colours(map);
    PSD_AUTO(ps_free_at) bool *may = ps_alloc(n * n, sizeof *may);
    PSD_AUTO(ps_free_at) uint32_t *parents = ps_alloc(n * n_colours, sizeof *parents);
    const ps_overlay_ways_t ways = {.positions = map->positions,
                                    .may = may,
                                    .parents = is_first ? NULL : facts->parents,
                                    .n_colours = n_colours};
    psd_status_t rc = PSD_OK;

    if (may == NULL || parents == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a plan");
    }
    list_ways(self, map, may);
    rc = ps_overlay_matcher_plan(&self->matcher, &ways, now_us, parents, err);
    if (rc != PSD_OK) {
        return rc;
    }
    for (uint32_t i = 0; has_sites(map) && i < n_colours; i++) {
        ps_overlay_sites_join(&map->all, may, parents + i * n);
    }
    *ret_changed =
        is_first || memcmp(parents, facts->parents, n * n_colours * sizeof *parents) != 0;
    ps_free(facts->parents);
    facts->parents = parents;
    facts->n_colours = n_colours;
    parents = NULL;
    return PSD_OK;
}

/* Too many for the matcher: a tree; where not all may send to all, each one sends to the nodes. */
static psd_status_t fix_turns(ps_overlay_job_t *self, const map_t *map, psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    uint32_t *parents = NULL;

    ps_overlay_matcher_done(&self->matcher);
    if (!self->rules.is_listed) {
        return fix_plan(facts, map, err);
    }
    parents = new_parents(facts, 1, err);
    for (size_t i = 0; parents != NULL && i < facts->n_members; i++) {
        parents[i] = PS_OVERLAY_NODES;
    }
    return parents == NULL ? PSD_NOMEM : PSD_OK;
}

static psd_status_t begin_turns(ps_overlay_job_t *self, const map_t *map,
                                const ps_overlay_beat_t *beat, psd_error_t *err)
{
    bool changed = false;
    psd_status_t rc =
        ps_overlay_matcher_begin(&self->matcher, &self->rules, (uint32_t)self->facts.n_members,
                                 self->facts.version + beat->unix_ms, err);

    return rc == PSD_OK ? play_plan(self, map, beat->now_us, true, &changed, err) : rc;
}

/* Members have come or gone. */
static psd_status_t make_plan(ps_overlay_job_t *self, const ps_overlay_beat_t *beat,
                              psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    map_t map;
    psd_status_t rc = ps_relay_tally_begin(&self->tally, (uint32_t)facts->n_members, err);

    if (rc != PSD_OK) {
        return rc;
    }
    draw_map(self, &map);
    if (ps_overlay_job_has_turns(self)) {
        self->is_auto = false;
        return plays(self) ? begin_turns(self, &map, beat, err) : fix_turns(self, &map, err);
    }
    /* The links between sites are shared: the pilot knows none that are. */
    self->is_auto = facts->n_members > 0 && !has_sites(&map) && !self->rules.apart;
    for (size_t i = 0; i < facts->n_members; i++) {
        self->is_auto = self->is_auto && facts->members[i].is_auto;
    }
    if (!self->is_auto) {
        return fix_plan(facts, &map, err);
    }
    rc = ps_overlay_pilot_begin(&self->pilot, (uint32_t)facts->n_members, err);
    return rc == PSD_OK ? take_plan(self, err) : rc;
}

static void hear_link(ps_overlay_job_t *self, size_t from, size_t to, const ps_overlay_link_t *link)
{
    if (ps_overlay_job_has_turns(self)) {
        ps_overlay_matcher_link(&self->matcher, (uint32_t)from, (uint32_t)to, link->bytes,
                                link->us);
    } else {
        ps_overlay_pilot_link(&self->pilot, (uint32_t)from, (uint32_t)to, link->bytes, link->us);
    }
}

/* What a member has measured. The first one's clocks are the job's. */
static psd_status_t hear_report(ps_overlay_job_t *self, const ps_worker_t *worker,
                                const ps_overlay_beat_t *beat, bool *ret_changed, psd_error_t *err)
{
    const ps_relay_facts_t *facts = &self->facts;
    const ps_overlay_report_t *report = beat->report;
    map_t map;
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
    /* The pilot compares plans; the matcher takes whatever was measured. */
    for (uint32_t i = 0; (said.has_plan || plays(self)) && i < report->n_links; i++) {
        const ps_overlay_link_t *link = &report->links[i];
        size_t to =
            link->to == PS_OVERLAY_NODES ? facts->n_members : ps_relay_facts_find(facts, link->to);

        if (to != SIZE_MAX) {
            hear_link(self, place, to, link);
        }
    }
    if (!plays(self) && place != 0) {
        return PSD_OK;
    }
    draw_map(self, &map);
    if (plays(self)) {
        return ps_overlay_matcher_heard(&self->matcher, (uint32_t)place, &said)
                   ? play_plan(self, &map, beat->now_us, false, ret_changed, err)
                   : PSD_OK;
    }
    return ps_overlay_pilot_heard(&self->pilot, map.positions, &said, ret_changed, err);
}

/* A plan, where there has to be one. *changed: who is in it has; then, whether it is another. */
static psd_status_t renew(ps_overlay_job_t *self, const ps_worker_t *worker,
                          const ps_overlay_beat_t *beat, bool *changed, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (*changed) {
        return make_plan(self, beat, err);
    }
    if (beat->report == NULL) {
        return PSD_OK;
    }
    ps_relay_tally_hear(&self->tally, &self->facts, worker->worker, beat->report, beat->now_us);
    if (!self->is_auto && !plays(self)) {
        return PSD_OK;
    }
    rc = hear_report(self, worker, beat, changed, err);
    return rc == PSD_OK && *changed && self->is_auto ? take_plan(self, err) : rc;
}

static void make_newer(ps_overlay_job_t *self, const ps_overlay_beat_t *beat, uint64_t known)
{
    ps_relay_facts_t *facts = &self->facts;

    facts->key = facts->version == 0 ? *beat->key : facts->key;
    facts->version = facts->version > known ? facts->version : known;
    facts->version = facts->version < beat->unix_ms ? beat->unix_ms : facts->version + 1;
    facts->clock = beat->clock + 1 + (plays(self) ? self->matcher.stride : 0);
}

psd_status_t ps_overlay_job_beat(ps_overlay_job_t *self, const ps_job_t *job,
                                 const ps_worker_t *worker, const ps_overlay_beat_t *beat,
                                 psd_error_t *err)
{
    ps_relay_facts_t *facts = &self->facts;
    uint64_t known = beat->known > beat->unix_ms + AHEAD_MS ? 0 : beat->known;
    bool changed = false;
    psd_status_t entered = PSD_OK;
    psd_status_t rc = PSD_OK;

    if (!ps_relay_endpoint_is_good(beat->relay)) {
        return psd_error_set(err, PSD_INVALID, "a relay at \"%.80s\"; allowed: tcp://HOST:PORT",
                             beat->relay);
    }
    if (worker->state != PS_WORKER_RUNNING) {
        return PSD_OK;
    }
    changed = tidy(facts, job) || (known > 0 && facts->version == 0);
    entered = enter(self, worker, beat, &changed, err);
    rc = entered == PSD_JOB_MISMATCH ? PSD_OK : entered;
    if (rc == PSD_OK) {
        rc = renew(self, worker, beat, &changed, err);
    }
    if (rc != PSD_OK) {
        facts->n_members = 0; /* the next heartbeat begins again */
        facts->n_colours = 1;
        return rc;
    }
    if (changed || known > facts->version) {
        make_newer(self, beat, known);
    }
    return entered;
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

/* ---- where a delta is ---- */

/* Does what this member gives pass that relay, or begin there? */
static bool passes(const uint32_t *parents, size_t n, size_t member, size_t relay)
{
    for (size_t step = 0; step < n && member != relay && member < n; step++) {
        member = parents[member];
    }
    return member == relay;
}

/* One who sends through that relay and is not ready; SIZE_MAX: all are. */
static size_t find_late(const ps_overlay_job_t *self, const uint32_t *parents, size_t relay,
                        bool (*is_ready)(const void *context, uint32_t worker), const void *context)
{
    const ps_relay_facts_t *facts = &self->facts;

    for (size_t i = 0; i < facts->n_members; i++) {
        if (passes(parents, facts->n_members, i, relay) &&
            !is_ready(context, facts->members[i].worker)) {
            return i;
        }
    }
    return SIZE_MAX;
}

bool ps_overlay_job_stay(const ps_overlay_job_t *self, uint32_t worker, uint32_t colour,
                         uint64_t clock, bool (*is_ready)(const void *context, uint32_t worker),
                         const void *context, ps_overlay_stay_t *ret_stay)
{
    const ps_relay_facts_t *facts = &self->facts;
    size_t at = ps_relay_facts_find(facts, worker);
    const uint32_t *parents = NULL;
    size_t late = SIZE_MAX;

    if (at == SIZE_MAX || clock <= facts->clock ||
        (self->is_auto && !self->pilot.choice.uses_tree)) {
        return false;
    }
    parents = facts->parents + (colour % facts->n_colours) * facts->n_members;
    late = find_late(self, parents, at, is_ready, context);
    while (late == SIZE_MAX && parents[at] != PS_OVERLAY_NODES) {
        at = parents[at];
        late = find_late(self, parents, at, is_ready, context);
    }
    *ret_stay = (ps_overlay_stay_t){.relay = facts->members[at].worker,
                                    .waits_for = late == SIZE_MAX ? PS_OVERLAY_NODES
                                                                  : facts->members[late].worker};
    return true;
}
