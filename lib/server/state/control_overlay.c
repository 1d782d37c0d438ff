/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of overlays, on their way with heartbeats. */
#include <string.h>

#include "server/config/endpoint.h"
#include "server/state/control_inner.h"

/* Who may know the job's key: the client that joined as this worker, in this life. A registry that
 * has begun since does not know its session, and believes the first one that says the life. */
static psd_status_t check_worker(ps_watch_t *watch, const ps_control_request_t *request,
                                 const ps_worker_t *worker, psd_error_t *err)
{
    ps_watched_t *watched = ps_watch_worker(watch, worker->worker, worker->joins);
    uint64_t joins = 0;
    psd_status_t rc = ps_doc_get_u64(request->doc, "joins", 1, UINT32_MAX, &joins, err);

    if (rc == PSD_OK && watched == NULL) {
        rc = ps_control_no_memory(err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (watched->session == 0) {
        watched->session = request->waits.session;
    }
    return watched->session == request->waits.session
               ? PSD_OK
               : psd_error_set(err, PSD_DENIED,
                               "worker %u joined with another session: only that one may say where "
                               "its relay is",
                               worker->worker);
}

/* Why nobody may send deltas to that relay; NULL: workers may. At security.level encrypt it must
 * have a key, and at plain it must not, so that no plan links two that do not understand each
 * other. The worker goes on without it: what else its heartbeat is for must not fail by this. */
static const char *why_not(const ps_control_t *self, const char *relay)
{
    bool has_key = strchr(relay, '#') != NULL;

    if (self->is.rights != NULL) {
        return has_key ? NULL
                       : "security.level is encrypt, and it has no key: its worker is of an "
                         "earlier build";
    }
    if (has_key) {
        return "it has a key, and security.level is plain";
    }
    return ps_endpoint_is_local(relay) || self->is.config->security.allow_plaintext
               ? NULL
               : "other machines can reach it, and deltas are not encrypted; allowed: loopback, "
                 "or set security.level: encrypt, or security.allow_plaintext: true";
}

/* Random, once for each job. */
static psd_status_t key_of(const ps_watch_t *watch, ps_id_t *ret_key, psd_error_t *err)
{
    *ret_key = watch->overlay.facts.key;
    return watch->overlay.facts.version != 0 ? PSD_OK : ps_random(ret_key, sizeof *ret_key, err);
}

static psd_status_t read_report(const ps_doc_t *doc, ps_overlay_report_t *ret_report,
                                psd_error_t *err)
{
    const ps_doc_t *overlay = NULL;
    psd_status_t rc = ps_doc_get_object(doc, "overlay", &overlay, err);

    return rc == PSD_OK ? ps_overlay_report_from_doc(overlay, ret_report, err) : rc;
}

/* A worker that goes by a plan of before gets one in which nobody is, so that it lends nothing from
 * then on. It gets it once: its next heartbeats say that it has it. */
static psd_status_t refuse_relay(const ps_control_request_t *request, const char *why,
                                 ps_watched_t *watched, uint64_t known, psd_error_t *err)
{
    ps_relay_facts_t nobody = {.version = known + 1, .n_colours = 1};
    ps_doc_t *doc = NULL;

    if (!ps_doc_set_text(request->reply, "relay_refused", why)) {
        return ps_control_no_memory(err);
    }
    if (known == 0 || known == watched->refused_plan) {
        return PSD_OK;
    }
    watched->refused_plan = nobody.version;
    doc = ps_doc_add_object(request->reply, "overlay");
    return doc != NULL && ps_relay_facts_to_doc(&nobody, doc) ? PSD_OK : ps_control_no_memory(err);
}

/* When it has finished its clock: since then its push is on its way. */
static void note_clock(ps_watched_t *watched, const ps_overlay_beat_t *beat)
{
    uint64_t clock = beat->report == NULL ? beat->clock : beat->report->clock;
    uint64_t ago_us = beat->report == NULL ? 0 : beat->report->ago_us;

    if (clock > watched->clock) {
        watched->clock = clock;
        watched->clock_ms = (beat->now_us > ago_us ? beat->now_us - ago_us : 0) / 1000;
    }
}

psd_status_t ps_control_overlay_beat(ps_control_t *self, const ps_control_request_t *request,
                                     const ps_job_t *job, uint32_t rank, uint64_t clock,
                                     psd_error_t *err)
{
    const ps_worker_t *worker = ps_job_worker(job, rank);
    ps_watch_t *watch = ps_watches_get(&self->watches, job->id);
    ps_id_t key = {{0}};
    ps_overlay_report_t report;
    ps_overlay_beat_t beat = {
        .relay = "", .clock = clock, .unix_ms = ps_unix_ms(), .now_us = ps_now_us(), .key = &key};
    const char *refusal = NULL;
    ps_doc_t *doc = NULL;
    psd_status_t rc = ps_doc_get_text(request->doc, "relay", PS_ENDPOINT_MAX, &beat.relay, err);

    if (rc == PSD_OK) {
        rc = ps_doc_get_u64_or(request->doc, "plan", 0, UINT64_MAX, 0, &beat.known, err);
    }
    if (rc == PSD_OK && ps_doc_has(request->doc, "overlay")) {
        rc = read_report(request->doc, &report, err);
        beat.report = &report;
    }
    if (rc == PSD_OK && (watch == NULL || worker == NULL)) {
        rc = ps_control_no_memory(err);
    }
    if (rc == PSD_OK) {
        rc = check_worker(watch, request, worker, err);
    }
    refusal = rc == PSD_OK ? why_not(self, beat.relay) : NULL;
    if (refusal != NULL) {
        return refuse_relay(request, refusal, ps_watch_find(watch, rank), beat.known, err);
    }
    if (rc == PSD_OK) {
        note_clock(ps_watch_find(watch, rank), &beat);
        rc = key_of(watch, &key, err);
    }
    if (rc == PSD_OK) {
        rc = ps_overlay_job_beat(&watch->overlay, job, worker, &beat, err);
    }
    if (rc == PSD_JOB_MISMATCH) {
        rc =
            refuse_relay(request, psd_error_text(err), ps_watch_find(watch, rank), beat.known, err);
        if (rc == PSD_OK) {
            psd_error_clear(err);
        }
        return rc;
    }
    if (rc != PSD_OK || watch->overlay.facts.version <= beat.known) {
        return rc;
    }
    doc = ps_doc_add_object(request->reply, "overlay");
    return doc != NULL && ps_overlay_job_to_doc(&watch->overlay, doc) ? PSD_OK
                                                                      : ps_control_no_memory(err);
}

bool ps_control_add_overlay(const ps_control_t *self, uint32_t job, ps_doc_t *doc)
{
    const ps_watch_t *watch = ps_watches_find(&self->watches, job);

    return watch == NULL || watch->overlay.facts.version == 0 ||
           ps_overlay_job_view(&watch->overlay, ps_now_us(), doc);
}
