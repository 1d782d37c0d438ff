/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger finds what was lost and what is there twice, and says which push;
 * what nobody knows may be there or not, and once. */
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/ledger.h"

#define ROWS 3

static bool take(ledger_t *ledger, ledger_event_t event, uint32_t worker, uint64_t seq,
                 uint64_t row, int64_t delta, ledger_level_t level)
{
    const ledger_line_t line = {.event = (uint32_t)event,
                                .worker = worker,
                                .seq = seq,
                                .row = row,
                                .delta = delta,
                                .level = (uint32_t)level};

    return ledger_take(ledger, &line);
}

/* Whether the rows hold with that; told: what has to be said of it. */
static bool finds(const ledger_t *ledger, const int64_t values[ROWS], ledger_level_t least,
                  bool is_right, const char *told)
{
    char *text = NULL;
    size_t size = 0;
    FILE *story = open_memstream(&text, &size);
    bool good = false;

    CHECK(story != NULL);
    good = ledger_check(ledger, values, ROWS, least, story) == is_right;
    (void)fclose(story);
    good = good && (told == NULL ? size == 0 : strstr(text, told) != NULL);
    if (!good) {
        (void)fprintf(stderr, "wanted %s: %s\n", told, text);
    }
    free(text);
    return good;
}

/* Worker 1: seq 1 of rows 0 and 1 in memory, seq 3 of row 1 on disk, seq 4 of
 * row 2 refused. Worker 2: seqs 1 and 2 of row 0 not known. */
static bool write_all(ledger_t *ledger)
{
    CHECK(take(ledger, LEDGER_STARTED, 1, 1, 0, 1000, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_STARTED, 1, 1, 1, 70, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_STARTED, 2, 1, 0, 33, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_ACKED, 1, 1, 0, 0, LEDGER_MEMORY));
    CHECK(take(ledger, LEDGER_STARTED, 1, 3, 1, 5, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_ACKED, 1, 3, 0, 0, LEDGER_DISK));
    CHECK(take(ledger, LEDGER_STARTED, 1, 4, 2, 9, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_REFUSED, 1, 4, 0, 0, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_UNKNOWN, 2, 1, 0, 0, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_STARTED, 2, 2, 0, 8, LEDGER_NONE));
    return true;
}

static bool holds_against_values(void)
{
    ledger_t *ledger = ledger_new(ROWS);
    ledger_sums_t sums = {0};
    const int64_t none[] = {1000, 75, 0};
    const int64_t some[] = {1033, 75, 0};
    const int64_t all[] = {1041, 75, 0};
    const int64_t more[] = {1034, 75, 0}; /* within the bounds, no sum */
    const int64_t lost[] = {41, 75, 0};   /* with both that are not known */
    const int64_t twice[] = {1033, 80, 0};
    const int64_t refused[] = {1033, 75, 9};
    const int64_t memory_lost[] = {8, 5, 0};
    const int64_t disk_lost[] = {1000, 70, 0};

    CHECK(ledger != NULL && write_all(ledger));
    ledger_sum(ledger, &sums);
    CHECK(sums.n_started == 6 && sums.n_acked == 3 && sums.n_refused == 1 && sums.n_unknown == 2 &&
          sums.n_deadlines == 1);
    CHECK(finds(ledger, none, LEDGER_MEMORY, true, NULL));
    CHECK(finds(ledger, some, LEDGER_MEMORY, true, NULL));
    CHECK(finds(ledger, all, LEDGER_MEMORY, true, NULL));
    CHECK(finds(ledger, more, LEDGER_MEMORY, false, "row 0 is 1034"));
    CHECK(finds(ledger, lost, LEDGER_MEMORY, false,
                "worker 1 seq 1 (+1000, acknowledged) would be lost"));
    CHECK(finds(ledger, twice, LEDGER_MEMORY, false,
                "worker 1 seq 3 (+5, acknowledged) would be there twice"));
    CHECK(finds(ledger, refused, LEDGER_MEMORY, false,
                "worker 1 seq 4 (+9, refused) would be applied"));
    CHECK(finds(ledger, memory_lost, LEDGER_MEMORY, false, "2 of 3 rows"));
    CHECK(finds(ledger, memory_lost, LEDGER_DISK, true, NULL));
    CHECK(finds(ledger, disk_lost, LEDGER_DISK, false,
                "worker 1 seq 3 (+5, acknowledged) would be lost"));
    /* Known after all: it must be there. */
    CHECK(take(ledger, LEDGER_FLUSHED, 2, 1, 0, 0, LEDGER_MEMORY));
    CHECK(finds(ledger, none, LEDGER_MEMORY, false,
                "worker 2 seq 1 (+33, acknowledged) would be lost"));
    CHECK(finds(ledger, some, LEDGER_MEMORY, true, NULL));
    ledger_destroy(&ledger);
    return true;
}

/* As they were behind the first acknowledgement: the later ones may lack. */
static bool holds_against_values_of_then(void)
{
    ledger_t *ledger = ledger_new(ROWS);
    const int64_t then[] = {1000, 70, 0};
    const int64_t later[] = {1000, 75, 0};
    const int64_t lost[] = {0, 75, 0};
    const int64_t twice[] = {1000, 80, 0};
    uint64_t now = 0;

    CHECK(ledger != NULL);
    CHECK(take(ledger, LEDGER_STARTED, 1, 1, 0, 1000, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_STARTED, 1, 1, 1, 70, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_ACKED, 1, 1, 0, 0, LEDGER_MEMORY));
    now = ledger_now(ledger);
    CHECK(take(ledger, LEDGER_STARTED, 1, 2, 1, 5, LEDGER_NONE));
    CHECK(take(ledger, LEDGER_ACKED, 1, 2, 0, 0, LEDGER_MEMORY));
    CHECK(ledger_check_at(ledger, then, ROWS, LEDGER_MEMORY, now, stderr));
    CHECK(ledger_check_at(ledger, later, ROWS, LEDGER_MEMORY, now, stderr));
    CHECK(!ledger_check_at(ledger, lost, ROWS, LEDGER_MEMORY, now, stderr));
    CHECK(!ledger_check_at(ledger, twice, ROWS, LEDGER_MEMORY, now, stderr));
    CHECK(!ledger_check_at(ledger, then, ROWS, LEDGER_MEMORY, ledger_now(ledger), stderr));
    ledger_destroy(&ledger);
    return true;
}

static bool refuses_nonsense(void)
{
    ledger_t *ledger = ledger_new(ROWS);

    CHECK(ledger != NULL);
    CHECK(!take(ledger, LEDGER_STARTED, 1, 1, ROWS, 1, LEDGER_NONE));
    CHECK(!take(ledger, LEDGER_STARTED, 1, 1, 0, 0, LEDGER_NONE));
    CHECK(!take(ledger, LEDGER_ACKED, 1, 1, 0, 0, LEDGER_MEMORY));
    CHECK(!take(ledger, LEDGER_ACKED, 1000, 1, 0, 0, LEDGER_MEMORY));
    CHECK(!take(ledger, (ledger_event_t)99, 1, 1, 0, 0, LEDGER_MEMORY));
    CHECK(take(ledger, LEDGER_STARTED, 1, 2, 0, 1, LEDGER_NONE));
    CHECK(!take(ledger, LEDGER_STARTED, 1, 2, 0, 1, LEDGER_NONE));
    CHECK(!take(ledger, LEDGER_STARTED, 1, 1, 0, 1, LEDGER_NONE));
    ledger_destroy(&ledger);
    return true;
}

int main(void)
{
    return holds_against_values() && holds_against_values_of_then() && refuses_nonsense() ? 0 : 1;
}
