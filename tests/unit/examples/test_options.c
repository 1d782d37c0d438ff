/* SPDX-License-Identifier: Apache-2.0 */
/* examples/lr/options.h: defaults, and the one error of each bad line. */
#include "lr/options.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "support/temp_dir.h"

#define ARGUMENTS_MAX 24

/* The files that the lines name are looked at. */
static temp_dir_t dir;

static void make_files(void)
{
    static const char *const names[] = {"a=b", "f", "t"};

    cr_assert(temp_dir_make(&dir) && chdir(dir.path) == 0);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        FILE *file = fopen(names[i], "w");

        cr_assert(file != NULL && fclose(file) == 0);
    }
}

static void drop_files(void)
{
    temp_dir_drop(&dir);
}

TestSuite(options, .init = make_files, .fini = drop_files);

/* Reads a command line given as words with one blank between them. */
static psd_status_t read_line(const char *line, lr_options_t *ret_options, psd_error_t *err)
{
    static char words[1024];
    char *argv[ARGUMENTS_MAX] = {(char[]){"psd-lr"}};
    int argc = 1;

    cr_assert_lt(snprintf(words, sizeof(words), "%s", line), 1024);
    for (char *word = words; word != NULL && *word != '\0';) {
        char *end = strchr(word, ' ');

        if (end != NULL) {
            *end++ = '\0';
        }
        cr_assert_lt(argc, ARGUMENTS_MAX);
        argv[argc++] = word;
        word = end;
    }
    return lr_options_read(ret_options, argc, argv, err);
}

static lr_options_t read_good(const char *line)
{
    lr_options_t options;
    psd_error_t *err = psd_error_new();

    cr_assert_eq(read_line(line, &options, err), PSD_OK, "%s: %s", line, psd_error_text(err));
    psd_error_destroy(&err);
    return options;
}

Test(options, have_defaults)
{
    lr_options_t options = read_good("--train f");

    cr_assert_str_eq(options.train, "f");
    cr_assert_null(options.test);
    cr_assert_str_eq(options.table, "lr");
    cr_assert_eq(options.updater, LR_FTRL);
    cr_assert_not(options.updater_given);
    cr_assert_eq(options.alpha, 0.1);
    cr_assert_eq(options.l1, 1);
    cr_assert_null(options.objective);
    cr_assert_eq(options.job.max_delay, PSD_DELAY_ENV);
}

Test(options, take_values_behind_a_blank_or_an_equals_sign)
{
    lr_options_t options = read_good("--train=a=b --test t --updater sgd --alpha 1e-3 --epochs 7 "
                                     "--max-delay=-1 --seed 18446744073709551615 --timeout 1.5");

    cr_assert_str_eq(options.train, "a=b");
    cr_assert_eq(options.updater, LR_SGD);
    cr_assert(options.updater_given);
    cr_assert_eq(options.alpha, 1e-3);
    cr_assert(isnan(options.beta));
    cr_assert_eq(options.epochs, 7);
    cr_assert_eq(options.job.max_delay, -1);
    cr_assert_eq(options.seed, UINT64_MAX);
    cr_assert_eq(options.job.timeout_ms, 1500);
}

Test(options, a_rate_that_decays_has_a_beta)
{
    lr_options_t options = read_good("--train f --updater sgd --schedule decay --loss hinge");

    cr_assert_eq(options.schedule, 1);
    cr_assert_eq(options.beta, 1);
    cr_assert_eq(options.loss, 2);
    options = read_good("--train f --updater sgd --schedule decay --beta 9");
    cr_assert_eq(options.beta, 9);
}

Test(options, an_objective_brings_lbfgs_until_it_converges)
{
    lr_options_t options = read_good("--train f --objective l2:0.5");

    cr_assert_eq(options.variant, LR_LBFGS);
    cr_assert_eq(options.epochs, 100);
    cr_assert_eq(options.tolerance, 1e-4);
    options = read_good("--train f --objective l2:1 --loss hinge");
    cr_assert_eq(options.variant, LR_UPDATER);
    options = read_good("--train f --objective l2:1 --updater sgd");
    cr_assert_eq(options.variant, LR_UPDATER);
    options = read_good("--train f --objective l2:1 --epochs 7 --tolerance 0");
    cr_assert_eq(options.epochs, 7);
    cr_assert_eq(options.tolerance, 0);
}

Test(options, an_objective_with_a_step_brings_adagrad_without_penalty)
{
    lr_options_t options = read_good("--train f --objective l2:0.5 --alpha 0.2");

    cr_assert_eq(options.variant, LR_UPDATER);

    cr_assert_str_eq(options.objective, "l2:0.5");
    cr_assert_eq(options.objective_c, 0.5);
    cr_assert_eq(options.updater, LR_ADAGRAD);
    cr_assert_eq(options.alpha, 0.2);
    cr_assert_eq(options.l2, 0);
}

Test(options, help_needs_nothing_else)
{
    cr_assert(read_good("--help").help);
    cr_assert(read_good("-h --nonsense").help);
}

Test(options, a_bad_line_is_one_error_that_names_option_value_and_rule)
{
    static const struct {
        const char *line;
        const char *text;
    } cases[] = {
        {"", "--train FILE is missing; --help shows examples"},
        {"file", "\"file\" is not an option; allowed: options only"},
        {"-t f", "unknown option \"-t\""},
        {"--trian f", "unknown option \"--trian\"; did you mean --train?"},
        {"--foo=1", "unknown option \"--foo\""},
        {"--train", "--train needs a value: FILE"},
        {"--train=", "--train is empty"},
        {"--help=1", "--help takes no value"},
        {"--train f --epochs 0", "--epochs is \"0\"; allowed: 1 to 1000000"},
        {"--train f --epochs 2.5", "--epochs is \"2.5\"; allowed: 1 to 1000000"},
        {"--train f --epochs 1000001", "--epochs is \"1000001\"; allowed: 1 to 1000000"},
        {"--train f --minibatch -3", "--minibatch is \"-3\"; allowed: 1 to 1000000000"},
        {"--train f --clock-every x", "--clock-every is \"x\"; allowed: 1 to 1000000"},
        {"--train f --max-delay -2", "--max-delay is \"-2\"; allowed: -1 to 1000000"},
        {"--train f --features 4294967295", "--features is \"4294967295\"; allowed: 1 to "
                                            "4294967294"},
        {"--train f --alpha 0", "--alpha is \"0\"; allowed: 1e-09 to "
                                "1000000000"},
        {"--train f --alpha nan", "--alpha is \"nan\"; allowed: 1e-09 "
                                  "to 1000000000"},
        {"--train f --beta -1", "--beta is \"-1\"; allowed: 0 to 1000000000"},
        {"--train f --l1 0x1", "--l1 is \"0x1\"; allowed: 0 to 1000000000"},
        {"--train f --l2 inf", "--l2 is \"inf\"; allowed: 0 to 1000000000"},
        {"--train f --seed -1", "--seed is \"-1\"; allowed: 0 to "
                                "18446744073709551615"},
        {"--train f --report 1e6", "--report is \"1e6\"; allowed: 0 to 86400"},
        {"--train f --timeout 0",
         "--timeout is \"0\"; allowed: 1000ms to 86400s, like 250ms, 10s, 5m"},
        {"--train f --updater adam", "--updater is \"adam\"; allowed: ftrl, adagrad, sgd"},
        {"--train f --schedule decay", "--schedule needs --updater sgd without --l1 and --l2: it "
                                       "scales gradients, not penalties"},
        {"--train f --loss log", "--loss is \"log\"; allowed: logit, square, hinge, square-hinge"},
        {"--train f --updater sgd --beta 1", "--beta has no meaning with --updater sgd"},
        {"--train f --objective l1:1",
         "--objective \"l1:1\" is not l2:C with a number C from 1e-09 to "
         "1000000000"},
        {"--train f --objective l2:0",
         "--objective \"l2:0\" is not l2:C with a number C from 1e-09 to "
         "1000000000"},
        {"--train f --objective l2:1 --updater ftrl",
         "--objective needs --updater sgd or adagrad, not ftrl, which has its own penalty"},
        {"--train f --objective l2:1 --l2 1",
         "--objective has its own penalty; --l1 and --l2 must then be 0"},
        {"--train f --tolerance 0.1", "--tolerance needs --objective l2:C"},
        {"--train f --variant lbfgs", "--variant lbfgs needs --objective l2:C, a --loss other than "
                                      "hinge, and no --updater or --schedule"},
        {"--train f --scores s", "--scores needs --test FILE"},
        {"--predict m", "--predict needs --test FILE"},
        {"--predict m --test t --train f",
         "--predict uses a model and trains none: it excludes --train and --save"},
        {"--train f --table "
         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
         "--table "
         "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "\" is longer than 63 characters"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lr_options_t options;
        psd_error_t *err = psd_error_new();

        cr_expect_eq(read_line(cases[i].line, &options, err), PSD_USAGE, "%s", cases[i].line);
        cr_expect_str_eq(psd_error_text(err), cases[i].text);
        psd_error_destroy(&err);
    }
}

Test(options, files_that_cannot_be_read_are_one_error)
{
    static const struct {
        const char *line;
        psd_status_t rc;
        const char *text;
    } cases[] = {
        {"--train f --test none", PSD_IO, "--test none: No such file or directory"},
        {"--train none/f", PSD_IO, "--train none/f: No such file or directory"},
        {"--train no*", PSD_INVALID,
         "--train no* is neither a file nor a pattern that matches one"},
        {"--predict . --test t", PSD_IO, "--predict .: Is a directory"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        lr_options_t options;
        psd_error_t *err = psd_error_new();

        cr_expect_eq(read_line(cases[i].line, &options, err), cases[i].rc, "%s", cases[i].line);
        cr_expect_str_eq(psd_error_text(err), cases[i].text);
        psd_error_destroy(&err);
    }
    (void)read_good("--train - --test .");
    (void)read_good("--train /dev/null --test [ft]");
}
