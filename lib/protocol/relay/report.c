/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of workers in JSON. */
#include "protocol/relay/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "model/combine/combine.h"
#include "protocol/facts/job.h"
#include "protocol/relay/relay_plan.h"

#define LONGEST_US (UINT64_C(86400) * 1000000)
#define POLICY_MAX 16 /* bytes of a policy's name */

static_assert(PS_OVERLAY_RANKS == PS_WORKERS_MAX && PS_OVERLAY_RANKS == PS_COMBINE_POSITIONS,
              "the ranks of a job");

static bool add_link(const ps_overlay_link_t *link, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL &&
           (link->to == PS_OVERLAY_NODES || ps_doc_set_u64(doc, "worker", link->to)) &&
           ps_doc_set_u64(doc, "bytes", link->bytes) && ps_doc_set_u64(doc, "us", link->us);
}

/* Ranges, as every heartbeat says them: a worker that may send to all but itself needs two. */
static bool add_may(const ps_may_t *may, ps_doc_t *array)
{
    bool fits = array != NULL;

    for (uint32_t rank = 0; fits && rank < PS_OVERLAY_RANKS; rank++) {
        bool begins = ps_may_has(may, rank) && (rank == 0 || !ps_may_has(may, rank - 1));
        bool ends = ps_may_has(may, rank) && !ps_may_has(may, rank + 1);

        fits = (!begins || ps_doc_append_u64(array, rank)) &&
               (!ends || ps_doc_append_u64(array, rank));
    }
    return fits;
}

/* What only pairs and queue go by. */
static bool add_turns(const ps_overlay_report_t *self, ps_doc_t *doc)
{
    const ps_overlay_rules_t *rules = &self->rules;

    return ps_doc_set_u64(doc, "num", rules->num) && ps_doc_set_f64(doc, "ratio", rules->ratio) &&
           ps_doc_set_u64(doc, "expiry", rules->expiry) &&
           ps_doc_set_f64(doc, "greed", rules->greed) &&
           ps_doc_set_bool(doc, "rows", rules->both_ways) &&
           (!rules->is_listed || add_may(&self->may, ps_doc_add_array(doc, "may")));
}

bool ps_overlay_counts_to_doc(const ps_overlay_counts_t *self, ps_doc_t *doc)
{
    return ps_doc_set_u64(doc, "lent", self->lent) &&
           ps_doc_set_u64(doc, "returned", self->returned) &&
           ps_doc_set_u64(doc, "direct", self->direct) &&
           ps_doc_set_u64(doc, "bundles", self->bundles) &&
           ps_doc_set_u64(doc, "refused", self->refused);
}

/* Where it is, and what that means. */
static bool add_site(const ps_overlay_report_t *self, ps_doc_t *doc)
{
    return (self->site.name[0] == '\0' || ps_doc_set_text(doc, "site", self->site.name)) &&
           (!self->rules.between || ps_doc_set_bool(doc, "between", true)) &&
           (!self->rules.apart || ps_doc_set_bool(doc, "within", false));
}

bool ps_overlay_report_to_doc(const ps_overlay_report_t *self, ps_doc_t *doc)
{
    ps_doc_t *links = ps_doc_add_array(doc, "links");
    bool fits =
        links != NULL && ps_doc_set_text(doc, "policy", ps_policy_name(self->rules.policy)) &&
        ps_doc_set_u64(doc, "clock", self->clock) && ps_doc_set_u64(doc, "ago_us", self->ago_us) &&
        ps_doc_set_u64(doc, "bytes", self->bytes);

    for (uint32_t i = 0; fits && i < self->n_links; i++) {
        fits = add_link(&self->links[i], links);
    }
    return fits && add_site(self, doc) &&
           (!self->counts.has || ps_overlay_counts_to_doc(&self->counts, doc)) &&
           (!ps_policy_has_turns(self->rules.policy) || add_turns(self, doc));
}

static psd_status_t read_link(const ps_doc_t *doc, ps_overlay_link_t *ret, psd_error_t *err)
{
    uint64_t to = PS_OVERLAY_NODES;
    psd_status_t rc =
        ps_doc_get_u64_or(doc, "worker", 0, UINT32_MAX - 1, PS_OVERLAY_NODES, &to, err);

    ret->to = (uint32_t)to;
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "bytes", 0, INT64_MAX, &ret->bytes, err);
    }
    return rc == PSD_OK ? ps_doc_get_u64(doc, "us", 1, INT64_MAX, &ret->us, err) : rc;
}

static psd_status_t read_links(const ps_doc_t *array, ps_overlay_report_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && self->n_links < ps_doc_count(array)) {
        const ps_doc_t *doc = NULL;

        rc = ps_doc_at_object(array, self->n_links, &doc, err);
        if (rc == PSD_OK) {
            rc = read_link(doc, &self->links[self->n_links++], err);
        }
    }
    return rc;
}

/* least: where it may begin; *ret_next: where the next one may. */
static psd_status_t read_range(const ps_doc_t *array, size_t i, uint64_t least, ps_may_t *ret,
                               uint64_t *ret_next, psd_error_t *err)
{
    uint64_t first = 0;
    uint64_t last = 0;
    psd_status_t rc = ps_doc_at_u64(array, i, &first, err);

    if (rc == PSD_OK) {
        rc = ps_doc_at_u64(array, i + 1, &last, err);
    }
    if (rc == PSD_OK && (first < least || last < first || last >= PS_OVERLAY_RANKS)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "overlay.may has workers %" PRIu64 " to %" PRIu64
                           "; allowed: ascending ranges from %" PRIu64 " to %u",
                           first, last, least, PS_OVERLAY_RANKS - 1);
    }
    for (uint64_t rank = first; rc == PSD_OK && rank <= last; rank++) {
        ps_may_set(ret, (uint32_t)rank, true);
    }
    *ret_next = last + 1;
    return rc;
}

static psd_status_t read_may(const ps_doc_t *doc, ps_overlay_report_t *self, psd_error_t *err)
{
    const ps_doc_t *array = NULL;
    uint64_t next = 0;
    psd_status_t rc = ps_doc_get_array(doc, "may", PS_OVERLAY_RANKS, &array, err);
    size_t n = rc == PSD_OK ? ps_doc_count(array) : 0;

    if (n % 2 != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "overlay.may has %zu numbers; allowed: two for each range", n);
    }
    for (size_t i = 0; rc == PSD_OK && i < n; i += 2) {
        rc = read_range(array, i, next, &self->may, &next, err);
    }
    return rc;
}

/* A number from 0 to 1. */
static psd_status_t read_share(const ps_doc_t *doc, const char *key, double *ret, psd_error_t *err)
{
    psd_status_t rc = ps_doc_get_f64(doc, key, ret, err);

    return rc == PSD_OK && !(*ret >= 0 && *ret <= 1)
               ? psd_error_set(err, PSD_INVALID, "overlay.%s is %g; allowed: 0..1", key, *ret)
               : rc;
}

static psd_status_t read_turns(const ps_doc_t *doc, ps_overlay_report_t *self, psd_error_t *err)
{
    ps_overlay_rules_t *rules = &self->rules;
    uint64_t num = 0;
    uint64_t expiry = 0;
    psd_status_t rc = ps_doc_get_u64(doc, "num", 0, PS_OVERLAY_RANKS, &num, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "expiry", 1, UINT32_MAX, &expiry, err);
    }
    if (rc == PSD_OK) {
        rc = read_share(doc, "ratio", &rules->ratio, err);
    }
    if (rc == PSD_OK) {
        rc = read_share(doc, "greed", &rules->greed, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_bool(doc, "rows", &rules->both_ways, err);
    }
    rules->num = (uint32_t)num;
    rules->expiry = (uint32_t)expiry;
    rules->is_listed = ps_doc_has(doc, "may");
    return rc == PSD_OK && rules->is_listed ? read_may(doc, self, err) : rc;
}

static psd_status_t read_counts(const ps_doc_t *doc, ps_overlay_counts_t *ret, psd_error_t *err)
{
    struct {
        const char *key;
        uint64_t *at;
    } counts[] = {{"lent", &ret->lent},
                  {"returned", &ret->returned},
                  {"direct", &ret->direct},
                  {"bundles", &ret->bundles},
                  {"refused", &ret->refused}};
    psd_status_t rc = PSD_OK;

    ret->has = ps_doc_has(doc, "lent");
    for (size_t i = 0; rc == PSD_OK && ret->has && i < sizeof counts / sizeof *counts; i++) {
        rc = ps_doc_get_u64(doc, counts[i].key, 0, INT64_MAX, counts[i].at, err);
    }
    return rc;
}

static psd_status_t read_site(const ps_doc_t *doc, ps_overlay_report_t *self, psd_error_t *err)
{
    const char *site = "";
    bool within = true;
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(doc, "site")) {
        rc = ps_doc_get_text(doc, "site", PS_NAME_MAX, &site, err);
        (void)snprintf(self->site.name, sizeof self->site.name, "%s", site);
    }
    if (rc == PSD_OK && site[0] != '\0' && !ps_text_is_name(site)) {
        rc = psd_error_set(err, PSD_INVALID,
                           "overlay.site is \"%s\"; allowed: letters, digits and \"_.-\"", site);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "between")) {
        rc = ps_doc_get_bool(doc, "between", &self->rules.between, err);
    }
    if (rc == PSD_OK && ps_doc_has(doc, "within")) {
        rc = ps_doc_get_bool(doc, "within", &within, err);
    }
    self->rules.apart = !within;
    return rc;
}

psd_status_t ps_overlay_report_from_doc(const ps_doc_t *doc, ps_overlay_report_t *ret,
                                        psd_error_t *err)
{
    ps_overlay_report_t self = {.n_links = 0};
    const ps_doc_t *links = NULL;
    const char *policy = "";
    psd_status_t rc = ps_doc_get_text(doc, "policy", POLICY_MAX, &policy, err);

    if (rc == PSD_OK && ps_policy_find(policy, &self.rules.policy) &&
        ps_policy_has_turns(self.rules.policy)) {
        rc = read_turns(doc, &self, err);
    }
    if (rc == PSD_OK) {
        rc = read_site(doc, &self, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "clock", 0, INT64_MAX, &self.clock, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "ago_us", 0, LONGEST_US, &self.ago_us, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_u64(doc, "bytes", 0, INT64_MAX, &self.bytes, err);
    }
    if (rc == PSD_OK) {
        rc = read_counts(doc, &self.counts, err);
    }
    if (rc == PSD_OK) {
        rc = ps_doc_get_array(doc, "links", PS_OVERLAY_REPORT_LINKS, &links, err);
    }
    if (rc == PSD_OK) {
        rc = read_links(links, &self, err);
    }
    if (rc == PSD_OK) {
        *ret = self;
    }
    return rc;
}
