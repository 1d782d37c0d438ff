/* SPDX-License-Identifier: Apache-2.0 */
/* Which copy of a fenced partition becomes its primary. */
#include <stdio.h>

#include "protocol/placement/registry_look.h"

/* The delay after a failed move of a primary: it may not reach the copy that
 * did not take over, and first gets time to report that. */
#define HAND_AGAIN_MS 1000

/* What blocks a promotion now. */
typedef enum verdict {
    NOBODY, /* none of these can be promoted */
    WAIT,   /* one that may have more has not answered */
    FOUND
} verdict_t;

/* Which of two copies has more: by the epoch of its last record, then by its
 * lsn. Among equal ones the preferred one, then a dropped one, because the
 * other one is known to have lost its content. */
static bool has_more(const ps_spot_t *spot, uint32_t i, uint32_t than)
{
    const ps_copy_watch_t *watch = spot->watch;
    const ps_copy_t *copy = &spot->copies->at[i];

    if (watch->lsn_epoch[i] != watch->lsn_epoch[than]) {
        return watch->lsn_epoch[i] > watch->lsn_epoch[than];
    }
    return watch->lsn[i] > watch->lsn[than] ||
           (watch->lsn[i] == watch->lsn[than] &&
            (copy->incarnation == watch->prefer ||
             (copy->dropped && !spot->copies->at[than].dropped)));
}

static bool has_answered(const ps_look_t *look, const ps_spot_t *spot, uint32_t i)
{
    return (spot->watch->answered >> i & 1) != 0 &&
           ps_copy_lives(look->registry, &spot->copies->at[i]);
}

/* It has reported that it is not whole: it would never serve. */
static bool is_partial(const ps_spot_t *spot, uint32_t i)
{
    return (spot->watch->partial >> i & 1) != 0;
}

/* All copies that were in sync have every write acknowledged at `replica`, so
 * the registry does not wait for a suspect one if another one is present. */
static verdict_t best_whole(ps_look_t *look, const ps_spot_t *spot, uint32_t *ret_best)
{
    verdict_t verdict = NOBODY;

    for (uint32_t i = 0; i < spot->copies->n; i++) {
        const ps_copy_t *copy = &spot->copies->at[i];

        if (!ps_copy_is_whole(copy) || ps_copy_is_suspect(look->registry, copy)) {
            continue;
        }
        if (!has_answered(look, spot, i)) {
            return WAIT;
        }
        if (!is_partial(spot, i) && (verdict == NOBODY || has_more(spot, i, *ret_best))) {
            *ret_best = i;
            verdict = FOUND;
        }
    }
    return verdict;
}

/* Without a log a kept copy was dropped, or is empty: then the others' writes
 * are lost. */
static bool are_rows_lost(const ps_spot_t *spot, uint32_t heir)
{
    const ps_copy_t *copy = &spot->copies->at[heir];

    return is_partial(spot, heir) ||
           (copy->state == PS_COPY_KEPT && !copy->dropped && spot->table->spec.ack != PS_ACK_DISK);
}

/* A dropped copy may come back, and has writes that this one lacks. */
static bool is_missed(const ps_look_t *look, const ps_spot_t *spot, uint32_t heir)
{
    for (uint32_t i = 0; i < spot->copies->n; i++) {
        if (spot->copies->at[i].dropped && !has_answered(look, spot, i)) {
            return are_rows_lost(spot, heir);
        }
    }
    return false;
}

/* If no copy is whole any more, a kept one has every write acknowledged at
 * `disk`. The registry waits for copies that may have more, but not forever. */
static verdict_t best_kept(ps_look_t *look, const ps_spot_t *spot, uint32_t *ret_best)
{
    verdict_t verdict = NOBODY;

    for (uint32_t i = 0; i < spot->copies->n; i++) {
        const ps_copy_t *copy = &spot->copies->at[i];

        if (!ps_copy_is_heir(copy) || ps_copy_is_given_up(look, copy)) {
            continue;
        }
        if (!has_answered(look, spot, i)) {
            return WAIT;
        }
        if (!is_partial(spot, i) && (verdict == NOBODY || has_more(spot, i, *ret_best))) {
            *ret_best = i;
            verdict = FOUND;
        }
    }
    return verdict == FOUND && is_missed(look, spot, *ret_best) ? WAIT : verdict;
}

/* All copies that could be promoted are present and report that they are not
 * whole. No other copy can have more, because a node that may come back is an
 * heir until it has restarted or is removed. Only the operator may give up
 * writes acknowledged at `disk`. */
static bool is_all_gone(const ps_look_t *look, const ps_spot_t *spot)
{
    for (uint32_t i = 0; i < spot->copies->n; i++) {
        if (ps_copy_is_heir(&spot->copies->at[i]) &&
            !(has_answered(look, spot, i) && is_partial(spot, i))) {
            return false;
        }
    }
    return spot->table->spec.ack != PS_ACK_DISK;
}

/* The copy to promote; PS_COPIES_MAX while it is not known. */
static uint32_t heir_of(ps_look_t *look, const ps_spot_t *spot)
{
    uint32_t best = 0;
    verdict_t verdict = best_whole(look, spot, &best);

    if (verdict == NOBODY) {
        verdict = best_kept(look, spot, &best);
    }
    if (verdict == NOBODY && is_all_gone(look, spot)) {
        best = 0;
        verdict = FOUND;
    }
    return verdict == FOUND && ps_copy_may_lead(look, &spot->copies->at[best]) ? best
                                                                               : PS_COPIES_MAX;
}

/* Copies on suspect nodes, and kept ones, may lack records that the primary, at
 * 0, has or will have. A primary that handed over because clients cannot reach
 * it may also be unreachable for the new one, which must not wait for it. true: one that was
 * in sync is left out. */
static bool leave_out(const ps_look_t *look, ps_copies_t *copies, bool handed)
{
    bool any = false;

    for (uint32_t i = copies->n - 1; i > 0; i--) {
        const ps_copy_t *copy = &copies->at[i];

        if (copy->state == PS_COPY_KEPT ||
            (copy->state == PS_COPY_IN_SYNC && (ps_copy_is_suspect(look->registry, copy) ||
                                                (handed && ps_copy_is_unreached(look, copy))))) {
            any = any || copy->state == PS_COPY_IN_SYNC;
            ps_copies_set_state(copies, i, PS_COPY_CATCHING_UP);
        }
    }
    return any;
}

psd_status_t ps_step_promote(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    uint32_t heir = copies.fenced ? heir_of(look, spot) : PS_COPIES_MAX;
    ps_command_t *command = &look->decision->command;
    bool lost = false;
    char text[192];
    psd_status_t rc = PSD_OK;

    if (heir == PS_COPIES_MAX) {
        return PSD_OK;
    }
    lost = are_rows_lost(spot, heir);
    ps_copies_promote(&copies, heir);
    if (leave_out(look, &copies, spot->watch->prefer != 0) && !ps_primary_is_there(look, &copies)) {
        return PSD_OK;
    }
    if (spot->watch->prefer != 0 && spot->watch->prefer != copies.at[0].incarnation) {
        look->registry->hand_after_ms =
            look->now_ms + look->registry->args.unreached_after_ms + HAND_AGAIN_MS;
    }
    ps_look_drop(spot, &copies);
    (void)snprintf(text, sizeof text, "now has its primary on node %s%s",
                   ps_copy_node(look->registry, &copies.at[0])->name,
                   lost ? ", empty: its rows are lost" : "");
    rc = ps_look_change(look, spot, &copies, 0, text, err);
    if (rc == PSD_OK) {
        command->changes[command->n_changes - 1].rows_lost = lost;
    }
    return rc;
}
