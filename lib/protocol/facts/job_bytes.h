/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_job_encode - a job as the bytes that a JOB record carries
 *
 * Shape    id u32, max_delay i32, version u64, stopped u8, name u8 length and
 *          text, n_workers u32, and for each worker: rank u32, state u8,
 *          n_members u32, joins u32, start u64
 */
#ifndef PS_PROTOCOL_JOB_BYTES_H
#define PS_PROTOCOL_JOB_BYTES_H

#include "base/slice.h"
#include "protocol/facts/job.h"

/* The bytes as values of a payload. NULL: no memory. */
PSD_MUST_CHECK ps_payload_t *ps_job_encode(const ps_job_t *self);
/* Reads a job that the caller ends with ps_job_done. Errors: PSD_PROTO naming
 * the field and what is allowed; PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_job_decode(ps_bytes_t bytes, ps_job_t *ret_job, psd_error_t *err);
#endif
