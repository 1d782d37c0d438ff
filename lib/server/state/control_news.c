/* SPDX-License-Identifier: Apache-2.0 */
/* Events of nodes that do not change the registry: each is a row of the
 * history; a refused node also shows in cluster status. */
#include "server/state/control_inner.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/quorum/replica.h"
#include "server/state/history_text.h"

#define STILL_MS 60000   /* how long a refusal counts as a problem, and how often it is noted */
#define PATIENCE_MS 2000 /* by then the registry has forgotten an earlier life of a node */

/* What cannot be stored is in the log. */
static void note(ps_control_t *self, ps_log_level_t level, const char *text)
{
    const ps_command_t command = ps_registry_plan_note(self->is.registry, ps_unix_ms(), text);
    psd_status_t rc = ps_control_commit(self, &command, level, self->err);

    if (rc != PSD_OK) {
        char quoted[2 * sizeof command.text];

        ps_log(PS_LOG_ERROR, "not_noted", "status=%s text=%s", psd_status_name(rc),
               ps_log_quote(text, quoted, sizeof quoted));
        psd_error_clear(self->err);
    }
}

static void log_news(const ps_sight_news_t *news)
{
    if (news->state == PS_HEALTH_UP) {
        ps_log(PS_LOG_INFO, "node_up", "node=%s", news->name);
        return;
    }
    ps_log(PS_LOG_WARN, news->state == PS_HEALTH_DOWN ? "node_down" : "node_suspect",
           "node=%s silent_ms=%" PRIu64
           " hint=\"partitions with no other copy are unavailable until it is back\"",
           news->name, news->silent_ms);
}

/* A node's first announcement is no row of the history. */
void ps_control_note_nodes(ps_control_t *self)
{
    ps_sight_news_t news;

    while (ps_overseer_next_news(self->overseer, &news)) {
        char text[256];

        if (strcmp(news.name, self->is.node) != 0) {
            log_news(&news);
        }
        if (news.before == 0) {
            continue;
        }
        if (news.state == PS_HEALTH_UP) {
            (void)snprintf(text, sizeof text, "node %s is reachable again", news.name);
        } else {
            (void)snprintf(text, sizeof text,
                           "node %s is %s, silent for %.1f s; partitions with no other copy are "
                           "unavailable until it is back",
                           news.name, ps_health_name(news.state), (double)news.silent_ms / 1000.0);
        }
        note(self, news.state == PS_HEALTH_UP ? PS_LOG_INFO : PS_LOG_WARN, text);
    }
}

void ps_control_note_damage(ps_control_t *self, const char *name, const char *damage)
{
    char text[256];

    if (damage[0] != '\0') {
        int size =
            snprintf(text, sizeof text, "node %.*s found damaged files: ", PS_NAME_MAX, name);

        (void)ps_history_quote(damage, text + size, sizeof text - (size_t)size);
        note(self, PS_LOG_WARN, text);
    }
}

/* Changes of one table are adjacent. */
void ps_control_note_losses(ps_control_t *self, const ps_command_t *command)
{
    for (size_t i = 0, end = 0; i < command->n_changes; i = end) {
        const uint32_t id = command->changes[i].table;
        const ps_table_t *table = ps_registry_table_by_id(self->is.registry, id);
        uint32_t n = 0;
        char text[256];

        for (end = i; end < command->n_changes; end++) {
            if (command->changes[end].table != id) {
                break;
            }
            n += command->changes[end].rows_lost ? 1 : 0;
        }
        if (n > 0 && table != NULL) {
            (void)snprintf(text, sizeof text,
                           "table %s lost the rows of %" PRIu32 " of its %" PRIu32
                           " partitions; \"pscli table ack %s\" accepts the loss and keeps the "
                           "rows that came since",
                           table->spec.name, n, table->spec.n_partitions, table->spec.name);
            note(self, PS_LOG_WARN, text);
        }
    }
}

/* The entry of a name; else replaces the oldest refusal, so that nodes that
 * are refused in turns are each noted once. */
static ps_denied_t *denied_of(ps_control_t *self, const char *name)
{
    ps_denied_t *oldest = &self->denied[0];

    for (size_t i = 0; i < PS_DENIED_MAX; i++) {
        if (strcmp(self->denied[i].name, name) == 0) {
            return &self->denied[i];
        }
        oldest = self->denied[i].last_ms < oldest->last_ms ? &self->denied[i] : oldest;
    }
    return oldest;
}

void ps_control_note_denied(ps_control_t *self, const char *name, bool at_once, const char *why)
{
    ps_denied_t *denied = denied_of(self, name);
    uint64_t now_ms = ps_now_ms();

    if (strcmp(denied->name, name) != 0 || now_ms - denied->last_ms > STILL_MS) {
        *denied = (ps_denied_t){.first_ms = now_ms};
        (void)snprintf(denied->name, sizeof denied->name, "%s", name);
    }
    (void)snprintf(denied->why, sizeof denied->why, "%s", why);
    denied->last_ms = now_ms;
    denied->n++;
    denied->grave = denied->grave || at_once || now_ms - denied->first_ms >= PATIENCE_MS;
    if (denied->grave && (denied->noted_ms == 0 || now_ms - denied->noted_ms >= STILL_MS)) {
        char text[sizeof denied->why + PS_NAME_MAX + 64];

        denied->noted_ms = now_ms;
        (void)snprintf(text, sizeof text, "node %s was refused: %s", name, why);
        note(self, PS_LOG_WARN, text);
    }
}

static bool add_denied(const ps_denied_t *denied, ps_doc_t *problems)
{
    uint64_t ago_ms = ps_now_ms() - denied->last_ms;
    char text[sizeof denied->why + PS_NAME_MAX + 128];

    if (!denied->grave || ago_ms > STILL_MS) {
        return true;
    }
    (void)snprintf(text, sizeof text,
                   "node \"%s\" tries to join and was refused %" PRIu64
                   " times, the last time %.1f s ago: %s",
                   denied->name, denied->n, (double)ago_ms / 1000.0, denied->why);
    return ps_doc_append_text(problems, text);
}

bool ps_control_add_denied(const ps_control_t *self, ps_doc_t *problems)
{
    bool done = true;

    for (size_t i = 0; done && i < PS_DENIED_MAX; i++) {
        done = add_denied(&self->denied[i], problems);
    }
    return done;
}
