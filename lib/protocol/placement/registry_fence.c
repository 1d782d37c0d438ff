/* SPDX-License-Identifier: Apache-2.0 */
/* How a partition loses its primary: the fence, and the question for the
 * copies' positions. */
#include <stdio.h>

#include "base/alloc.h"
#include "protocol/placement/registry_look.h"

/* Another copy that could be promoted, on a live node: one in sync, or when the
 * primary is given up, one that was kept. */
static bool has_heir(ps_look_t *look, const ps_copies_t *copies)
{
    bool given_up = ps_copy_is_given_up(look, &copies->at[0]);

    for (uint32_t i = 1; i < copies->n; i++) {
        const ps_copy_t *copy = &copies->at[i];

        if (ps_copy_lives(look->registry, copy) &&
            (ps_copy_is_whole(copy) || (given_up && ps_copy_is_heir(copy)))) {
            return true;
        }
    }
    return false;
}

psd_status_t ps_step_fence(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    char text[128];

    if (copies.fenced || !ps_copy_is_suspect(look->registry, &copies.at[0]) ||
        !has_heir(look, &copies)) {
        return PSD_OK;
    }
    (void)snprintf(text, sizeof text, "is fenced: node %s is silent",
                   ps_copy_node(look->registry, &copies.at[0])->name);
    ps_copies_fence(&copies);
    return ps_look_change(look, spot, &copies, 0, text, err);
}

/* The copies that are to be asked now, as bits. The old primary of a move is
 * asked alone, before the others take nothing from it any more. */
static uint8_t to_ask(const ps_look_t *look, const ps_spot_t *spot)
{
    const ps_copy_watch_t *watch = spot->watch;
    uint8_t bits = 0;

    for (uint32_t i = 0; i < spot->copies->n; i++) {
        const ps_copy_t *copy = &spot->copies->at[i];

        if (ps_copy_is_heir(copy) && ps_copy_lives(look->registry, copy) &&
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

static psd_status_t ask(ps_look_t *look, const ps_spot_t *spot, uint8_t bits, psd_error_t *err)
{
    ps_decision_t *decision = look->decision;
    ps_fence_t *fence = NULL;

    if (!ps_grow(&decision->fences, &look->max_fences, decision->n_fences + 1,
                 sizeof *decision->fences)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for fences");
    }
    fence = &decision->fences[decision->n_fences++];
    *fence = (ps_fence_t){
        .table = spot->table->id, .partition = spot->partition, .epoch = spot->copies->epoch};
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

psd_status_t ps_step_ask(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    uint64_t again = spot->watch->asked_ms + look->registry->args.ask_again_ms;
    uint8_t bits = spot->copies->fenced ? to_ask(look, spot) : 0;

    if (bits == 0) {
        return PSD_OK;
    }
    if ((bits & ~spot->watch->asked) != 0 || look->now_ms >= again) {
        return ask(look, spot, bits, err);
    }
    ps_look_due(look, again);
    return PSD_OK;
}

bool ps_registry_fenced(ps_registry_t *self, uint64_t from, const ps_report_t *report)
{
    ps_table_t *table = ps_registry_find_table(self, report->table);
    const ps_copies_t *copies = NULL;
    const ps_copy_t *copy = NULL;
    ps_copy_watch_t *watch = NULL;
    bool partial = report->kind == PS_REPORT_PARTIAL;
    uint32_t at = 0;

    if (table == NULL || (report->kind != PS_REPORT_POSITION && !partial) ||
        report->partition >= table->spec.n_partitions) {
        return false;
    }
    copies = &table->copies[report->partition];
    copy = ps_copies_on(copies, from);
    if (copy == NULL || !copies->fenced || copies->epoch != report->epoch ||
        !ps_copy_is_heir(copy)) {
        return false;
    }
    at = (uint32_t)(copy - copies->at);
    watch = &table->watches[report->partition];
    watch->lsn[at] = report->lsn;
    watch->lsn_epoch[at] = report->lsn_epoch;
    watch->answered = (uint8_t)(watch->answered | 1U << at);
    watch->partial = (uint8_t)((watch->partial & ~(1U << at)) | (partial ? 1U << at : 0));
    self->dirty = true;
    return true;
}
