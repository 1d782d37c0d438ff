/* SPDX-License-Identifier: Apache-2.0 */
/* Which copies are in sync: primaries' reports, and their effects. */
#include <stdio.h>

#include "protocol/placement/registry_look.h"

bool ps_registry_report(ps_registry_t *self, uint64_t from, const ps_report_t *report)
{
    ps_table_t *table = ps_registry_find_table(self, report->table);
    const ps_copies_t *copies = NULL;
    const ps_copy_t *copy = NULL;
    ps_copy_watch_t *watch = NULL;
    uint8_t bit = 0;

    if (table == NULL || report->partition >= table->spec.n_partitions ||
        (report->kind != PS_REPORT_CAUGHT_UP && report->kind != PS_REPORT_SLOW &&
         report->kind != PS_REPORT_DIVERGED)) {
        return false;
    }
    copies = &table->copies[report->partition];
    copy = ps_copies_on(copies, report->incarnation);
    if (copy == NULL || copies->fenced || copies->epoch != report->epoch ||
        copies->at[0].incarnation != from ||
        (copy == &copies->at[0] && report->kind != PS_REPORT_SLOW)) {
        return false;
    }
    bit = (uint8_t)(1U << (copy - copies->at));
    watch = &table->watches[report->partition];
    watch->caught_up = (uint8_t)(watch->caught_up & ~bit);
    watch->out = (uint8_t)(watch->out & ~bit);
    watch->diverged = (uint8_t)(watch->diverged & ~bit);
    if (report->kind == PS_REPORT_CAUGHT_UP) {
        watch->caught_up = (uint8_t)(watch->caught_up | bit);
    } else if (report->kind == PS_REPORT_SLOW || /* of itself too */
               copy->state == PS_COPY_IN_SYNC) { /* else it starts again from rows */
        watch->out = (uint8_t)(watch->out | bit);
        if (report->kind == PS_REPORT_DIVERGED) {
            watch->diverged = (uint8_t)(watch->diverged | bit);
        }
    }
    self->dirty = true;
    return true;
}

bool ps_primary_is_there(ps_look_t *look, const ps_copies_t *copies)
{
    const ps_registry_t *self = look->registry;
    const ps_node_t *node = ps_copy_node(self, &copies->at[0]);

    if (node->last_seen_ms + self->args.suspect_after_ms / 2 >= look->now_ms) {
        return true;
    }
    ps_look_due(look, look->now_ms + self->args.ask_again_ms);
    return false;
}

/* A dropped copy that starts again, or is not whole, has nothing to
 * contribute. */
static void forget_useless(const ps_spot_t *spot, ps_copies_t *copies)
{
    uint8_t bits = (uint8_t)(spot->watch->diverged | spot->watch->partial);

    for (uint32_t i = 0; i < copies->n; i++) {
        ps_copy_t *copy = &copies->at[i];
        const ps_copy_t *was = ps_copies_on(spot->copies, copy->incarnation);

        if (copy->dropped && (bits >> (was - spot->copies->at) & 1) != 0) {
            copy->dropped = false;
        }
    }
}

void ps_look_drop(const ps_spot_t *spot, ps_copies_t *copies)
{
    if (spot->table->spec.ack != PS_ACK_DISK && /* that goes on alone */
        ps_copies_n_heirs(spot->copies) > 1 && ps_copies_n_heirs(copies) == 1) {
        ps_copies_drop(copies, spot->copies);
        forget_useless(spot, copies);
    }
}

psd_status_t ps_step_shrink(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    char text[128] = "";

    /* From the end: removal moves later copies, which were visited already. */
    for (uint32_t i = copies.n - 1; i > 0 && ps_spot_is_served(look, spot); i--) {
        const ps_copy_t *copy = &spot->copies->at[i];
        bool suspect =
            ps_copy_is_suspect(look->registry, copy) && ps_primary_is_there(look, &copies);

        if (copy->state == PS_COPY_IN_SYNC && (suspect || (spot->watch->out >> i & 1) != 0)) {
            (void)snprintf(text, sizeof text, "is no longer in sync on node %s: it %s",
                           ps_copy_node(look->registry, copy)->name,
                           suspect ? "is silent" : "lags");
            ps_copies_set_state(&copies, i, PS_COPY_CATCHING_UP);
        } else if (copy->state == PS_COPY_CATCHING_UP && (spot->watch->out >> i & 1) != 0) {
            /* Its primary, which has said that it has caught up, waits for it
             * until a newer epoch says that it is not in sync. */
            (void)snprintf(text, sizeof text, "no longer catches up on node %s",
                           ps_copy_node(look->registry, copy)->name);
        }
    }
    ps_look_drop(spot, &copies);
    return text[0] == '\0' ? PSD_OK : ps_look_change(look, spot, &copies, 0, text, err);
}

/* A copy that was kept was an heir for the case that the primary is gone, too.
 * Where the primary has been heard since, it has all, and waits no more. */
psd_status_t ps_step_let_go(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    const ps_registry_t *self = look->registry;
    ps_copies_t copies = *spot->copies;
    uint64_t heard_ms = ps_copy_node(self, &copies.at[0])->last_seen_ms;
    char text[128] = "";

    for (uint32_t i = copies.n - 1; i > 0 && ps_spot_is_served(look, spot); i--) {
        const ps_copy_t *copy = &spot->copies->at[i];
        const ps_node_t *node = ps_copy_node(self, copy);

        if (copy->state != PS_COPY_KEPT) {
            continue;
        }
        if (heard_ms <= node->started_ms) {
            ps_look_due(look, look->now_ms + self->args.ask_again_ms);
        } else {
            (void)snprintf(text, sizeof text, "catches up on node %s, which restarted", node->name);
            ps_copies_set_state(&copies, i, PS_COPY_CATCHING_UP);
        }
    }
    return text[0] == '\0' ? PSD_OK : ps_look_change(look, spot, &copies, 0, text, err);
}

/* Less says nothing of a speed; nor does an array whose rows were never
 * written. */
#define TELLING_BYTES (UINT64_C(1) << 20)
#define TELLING_MS 100

/* How fast a copy that has come was made; the last ones count most. */
static void learn_rate(ps_look_t *look, const ps_spot_t *spot, uint32_t i)
{
    ps_registry_t *self = look->registry;
    uint64_t bytes = spot->table->bytes[spot->partition];
    uint64_t since_ms = spot->watch->since_ms[i];
    uint64_t rate = 0;

    if (bytes < TELLING_BYTES || since_ms == 0 || look->now_ms < since_ms + TELLING_MS) {
        return;
    }
    rate = (uint64_t)((double)bytes * 1000.0 / (double)(look->now_ms - since_ms));
    self->copied_bytes_per_s =
        self->copied_bytes_per_s == 0 ? rate : (self->copied_bytes_per_s + rate) / 2;
}

psd_status_t ps_step_admit(ps_look_t *look, const ps_spot_t *spot, psd_error_t *err)
{
    ps_copies_t copies = *spot->copies;
    char text[128] = "";

    /* From the start: a change moves earlier copies, which were visited
     * already. */
    for (uint32_t i = 1; i < copies.n && ps_spot_is_served(look, spot); i++) {
        const ps_copy_t *copy = &spot->copies->at[i];

        if (copy->state == PS_COPY_CATCHING_UP && (spot->watch->caught_up >> i & 1) != 0 &&
            ps_copy_lives(look->registry, copy)) {
            (void)snprintf(text, sizeof text, "is in sync on node %s",
                           ps_copy_node(look->registry, copy)->name);
            learn_rate(look, spot, i);
            ps_copies_set_state(&copies, i, PS_COPY_IN_SYNC);
            ps_copies_forget_dropped(&copies);
        }
    }
    return text[0] == '\0' ? PSD_OK : ps_look_change(look, spot, &copies, 0, text, err);
}
