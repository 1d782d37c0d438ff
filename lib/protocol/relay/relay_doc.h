/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_relay_facts - a plan as the registry hands it out, with what members need to meet
 *
 * What     Which workers of a job pass deltas on, where each one's relay listens, who sends to
 *          whom for each colour, and the job's key, by which relays know each other. It has a
 *          version and begins at a clock.
 * Shape    {"plan":v,"clock":c,"key":id,"colours":k,"workers":[{"worker":0,"joins":1,
 *          "members":1,"relay":"tcp://…"},…],"parents":[…]}: workers ascend; parents has one
 *          number for each worker of each colour, 0 for the nodes, else the parent's place in
 *          workers, from 1. A relay that speaks CURVE names its public key: "tcp://…#KEY", with
 *          64 digits of base 16.
 * Owner    ps_relay_facts_done; zeroed: there is no plan.
 * Threads  Plain values.
 */
#ifndef PS_PROTOCOL_RELAY_DOC_H
#define PS_PROTOCOL_RELAY_DOC_H

#include "protocol/relay/relay_plan.h"
#include "protocol/relay/report.h"
#include "wire/messages/doc.h"
#include "wire/messages/route.h"

typedef struct ps_relay_member {
    uint32_t worker; /* its rank, which is its position */
    uint32_t joins;
    uint32_t members; /* its clients, from 1 */
    char relay[PS_ENDPOINT_MAX + 1];
    /* the registry's own: */
    bool is_auto; /* PSD_OVERLAY=auto */
    ps_site_t site;
    ps_may_t may; /* to whom it may send, where workers say that */
} ps_relay_member_t;

typedef struct ps_relay_facts {
    uint64_t version; /* 0: there is no plan */
    uint64_t clock;   /* it begins with the deltas of this one */
    ps_id_t key;
    uint32_t n_colours;
    size_t n_members;
    ps_relay_member_t *members; /* owned; ascending by worker */
    uint32_t *parents;          /* owned, [n_colours][n_members]: a place, or PS_OVERLAY_NODES */
} ps_relay_facts_t;

void ps_relay_facts_done(ps_relay_facts_t *self);
/* True for an address that a relay may have: "tcp://", then letters, digits and .:-_[], and perhaps
 * its key. */
bool ps_relay_endpoint_is_good(const char *text);
/* Sets all keys in doc. false: no memory. */
PSD_MUST_CHECK bool ps_relay_facts_to_doc(const ps_relay_facts_t *self, ps_doc_t *doc);
/* Errors: PSD_PROTO, PSD_INVALID what no registry says; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_relay_facts_from_doc(const ps_doc_t *doc, ps_relay_facts_t *ret,
                                                    psd_error_t *err);
/* The place of that worker; SIZE_MAX: it is not in the plan. */
size_t ps_relay_facts_find(const ps_relay_facts_t *self, uint32_t worker);
/* By this plan, does that worker send only to those that it may? rows: rows go back, too. A
 * registry that does not know what the worker may makes any plan. */
bool ps_relay_facts_keep_to(const ps_relay_facts_t *self, uint32_t worker, const ps_may_t *may,
                            bool rows);
/* The plan for a relay; without measured rates. Errors: as ps_relay_take_plan; PSD_NOMEM. */
struct ps_relay;
PSD_MUST_CHECK psd_status_t ps_relay_facts_give(const ps_relay_facts_t *self,
                                                struct ps_relay *relay, psd_error_t *err);
#endif
