/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_circle - workers that wait for each other, of which none can go on
 *
 * What     Clocks alone make no circle: the slowest worker never waits. A
 *          barrier, or a slice that is asked for by one that has some itself,
 *          can. A worker that waits for a slice and has none holds no clock.
 *          A worker of several members is in none: another one may be at work.
 */
#ifndef PS_DAEMON_CIRCLE_H
#define PS_DAEMON_CIRCLE_H

#include "daemon/nodes/job_view.h"
#include "wire/messages/doc.h"

/* Appends each circle, its workers and a text, to `circles`, and the text to
 * `text`; at most 8 of them. false: no memory. */
PSD_MUST_CHECK bool ps_circles_add(const ps_job_view_t *view, ps_doc_t *circles, ps_doc_t *text);
#endif
