/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_site - where a worker is: in which data centre, or rack
 *
 * What     What PSD_SITE says: one name, or names by rank, as "a:4,b:4": the first four ranks
 *          are in a, all others in b. A worker that names none is in the site "".
 * Shape    NAME:N,…: names as of a job; N from 1; the last one needs no N, and has all further
 *          ranks. A name may stand twice.
 * Threads  Pure functions.
 */
#ifndef PS_PROTOCOL_OVERLAY_SITE_H
#define PS_PROTOCOL_OVERLAY_SITE_H

#include "model/tables/table.h"
#include "psd/status.h"

/* A site's name; "": none. */
typedef struct ps_site {
    char name[PS_NAME_MAX + 1];
} ps_site_t;

/*
 * The site of the worker with that rank, by that text; NULL: "".
 *
 * text    what PSD_SITE says, or NULL
 * origin  whose variable says so, for the error
 *
 * Errors: PSD_INVALID, naming the place and what is allowed, whichever rank it is; *ret is not
 * touched then.
 */
PSD_MUST_CHECK psd_status_t ps_site_find(const char *text, const char *origin, uint32_t rank,
                                         ps_site_t *ret, psd_error_t *err);
#endif
