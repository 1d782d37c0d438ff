/* SPDX-License-Identifier: Apache-2.0 */
/* Who waits, and what he is told. */
#include "asker.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "support/check.h"

#define LOOK_MS 100
#define TEXT_SIZE 4096
/* The cluster learns of a fault after the client does, and a client that is
 * asked has stopped waiting by then: so often in a row is no coincidence. */
#define UNNAMED_MAX 15

enum { OWN = 0, WHY = 1, STATUS = 2 };

static const char *const who[] = {"the client", "why", "cluster status"};

static uint64_t now_ms(void)
{
    struct timespec now = {0};

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static bool names_node(const cluster_t *cluster, const char *text)
{
    char name[CLUSTER_TEXT_SIZE + 2];

    for (unsigned i = 0; i < cluster->n_nodes; i++) {
        (void)snprintf(name, sizeof name, "\"%.40s\"", cluster->nodes[i].name);
        if (strstr(text, name) != NULL || strstr(text, cluster->nodes[i].front) != NULL) {
            return true;
        }
    }
    return false;
}

static bool names_cause(const asker_t *self, const char *text, bool or_worker)
{
    static const char *const words[] = {"copies", "primary", "copy on node", "second copy",
                                        "disk of node"};

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(text, words[i]) != NULL) {
            return true;
        }
    }
    return names_node(self->cluster, text) ||
           (or_worker && strstr(text, "worker ") != NULL && strstr(text, "at clock") != NULL);
}

/* One answer about one wait. */
static void judge(asker_t *self, uint32_t worker, int from, const char *text)
{
    unsigned *n = &self->unnamed[worker][from];
    bool named = names_cause(self, text, from != STATUS);

    *n = named ? 0 : *n + 1;
    if (*n == UNNAMED_MAX) {
        (void)atomic_fetch_add(&self->bad, 1);
        (void)fprintf(stderr, "worker %" PRIu32 " waits, and %s names no cause: %s\n", worker,
                      who[from], text);
    }
}

static bool is_long(const wait_state_t *state, uint64_t at_ms)
{
    return state->since_ms != 0 && at_ms > state->since_ms + ASKER_LONG_MS;
}

/* A new wait is counted, and what was said of the one before is forgotten. */
static void note(asker_t *self, uint32_t worker, const wait_state_t *state)
{
    uint64_t took_ms = now_ms() - state->since_ms;

    if (self->known[worker] != state->since_ms) {
        self->known[worker] = state->since_ms;
        self->n_waits++;
        memset(self->unnamed[worker], 0, sizeof self->unnamed[worker]);
    }
    if (took_ms > self->longest_ms) {
        self->longest_ms = took_ms;
    }
}

/* Asks the registry's node, and judges for those who wait all the while. */
static void ask(asker_t *self, const wait_state_t *states,
                bool (*get)(view_t *, const char *, char *, size_t), int from)
{
    char text[TEXT_SIZE];
    bool answered = get(&self->view, self->adders->args.job, text, sizeof text);

    if (!answered) {
        self->n_silent++;
        return;
    }
    for (uint32_t i = 0; i < self->adders->args.n_workers; i++) {
        wait_state_t state = waits_read(self->adders->waits, i);

        if (states[i].since_ms != 0 && state.since_ms == states[i].since_ms) {
            self->n_asked++;
            judge(self, i, from, text);
        }
    }
}

static void look(asker_t *self)
{
    wait_state_t states[ADDERS_MAX] = {0};
    uint64_t at_ms = now_ms();
    bool any = false;

    for (uint32_t i = 0; i < self->adders->args.n_workers; i++) {
        states[i] = waits_read(self->adders->waits, i);
        if (!is_long(&states[i], at_ms)) {
            states[i].since_ms = 0;
            continue;
        }
        any = true;
        note(self, i, &states[i]);
        judge(self, i, OWN, states[i].text);
    }
    if (any) {
        ask(self, states, view_try_why, WHY);
        ask(self, states, view_try_status, STATUS);
    }
}

static void *run(void *data)
{
    const struct timespec gap = {.tv_nsec = LOOK_MS * 1000000L};
    asker_t *self = data;

    while (!atomic_load(&self->stop)) {
        look(self);
        (void)nanosleep(&gap, NULL);
    }
    return NULL;
}

bool asker_start(asker_t *self, const cluster_t *cluster, const adders_t *adders)
{
    *self = (asker_t){.cluster = cluster, .adders = adders};
    CHECK(view_open(&self->view, cluster->nodes[0].control));
    CHECK(pthread_create(&self->thread, NULL, run, self) == 0);
    self->runs = true;
    return true;
}

bool asker_stop(asker_t *self)
{
    if (!self->runs) {
        return true;
    }
    atomic_store(&self->stop, true);
    (void)pthread_join(self->thread, NULL);
    view_close(&self->view);
    self->runs = false;
    (void)fprintf(stderr,
                  "%" PRIu64 " waits over %d ms, the longest of %" PRIu64 " ms: %" PRIu64
                  " answers why, %" PRIu64 " times the registry was silent\n",
                  self->n_waits, ASKER_LONG_MS, self->longest_ms, self->n_asked, self->n_silent);
    return atomic_load(&self->bad) == 0;
}
