/* SPDX-License-Identifier: Apache-2.0 */
/* The list of effects, and the only place that renders notes as text. */
#include "protocol/core/outbox.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/alloc.h"
#include "base/log.h"

/* X(NAME, event, level, words, numbers…): `words` name the numbers, which are
 * the note's own (a … e) or texts made from them. */
#define NOTE_MAP(X)                                                                                \
    X(REFUSED, "push_refused", INFO, " session=%" PRIu64 " seq=%" PRIu64 " status=%s", note->a,    \
      note->b, status_of(note->c))                                                                 \
    X(DUPLICATE, "push_duplicate", DEBUG, " session=%" PRIu64 " seq=%" PRIu64, note->a, note->b)   \
    X(GAP, "push_gap", DEBUG, " session=%" PRIu64 " seq=%" PRIu64 " expected=%" PRIu64, note->a,   \
      note->b, note->c)                                                                            \
    X(APPLIED, "push_applied", DEBUG,                                                              \
      " session=%" PRIu64 " seq=%" PRIu64 " lsn=%" PRIu64 " worker=%" PRIu64 " clock=%" PRIu64,    \
      note->a, note->b, note->c, note->d, note->e)                                                 \
    X(MARKED, "clock_marked", DEBUG,                                                               \
      " job=%" PRIu64 " worker=%" PRIu64 " member=%" PRIu64 " clock=%" PRIu64, note->a, note->b,   \
      note->c, note->d)                                                                            \
    X(LOGGED, "push_logged", DEBUG,                                                                \
      " session=%" PRIu64 " seq=%" PRIu64 " lsn=%" PRIu64 " worker=%" PRIu64 " clock=%" PRIu64,    \
      note->a, note->b, note->c, note->d, note->e)                                                 \
    X(CLOSED, "clock_closed", DEBUG, " job=%" PRIu64 " clock=%" PRIu64 " pushes=%" PRIu64,         \
      note->a, note->b, note->c)                                                                   \
    X(HELD, "request_held", DEBUG,                                                                 \
      " session=%" PRIu64 " worker=%" PRIu64 " clock=%" PRIu64 " waits_for_worker=%" PRIu64        \
      " at_clock=%" PRIu64,                                                                        \
      note->a, note->b, note->c, note->d, note->e)                                                 \
    X(SERVED, "pull_served", DEBUG,                                                                \
      " session=%" PRIu64 " worker=%" PRIu64 " clock=%" PRIu64 " rows=%" PRIu64, note->a, note->b, \
      note->c, note->d)                                                                            \
    X(HELLO, "session_hello", INFO, " session=%" PRIu64 " connection=%" PRIu64, note->a, note->b)  \
    X(HELLO_REFUSED, "session_refused", WARN, " session=%" PRIu64 " status=%s", note->a,           \
      status_of(note->b))                                                                          \
    X(FORGOTTEN, "session_forgotten", INFO, " session=%" PRIu64, note->a)                          \
    X(COPY_BEGUN, "copy_begun", INFO, " transfer=%" PRIu64 " lsn=%" PRIu64, note->a, note->b)      \
    X(COPY_WHOLE, "copy_whole", INFO, " transfer=%" PRIu64 " lsn=%" PRIu64, note->a, note->b)      \
    X(WRONG, "overlay_wrong_sum", WARN,                                                            \
      " job=%" PRIu64 " relay_of_worker=%" PRIu64 " clock=%" PRIu64, note->a, note->b, note->c)

static const char *status_of(uint64_t number)
{
    return psd_status_name((psd_status_t)number);
}

void ps_outbox_report(ps_outbox_t *self, const ps_report_t *report)
{
    ps_effect_t *effect = ps_outbox_add(self, PS_EFFECT_REPORT);

    if (effect != NULL) {
        effect->report = *report;
    }
}

bool ps_outbox_reserve(ps_outbox_t *self, size_t n)
{
    size_t taken = self->n_effects + self->n_held;

    if (n > SIZE_MAX - taken) {
        return false;
    }
    return taken + n <= self->capacity || /* without a call, as mostly */
           ps_grow(&self->effects, &self->capacity, taken + n, sizeof *self->effects);
}

bool ps_outbox_hold(ps_outbox_t *self)
{
    bool is_there = ps_outbox_reserve(self, 1);

    self->n_held += is_there ? 1 : 0;
    return is_there;
}

void ps_outbox_give_up(ps_outbox_t *self)
{
    assert(self->n_held > 0);
    self->n_held--;
}

ps_effect_t *ps_outbox_add_raw(ps_outbox_t *self, ps_effect_kind_t kind)
{
    ps_effect_t *effect = NULL;

    if (self->n_effects + self->n_held == self->capacity && !ps_outbox_reserve(self, 1)) {
        return NULL;
    }
    effect = &self->effects[self->n_effects++];
    effect->kind = kind;
    effect->to = 0;
    effect->owner = NULL;
    effect->payload = NULL;
    return effect;
}

ps_effect_t *ps_outbox_add(ps_outbox_t *self, ps_effect_kind_t kind)
{
    ps_effect_t *effect = ps_outbox_add_raw(self, kind);

    if (effect != NULL) {
        *effect = (ps_effect_t){.kind = kind};
    }
    return effect;
}

void ps_outbox_clear(ps_outbox_t *self)
{
    for (size_t i = 0; i < self->n_effects; i++) {
        if (self->effects[i].payload != NULL) {
            ps_payload_destroy(&self->effects[i].payload);
        }
    }
    self->n_effects = 0;
}

void ps_outbox_done(ps_outbox_t *self)
{
    ps_outbox_clear(self);
    ps_free(self->effects);
    *self = (ps_outbox_t){0};
}

/* Whether the note names a partition; notes about a connection do not. */
static bool names_partition(ps_note_kind_t kind)
{
    return kind != PS_NOTE_HELLO && kind != PS_NOTE_HELLO_REFUSED;
}

/* Appends the words of the note's own numbers at text[used]. */
static void print_numbers(const ps_note_t *note, char *text, size_t size)
{
    switch (note->kind) {
#define PRINT_CASE(NAME, event, level, words, ...)      \
    case PS_NOTE_##NAME:                                \
        (void)snprintf(text, size, words, __VA_ARGS__); \
        break;
        NOTE_MAP(PRINT_CASE)
#undef PRINT_CASE
    default:
        break;
    }
}

static const char *event_of(ps_note_kind_t kind, int *ret_level)
{
    switch (kind) {
#define EVENT_CASE(NAME, event, level, ...) \
    case PS_NOTE_##NAME:                    \
        *ret_level = PS_LOG_##level;        \
        return event;
        NOTE_MAP(EVENT_CASE)
#undef EVENT_CASE
    default:
        *ret_level = PS_LOG_WARN;
        return "note_unknown";
    }
}

void ps_note_print(const ps_note_t *note, char *ret_text, size_t size, int *ret_level)
{
    int level = 0;
    const char *event = event_of(note->kind, &level);
    int used = 0;

    if (names_partition(note->kind)) {
        used = snprintf(ret_text, size, "%s table=%" PRIu32 " partition=%" PRIu32, event,
                        note->table, note->partition);
    } else {
        used = snprintf(ret_text, size, "%s", event);
    }
    if (used > 0 && (size_t)used < size) {
        print_numbers(note, ret_text + used, size - (size_t)used);
    }
    if (ret_level != NULL) {
        *ret_level = level;
    }
}
