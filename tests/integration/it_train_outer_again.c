/* SPDX-License-Identifier: Apache-2.0 */
/* A worker of a training with outer steps is lost and joins again. What it had
 * not sent is lost with it, of each fragment what came since that was sent last.
 * It goes on with the table as it is, in the turn of the others. */
#include <psd_train.h>
#include <math.h>
#include <pthread.h>

#include "outer_hand.h"
#include "support/check.h"
#include "support/daemon.h"

#define EVERY 2
#define STEPS 3 /* of each of three parts of the job */
#define WORKERS 2
#define PART_CELLS (OUTER_CELLS / 2)

typedef struct trial {
    const char *name;
    outer_rule_t rule;
} trial_t;

/* All numbers are exact. */
static const trial_t trials[] = {
    {"again", {"2", "2", "0", 0.5, 0.5}},
    {"again-late", {"2", "2", "1", 0.5, 0.5}},
};

/* A life of a worker. */
typedef struct life {
    const trial_t *trial;
    outer_hand_t *hand; /* of all */
    int rank;
    uint64_t clock; /* of the training, in the job */
    psd_train_t *train;
    pthread_t thread;
    double off; /* greatest difference of what was read */
    bool good;
} life_t;

static double delta_of(uint64_t clock, int rank, int cell)
{
    return (double)((clock * 3 + (uint64_t)rank * 5 + (uint64_t)cell) % 7) + 1;
}

static psd_status_t load(void *user, psd_loader_t *loader, void *block, psd_error_t *err)
{
    (void)user;
    (void)block;
    return psd_loader_rows(loader, 0, outer_rows, OUTER_ROWS, err);
}

static psd_status_t step(void *user, psd_trainer_t *trainer, void *block, psd_error_t *err)
{
    life_t *life = user;

    (void)block;
    (void)err;
    for (int i = 0; i < OUTER_CELLS; i++) {
        uint64_t row = (uint64_t)i / OUTER_COLS;
        uint32_t col = (uint32_t)i % OUTER_COLS;
        double x = psd_trainer_get_f64(trainer, 0, row, col);

        life->off = fmax(life->off, fabs(x - life->hand->x[life->rank][i]));
        psd_trainer_add_f64(trainer, 0, row, col, delta_of(life->clock, life->rank, i));
    }
    return PSD_OK;
}

/* A job's first workers each end a clock of their own before the training. */
static bool join_job(life_t *life, psd_error_t *err)
{
    const trial_t *trial = life->trial;
    const char *const pairs[][2] = {{"job", trial->name},
                                    {"worker", life->rank == 0 ? "0" : "1"},
                                    {"workers", "2"},
                                    {"lock", "locked"}};
    bool is_first = false;

    CHECK(outer_set(life->train, pairs, sizeof pairs / sizeof *pairs, err));
    CHECK(outer_set_rule(life->train, &trial->rule, err));
    psd_train_on_load(life->train, load);
    psd_train_on(life->train, PSD_TRAIN_STEP, step);
    CHECK_OK(psd_train_config_begin(life->train, err), err);
    is_first = psd_train_first_clock(life->train) == 0;
    CHECK(outer_make_table(life->train, trial->name, &trial->rule, err));
    CHECK_OK(psd_train_config_end(life->train, err), err);
    if (is_first) {
        CHECK_OK(psd_clock(psd_train_client(life->train), err), err);
    }
    CHECK_OK(psd_train_begin(life->train, err), err);
    return true;
}

static void *run_join(void *arg)
{
    life_t *life = arg;
    psd_error_t *err = psd_error_new();

    life->train = psd_train_new(life);
    life->good = join_job(life, err);
    psd_error_destroy(&err);
    return NULL;
}

static bool start(life_t *life)
{
    CHECK(pthread_create(&life->thread, NULL, run_join, life) == 0);
    return true;
}

static bool wait_for(life_t *life)
{
    (void)pthread_join(life->thread, NULL);
    return life->good;
}

/* One clock of those that are there. */
static bool run_clock(life_t lives[WORKERS], outer_hand_t *hand, psd_error_t *err)
{
    for (int w = 0; w < WORKERS; w++) {
        lives[w].clock = hand->inner;
        if (!hand->away[w]) {
            CHECK_OK(psd_train_clock_begin(lives[w].train, err), err);
            CHECK_OK(psd_train_push_block(lives[w].train, NULL, NULL, OUTER_CALL_MS, err), err);
            CHECK_OK(psd_train_clock_end(lives[w].train, err), err);
        }
    }
    for (int w = 0; w < WORKERS; w++) {
        if (!hand->away[w]) {
            CHECK_OK(psd_train_wait(lives[w].train, OUTER_CALL_MS, err), err);
            for (int i = 0; i < OUTER_CELLS; i++) {
                outer_hand_add(hand, w, i, delta_of(lives[w].clock, w, i));
            }
        }
    }
    outer_hand_end_clock(hand);
    return true;
}

static bool run_steps(life_t lives[WORKERS], outer_hand_t *hand, psd_error_t *err)
{
    for (int i = 0; i < STEPS * EVERY; i++) {
        CHECK(run_clock(lives, hand, err));
    }
    return true;
}

/* The clock of the last outer step ends with the second of them. */
static bool end_all(life_t lives[WORKERS], psd_error_t *err)
{
    for (int w = 0; w < WORKERS; w++) {
        CHECK_OK(psd_train_end(lives[w].train, OUTER_CALL_MS, err), err);
        CHECK(lives[w].off == 0);
    }
    return true;
}

static bool is_as_by_hand(const trial_t *trial, psd_error_t *err)
{
    life_t lives[WORKERS];
    outer_hand_t hand;

    outer_hand_init(&hand, &trial->rule, WORKERS);
    hand.turn = 1; /* after the workers' own clock */
    for (int w = 0; w < WORKERS; w++) {
        lives[w] = (life_t){.trial = trial, .hand = &hand, .rank = w};
        CHECK(start(&lives[w]));
    }
    CHECK(wait_for(&lives[0]) && wait_for(&lives[1]) && run_steps(lives, &hand, err));
    psd_train_destroy(&lives[1].train);
    outer_hand_lose(&hand, 1);
    CHECK(run_steps(lives, &hand, err));
    CHECK(start(&lives[1]) && wait_for(&lives[1]));
    CHECK(psd_train_first_clock(lives[1].train) == (1 + 2 * STEPS) * EVERY);
    outer_hand_join(&hand, 1);
    CHECK(run_steps(lives, &hand, err) && end_all(lives, err));
    outer_hand_finish(&hand);
    CHECK(psd_train_count(lives[1].train, "entries-pushed") == (STEPS + 1) * PART_CELLS);
    for (int w = 0; w < WORKERS; w++) {
        psd_train_destroy(&lives[w].train);
    }
    return outer_hand_check_table(&hand, trial->name);
}

int main(void)
{
    daemon_t daemon = {.pid = 0};
    psd_error_t *err = psd_error_new();
    bool good = daemon_start(&daemon, NULL);

    outer_endpoint = daemon.control;
    RUN(is_as_by_hand(&trials[0], err));
    RUN(is_as_by_hand(&trials[1], err));
    daemon_drop(&daemon, !good);
    psd_error_destroy(&err);
    return good ? 0 : 1;
}
