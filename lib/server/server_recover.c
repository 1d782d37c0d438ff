/* SPDX-License-Identifier: Apache-2.0 */
/* What an operator asks for once, when members of the registry are lost. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/log.h"
#include "server/nodes/heard_file.h"
#include "server/quorum/force.h"
#include "server/server_inner.h"
#include "wire/messages/reply.h"

#define ASK_MS 5000 /* for one of the others to answer */
#define PROBE "{\"v\":1,\"id\":1,\"op\":\"registry_probe\",\"session\":0}"
#define NUMBERS_ABOVE UINT32_C(65536) /* as a restore */
#define SESSIONS_ABOVE (UINT64_C(1) << 32)
#define NUMBERS_UNKNOWN (UINT32_C(1) << 30) /* where it is not known what was given out */
#define SESSION_SHIFT 20 /* more than sessions in a second; seconds so shifted fit 53 bits */

/* ---- do others answer? ---- */

typedef struct links {
    ps_socket_t *at[PS_SEATS_MAX]; /* owned */
    size_t n;
} links_t;

static void links_done(links_t *self)
{
    for (size_t i = 0; i < self->n; i++) {
        ps_socket_drop(&self->at[i]);
    }
}

static psd_status_t open_links(const ps_server_t *self, const ps_seat_t *others, size_t n,
                               links_t *links, psd_error_t *err)
{
    const ps_socket_args_t args = ps_server_socket_args(self);
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && links->n < n) {
        ps_socket_t **link = &links->at[links->n];

        rc = ps_socket_connect(others[links->n].endpoint, &args, link, err);
        if (rc == PSD_OK) {
            links->n++;
            rc = ps_socket_send_text(
                *link, 0, (ps_bytes_t){.data = (const uint8_t *)PROBE, .size = strlen(PROBE)}, err);
        }
    }
    return rc;
}

/* A node whose registry is elsewhere, and silent, says so. */
static bool has_registry(ps_bytes_t text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    const ps_doc_t *leader = NULL;

    return ps_doc_parse(text, &doc, NULL) == PSD_OK &&
           (ps_reply_status(doc, NULL) != PSD_NOT_LEADER ||
            ps_doc_get_object(doc, "leader", &leader, NULL) == PSD_OK);
}

/* The first of them that answers, and has the registry or knows one; n: none by then. */
static psd_status_t find_answer(links_t *links, bool any, size_t *ret_at, psd_error_t *err)
{
    uint64_t until_ms = ps_now_ms() + ASK_MS;
    uint64_t now_ms = ps_now_ms();
    psd_status_t rc = PSD_OK;

    *ret_at = links->n;
    while (rc == PSD_OK && *ret_at == links->n && links->n > 0 && now_ms < until_ms) {
        bool ready[PS_SEATS_MAX] = {false};

        rc = ps_socket_wait(links->at, links->n, until_ms - now_ms, ready, err);
        for (size_t i = 0; rc == PSD_OK && i < links->n; i++) {
            PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
            uint64_t conn = 0;
            bool got = false;

            rc = ps_socket_receive_text(links->at[i], &got, &conn, &text, err);
            if (rc == PSD_OK && got &&
                (any || has_registry((ps_bytes_t){.data = text.data, .size = text.size}))) {
                *ret_at = i;
                break;
            }
        }
        now_ms = ps_now_ms();
    }
    return rc;
}

static psd_status_t ask(const ps_server_t *self, const ps_seat_t *others, size_t n, bool any,
                        psd_error_t *err)
{
    PSD_AUTO(links_done) links_t links = {.n = 0};
    size_t at = n;
    psd_status_t rc = PSD_OK;

    if (self->config->recover_anyway) {
        return PSD_OK;
    }
    rc = open_links(self, others, n, &links, err);
    if (rc == PSD_OK) {
        rc = find_answer(&links, any, &at, err);
    }
    if (rc != PSD_OK || at == n) {
        return rc;
    }
    return psd_error_set(err, PSD_DENIED,
                         any ? "node \"%s\" at %s, whose registry votes, answers: stop it, or, if "
                               "its part of the registry is lost, add --yes"
                             : "node \"%s\" at %s answers, and has the registry or knows one that "
                               "does: join that one, or stop it, or add --yes",
                         others[at].node, others[at].endpoint);
}

/* ---- forced ---- */

static psd_status_t ask_voters(void *context, const ps_seat_t *others, size_t n, psd_error_t *err)
{
    return ask(context, others, n, true, err);
}

static psd_status_t force(ps_server_t *self, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (!ps_server_has_registry(self)) {
        return psd_error_set(err, PSD_INVALID,
                             "data directory %s has no registry to go on from; "
                             "--rebuild-registry makes one from the nodes",
                             self->dir);
    }
    rc = ps_force(self->dir, ps_unix_ms(), ask_voters, self, err);
    return rc == PSD_OK ? ps_server_own_registry(self, NULL, NULL, err) : rc;
}

/* ---- rebuilt ---- */

/* The registry may live on at one of these. */
static psd_status_t ask_members(const ps_server_t *self, const ps_members_t *members,
                                psd_error_t *err)
{
    ps_seat_t others[PS_SEATS_MAX];
    size_t n = 0;

    while (n < members->n && n < PS_SEATS_MAX) {
        memcpy(others[n].node, members->items[n].node, sizeof others[n].node);
        memcpy(others[n].endpoint, members->items[n].endpoint, sizeof others[n].endpoint);
        n++;
    }
    return ask(self, others, n, false, err);
}

/* Far above all that was given out, as far as this node knows; sessions also above those of
 * an earlier rebuild. */
static ps_rebuild_t numbers_above(const ps_heard_file_t *file)
{
    uint64_t by_time = (uint64_t)time(NULL) << SESSION_SHIFT;
    uint64_t by_number = file->heard.session + SESSIONS_ABOVE;
    uint32_t last_table = file->heard.last_table;
    ps_rebuild_t numbers = {.session = by_time > by_number ? by_time : by_number};

    for (size_t i = 0; i < file->heard.n_aside; i++) {
        last_table = file->heard.aside[i] > last_table ? file->heard.aside[i] : last_table;
    }
    numbers.last_table = file->is_there ? last_table + NUMBERS_ABOVE : NUMBERS_UNKNOWN;
    numbers.last_job = file->is_there ? file->heard.last_job + NUMBERS_ABOVE : NUMBERS_UNKNOWN;
    return numbers;
}

static psd_status_t rebuild(ps_server_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_heard_file_done) ps_heard_file_t file = {.is_there = false};
    ps_belonging_t known = {.is_there = false};
    ps_rebuild_t numbers;
    psd_status_t rc = ps_heard_file_read(self->dir, &file, err);

    if (rc == PSD_OK) {
        rc = ps_server_read_membership(self, &known, err);
    }
    if (rc == PSD_OK && !file.is_there && !known.is_there) {
        rc = psd_error_set(err, PSD_INVALID,
                           "data directory %s belongs to no cluster: use that of a node that had "
                           "joined one",
                           self->dir);
    }
    if (rc == PSD_OK) {
        rc = ask_members(self, &known.members, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    numbers = numbers_above(&file);
    numbers.name = file.is_there ? file.name : known.name;
    numbers.cluster = file.is_there ? file.cluster : known.cluster;
    rc = ps_rebuild(self->dir, ps_unix_ms(), &numbers, err);
    return rc == PSD_OK ? ps_server_own_registry(self, &numbers.cluster, numbers.name, err) : rc;
}

psd_status_t ps_server_recover(ps_server_t *self, psd_error_t *err)
{
    switch (self->config->recover) {
    case PS_RECOVER_FORCE:
        return force(self, err);
    case PS_RECOVER_REBUILD:
        return rebuild(self, err);
    case PS_RECOVER_NOT:
    default:
        return PSD_OK;
    }
}

/* ---- a registry that is gone ---- */

psd_status_t ps_server_check_lost(const ps_server_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_heard_file_done) ps_heard_file_t file = {.is_there = false};
    psd_status_t rc = ps_heard_file_read(self->dir, &file, err);

    if (rc != PSD_OK || !file.is_there) {
        return rc;
    }
    return psd_error_set(err, PSD_FOREIGN,
                         "data directory %s belongs to cluster \"%s\", and its registry is gone: "
                         "start it with --join and another node, restore a backup (pscli cluster "
                         "restore), or, when all registries are lost, start it with "
                         "--rebuild-registry",
                         self->dir, file.name);
}

psd_status_t ps_server_check_age(const ps_server_t *self, psd_error_t *err)
{
    PSD_AUTO(ps_heard_file_done) ps_heard_file_t file = {.is_there = false};
    const ps_applied_t at = ps_registry_db_applied(ps_replica_db(self->replica));
    const ps_moment_t moment = {.lineage = *ps_registry_lineage(ps_replica_registry(self->replica)),
                                .term = at.term,
                                .index = at.index};
    psd_status_t rc = ps_heard_file_read(self->dir, &file, err);

    if (rc != PSD_OK || ps_replica_has_log(self->dir) ||
        ps_heard_judge(&file.heard, &moment) != PS_HEARD_OLDER) {
        return rc;
    }
    return psd_error_set(err, PSD_DAMAGED,
                         "the registry of data directory %s is an older one: it ends at change "
                         "%" PRIu64 ", and this node has heard of change %" PRIu64
                         "; restore the newest, or start once with --force-new-registry, and "
                         "tables that it does not know are kept aside",
                         self->dir, moment.index, file.heard.at.index);
}
