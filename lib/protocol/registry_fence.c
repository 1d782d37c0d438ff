/* SPDX-License-Identifier: Apache-2.0 */
/* How a partition gets another primary: the fence, the question who has how
 * much, and the promotion. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/registry_look.h"

#define HAND_AGAIN_MS                                       \
    1000 /* behind a move of a primary that did not succeed \
          */

/* Another copy in sync on a live node. */
static bool
has_heir(const ps_look_t *look, const ps_copies_t *copies)
{
    for (uint32_t i = 1; i < copies->n; i++) {
        if (ps_copy_is_whole(&copies->at[i]) &&
            ps_copy_lives(look->registry, &copies->at[i])) {
            return true;
        }
    }
    return false;
}

psd_status_t
ps_step_fence(ps_look_t *look, psd_error_t *err)
{
    ps_spot_t spot = {0};
    size_t at = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !ps_look_is_full(look) &&
           ps_spot_next(look, &spot, &at)) {
        ps_copies_t copies = *spot.copies;
        char text[128];

        if (copies.fenced ||
            !ps_copy_is_suspect(look->registry, &copies.at[0]) ||
            !has_heir(look, &copies)) {
            continue;
        }
        (void)snprintf(text, sizeof text, "is fenced: node %s is silent",
                       ps_copy_node(look->registry, &copies.at[0])->name);
        ps_copies_fence(&copies);
        rc = ps_look_change(look, &spot, &copies, 0, text, err);
    }
    return rc;
}

/* The copies that are to be asked now, as bits. The old primary of a move is
 * asked alone, before the others take nothing from it any more. */
static uint8_t
to_ask(const ps_look_t *look, const ps_spot_t *spot)
{
    const ps_watch_t *watch = spot->watch;
    uint8_t bits = 0;

    for (uint32_t i = 0; i < spot->copies->n; i++) {
        const ps_copy_t *copy = &spot->copies->at[i];

        if (ps_copy_is_whole(copy) && ps_copy_lives(look->registry, copy) &&
            (watch->answered >> i & 1) == 0) {
            bits = (uint8_t)(bits | 1U << i);
        }
    }
    if (watch->prefer != 0 && (watch->answered & 1) == 0 &&
        !ps_copy_is_suspect(look->registry, &spot->copies->at[0])) {
        bits &= 1;
    }
    return bits;
}

static psd_status_t
ask(ps_look_t *look, const ps_spot_t *spot, uint8_t bits, psd_error_t *err)
{
    ps_decision_t *decision = look->decision;
    ps_fence_t *fence = NULL;

    if (!ps_grow(&decision->fences, &look->max_fences, decision->n_fences + 1,
                 sizeof *decision->fences)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for fences");
    }
    fence = &decision->fences[decision->n_fences++];
    *fence = (ps_fence_t){.table = spot->table->id,
                          .partition = spot->partition,
                          .epoch = spot->copies->epoch};
    for (uint32_t i = 0; i < spot->copies->n; i++) {
        if ((bits >> i & 1) != 0) {
            fence->to[fence->n++] = spot->copies->at[i].incarnation;
        }
    }
    decision->kind = PS_DECIDE_FENCE;
    spot->watch->asked = bits;
    spot->watch->asked_ms = look->now_ms;
    return PSD_OK;
}

psd_status_t
ps_step_ask(ps_look_t *look, psd_error_t *err)
{
    uint64_t again = look->registry->args.ask_again_ms;
    ps_spot_t spot = {0};
    size_t at = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && look->decision->n_fences < PS_CHANGES_MAX &&
           ps_spot_next(look, &spot, &at)) {
        uint8_t bits = spot.copies->fenced ? to_ask(look, &spot) : 0;

        if (bits == 0) {
            continue;
        }
        if ((bits & ~spot.watch->asked) != 0 ||
            look->now_ms >= spot.watch->asked_ms + again) {
            rc = ask(look, &spot, bits, err);
        } else {
            ps_look_due(look, spot.watch->asked_ms + again);
        }
    }
    return rc;
}

bool
ps_registry_fenced(ps_registry_t *self,
                   uint64_t from,
                   const ps_report_t *report)
{
    ps_table_t *table = ps_registry_find_table(self, report->table);
    const ps_copies_t *copies = NULL;
    const ps_copy_t *copy = NULL;
    ps_watch_t *watch = NULL;
    uint32_t at = 0;

    if (table == NULL || report->kind != PS_REPORT_POSITION ||
        report->partition >= table->spec.n_partitions) {
        return false;
    }
    copies = &table->copies[report->partition];
    copy = ps_copies_on(copies, from);
    if (copy == NULL || !copies->fenced || copies->epoch != report->epoch ||
        !ps_copy_is_whole(copy)) {
        return false;
    }
    at = (uint32_t)(copy - copies->at);
    watch = &table->watches[report->partition];
    watch->lsn[at] = report->lsn;
    watch->lsn_epoch[at] = report->lsn_epoch;
    watch->answered = (uint8_t)(watch->answered | 1U << at);
    self->restless = true;
    return true;
}

/* Which of two copies has more: by the epoch of its last record, then by the
 * number of it; of equal ones the preferred one. */
static bool
has_more(const ps_spot_t *spot, uint32_t i, uint32_t than)
{
    const ps_watch_t *watch = spot->watch;

    if (watch->lsn_epoch[i] != watch->lsn_epoch[than]) {
        return watch->lsn_epoch[i] > watch->lsn_epoch[than];
    }
    return watch->lsn[i] > watch->lsn[than] ||
           (watch->lsn[i] == watch->lsn[than] &&
            spot->copies->at[i].incarnation == watch->prefer);
}

/* The copy to promote; PS_COPIES_MAX while it is not known: one that is whole
 * and not suspect has not answered, or none is there that could be it. */
static uint32_t
heir_of(const ps_look_t *look, const ps_spot_t *spot)
{
    const ps_copies_t *copies = spot->copies;
    const ps_watch_t *watch = spot->watch;
    uint32_t best = PS_COPIES_MAX;

    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];
        bool answered = (watch->answered >> i & 1) != 0;

        if (!ps_copy_is_whole(copy) ||
            ps_copy_is_suspect(look->registry, copy)) {
            continue;
        }
        if (!answered || !ps_copy_lives(look->registry, copy)) {
            return PS_COPIES_MAX;
        }
        if (best == PS_COPIES_MAX || has_more(spot, i, best)) {
            best = i;
        }
    }
    return best;
}

/* Those on suspect nodes may lack what is to come; not the primary, at 0. */
static void
leave_out_suspects(const ps_look_t *look, ps_copies_t *copies)
{
    for (uint32_t i = copies->n - 1; i > 0; i--) {
        if (copies->at[i].state == PS_COPY_IN_SYNC &&
            ps_copy_is_suspect(look->registry, &copies->at[i])) {
            ps_copies_set_state(copies, i, PS_COPY_CATCHING_UP);
        }
    }
}

psd_status_t
ps_step_promote(ps_look_t *look, psd_error_t *err)
{
    ps_spot_t spot = {0};
    size_t at = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && !ps_look_is_full(look) &&
           ps_spot_next(look, &spot, &at)) {
        ps_copies_t copies = *spot.copies;
        uint32_t heir = copies.fenced ? heir_of(look, &spot) : PS_COPIES_MAX;
        char text[128];

        if (heir == PS_COPIES_MAX) {
            continue;
        }
        if (spot.watch->prefer != 0 &&
            spot.watch->prefer != copies.at[heir].incarnation) {
            look->registry->hand_after_ms = look->now_ms + HAND_AGAIN_MS;
        }
        ps_copies_promote(&copies, heir);
        leave_out_suspects(look, &copies);
        (void)snprintf(text, sizeof text, "has its primary on node %s now",
                       ps_copy_node(look->registry, &copies.at[0])->name);
        rc = ps_look_change(look, &spot, &copies, 0, text, err);
    }
    return rc;
}
