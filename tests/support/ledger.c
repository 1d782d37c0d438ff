/* SPDX-License-Identifier: Apache-2.0 */
/* The entries, and the values that they allow. */
#include "support/ledger.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS_MAX 64
#define OPEN_MAX 65536 /* entries of one worker without an end */
#define DOUBTS_MAX 16  /* of a row: with more it only checks bounds */
#define DIFFERENCES_TOLD 8

typedef struct entry {
    uint64_t seq;
    uint64_t ended; /* by which line */
    uint64_t row;
    int64_t delta;
    uint32_t worker;
    uint16_t event; /* LEDGER_STARTED: not known; LEDGER_ACKED, _REFUSED */
    uint16_t level;
} entry_t;

typedef struct open_list { /* a worker's entries without an end */
    size_t *at;
    size_t n;
    uint64_t last_seq; /* started */
} open_list_t;

struct ledger {
    uint64_t n_rows;
    entry_t *entries;
    size_t n_entries;
    size_t size; /* room for */
    uint64_t n_lines;
    open_list_t open[WORKERS_MAX];
    ledger_sums_t sums;
};

/* The values that a row may have. */
typedef struct row_sum {
    int64_t acked;
    int64_t doubtful; /* the sum of */
    size_t n_doubts;
    int64_t doubts[DOUBTS_MAX]; /* the first ones */
} row_sum_t;

ledger_t *ledger_new(uint64_t n_rows)
{
    ledger_t *self = calloc(1, sizeof *self);

    if (self != NULL) {
        self->n_rows = n_rows;
    }
    return self;
}

void ledger_destroy(ledger_t **self_p)
{
    ledger_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    for (int i = 0; i < WORKERS_MAX; i++) {
        free(self->open[i].at);
    }
    free(self->entries);
    free(self);
    *self_p = NULL;
}

static bool refuse(const ledger_line_t *line, const char *why)
{
    (void)fprintf(stderr,
                  "ledger: worker %" PRIu32 " seq %" PRIu64 " row %" PRIu64 " event %" PRIu32
                  ": %s\n",
                  line->worker, line->seq, line->row, line->event, why);
    return false;
}

/* Room for one entry more, of the ledger and of its worker. */
static bool make_room(ledger_t *self, open_list_t *open)
{
    if (self->n_entries == self->size) {
        size_t size = self->size == 0 ? 4096 : self->size * 2;
        entry_t *entries = realloc(self->entries, size * sizeof *entries);

        if (entries == NULL) {
            return false;
        }
        self->entries = entries;
        self->size = size;
    }
    if (open->at == NULL) {
        open->at = calloc(OPEN_MAX, sizeof *open->at);
    }
    return open->at != NULL && open->n < OPEN_MAX;
}

static bool take_start(ledger_t *self, const ledger_line_t *line)
{
    open_list_t *open = &self->open[line->worker];

    if (line->row >= self->n_rows || line->delta <= 0) {
        return refuse(line, "a row outside, or a delta that is not positive");
    }
    for (size_t i = 0; i < open->n; i++) {
        const entry_t *entry = &self->entries[open->at[i]];

        if (entry->seq == line->seq && entry->row == line->row) {
            return refuse(line, "started twice");
        }
    }
    if (line->seq < open->last_seq) {
        return refuse(line, "a seq that was used before");
    }
    if (!make_room(self, open)) {
        return refuse(line, "no room");
    }
    open->last_seq = line->seq;
    open->at[open->n++] = self->n_entries;
    self->entries[self->n_entries++] = (entry_t){.seq = line->seq,
                                                 .row = line->row,
                                                 .delta = line->delta,
                                                 .worker = line->worker,
                                                 .event = LEDGER_STARTED};
    self->sums.n_started++;
    self->sums.n_unknown++;
    return true;
}

/* Ends the open entries of that seq, or all up to it. */
static bool take_end(ledger_t *self, const ledger_line_t *line, uint16_t event, bool up_to)
{
    open_list_t *open = &self->open[line->worker];
    size_t n_kept = 0;
    size_t n_ended = 0;

    for (size_t i = 0; i < open->n; i++) {
        entry_t *entry = &self->entries[open->at[i]];

        if (entry->seq == line->seq || (up_to && entry->seq < line->seq)) {
            entry->event = event;
            entry->ended = self->n_lines;
            entry->level = (uint16_t)line->level;
            n_ended++;
        } else {
            open->at[n_kept++] = open->at[i];
        }
    }
    open->n = n_kept;
    self->sums.n_unknown -= n_ended;
    *(event == LEDGER_ACKED ? &self->sums.n_acked : &self->sums.n_refused) += n_ended;
    return n_ended > 0 || up_to || refuse(line, "an end without a start");
}

bool ledger_take(ledger_t *self, const ledger_line_t *line)
{
    if (line->worker >= WORKERS_MAX || line->level > LEDGER_DISK) {
        return refuse(line, "no such worker or level");
    }
    self->n_lines++;
    switch ((ledger_event_t)line->event) {
    case LEDGER_STARTED:
        return take_start(self, line);
    case LEDGER_ACKED:
        return take_end(self, line, LEDGER_ACKED, false);
    case LEDGER_REFUSED:
        return take_end(self, line, LEDGER_REFUSED, false);
    case LEDGER_FLUSHED:
        return take_end(self, line, LEDGER_ACKED, true);
    case LEDGER_UNKNOWN:
        self->sums.n_deadlines++;
        return true;
    case LEDGER_JOINED:
    case LEDGER_LEFT:
        return true;
    default:
        return refuse(line, "no such event");
    }
}

void ledger_sum(const ledger_t *self, ledger_sums_t *ret_sums)
{
    *ret_sums = self->sums;
}

uint64_t ledger_now(const ledger_t *self)
{
    return self->n_lines;
}

/* Whether some of the uncertain pushes sum up to that. */
static bool is_some_of(const row_sum_t *sum, int64_t wanted)
{
    if (sum->n_doubts > DOUBTS_MAX) {
        return wanted >= 0 && wanted <= sum->doubtful;
    }
    for (uint32_t chosen = 0; chosen < 1U << sum->n_doubts; chosen++) {
        int64_t some = 0;

        for (size_t i = 0; i < sum->n_doubts; i++) {
            some += (chosen >> i & 1) != 0 ? sum->doubts[i] : 0;
        }
        if (some == wanted) {
            return true;
        }
    }
    return false;
}

static const char *name_of(const entry_t *entry)
{
    switch (entry->event) {
    case LEDGER_ACKED:
        return "acknowledged";
    case LEDGER_REFUSED:
        return "refused";
    default:
        return "unknown";
    }
}

static void tell_entry(const entry_t *entry, const char *what, FILE *story)
{
    (void)fprintf(story, "  worker %" PRIu32 " seq %" PRIu64 " (+%" PRId64 ", %s) %s\n",
                  entry->worker, entry->seq, entry->delta, name_of(entry), what);
}

/* Names the pushes that each alone would explain the difference. */
static void tell_causes(const ledger_t *self, uint64_t row, const row_sum_t *sum, int64_t extra,
                        FILE *story)
{
    for (size_t i = 0; i < self->n_entries; i++) {
        const entry_t *entry = &self->entries[i];

        if (entry->row != row) {
            continue;
        }
        if (entry->event == LEDGER_ACKED && is_some_of(sum, extra + entry->delta)) {
            tell_entry(entry, "would be lost", story);
        }
        if (is_some_of(sum, extra - entry->delta)) {
            tell_entry(entry,
                       entry->event == LEDGER_REFUSED ? "would be applied" : "would be there twice",
                       story);
        }
    }
}

static row_sum_t *sum_rows(const ledger_t *self, ledger_level_t least, uint64_t then)
{
    row_sum_t *sums = calloc(self->n_rows, sizeof *sums);

    for (size_t i = 0; sums != NULL && i < self->n_entries; i++) {
        const entry_t *entry = &self->entries[i];
        row_sum_t *sum = &sums[entry->row];

        if (entry->event == LEDGER_ACKED && entry->level >= (uint16_t)least &&
            entry->ended <= then) {
            sum->acked += entry->delta;
        } else if (entry->event != LEDGER_REFUSED) {
            sum->doubtful += entry->delta;
            if (sum->n_doubts < DOUBTS_MAX) {
                sum->doubts[sum->n_doubts] = entry->delta;
            }
            sum->n_doubts++;
        }
    }
    return sums;
}

bool ledger_check(const ledger_t *self, const int64_t *values, uint64_t n_rows,
                  ledger_level_t least, FILE *story)
{
    return ledger_check_at(self, values, n_rows, least, UINT64_MAX, story);
}

bool ledger_check_at(const ledger_t *self, const int64_t *values, uint64_t n_rows,
                     ledger_level_t least, uint64_t then, FILE *story)
{
    row_sum_t *sums = n_rows == self->n_rows ? sum_rows(self, least, then) : NULL;
    uint64_t n_different = 0;

    if (sums == NULL) {
        (void)fprintf(story, "ledger: no memory, or other rows\n");
        return false;
    }
    for (uint64_t row = 0; row < n_rows; row++) {
        int64_t extra = values[row] - sums[row].acked;

        if (is_some_of(&sums[row], extra)) {
            continue;
        }
        if (n_different++ < DIFFERENCES_TOLD) {
            (void)fprintf(story,
                          "row %" PRIu64 " is %" PRId64 ", acknowledged %" PRId64 " (%+" PRId64
                          "), not known %zu of sum %" PRId64 "\n",
                          row, values[row], sums[row].acked, extra, sums[row].n_doubts,
                          sums[row].doubtful);
            tell_causes(self, row, &sums[row], extra, story);
        }
    }
    if (n_different > 0) {
        (void)fprintf(story, "%" PRIu64 " of %" PRIu64 " rows differ\n", n_different, n_rows);
    }
    free(sums);
    return n_different == 0;
}
