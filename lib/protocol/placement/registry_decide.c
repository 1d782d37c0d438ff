/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which the registry looks for work. */
#include "protocol/placement/registry_decide.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "protocol/placement/registry_look.h"

#define LOOK_AGAIN_MS 1000 /* whatever was thought to be due */

void ps_decision_done(ps_decision_t *self)
{
    ps_command_done(&self->command);
    ps_free(self->fences);
    *self = (ps_decision_t){0};
}

bool ps_spot_next(ps_look_t *look, ps_spot_t *spot, size_t *table_at)
{
    ps_registry_t *self = look->registry;

    spot->partition = spot->table == NULL ? 0 : spot->partition + 1;
    while (*table_at < self->n_tables &&
           spot->partition >= self->tables[*table_at].spec.n_partitions) {
        (*table_at)++;
        spot->partition = 0;
    }
    if (*table_at >= self->n_tables) {
        return false;
    }
    spot->table = &self->tables[*table_at];
    spot->copies = &spot->table->copies[spot->partition];
    spot->watch = &spot->table->watches[spot->partition];
    return true;
}

void ps_look_due(ps_look_t *look, uint64_t at_ms)
{
    if (at_ms > look->now_ms && at_ms < look->due_ms) {
        look->due_ms = at_ms;
    }
}

bool ps_look_may_hand(ps_look_t *look)
{
    ps_look_due(look, look->registry->hand_after_ms);
    return look->now_ms >= look->registry->hand_after_ms &&
           look->n_handing < look->registry->args.moves_max;
}

static psd_status_t make_room(ps_command_t *command, psd_error_t *err)
{
    size_t n = command->n_changes;
    ps_change_t *grown = NULL;

    if ((n & (n - 1)) != 0) {
        return PSD_OK; /* there is room up to the next power of two */
    }
    grown = ps_alloc_resize(command->changes, n == 0 ? 1 : 2 * n, sizeof *command->changes);
    if (grown == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for changes of copies");
    }
    command->changes = grown;
    return PSD_OK;
}

static void begin_commit(ps_look_t *look, const ps_spot_t *spot, const char *text)
{
    ps_command_t command = ps_registry_command(look->registry, PS_COMMAND_COPIES, look->unix_ms);

    command.epoch = ps_registry_next_epoch(look->registry);
    (void)snprintf(command.text, sizeof command.text, "partition %u of table %s %s",
                   spot->partition, spot->table->spec.name, text);
    look->decision->kind = PS_DECIDE_COMMIT;
    look->decision->command = command;
}

psd_status_t ps_look_change(ps_look_t *look, const ps_spot_t *spot, const ps_copies_t *copies,
                            uint64_t prefer, const char *text, psd_error_t *err)
{
    ps_command_t *command = &look->decision->command;
    ps_change_t *change = NULL;
    psd_status_t rc = PSD_OK;

    if (command->n_changes == 0) {
        begin_commit(look, spot, text);
    }
    rc = make_room(command, err);
    if (rc != PSD_OK) {
        return rc;
    }
    change = &command->changes[command->n_changes++];
    *change = (ps_change_t){.table = spot->table->id,
                            .partition = spot->partition,
                            .prefer = prefer,
                            .copies = *copies};
    change->copies.epoch = command->epoch;
    return PSD_OK;
}

/* Counts current work: copies being made per node, and moves. */
static void count_moves(ps_look_t *look)
{
    ps_spot_t spot = {0};
    size_t at = 0;

    while (ps_spot_next(look, &spot, &at)) {
        bool served = ps_spot_is_served(look, &spot);
        bool moves = false;

        look->n_handing += spot.copies->fenced && spot.watch->prefer != 0 ? 1 : 0;
        for (uint32_t i = 0; i < spot.copies->n; i++) {
            const ps_copy_t *copy = &spot.copies->at[i];

            moves = moves || copy->leaving;
            if (served && copy->state == PS_COPY_CATCHING_UP &&
                ps_copy_lives(look->registry, copy)) {
                look->catching_up[ps_node_index(look->registry, copy->incarnation)]++;
            }
        }
        look->n_moving += moves ? 1 : 0;
    }
}

static ps_decide_step_t *const steps[] = {
    ps_step_fence,  ps_step_ask,         ps_step_promote,        ps_step_shrink,  ps_step_relieve,
    ps_step_let_go, ps_step_admit,       ps_step_remove,         ps_step_replace, ps_step_hand,
    ps_step_add,    ps_step_even_copies, ps_step_even_primaries,
};
#define N_STEPS (sizeof steps / sizeof *steps)
#define N_URGENT 4 /* of these, the first: they place nothing, and need no counts */

static psd_status_t visit_all(ps_look_t *look, ps_decide_step_t *step, psd_error_t *err)
{
    const ps_decision_t *decision = look->decision;
    ps_spot_t spot = {0};
    size_t at = 0;
    psd_status_t rc = PSD_OK;

    while (rc == PSD_OK && decision->command.n_changes < PS_CHANGES_MAX &&
           decision->n_fences < PS_CHANGES_MAX && ps_spot_next(look, &spot, &at)) {
        rc = step(look, &spot, err);
    }
    return rc;
}

static psd_status_t run_steps(ps_look_t *look, size_t first, size_t last, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = first; i < last && rc == PSD_OK && look->decision->kind == PS_DECIDE_NOTHING;
         i++) {
        rc = visit_all(look, steps[i], err);
    }
    return rc;
}

static psd_status_t look_for(ps_look_t *look, psd_error_t *err)
{
    psd_status_t rc = run_steps(look, 0, N_URGENT, err);

    if (rc != PSD_OK || look->decision->kind != PS_DECIDE_NOTHING) {
        return rc;
    }
    rc = ps_loads_count(look->registry, &look->loads, err);
    if (rc != PSD_OK) {
        return rc;
    }
    look->catching_up = ps_alloc(look->registry->n_nodes, sizeof *look->catching_up);
    if (look->catching_up == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to look at copies");
    }
    count_moves(look);
    return run_steps(look, N_URGENT, N_STEPS, err);
}

static void finish_text(ps_command_t *command)
{
    size_t length = strlen(command->text);

    if (command->n_changes > 1) {
        (void)snprintf(command->text + length, sizeof command->text - length, "; %zu others alike",
                       command->n_changes - 1);
    }
}

psd_status_t ps_registry_decide(ps_registry_t *self, uint64_t now_ms, uint64_t unix_ms,
                                ps_decision_t *ret_decision, psd_error_t *err)
{
    ps_decision_t decision = {0};
    ps_look_t look = {.registry = self,
                      .now_ms = now_ms,
                      .unix_ms = unix_ms,
                      .due_ms = now_ms + LOOK_AGAIN_MS,
                      .decision = &decision};
    psd_status_t rc = PSD_OK;

    ps_registry_watch_nodes(self, now_ms);
    if (!self->dirty && now_ms < self->rest_until_ms) {
        *ret_decision = decision;
        return PSD_OK;
    }
    rc = look_for(&look, err);
    ps_loads_done(&look.loads);
    ps_free(look.catching_up);
    if (rc != PSD_OK) {
        ps_decision_done(&decision);
        return rc;
    }
    self->dirty = decision.kind != PS_DECIDE_NOTHING;
    if (!self->dirty && look.n_moving == 0 && look.n_handing == 0 && !look.is_uneven) {
        self->rebalancing = !self->args.rebalance_on_request;
    }
    self->rest_until_ms = look.due_ms;
    finish_text(&decision.command);
    *ret_decision = decision; /* ownership moves to the caller */
    return PSD_OK;
}

uint64_t ps_registry_decide_at(const ps_registry_t *self)
{
    uint64_t silence = ps_registry_silence_due(self);
    uint64_t again = self->looked_ms + self->args.suspect_after_ms / 4;
    uint64_t at = silence < self->rest_until_ms ? silence : self->rest_until_ms;

    if (self->dirty) {
        return 0;
    }
    return at < again ? at : again;
}
