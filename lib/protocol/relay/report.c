/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of workers in JSON. */
#include "protocol/relay/report.h"

#include <string.h>

#include "protocol/relay/relay_plan.h"

#define LONGEST_US (UINT64_C(86400) * 1000000)
#define POLICY_MAX 16 /* bytes of a policy's name */

static bool add_link(const ps_overlay_link_t *link, ps_doc_t *array)
{
    ps_doc_t *doc = ps_doc_append_object(array);

    return doc != NULL &&
           (link->to == PS_OVERLAY_NODES || ps_doc_set_u64(doc, "worker", link->to)) &&
           ps_doc_set_u64(doc, "bytes", link->bytes) && ps_doc_set_u64(doc, "us", link->us);
}

bool ps_overlay_report_to_doc(const ps_overlay_report_t *self, ps_doc_t *doc)
{
    ps_doc_t *links = ps_doc_add_array(doc, "links");
    bool fits = links != NULL && ps_doc_set_text(doc, "policy", self->is_auto ? "auto" : "tree") &&
                ps_doc_set_u64(doc, "clock", self->clock) &&
                ps_doc_set_u64(doc, "ago_us", self->ago_us) &&
                ps_doc_set_u64(doc, "bytes", self->bytes);

    for (uint32_t i = 0; fits && i < self->n_links; i++) {
        fits = add_link(&self->links[i], links);
    }
    return fits;
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

psd_status_t ps_overlay_report_from_doc(const ps_doc_t *doc, ps_overlay_report_t *ret,
                                        psd_error_t *err)
{
    ps_overlay_report_t self = {.n_links = 0};
    const ps_doc_t *links = NULL;
    const char *policy = "";
    psd_status_t rc = ps_doc_get_text(doc, "policy", POLICY_MAX, &policy, err);

    self.is_auto = strcmp(policy, "auto") == 0;
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
