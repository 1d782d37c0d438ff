/* SPDX-License-Identifier: Apache-2.0 */
/* What a request names, found in the registry. */
#include <inttypes.h>
#include <stdio.h>

#include "server/state/control_inner.h"

#define BEATS_A_SECOND 500 /* of all workers */
#define BEATS_OF_LIFE 3    /* at least, in the silence after which a worker is lost */

#define AGAIN_MS 50 /* retry interval while a silent node holds something up */
#define TIMEOUT_MAX_MS UINT64_C(86400000) /* a day */

psd_status_t ps_control_find_table(const ps_control_t *self, const ps_doc_t *doc, const char *key,
                                   const ps_table_t **ret_table, psd_error_t *err)
{
    const char *name = NULL;
    psd_status_t rc = ps_doc_get_text(doc, key, 255, &name, err);

    if (rc != PSD_OK) {
        return rc;
    }
    *ret_table = ps_registry_table(self->is.registry, name);
    if (*ret_table == NULL) {
        char shown[128];

        return psd_error_set(err, PSD_NO_TABLE, "table %s does not exist",
                             ps_log_quote(name, shown, sizeof shown));
    }
    return PSD_OK;
}

psd_status_t ps_control_find_job(const ps_control_t *self, const ps_doc_t *doc,
                                 const ps_job_t **ret_job, psd_error_t *err)
{
    const ps_job_t *job = NULL;
    const char *name = NULL;
    uint64_t id = 0;
    char shown[128];
    psd_status_t rc = PSD_OK;

    if (ps_doc_has(doc, "job_id")) {
        rc = ps_doc_get_u64(doc, "job_id", 1, UINT32_MAX, &id, err);
    } else if (ps_doc_get_u64(doc, "job", 1, UINT32_MAX, &id, NULL) != PSD_OK) {
        rc = ps_doc_get_text(doc, "job", 255, &name, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    if (name != NULL) {
        job = ps_registry_job(self->is.registry, name);
        (void)ps_log_quote(name, shown, sizeof shown);
    } else {
        job = ps_registry_job_by_id(self->is.registry, (uint32_t)id);
        (void)snprintf(shown, sizeof shown, "%" PRIu64, id);
        /* A name may be all digits. */
        if (job == NULL && ps_doc_get_text(doc, "job", 255, &name, NULL) == PSD_OK &&
            !ps_doc_has(doc, "job_id")) {
            job = ps_registry_job(self->is.registry, name);
        }
    }
    if (job == NULL) {
        return psd_error_set(err, PSD_NO_JOB, "job %s does not exist", shown);
    }
    *ret_job = job;
    return PSD_OK;
}

/* ---- questions to the nodes ---- */

psd_status_t ps_control_ask(ps_control_request_t *request, ps_call_kind_t kind, uint32_t job)
{
    request->waits.kind = PS_FOR_ANSWERS;
    request->waits.due_ms = PS_NOT_DUE;
    request->ask_kind = kind;
    request->ask_job = job;
    return PSD_OK;
}

psd_status_t ps_control_ask_again(ps_control_request_t *request)
{
    request->step--;
    request->waits.kind = PS_FOR_ANSWERS;
    request->waits.due_ms = ps_now_ms() + AGAIN_MS;
    return PSD_OK;
}

psd_status_t ps_control_pause(ps_control_request_t *request)
{
    request->waits.kind = PS_FOR_RETRY;
    request->waits.due_ms = ps_now_ms() + AGAIN_MS;
    return PSD_OK;
}

ps_control_request_t *ps_control_next(const ps_control_t *self, const ps_control_request_t *after,
                                      ps_waits_for_t kinds, uint32_t job)
{
    return (ps_control_request_t *)ps_waiters_next(&self->waiters, (const ps_waiter_t *)after,
                                                   kinds, job, PS_ANY_WORKER);
}

psd_status_t ps_control_wait(ps_control_request_t *request, ps_waits_for_t kind,
                             const ps_job_t *job, psd_error_t *err)
{
    uint64_t timeout_ms = 0;
    psd_status_t rc = ps_doc_get_u64(request->doc, "timeout_ms", 0, UINT64_MAX, &timeout_ms, err);

    request->waits.kind = rc == PSD_OK ? kind : 0;
    request->waits.job = job->id;
    request->waits.since_ms = ps_now_ms();
    request->waits.due_ms =
        request->waits.since_ms + (timeout_ms > TIMEOUT_MAX_MS ? TIMEOUT_MAX_MS : timeout_ms);
    return rc;
}

psd_status_t ps_control_check_answered(const ps_control_request_t *request, psd_error_t *err)
{
    return request->missing[0] == '\0'
               ? PSD_OK
               : psd_error_set(err, PSD_BUSY, "%s; ask again", request->missing);
}

uint64_t ps_control_beat_ms(const ps_control_t *self)
{
    uint64_t least_ms = ps_registry_setting(self->is.registry, PS_SETTING_HEARTBEAT);
    uint64_t most_ms =
        ps_registry_setting(self->is.registry, PS_SETTING_LOST_AFTER) / BEATS_OF_LIFE;
    uint64_t ms = ps_registry_n_live(self->is.registry) * UINT64_C(1000) / BEATS_A_SECOND;

    ms = ms < most_ms ? ms : most_ms;
    return ms > least_ms ? ms : least_ms;
}
