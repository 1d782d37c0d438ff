/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_circle - deadlocks: workers that wait for each other
 *
 * What     Clocks alone make no circle: the slowest worker never waits. A
 *          barrier can, and so can a worker that waits for a slice while it
 *          holds slices itself. A worker that waits for a slice and has none
 *          holds up no clock. A worker of several members is in no circle:
 *          another member may be at work.
 */
#ifndef PS_SERVER_CIRCLE_H
#define PS_SERVER_CIRCLE_H

#include "server/nodes/job_view.h"
#include "wire/messages/doc.h"

/* Appends each circle, its workers and a text, to `circles`, and the text to
 * `text`; at most 8 of them. false: no memory. */
PSD_MUST_CHECK bool ps_circles_add(const ps_job_view_t *view, ps_doc_t *circles, ps_doc_t *text);
#endif
