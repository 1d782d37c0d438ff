/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up reports. */
#include "protocol/relay/tally.h"

#include "base/alloc.h"

void ps_relay_tally_done(ps_relay_tally_t *self)
{
    ps_free(self->links);
    ps_free(self->counts);
    *self = (ps_relay_tally_t){.n_workers = 0};
}

psd_status_t ps_relay_tally_begin(ps_relay_tally_t *self, uint32_t n_workers, psd_error_t *err)
{
    ps_relay_tally_t tally = {.n_workers = n_workers};
    bool has_links = n_workers > 0 && n_workers <= PS_RELAY_TALLY_WORKERS;

    if (n_workers > 0) {
        tally.counts = ps_alloc(n_workers, sizeof *tally.counts);
    }
    if (has_links) {
        tally.links = ps_alloc((size_t)n_workers * (n_workers + 1), sizeof *tally.links);
    }
    if ((n_workers > 0 && tally.counts == NULL) || (has_links && tally.links == NULL)) {
        ps_relay_tally_done(&tally);
        return psd_error_set(err, PSD_NOMEM, "no memory for what workers report");
    }
    ps_relay_tally_done(self);
    *self = tally;
    return PSD_OK;
}

static void note_link(ps_relay_tally_t *self, uint32_t from, uint32_t to,
                      const ps_overlay_link_t *said, uint64_t now_us)
{
    ps_relay_tally_link_t *link = &self->links[(size_t)from * (self->n_workers + 1) + to];

    link->bytes += said->bytes;
    link->last_bytes = said->bytes;
    link->last_us = said->us;
    link->at_us = now_us;
}

/* The first worker's clocks are the job's. */
static void note_clock(ps_relay_tally_t *self, const ps_overlay_report_t *report, uint64_t now_us)
{
    uint64_t at_us = now_us > report->ago_us ? now_us - report->ago_us : 0;
    uint64_t clocks = report->clock - self->clock;
    bool begins = self->clock == 0 || report->clock < self->clock || at_us < self->at_us ||
                  report->bytes < self->pushed;

    if (!begins &&
        (clocks == 0 || at_us == self->at_us ||
         (clocks < PS_RELAY_TALLY_CLOCKS && at_us - self->at_us < PS_RELAY_TALLY_LONG_US))) {
        return;
    }
    if (!begins) {
        self->clock_us = (at_us - self->at_us) / clocks;
        self->clock_bytes = (report->bytes - self->pushed) / clocks;
    }
    self->clock = report->clock;
    self->at_us = at_us;
    self->pushed = report->bytes;
}

void ps_relay_tally_hear(ps_relay_tally_t *self, const ps_relay_facts_t *facts, uint32_t worker,
                         const ps_overlay_report_t *report, uint64_t now_us)
{
    size_t from = ps_relay_facts_find(facts, worker);

    if (from >= self->n_workers) {
        return;
    }
    for (uint32_t i = 0; self->links != NULL && i < report->n_links; i++) {
        const ps_overlay_link_t *link = &report->links[i];
        size_t to =
            link->to == PS_OVERLAY_NODES ? self->n_workers : ps_relay_facts_find(facts, link->to);

        if (to <= self->n_workers && to != from) {
            note_link(self, (uint32_t)from, (uint32_t)to, link, now_us);
        }
    }
    if (report->counts.has) {
        self->counts[from] = report->counts;
    }
    if (from == 0) {
        note_clock(self, report, now_us);
    }
}

const ps_relay_tally_link_t *ps_relay_tally_link(const ps_relay_tally_t *self, uint32_t from,
                                                 uint32_t to)
{
    const ps_relay_tally_link_t *link = NULL;

    if (self->links == NULL || from >= self->n_workers || to > self->n_workers) {
        return NULL;
    }
    link = &self->links[(size_t)from * (self->n_workers + 1) + to];
    return link->bytes == 0 ? NULL : link;
}

double ps_relay_tally_rate(const ps_relay_tally_link_t *link)
{
    return (double)link->last_bytes * 1e6 / (double)link->last_us;
}
