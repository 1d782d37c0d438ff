/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and their words. */
#include "plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool plan_survives(const plan_t *self)
{
    return self->ack == LEDGER_DISK || (self->ack == LEDGER_REPLICA && self->replicas >= 2);
}

/* Not without the first one, whose registry names the next primaries. */
bool plan_goes_on_without(const plan_t *self, unsigned node)
{
    bool copies = self->ack == LEDGER_REPLICA ? self->replicas >= 3 : self->replicas >= 2;

    return node != 0 && copies;
}

/* The place of a word in a list that ends with NULL; -1: not there. */
static int place_of(const char *word, size_t size, const char *const *words)
{
    for (int i = 0; words[i] != NULL; i++) {
        if (strlen(words[i]) == size && strncmp(words[i], word, size) == 0) {
            return i;
        }
    }
    return -1;
}

static bool read_faults(const char *text, plan_t *self)
{
    static const char *const words[] = {"kill", "freeze", "cut",  "slow",
                                        "all",  "full",   "away", NULL};

    self->faults = 0;
    while (*text != '\0') {
        size_t size = strcspn(text, "+");
        int place = place_of(text, size, words);

        if (place < 0) {
            return false;
        }
        self->faults |= 1U << place;
        text += size + (text[size] == '+' ? 1 : 0);
    }
    return self->faults != 0;
}

static bool read_number(const char *text, uint64_t min, uint64_t max, uint64_t *ret)
{
    char *end = NULL;

    errno = 0;
    *ret = strtoull(text, &end, 10);
    return end != text && *end == '\0' && errno == 0 && *ret >= min && *ret <= max;
}

static bool read_count(const char *text, uint64_t min, uint64_t max, unsigned *ret)
{
    uint64_t number = 0;
    bool good = read_number(text, min, max, &number);

    *ret = (unsigned)number;
    return good;
}

bool plan_read(plan_t *self, const char *text)
{
    static const char *const keys[] = {"nodes",   "replicas", "rounds", "logs", "seed",
                                       "seconds", "faults",   "ack",    "net",  "apart",
                                       "moves",   "why",      NULL};
    static const char *const levels[] = {"memory", "replica", "disk", NULL};
    static const char *const nets[] = {"proxy", "netns", NULL};
    size_t size = strcspn(text, "=");
    const char *value = text + size + (text[size] == '=' ? 1 : 0);
    uint64_t number = 0;
    int place = -1;

    switch (place_of(text, size, keys)) {
    case 0:
        return read_count(value, 1, CLUSTER_NODES_MAX, &self->nodes);
    case 1:
        return read_count(value, 1, CLUSTER_NODES_MAX, &self->replicas);
    case 2:
        return read_count(value, 0, UINT32_MAX, &self->rounds);
    case 3:
        return read_count(value, 0, 1, &self->logs);
    case 4:
        return read_number(value, 0, UINT64_MAX, &self->seed);
    case 5:
        if (!read_number(value, 0, INT32_MAX, &number)) {
            return false;
        }
        self->seconds = (time_t)number;
        return true;
    case 6:
        return read_faults(value, self);
    case 7:
        place = place_of(value, strlen(value), levels);
        self->ack = (ledger_level_t)(LEDGER_MEMORY + place);
        return place >= 0;
    case 8:
        place = place_of(value, strlen(value), nets);
        self->net = place == 0 ? CLUSTER_PROXY : CLUSTER_NETNS;
        return place >= 0;
    case 9:
        return read_count(value, 0, 1, &self->apart);
    case 10:
        return read_count(value, 0, 1, &self->moves);
    case 11:
        return read_count(value, 0, 1, &self->why);
    default:
        return false;
    }
}
