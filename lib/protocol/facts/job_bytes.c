/* SPDX-License-Identifier: Apache-2.0 */
/* A job to bytes and back. */
#include "protocol/facts/job_bytes.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "base/cursor.h"

#define WORKER_BYTES 21

static bool encode(const ps_job_t *self, ps_buffer_t *buffer)
{
    size_t length = strlen(self->name);
    bool fits =
        ps_buffer_u32(buffer, self->id) && ps_buffer_i32(buffer, self->max_delay) &&
        ps_buffer_u64(buffer, self->version) && ps_buffer_u8(buffer, self->stopped ? 1 : 0) &&
        ps_buffer_u8(buffer, (uint8_t)length) && ps_buffer_append(buffer, self->name, length) &&
        ps_buffer_u32(buffer, (uint32_t)self->n_workers) &&
        ps_buffer_reserve(buffer, self->n_workers * WORKER_BYTES);

    for (size_t i = 0; fits && i < self->n_workers; i++) {
        const ps_worker_t *worker = &self->workers[i];

        fits = ps_buffer_u32(buffer, worker->worker) &&
               ps_buffer_u8(buffer, (uint8_t)worker->state) &&
               ps_buffer_u32(buffer, worker->n_members) && ps_buffer_u32(buffer, worker->joins) &&
               ps_buffer_u64(buffer, worker->start);
    }
    return fits;
}

ps_payload_t *ps_job_encode(const ps_job_t *self)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t buffer = {0};
    const ps_bytes_t none = {NULL, 0};

    if (!encode(self, &buffer)) {
        return NULL;
    }
    return ps_payload_copy(none, none, (ps_bytes_t){buffer.data, buffer.size});
}

static void read_worker(ps_cursor_t *cursor, ps_worker_t *ret)
{
    ret->worker = ps_cursor_u32(cursor);
    ret->state = (ps_worker_state_t)ps_cursor_u8(cursor);
    ret->n_members = ps_cursor_u32(cursor);
    ret->joins = ps_cursor_u32(cursor);
    ret->start = ps_cursor_u64(cursor);
}

static psd_status_t read_workers(ps_cursor_t *cursor, ps_job_t *job, psd_error_t *err)
{
    uint32_t n = ps_cursor_u32(cursor);

    if (n > PS_WORKERS_MAX || cursor->rest.size != (size_t)n * WORKER_BYTES) {
        return psd_error_set(err, PSD_PROTO,
                             "a job of %" PRIu32 " workers has %zu bytes for them; allowed: %d "
                             "each, at most %d workers",
                             n, cursor->rest.size, WORKER_BYTES, PS_WORKERS_MAX);
    }
    job->workers = ps_alloc(n, sizeof *job->workers);
    if (job->workers == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a job's workers");
    }
    for (job->n_workers = 0; job->n_workers < n; job->n_workers++) {
        read_worker(cursor, &job->workers[job->n_workers]);
    }
    return PSD_OK;
}

psd_status_t ps_job_decode(ps_bytes_t bytes, ps_job_t *ret_job, psd_error_t *err)
{
    PSD_AUTO(ps_job_done) ps_job_t job = {0};
    ps_cursor_t cursor = ps_cursor_over(bytes);
    size_t length = 0;
    psd_status_t rc;

    job.id = ps_cursor_u32(&cursor);
    job.max_delay = ps_cursor_i32(&cursor);
    job.version = ps_cursor_u64(&cursor);
    job.stopped = ps_cursor_u8(&cursor) != 0;
    length = ps_cursor_u8(&cursor);
    if (length > PS_NAME_MAX) {
        return psd_error_set(err, PSD_PROTO, "a job's name has %zu bytes; allowed: at most %d",
                             length, PS_NAME_MAX);
    }
    ps_cursor_copy(&cursor, job.name, length);
    rc = read_workers(&cursor, &job, err);
    if (rc == PSD_OK) {
        rc = ps_job_check(&job, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_job = job;
    job.workers = NULL;
    return PSD_OK;
}
