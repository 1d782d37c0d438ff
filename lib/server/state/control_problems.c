/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with the cluster, and what psd does about it. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_SIZE 400
#define LATE_MAX 8 /* threads that are named */

/* ---- nodes ---- */

/* There is no primary, and no remaining copy is known to have everything:
 * this one, whose node is silent, may have most. */
static bool is_awaited(const ps_registry_t *registry, const ps_copies_t *copies,
                       const ps_copy_t *copy)
{
    bool found = copies->fenced && (ps_copy_is_heir(copy) || copy->dropped);

    for (uint32_t i = 0; found && i < copies->n; i++) {
        const ps_node_t *node =
            ps_registry_node_by_incarnation(registry, copies->at[i].incarnation);

        found = !ps_copy_is_whole(&copies->at[i]) || node == NULL || !node->up || node->suspect;
    }
    return found;
}

/* Partitions of which a node has a copy. ret_last: those of which no other
 * copy could become primary. ret_awaited: those without a primary, whose
 * newest records may be there. */
static uint64_t count_copies(const ps_registry_t *registry, uint64_t incarnation,
                             uint64_t *ret_last, uint64_t *ret_awaited)
{
    uint64_t n = 0;
    uint64_t n_last = 0;
    uint64_t n_awaited = 0;

    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            const ps_copies_t *copies = &table->copies[k];
            const ps_copy_t *copy = ps_copies_on(copies, incarnation);

            n += copy != NULL ? 1 : 0;
            n_awaited += copy != NULL && is_awaited(registry, copies, copy) ? 1 : 0;
            n_last +=
                copy != NULL && ps_copy_is_heir(copy) && ps_copies_n_heirs(copies) == 1 ? 1 : 0;
        }
    }
    *ret_last = n_last;
    *ret_awaited = n_awaited;
    return n;
}

/* 'node "n2" is down, silent for 3.0 s; …' */
static void print_silent(const ps_control_t *self, const ps_node_t *node, const ps_sight_t *view,
                         char ret_text[TEXT_SIZE])
{
    uint64_t n_last = 0;
    uint64_t n_awaited = 0;
    uint64_t n = count_copies(self->is.registry, node->incarnation, &n_last, &n_awaited);
    bool alone = ps_replica_thread(self->is.replica) == NULL;
    char since[64] = "not heard since the registry started";
    char what[160] = "its partitions are served by their other copies";

    if (view->never && !alone) {
        (void)snprintf(since, sizeof since, "not heard since the leader changed");
    } else if (!view->never) {
        (void)snprintf(since, sizeof since, "silent for %.1f s", (double)view->silent_ms / 1000.0);
    }
    if (n_last > 0) {
        (void)snprintf(what, sizeof what,
                       "psd waits for it: its %" PRIu64
                       " partition%s, which ha%s no other copy, cannot be used until it is back",
                       n_last, n_last == 1 ? "" : "s", n_last == 1 ? "s" : "ve");
    } else if (n_awaited > 0) {
        (void)snprintf(what, sizeof what,
                       "psd waits for it: %" PRIu64
                       " partition%s no primary, and its cop%s may have the most records",
                       n_awaited, n_awaited == 1 ? " has" : "s have", n_awaited == 1 ? "y" : "ies");
    } else if (n == 0) {
        (void)snprintf(what, sizeof what, "it has no partitions");
    }
    (void)snprintf(ret_text, TEXT_SIZE, "node \"%s\" is %s, %s; %s", node->name,
                   ps_health_name(view->state), since, what);
}

/* Some of its copies are not whole yet. */
static bool lacks_copies(const ps_registry_t *registry, const ps_node_t *node)
{
    for (size_t i = 0; i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        for (uint32_t k = 0; k < table->spec.n_partitions; k++) {
            const ps_copy_t *copy = ps_copies_on(&table->copies[k], node->incarnation);

            if (copy != NULL && !ps_copy_is_whole(copy)) {
                return true;
            }
        }
    }
    return false;
}

/* 'node "n2" found damaged files at its start: PATH: byte 7: …; …' */
static bool add_damage(const ps_node_t *node, const ps_sight_t *view, ps_doc_t *array)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    return ps_buffer_print(
               &text,
               "node \"%s\" found damaged files at its start: %s; lost copies are rebuilt from "
               "other copies, the files stay as *.damaged; check that disk",
               node->name, view->damage) &&
           ps_doc_append_text(array, (const char *)text.data);
}

/* ---- partitions ---- */

typedef struct counts {
    uint32_t n_fenced;
    uint32_t n_few;         /* with fewer whole copies than wanted */
    uint32_t n_catching_up; /* of those: a copy is being made, … */
    uint32_t n_away;        /* … or it would be, were its node not silent */
    const ps_node_t *waits; /* the node that the first fenced one may wait for */
} counts_t;

/* Of a partition with too few whole copies. */
static void count_coming(const ps_control_t *self, const ps_copies_t *copies, counts_t *counts)
{
    bool comes = false;
    bool away = false;

    for (uint32_t i = 0; i < copies->n; i++) {
        const ps_node_t *node =
            ps_registry_node_by_incarnation(self->is.registry, copies->at[i].incarnation);

        if (!ps_copy_is_whole(&copies->at[i])) {
            comes = comes || (node != NULL && node->up);
            away = away || node == NULL || !node->up;
        }
    }
    counts->n_catching_up += comes ? 1 : 0;
    counts->n_away += away && !comes ? 1 : 0;
}

static void count_one(const ps_control_t *self, const ps_table_t *table, const ps_copies_t *copies,
                      counts_t *counts)
{
    if (copies->fenced) {
        counts->n_fenced++;
        for (uint32_t i = 0; counts->waits == NULL && i < copies->n; i++) {
            const ps_node_t *node =
                ps_registry_node_by_incarnation(self->is.registry, copies->at[i].incarnation);

            if (node != NULL && (!node->up || node->suspect) &&
                is_awaited(self->is.registry, copies, &copies->at[i])) {
                counts->waits = node;
            }
        }
    }
    if (ps_copies_n_whole(copies) < table->spec.replicas) {
        counts->n_few++;
        count_coming(self, copies, counts);
    }
}

static counts_t count_table(const ps_control_t *self, const ps_table_t *table)
{
    counts_t counts = {0};

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        count_one(self, table, &table->copies[i], &counts);
    }
    return counts;
}

/* 'table "w": 6 partitions have fewer …; at 2 of them …' */
static bool add_few(const ps_table_t *table, const counts_t *counts, ps_doc_t *array)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    uint32_t n_none = counts->n_few - counts->n_catching_up - counts->n_away;
    bool done = ps_buffer_print(&text,
                                "table \"%s\": %" PRIu32 " partitions have fewer than the %" PRIu32
                                " whole copies wanted",
                                table->spec.name, counts->n_few, table->spec.replicas);

    if (done && counts->n_catching_up > 0) {
        done = ps_buffer_print(&text, "; at %" PRIu32 " one catches up", counts->n_catching_up);
    }
    if (done && counts->n_away > 0) {
        done = ps_buffer_print(
            &text,
            "; at %" PRIu32 " one is on a silent node, and is rebuilt elsewhere if that stays away",
            counts->n_away);
    }
    if (done && n_none > 0) {
        done = ps_buffer_print(&text, "; for %" PRIu32 " there is no other node yet", n_none);
    }
    return done && ps_doc_append_text(array, (const char *)text.data);
}

bool ps_control_add_table_problems(const ps_control_t *self, const ps_table_t *table,
                                   ps_doc_t *array)
{
    const counts_t counts = count_table(self, table);
    char text[TEXT_SIZE];
    bool done = true;

    if (counts.n_fenced > 0) {
        (void)snprintf(
            text, sizeof text,
            "table \"%s\": %" PRIu32
            " partitions have no primary; the registry asks their copies for the last record%s%s%s",
            table->spec.name, counts.n_fenced, counts.waits == NULL ? "" : ", and node \"",
            counts.waits == NULL ? "" : counts.waits->name,
            counts.waits == NULL ? "" : "\", which is silent and may have it, is awaited");
        done = ps_doc_append_text(array, text);
    }
    if (done && counts.n_few > 0) {
        done = add_few(table, &counts, array);
    }
    if (done && table->rows_lost && !table->loss_acked) {
        (void)snprintf(
            text, sizeof text,
            "table \"%s\" lost rows with the last node that had them; \"pscli table ack %s\" "
            "accepts the loss and keeps the rows that came since, or drop and create it",
            table->spec.name, table->spec.name);
        done = ps_doc_append_text(array, text);
    }
    return done;
}

/* ---- silent primaries ---- */

/* Partitions of the table that only that node serves. */
static uint32_t count_served(const ps_table_t *table, const ps_node_t *node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < table->spec.n_partitions; i++) {
        const ps_copies_t *copies = &table->copies[i];

        n += !copies->fenced && copies->at[0].incarnation == node->incarnation ? 1 : 0;
    }
    return n;
}

bool ps_control_add_silent(const ps_control_t *self, const ps_table_t *table, ps_doc_t *array,
                           bool *ret_any)
{
    const ps_registry_t *registry = self->is.registry;
    bool done = true;

    for (size_t i = 0; done && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        bool reached = node->unreached_until_ms <= ps_now_ms();
        uint32_t n = node->up && reached ? 0 : count_served(table, node);
        char text[TEXT_SIZE];

        if (n == 0) {
            continue;
        }
        *ret_any = true;
        (void)snprintf(text, sizeof text,
                       "table \"%s\": node \"%s\", which has the primaries of %" PRIu32
                       " partitions, is %s; requests for them wait until it is back, or until "
                       "another copy in sync takes over",
                       table->spec.name, node->name, n,
                       node->up ? "unreachable for clients" : "silent");
        done = ps_doc_append_text(array, text);
    }
    return done;
}

/* ---- silent copies ---- */

#define STILL_MS 1000 /* a live copy answers its primary sooner than this */

/* Whether the answering shard has the primary, and for that long has not
 * learnt that the copy, which is whole, has all records. */
static bool is_still(const ps_table_t *table, const ps_shard_answer_t *call,
                     const ps_lag_info_t *lag, uint64_t now_ms)
{
    const ps_copies_t *copies = NULL;
    const ps_copy_t *copy = NULL;

    if (lag->table != table->id || lag->partition >= table->spec.n_partitions) {
        return false;
    }
    copies = &table->copies[lag->partition];
    copy = ps_copies_on(copies, lag->incarnation);
    return !copies->fenced && copy != NULL && ps_copy_is_whole(copy) &&
           copies->at[0].incarnation == call->incarnation && copies->at[0].shard == call->shard &&
           now_ms >= lag->level_ms + STILL_MS;
}

/* 'table "w": at 2 partitions the copy on node "n1" is not known …' */
static bool add_still(const ps_table_t *table, const ps_node_t *node, const ps_answers_t *answers,
                      ps_doc_t *array)
{
    uint64_t now_ms = ps_now_ms();
    uint64_t longest_ms = 0;
    uint32_t n = 0;
    char text[TEXT_SIZE];

    for (uint32_t i = 0; i < answers->n; i++) {
        const ps_shard_answer_t *call = &answers->at[i];

        for (size_t k = 0; k < call->n_lags; k++) {
            const ps_lag_info_t *lag = &call->lags[k];

            if (lag->incarnation == node->incarnation && is_still(table, call, lag, now_ms)) {
                uint64_t still_ms = now_ms - lag->level_ms;

                n++;
                longest_ms = still_ms > longest_ms ? still_ms : longest_ms;
            }
        }
    }
    (void)snprintf(
        text, sizeof text,
        "table \"%s\": at %" PRIu32
        " partitions the copy on node \"%s\" has not confirmed all records for %.1f s; pushes that "
        "wait for it continue when it does, or when it leaves the in-sync set",
        table->spec.name, n, node->name, (double)longest_ms / 1000.0);
    return n == 0 || ps_doc_append_text(array, text);
}

/* ---- disks and drains ---- */

/* 'node "n1": the disk of shard 0 takes nothing: …' */
static bool add_disks(const ps_node_t *node, const ps_answers_t *answers, ps_doc_t *array)
{
    bool done = true;

    for (uint32_t i = 0; done && i < answers->n; i++) {
        const ps_shard_answer_t *call = &answers->at[i];
        char text[TEXT_SIZE + PS_TEXT_MAX];

        if (call->incarnation != node->incarnation || call->info.disk_trouble[0] == '\0') {
            continue;
        }
        (void)snprintf(text, sizeof text,
                       "node \"%s\": the disk of shard %" PRIu32
                       " accepts no writes: %s; pushes at level disk wait there, or go to other "
                       "copies; psd retries until it does",
                       node->name, call->shard, call->info.disk_trouble);
        done = ps_doc_append_text(array, text);
    }
    return done;
}

static bool add_files(const ps_node_t *node, const ps_sight_t *view, ps_doc_t *array)
{
    char text[TEXT_SIZE];

    if (!view->files_out) {
        return true;
    }
    (void)snprintf(text, sizeof text,
                   "node \"%s\" is out of file descriptors and refuses new connections; raise its "
                   "limit (LimitNOFILE, ulimit -n) or close clients",
                   node->name);
    return ps_doc_append_text(array, text);
}

/* 'node "n1" keeps 2 tables aside …' */
static bool add_aside(const ps_node_t *node, const ps_sight_t *view, ps_doc_t *array)
{
    char text[TEXT_SIZE];

    if (view->n_aside == 0) {
        return true;
    }
    (void)snprintf(text, sizeof text,
                   "node \"%s\" keeps %" PRIu32
                   " table%s aside that the registry does not know; \"pscli cluster registry "
                   "unknown\" lists them, \"accept\" takes them back, \"discard\" drops them",
                   node->name, view->n_aside, view->n_aside == 1 ? "" : "s");
    return ps_doc_append_text(array, text);
}

void ps_control_print_stuck(const ps_node_t *node, const ps_node_left_t *left, char *ret_text,
                            size_t size)
{
    (void)snprintf(ret_text, size,
                   "node \"%s\" drains, and %" PRIu32 " of its %" PRIu32
                   " copies have no other node to go to; start one more node "
                   "(psd --join), or let it stay (pscli node drain %s --stay)",
                   node->name, left->n_stuck, left->n_copies, node->name);
}

static bool add_drain(const ps_control_t *self, const ps_node_t *node, ps_doc_t *array)
{
    ps_node_left_t left = {0};
    char text[TEXT_SIZE];

    if (!node->draining || !ps_registry_node_left(self->is.registry, node->name, &left) ||
        left.n_stuck == 0) {
        return true;
    }
    ps_control_print_stuck(node, &left, text, sizeof text);
    return ps_doc_append_text(array, text);
}

/* ---- threads and nodes that do not answer ---- */

/* 'node "n1": thread shard-1 has not turned for 2.3 s'. For other nodes it
 * only names the one that has not answered; that node's log says more. */
static bool add_threads(const ps_control_t *self, const char *missing, ps_doc_t *array)
{
    ps_late_t late[LATE_MAX];
    size_t n =
        self->is.turns == NULL ? 0 : ps_turns_late(ps_turns_page(self->is.turns), late, LATE_MAX);
    bool done = true;

    for (size_t i = 0; done && i < n; i++) {
        char text[TEXT_SIZE];
        char what[TEXT_SIZE / 2];

        ps_late_print(&late[i], what, sizeof what);
        (void)snprintf(text, sizeof text, "node \"%s\": %s", self->is.node, what);
        done = ps_doc_append_text(array, text);
    }
    return done && (n > 0 || missing[0] == '\0' || ps_doc_append_text(array, missing));
}

/* ---- all of it ---- */

bool ps_control_add_problems(const ps_control_t *self, const ps_control_request_t *request,
                             ps_doc_t *reply, bool *ret_any)
{
    const ps_registry_t *registry = self->is.registry;
    const ps_answers_t *answers = request->answers;
    ps_doc_t *array = ps_doc_add_array(reply, "problems");
    bool done = array != NULL && add_threads(self, request->missing, array) &&
                ps_control_add_voters(self, array);

    for (size_t i = 0; done && i < ps_registry_n_nodes(registry); i++) {
        const ps_node_t *node = ps_registry_node_at(registry, i);
        const ps_sight_t view = ps_overseer_look(self->overseer, node, ps_now_ms());
        char text[TEXT_SIZE];

        if (view.state != PS_HEALTH_UP) {
            print_silent(self, node, &view, text);
            done = ps_doc_append_text(array, text);
        }
        done = done && add_files(node, &view, array) && add_disks(node, answers, array) &&
               add_drain(self, node, array) && add_aside(node, &view, array);
        if (done && view.damage[0] != '\0' && lacks_copies(registry, node)) {
            done = add_damage(node, &view, array);
        }
    }
    for (size_t i = 0; done && i < ps_registry_n_tables(registry); i++) {
        const ps_table_t *table = ps_registry_table_at(registry, i);

        done = ps_control_add_table_problems(self, table, array);
        for (size_t k = 0; done && k < ps_registry_n_nodes(registry); k++) {
            done = add_still(table, ps_registry_node_at(registry, k), answers, array);
        }
    }
    *ret_any = done && ps_doc_count(array) > 0;
    /* This harms nothing that the cluster stores. */
    return done && ps_control_add_denied(self, array);
}
