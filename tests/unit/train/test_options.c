/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "support/fail_alloc.h"
#include "train/setup/setup.h"

static void expect_refusal(const char *key, const char *value, const char *part)
{
    psd_train_t *train = psd_train_new(NULL);
    psd_error_t *err = psd_error_new();

    cr_assert_eq(psd_train_set(train, key, value, err), PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), part), "%s: %s", part, psd_error_text(err));
    psd_error_destroy(&err);
    psd_train_destroy(&train);
}

Test(options, are_taken_by_key)
{
    psd_train_t *train = psd_train_new(NULL);
    const char *const pairs[][2] = {
        {"endpoint", "tcp://h:1"}, {"job", "a"},        {"worker", "3"},
        {"workers", "4"},          {"max-delay", "-1"}, {"trainers", "16"},
        {"pipeline", "off"},       {"max-blocks", "9"}, {"push-every", "0"},
        {"lock", "locked"},        {"locks", "7"},      {"timeout-ms", "0"},
        {"progress-ms", "5"},      {"job", "b"},        {"pipeline", "on"},
        {"pipeline", "off"},       {"queue", "a"},      {"queue", "in"},
        {"slices", "1048576"},     {"epochs", "0"}};

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        cr_assert_eq(psd_train_set(train, pairs[i][0], pairs[i][1], NULL), PSD_OK, "%s",
                     pairs[i][0]);
    }
    cr_assert_str_eq(train->options.endpoint, "tcp://h:1");
    cr_assert_str_eq(train->options.job, "b");
    cr_assert_eq(train->options.worker, 3);
    cr_assert_eq(train->options.n_workers, 4);
    cr_assert_eq(train->options.max_delay, -1);
    cr_assert_eq(train->options.n_trainers, 16);
    cr_assert_eq(train->options.pipeline, 0);
    cr_assert_eq(train->options.max_blocks, 9);
    cr_assert_eq(train->options.push_every, 0);
    cr_assert_eq(train->options.lock, PS_LOCK_LOCKED);
    cr_assert_eq(train->options.n_locks, 7);
    cr_assert_eq(train->options.timeout_ms, 0);
    cr_assert_eq(train->options.progress_ms, 5);
    cr_assert_str_eq(train->options.queue, "in");
    cr_assert_eq(train->options.n_slices, 1048576);
    cr_assert_eq(train->options.n_epochs, 0);
    psd_train_destroy(&train);
    cr_assert_null(train);
    psd_train_destroy(&train);
}

Test(options, that_cannot_be_are_named_with_what_is_allowed)
{
    expect_refusal("trainers", "0", "trainers is \"0\"; allowed: 1 to 256");
    expect_refusal("trainers", "257", "allowed: 1 to 256");
    expect_refusal("outer-every", "1000001", "allowed: 0 to 1000000");
    expect_refusal("outer-fragments", "0", "allowed: 1 to 65536");
    expect_refusal("outer-overlap", "-1", "allowed: 0 to 1000000");
    expect_refusal("queue", "a b", "queue is \"a b\"; allowed: 1..63 of");
    expect_refusal("queue", "", "queue is \"\"; allowed: 1..63 of");
    expect_refusal("slices", "0", "slices is \"0\"; allowed: 1 to 1048576");
    expect_refusal("slices", "1048577", "allowed: 1 to 1048576");
    expect_refusal("epochs", "-1", "allowed: 0 to 1000000000");
    expect_refusal("epochs", "1000000001", "allowed: 0 to 1000000000");
    expect_refusal("workers", "x", "workers is \"x\"; allowed: 1 to 4096");
    expect_refusal("worker", "-1", "allowed: 0 to 4095");
    expect_refusal("max-delay", "", "max-delay is \"\"");
    expect_refusal("pipeline", "yes", "allowed: off, on");
    expect_refusal("lock", "none", "allowed: immutable, lock-free, locked");
    expect_refusal("Job", "a", "unknown option \"Job\"; allowed: endpoint");
}

/* Options of which each is good alone: pairs of keys and values. */
static void expect_clash(const char *const *pairs, const char *part)
{
    psd_train_t *train = psd_train_new(NULL);
    psd_error_t *err = psd_error_new();

    for (; *pairs != NULL; pairs += 2) {
        cr_assert_eq(psd_train_set(train, pairs[0], pairs[1], NULL), PSD_OK, "%s", pairs[0]);
    }
    cr_assert_eq(psd_train_config_begin(train, err), PSD_INVALID);
    cr_assert_not_null(strstr(psd_error_text(err), part), "%s: %s", part, psd_error_text(err));
    psd_error_destroy(&err);
    psd_train_destroy(&train);
}

#define CLASH(part, ...) expect_clash((const char *const[]){__VA_ARGS__, NULL}, part)

Test(options, that_do_not_go_with_outer_steps_are_named)
{
    CLASH("lock is immutable, and outer-every is 5, with which adds change the cache; allowed: "
          "lock-free, locked",
          "outer-every", "5");
    CLASH("outer-overlap is 5, and outer-every 5; allowed: less than that", "outer-every", "5",
          "lock", "locked", "outer-overlap", "5");
    CLASH("outer-fragments is set; allowed with outer-every only", "outer-fragments", "2");
    CLASH("outer-overlap is set; allowed with", "outer-overlap", "1");
    CLASH("push-every is set, and outer-every too; allowed: one of the two", "outer-every", "5",
          "push-every", "0");
    CLASH("fetch-every is set", "outer-every", "5", "fetch-every", "2");
    CLASH("staleness is set", "outer-every", "5", "staleness", "0");
    CLASH("queue is set", "outer-every", "5", "queue", "a");
}

/* What has its time is refused at another one, and nothing is touched. */
Test(options, steps_out_of_order_are_refused)
{
    psd_train_t *train = psd_train_new(NULL);
    uint64_t epoch = 7;
    uint32_t slice = 7;
    uint32_t table = 7;
    int block = 0;

    cr_assert_eq(psd_train_table(train, "w", NULL, &table, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_add_to_server(train, 0, NULL, 0, NULL, 0, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_config_end(train, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_begin(train, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_clock_begin(train, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_clock_end(train, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_push_block(train, &block, NULL, 0, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_next_slice(train, 0, &epoch, &slice, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_wait(train, 0, NULL), PSD_INVALID);
    cr_assert_eq(psd_train_end(train, 0, NULL), PSD_INVALID);
    cr_assert_null(psd_train_client(train));
    cr_assert_null(psd_train_table_handle(train, 0));
    cr_assert_eq(psd_train_count(train, "blocks"), 0);
    cr_assert_eq(psd_train_count(train, "no such word"), 0);
    cr_assert_eq(psd_train_first_clock(train), 0);
    cr_assert(table == 7 && epoch == 7 && slice == 7);
    psd_train_destroy(&train);
}

static psd_status_t make(void *unused)
{
    psd_train_t *train = psd_train_new(NULL);
    psd_status_t rc = train == NULL ? PSD_NOMEM : PSD_OK;

    (void)unused;
    if (rc == PSD_OK) {
        rc = psd_train_set(train, "job", "a", NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_train_set(train, "endpoint", "b", NULL);
    }
    if (rc == PSD_OK) {
        rc = psd_train_set(train, "queue", "c", NULL);
    }
    psd_train_destroy(&train);
    return rc;
}

Test(options, end_well_without_memory)
{
    cr_assert_null(fail_alloc_sweep(make, NULL));
}

Test(options, other_systems_names_are_taken_from_the_environment)
{
    psd_train_t *train = psd_train_new(NULL);

    (void)setenv("PSD_ALIASES", "dmtk", 1);
    (void)setenv("num_trainers", "4", 1);
    (void)setenv("is_pipeline", "false", 1);
    (void)setenv("lock_option", "LockFree", 1);
    (void)setenv("num_lock", "7", 1);
    cr_assert_eq(psd_train_set(train, "locks", "9", NULL), PSD_OK);
    cr_assert_eq(ps_train_options_environment(&train->options, NULL), PSD_OK);
    cr_assert_eq(train->options.n_trainers, 4);
    cr_assert_eq(train->options.pipeline, 0);
    cr_assert_eq(train->options.lock, PS_LOCK_FREE);
    cr_assert_eq(train->options.n_locks, 9, "what the program sets wins");
    psd_train_destroy(&train);
}

Test(options, a_wrong_one_is_refused_by_its_name)
{
    psd_train_t *train = psd_train_new(NULL);
    psd_error_t *err = psd_error_new();

    (void)setenv("PSD_ALIASES", "dmtk", 1);
    (void)setenv("num_trainers", "0", 1);
    cr_assert_eq(ps_train_options_environment(&train->options, err), PSD_INVALID);
    cr_assert_str_eq(psd_error_text(err), "num_trainers is \"0\"; allowed: 1..256");
    psd_error_destroy(&err);
    psd_train_destroy(&train);
}
