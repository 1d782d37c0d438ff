/* SPDX-License-Identifier: Apache-2.0 */
/* The overlay of a job, for people: its plan, why it is that one, and what workers have reported.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "server/nodes/overlay_job.h"

#define LINKS_SHOWN 4096
#define WHY_SIZE 160

/* ---- links ---- */

/* Does the plan count on what was measured there? */
static bool is_known(const ps_overlay_job_t *self, uint32_t from, uint32_t to)
{
    return (ps_overlay_job_has_turns(self) ? ps_overlay_matcher_rate(&self->matcher, from, to)
                                           : ps_overlay_pilot_rate(&self->pilot, from, to)) > 0;
}

static bool add_link(const ps_overlay_job_t *self, uint32_t from, uint32_t to, uint64_t now_us,
                     ps_doc_t *array)
{
    const ps_relay_facts_t *facts = &self->facts;
    const ps_relay_tally_link_t *link = ps_relay_tally_link(&self->tally, from, to);
    ps_doc_t *doc = ps_doc_append_object(array);
    bool measures = self->is_auto || ps_overlay_job_has_turns(self);

    return doc != NULL && ps_doc_set_u64(doc, "from", facts->members[from].worker) &&
           (to == facts->n_members || ps_doc_set_u64(doc, "to", facts->members[to].worker)) &&
           ps_doc_set_u64(doc, "bytes", link->bytes) &&
           ps_doc_set_u64(doc, "bytes_s", (uint64_t)fmin(ps_relay_tally_rate(link), 1e15)) &&
           ps_doc_set_u64(doc, "age_ms",
                          now_us > link->at_us ? (now_us - link->at_us) / 1000 : 0) &&
           (!measures || ps_doc_set_bool(doc, "known", is_known(self, from, to)));
}

/* Of the plan, or to the nodes. */
static bool is_in_use(const ps_overlay_job_t *self, uint32_t from, uint32_t to)
{
    const ps_relay_facts_t *facts = &self->facts;

    for (uint32_t colour = 0; to < facts->n_members && colour < facts->n_colours; colour++) {
        if (facts->parents[colour * facts->n_members + from] == to) {
            return true;
        }
    }
    return to == facts->n_members;
}

/* Those that are in use, or the others, as long as there is room. */
static bool add_some(const ps_overlay_job_t *self, bool in_use, uint64_t now_us, ps_doc_t *array,
                     uint64_t *n_hidden)
{
    uint32_t n = self->tally.n_workers == self->facts.n_members ? self->tally.n_workers : 0;
    bool fits = true;

    for (uint32_t from = 0; fits && from < n; from++) {
        for (uint32_t to = 0; fits && to <= n; to++) {
            if (ps_relay_tally_link(&self->tally, from, to) == NULL ||
                is_in_use(self, from, to) != in_use) {
                continue;
            }
            if (ps_doc_count(array) < LINKS_SHOWN) {
                fits = add_link(self, from, to, now_us, array);
            } else {
                ++*n_hidden;
            }
        }
    }
    return fits;
}

static bool add_links(const ps_overlay_job_t *self, uint64_t now_us, ps_doc_t *overlay)
{
    ps_doc_t *array = ps_doc_add_array(overlay, "links");
    uint64_t n_hidden = 0;

    return array != NULL && add_some(self, true, now_us, array, &n_hidden) &&
           add_some(self, false, now_us, array, &n_hidden) &&
           (n_hidden == 0 || ps_doc_set_u64(overlay, "links_hidden", n_hidden));
}

/* ---- what auto has chosen ---- */

static void print_gain(const ps_overlay_pilot_t *pilot, char ret_text[WHY_SIZE])
{
    (void)snprintf(ret_text, WHY_SIZE,
                   "a tree promises clocks of %.3f s, and the star takes %.3f s; a tree must be "
                   "%.1f times faster",
                   pilot->tree_s, pilot->star_s, PS_OVERLAY_GAIN);
}

/* Why there is no tree; empty: there is one. */
static void print_why(const ps_overlay_job_t *self, char ret_text[WHY_SIZE])
{
    const ps_overlay_pilot_t *pilot = &self->pilot;
    uint32_t place = 0;

    ret_text[0] = '\0';
    switch (ps_overlay_pilot_why(pilot, &place)) {
    case PS_WHY_ALONE:
        (void)snprintf(ret_text, WHY_SIZE, "a tree needs two workers with a relay");
        break;
    case PS_WHY_LARGE:
        (void)snprintf(ret_text, WHY_SIZE, "psd computes trees of up to %u workers",
                       PS_OVERLAY_PILOT_WORKERS);
        break;
    case PS_WHY_NEW:
        (void)snprintf(ret_text, WHY_SIZE, "psd still measures how long clocks of the star take");
        break;
    case PS_WHY_WAIT:
        (void)snprintf(ret_text, WHY_SIZE,
                       "the last tree was slower than the star; the next one may come in %" PRIu64
                       " reports",
                       pilot->choice.wait_until - pilot->turn);
        break;
    case PS_WHY_SMALL:
        (void)snprintf(ret_text, WHY_SIZE,
                       "a worker pushes %.0f bytes in a clock; a tree needs %u or more",
                       pilot->bytes, PS_RATES_MEASURE_BYTES);
        break;
    case PS_WHY_UNKNOWN:
        (void)snprintf(ret_text, WHY_SIZE,
                       "it is not known how fast worker %" PRIu32 " sends to the nodes",
                       self->facts.members[place].worker);
        break;
    case PS_WHY_GAIN:
        print_gain(pilot, ret_text);
        break;
    case PS_WHY_PAUSE:
        (void)snprintf(ret_text, WHY_SIZE, "psd makes its next plan %.0f s after the last one",
                       (double)pilot->pause_us / 1e6);
        break;
    case PS_WHY_NONE:
    default:
        break;
    }
}

static bool add_pilot(const ps_overlay_job_t *self, ps_doc_t *overlay)
{
    const ps_overlay_pilot_t *pilot = &self->pilot;
    bool is_tree = pilot->choice.uses_tree;
    uint64_t wait =
        pilot->choice.wait_until > pilot->turn ? pilot->choice.wait_until - pilot->turn : 0;
    char why[WHY_SIZE];

    print_why(self, why);
    return ps_doc_set_text(overlay, "uses", is_tree ? "tree" : "star") &&
           (why[0] == '\0' || ps_doc_set_text(overlay, "why", why)) &&
           ps_doc_set_u64(overlay, "clock_us", (uint64_t)(pilot->clock_s * 1e6)) &&
           ps_doc_set_u64(overlay, "star_us", (uint64_t)(pilot->star_s * 1e6)) &&
           ps_doc_set_u64(overlay, "promised_us",
                          is_tree ? (uint64_t)(pilot->plan.seconds * 1e6) : 0) &&
           ps_doc_set_u64(overlay, "clock_bytes", (uint64_t)pilot->bytes) &&
           ps_doc_set_u64(overlay, "next_try", wait);
}

/* Clocks of the other policies, as far as they were measured. */
static bool add_clock(const ps_relay_tally_t *tally, ps_doc_t *overlay)
{
    return (tally->clock_us == 0 || ps_doc_set_u64(overlay, "clock_us", tally->clock_us)) &&
           (tally->clock_bytes == 0 || ps_doc_set_u64(overlay, "clock_bytes", tally->clock_bytes));
}

/* ---- workers ---- */

/* Whom it sends to, for each colour: "worker 3", "nodes"; where it is, without its key; and how its
 * links to other relays are, which have keys or none. */
static bool add_way(const ps_overlay_job_t *self, size_t i, ps_doc_t *array)
{
    const ps_relay_facts_t *facts = &self->facts;
    const ps_overlay_counts_t *counts = i < self->tally.n_workers ? &self->tally.counts[i] : NULL;
    char relay[PS_ENDPOINT_MAX + 1];
    ps_doc_t *doc = ps_doc_append_object(array);
    ps_doc_t *to = doc == NULL ? NULL : ps_doc_add_array(doc, "sends_to");
    bool fits = to != NULL && ps_doc_set_u64(doc, "worker", facts->members[i].worker);

    (void)snprintf(relay, sizeof relay, "%.*s", (int)strcspn(facts->members[i].relay, "#"),
                   facts->members[i].relay);
    fits = fits && ps_doc_set_text(doc, "relay", relay) &&
           ps_doc_set_text(doc, "link",
                           strchr(facts->members[i].relay, '#') == NULL ? "plain" : "curve");

    for (uint32_t colour = 0; fits && colour < facts->n_colours; colour++) {
        uint32_t parent = facts->parents[colour * facts->n_members + i];
        char text[32] = "nodes";

        if (parent != PS_OVERLAY_NODES) {
            (void)snprintf(text, sizeof text, "worker %u", facts->members[parent].worker);
        }
        fits = ps_doc_append_text(to, text);
    }
    return fits && (counts == NULL || !counts->has || ps_overlay_counts_to_doc(counts, doc)) &&
           (facts->members[i].site.name[0] == '\0' ||
            ps_doc_set_text(doc, "site", facts->members[i].site.name));
}

static const char *policy_of(const ps_overlay_job_t *self)
{
    return ps_overlay_job_has_turns(self) ? ps_policy_name(self->rules.policy)
           : self->is_auto                ? "auto"
                                          : "tree";
}

bool ps_overlay_job_view(const ps_overlay_job_t *self, uint64_t now_us, ps_doc_t *doc)
{
    const ps_relay_facts_t *facts = &self->facts;
    ps_doc_t *overlay = ps_doc_add_object(doc, "overlay");
    ps_doc_t *workers = overlay == NULL ? NULL : ps_doc_add_array(overlay, "workers");
    bool fits = workers != NULL && ps_doc_set_text(overlay, "policy", policy_of(self)) &&
                ps_doc_set_u64(overlay, "plan", facts->version) &&
                ps_doc_set_u64(overlay, "clock", facts->clock) &&
                (self->is_auto ? add_pilot(self, overlay) : add_clock(&self->tally, overlay)) &&
                add_links(self, now_us, overlay);

    for (size_t i = 0; fits && i < facts->n_members; i++) {
        fits = add_way(self, i, workers);
    }
    return fits;
}
