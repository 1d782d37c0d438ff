/* SPDX-License-Identifier: Apache-2.0 */
/* A command line, read from a table of options. */
#include "options.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "number.h"
#include "outputs.h"

#define HELP_COLUMN 22
#define HELP_WIDTH 79
#define WORDS_SIZE 160
#define NAME_MAX_LENGTH 63 /* of a table */

/* Writes a value of any type to its place in the options. */
#define SET(options, option, type, value) \
    memcpy((char *)(options) + (option)->offset, &(type){(value)}, sizeof(type))

static psd_status_t refuse(const ex_option_t *option, const char *text, const char *what,
                           psd_error_t *err)
{
    return psd_error_set(err, PSD_USAGE, "--%s \"%s\" is not %s from %.10g to %.10g", option->name,
                         text, what, option->low, option->high);
}

static bool is_within(const ex_option_t *option, double value)
{
    return value >= option->low && value <= option->high;
}

static psd_status_t set_whole(const ex_option_t *option, void *options, const char *text,
                              psd_error_t *err)
{
    int64_t value = 0;

    if (option->kind == EX_U64) {
        uint64_t any = 0;

        if (!ex_number_u64(text, &any)) {
            return psd_error_set(err, PSD_USAGE,
                                 "--%s \"%s\" is not a whole number from 0 to "
                                 "%" PRIu64,
                                 option->name, text, UINT64_MAX);
        }
        SET(options, option, uint64_t, any);
        return PSD_OK;
    }
    if (!ex_number_i64(text, &value) || !is_within(option, (double)value)) {
        return refuse(option, text, "a whole number", err);
    }
    if (option->kind == EX_I32) {
        SET(options, option, int32_t, (int32_t)value);
    } else {
        SET(options, option, uint32_t, (uint32_t)value);
    }
    return PSD_OK;
}

static psd_status_t set_real(const ex_option_t *option, void *options, const char *text,
                             psd_error_t *err)
{
    double value = 0;

    if (!ex_number_f64(text, &value) || !is_within(option, value)) {
        return refuse(option, text, "a number", err);
    }
    if (option->kind == EX_SECONDS) {
        SET(options, option, uint32_t, (uint32_t)(value * 1000));
    } else {
        SET(options, option, double, value);
    }
    return PSD_OK;
}

static psd_status_t set_choice(const ex_option_t *option, void *options, const char *text,
                               psd_error_t *err)
{
    char words[WORDS_SIZE];
    size_t n = 0;
    uint32_t number = 0;

    for (const char *word = option->value; *word != '\0'; number++) {
        size_t length = strcspn(word, "|");

        if (strlen(text) == length && memcmp(text, word, length) == 0) {
            SET(options, option, uint32_t, number);
            return PSD_OK;
        }
        n += (size_t)snprintf(words + n, sizeof(words) - n, "%s%.*s", n == 0 ? "" : ", ",
                              (int)length, word);
        word += length + (word[length] == '|' ? 1 : 0);
    }
    return psd_error_set(err, PSD_USAGE, "--%s \"%s\" is not one of %s", option->name, text, words);
}

static psd_status_t set(const ex_option_t *option, void *options, const char *text,
                        psd_error_t *err)
{
    switch (option->kind) {
    case EX_U32:
    case EX_I32:
    case EX_U64:
        return set_whole(option, options, text, err);
    case EX_REAL:
    case EX_SECONDS:
        return set_real(option, options, text, err);
    case EX_CHOICE:
        return set_choice(option, options, text, err);
    case EX_TEXT:
    case EX_INPUT:
    case EX_INPUTS:
    case EX_OUTPUT:
    case EX_OUTPUT_HERE:
        if (*text == '\0') {
            return psd_error_set(err, PSD_USAGE, "--%s must not be empty", option->name);
        }
        SET(options, option, const char *, text);
        return PSD_OK;
    case EX_HEADING:
    case EX_FLAG:
        break;
    }
    SET(options, option, bool, true);
    return PSD_OK;
}

/* The option whose name is the first `length` bytes of a text; NULL. */
static const ex_option_t *find(const ex_command_t *command, const char *name, size_t length)
{
    for (size_t i = 0; i < command->n_options; i++) {
        const ex_option_t *option = &command->options[i];

        if (option->name != NULL && strlen(option->name) == length &&
            memcmp(option->name, name, length) == 0) {
            return option;
        }
    }
    return NULL;
}

/* Reads argv[*at] and its value, and moves *at behind them. */
static psd_status_t read_one(const ex_command_t *command, void *options, int argc, char **argv,
                             int *at, psd_error_t *err)
{
    const char *text = argv[(*at)++];
    const char *equals = strchr(text, '=');
    const ex_option_t *option = NULL;
    size_t length = equals == NULL ? strlen(text) : (size_t)(equals - text);

    if (strncmp(text, "--", 2) != 0) {
        return psd_error_set(err, PSD_USAGE, "\"%s\" is no option; all arguments are options",
                             text);
    }
    option = find(command, text + 2, length - 2);
    if (option == NULL) {
        return psd_error_set(err, PSD_USAGE, "unknown option \"%.*s\"; --help lists them",
                             (int)length, text);
    }
    if (option->kind == EX_FLAG) {
        if (equals != NULL) {
            return psd_error_set(err, PSD_USAGE, "--%s takes no value", option->name);
        }
        return set(option, options, "", err);
    }
    if (equals != NULL) {
        return set(option, options, equals + 1, err);
    }
    if (*at == argc) {
        return psd_error_set(err, PSD_USAGE, "--%s wants a value", option->name);
    }
    return set(option, options, argv[(*at)++], err);
}

psd_status_t ex_options_read(const ex_command_t *command, void *options, int argc, char **argv,
                             bool *ret_help, psd_error_t *err)
{
    bool help = false;

    for (int at = 1; at < argc && !help;) {
        psd_status_t rc = PSD_OK;

        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            help = true;
            continue;
        }
        rc = read_one(command, options, argc, argv, &at, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret_help = help;
    return help ? PSD_OK : ex_outputs_check(command, options, err);
}

/* Prints a text whose first line begins at that column, folded between words;
 * further lines begin below it. */
static void print_folded(const char *text, int column)
{
    int at = column;

    while (*text != '\0') {
        int length = (int)strcspn(text, " ");

        if (at > HELP_COLUMN && at + 1 + length > HELP_WIDTH) {
            (void)printf("\n%*s", HELP_COLUMN, "");
            at = HELP_COLUMN;
        } else if (at > HELP_COLUMN) {
            (void)putchar(' ');
            at++;
        }
        (void)printf("%.*s", length, text);
        at += length;
        text += length;
        text += strspn(text, " ");
    }
    (void)putchar('\n');
}

static void print_option(const ex_option_t *option)
{
    int column = printf("  --%s %s", option->name, option->value != NULL ? option->value : "");

    if (column >= HELP_COLUMN) {
        (void)putchar('\n');
        column = 0;
    }
    (void)printf("%*s", HELP_COLUMN - column, "");
    print_folded(option->help, HELP_COLUMN);
}

void ex_options_help(const ex_command_t *command)
{
    (void)printf("%s\n", command->about);
    for (size_t i = 0; i < command->n_options; i++) {
        if (command->options[i].kind == EX_HEADING) {
            (void)printf("%s\n", command->options[i].help);
        } else {
            print_option(&command->options[i]);
        }
    }
    (void)puts("  -h, --help\n"
               "  --version\n\n"
               "Environment, set by pscli run: PSD_ENDPOINT, PSD_JOB, "
               "PSD_WORKER, PSD_WORKERS,\n"
               "PSD_MAX_DELAY. Exit codes are those of pscli: 0 done, 1 "
               "failed, 2 usage or data\n"
               "not understood, 3 cannot connect, 7 deadline passed.");
}

psd_status_t ex_options_check_table(const char *name, const char *tail, psd_error_t *err)
{
    size_t longest = NAME_MAX_LENGTH - strlen(tail);

    return strlen(name) <= longest
               ? PSD_OK
               : psd_error_set(err, PSD_USAGE, "--table \"%.60s\" is longer than %zu characters",
                               name, longest);
}

psd_status_t ex_options_check_files(const char *train, const char *test, const char *save,
                                    const char *predict, const char *scores, psd_error_t *err)
{
    if (scores != NULL && test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--scores wants --test FILE");
    }
    if (predict == NULL && train == NULL) {
        return psd_error_set(err, PSD_USAGE, "--train FILE is missing; --help shows examples");
    }
    if (predict != NULL && test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--predict wants --test FILE");
    }
    if (predict != NULL && (train != NULL || save != NULL)) {
        return psd_error_set(err, PSD_USAGE,
                             "--predict uses a model and trains none: it goes "
                             "without --train and --save");
    }
    return PSD_OK;
}
