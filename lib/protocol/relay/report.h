/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_overlay_report - what a worker wants and has measured, as its heartbeat says it
 *
 * What     Its policy, how fast its transfers to the nodes and to other workers were, when it
 *          finished a clock, and how many bytes of deltas it has pushed until then.
 * Shape    {"policy":"auto","clock":c,"ago_us":t,"bytes":b,"links":[{"worker":1,"bytes":b,
 *          "us":t},…]}: a link without "worker" is the one to the nodes. With pairs and queue
 *          also "num", "ratio", "expiry", "greed" and "rows" (they go back the same way); and
 *          "may":[1,4,…], ranges of the workers to which it may send, first and last, ascending,
 *          where that is not every one. "lent", "direct", "returned", "bundles" and "refused" are
 *          what it has counted since it joined; a worker of an earlier build says none of them.
 *          Where they are not "", false and true: "site":"a", "between":true, and "within":false.
 * Units    Bytes; microseconds.
 * Owner    Plain values.
 */
#ifndef PS_PROTOCOL_RELAY_REPORT_H
#define PS_PROTOCOL_RELAY_REPORT_H

#include "protocol/overlay/network.h"
#include "protocol/overlay/overlay_rules.h"
#include "protocol/overlay/site.h"
#include "psd/status.h"
#include "wire/messages/doc.h"

#define PS_OVERLAY_REPORT_LINKS 17u /* a parent for each colour, and the nodes */

typedef struct ps_overlay_link {
    uint32_t to; /* a worker, or PS_OVERLAY_NODES */
    uint64_t bytes;
    uint64_t us;
} ps_overlay_link_t;

/* Since the worker joined. */
typedef struct ps_overlay_counts {
    bool has;          /* it says them */
    uint64_t lent;     /* pushes and marks that it gave to its relay … */
    uint64_t returned; /* … and of these, which came back … */
    uint64_t direct;   /* … and others, which it sent to the nodes at once */
    uint64_t bundles;  /* that its relay sent, and that were taken … */
    uint64_t refused;  /* … or not */
} ps_overlay_counts_t;

/* false: no memory. */
bool ps_overlay_counts_to_doc(const ps_overlay_counts_t *self, ps_doc_t *doc);

typedef struct ps_overlay_report {
    ps_overlay_rules_t rules;
    ps_site_t site;
    ps_may_t may;    /* where rules.is_listed: to whom it may send */
    uint64_t clock;  /* that it finished last … */
    uint64_t ago_us; /* … and how long ago */
    uint64_t bytes;  /* of deltas, pushed until then; only the difference of two counts */
    ps_overlay_counts_t counts;
    uint32_t n_links;
    ps_overlay_link_t links[PS_OVERLAY_REPORT_LINKS];
} ps_overlay_report_t;

/* Sets all keys in doc. false: no memory. */
PSD_MUST_CHECK bool ps_overlay_report_to_doc(const ps_overlay_report_t *self, ps_doc_t *doc);
/* Errors: PSD_PROTO, PSD_INVALID what no worker says. */
PSD_MUST_CHECK psd_status_t ps_overlay_report_from_doc(const ps_doc_t *doc,
                                                       ps_overlay_report_t *ret, psd_error_t *err);
#endif
