/* SPDX-License-Identifier: Apache-2.0 */
/* A command line, read from a table of options. */
#include "options.h"

#include <stdio.h>
#include <string.h>

#include "outputs.h"

#define HELP_COLUMN 22
#define HELP_WIDTH 79
#define NAME_MAX_LENGTH 63 /* of a table */

static const ps_opt_t HELP[] = {{.name = "help", .letter = 'h'}, PS_OPT_END};

psd_status_t ex_options_read(const ex_command_t *command, void *options, int argc, char **argv,
                             bool *ret_help, psd_error_t *err)
{
    ps_opts_t reader = {.lists = {command->options, HELP}, .to = options};
    psd_status_t rc = ps_opts_read(&reader, argc, argv, NULL, NULL, err);

    *ret_help = ps_opts_on(&reader, "help");
    ps_opts_done(&reader);
    return rc != PSD_OK || *ret_help ? rc : ex_outputs_check(command, options, err);
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

static void print_option(const ps_opt_t *option)
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
    for (const ps_opt_t *option = command->options; !ps_opt_is_end(option); option++) {
        if (option->kind == PS_OPT_HEADING) {
            (void)printf("%s\n", option->help);
        } else {
            print_option(option);
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
        return psd_error_set(err, PSD_USAGE, "--scores needs --test FILE");
    }
    if (predict == NULL && train == NULL) {
        return psd_error_set(err, PSD_USAGE, "--train FILE is missing; --help shows examples");
    }
    if (predict != NULL && test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--predict needs --test FILE");
    }
    if (predict != NULL && (train != NULL || save != NULL)) {
        return psd_error_set(
            err, PSD_USAGE,
            "--predict uses a model and trains none: it excludes --train and --save");
    }
    return PSD_OK;
}
