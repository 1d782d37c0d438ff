/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quorum_steps - a member's steps, without threads, sockets and SQLite
 *
 * What     How a member starts on its log, how the log obeys the machine, and when
 *          a member leads. How a committed entry gets into the state is in
 *          registry_shelf.h. The daemon takes these steps in two threads, the
 *          simulator in one.
 * Threads  None; all borrow their arguments during the call.
 */
#ifndef PS_SERVER_QUORUM_STEPS_H
#define PS_SERVER_QUORUM_STEPS_H

#include "protocol/quorum/quorum.h"
#include "protocol/registry/registry.h"
#include "storage/registry/registry_db.h"
#include "storage/registry/registry_log.h"
#include "storage/registry/registry_shelf.h"

/*
 * Makes the machine of the member whose log this is. Ends an install that a
 * crash interrupted between database and log, and counts the start.
 *
 * args  in  life, term, vote, first, entries, member and lineage are the log's,
 *           and are not read
 * life  out which start of the member this is: higher than all before
 *
 * Errors: those of the log, and of ps_quorum_new.
 */
PSD_MUST_CHECK psd_status_t ps_quorum_start(ps_registry_log_t *log, const ps_quorum_args_t *args,
                                            ps_quorum_t **ret_quorum, uint64_t *ret_life,
                                            psd_error_t *err);
/* Appends what the machine has and the log has not. Errors: those of
 * ps_registry_log_append; after PSD_LIMIT it may be called again. */
PSD_MUST_CHECK psd_status_t ps_quorum_log_rest(ps_registry_log_t *log, const ps_quorum_t *quorum,
                                               psd_error_t *err);
/* Carries out BEGIN, CUT or EXTEND. A flush remains to be done. Errors: those of
 * the log. */
PSD_MUST_CHECK psd_status_t ps_quorum_log_obey(ps_registry_log_t *log, const ps_quorum_t *quorum,
                                               const ps_quorum_effect_t *effect, psd_error_t *err);

/* The message describes the database of this index, which is here and whole; 0: there
 * is none. Only then a message SNAPSHOT may be received (ps_quorum_receive): an older
 * one may come late. */
PSD_MUST_CHECK bool ps_quorum_describes(ps_bytes_t bytes, uint64_t index);

typedef enum ps_duty {
    PS_DUTY_STAY = 1, /* it leads, and goes on */
    PS_DUTY_FOLLOW,   /* it stops leading */
    PS_DUTY_WAIT,     /* likewise, until what earlier leaders left is applied */
    PS_DUTY_LEAD      /* it begins to lead, with the command TERM */
} ps_duty_t;

/* last: index of its last entry; led_term: in which its control leads, and no
 * command has an unknown outcome; 0: none. */
PSD_MUST_CHECK ps_duty_t ps_quorum_duty(ps_quorum_state_t state, uint64_t term, uint64_t last,
                                        uint64_t applied, uint64_t led_term);
#endif
