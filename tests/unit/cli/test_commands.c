/* SPDX-License-Identifier: Apache-2.0 */
/* cli/options/commands.h, cli/options/help.h: the table of commands, and texts made from it. */
#include "cli/options/commands.h"

#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options/help.h"

static size_t count_options(const ps_opt_t *options)
{
    size_t n = 0;

    while (options != NULL && options[n].name != NULL) {
        n++;
    }
    return n;
}

static void check_option(const ps_opt_t *opt)
{
    cr_assert_not_null(opt->help, "%s", opt->name);
    cr_assert_eq(opt->kind == PS_OPT_SWITCH, opt->value == NULL, "%s", opt->name);
    cr_assert_eq(opt->kind == PS_OPT_CHOICE, opt->words != NULL, "%s", opt->name);
    if (opt->fallback != NULL) {
        cr_assert_eq(ps_opt_take(opt, opt->fallback, opt->name, PSD_USAGE, NULL, NULL), PSD_OK,
                     "the default of --%s", opt->name);
    }
}

Test(commands, every_row_of_the_table_is_whole)
{
    const ps_cmd_t *cmd = NULL;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        cr_assert_not_null(ps_noun_find(cmd->noun), "%s", cmd->noun);
        cr_assert_eq(ps_cmd_find(cmd->noun, cmd->verb), cmd);
        cr_assert_not_null(cmd->run);
        cr_assert(cmd->min_args <= cmd->max_args);
        cr_assert_not_null(cmd->examples[0].line, "%s", cmd->noun);
        for (size_t j = 0; cmd->examples[j].line != NULL; j++) {
            cr_assert_not_null(cmd->examples[j].says);
            cr_assert_not_null(strstr(cmd->examples[j].line, "pscli "));
            cr_assert_not_null(strstr(cmd->examples[j].line, cmd->noun));
        }
        cr_assert(count_options(ps_opts_global) + count_options(cmd->options) <= PS_OPTS_MAX);
        for (size_t j = 0; j < count_options(cmd->options); j++) {
            check_option(&cmd->options[j]);
            for (size_t k = 0; k < count_options(ps_opts_global); k++) {
                cr_assert_str_neq(cmd->options[j].name, ps_opts_global[k].name);
            }
        }
    }
    for (size_t k = 0; k < count_options(ps_opts_global); k++) {
        check_option(&ps_opts_global[k]);
    }
}

Test(commands, every_noun_has_a_command)
{
    const ps_noun_t *noun = NULL;

    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        const ps_cmd_t *cmd = NULL;
        bool found = false;

        for (size_t j = 0; (cmd = ps_cmd_at(j)) != NULL; j++) {
            found = found || strcmp(cmd->noun, noun->name) == 0;
        }
        cr_assert(found, "%s", noun->name);
    }
    cr_assert_null(ps_noun_find("sandwich"));
    cr_assert_null(ps_cmd_find("table", NULL));
    cr_assert_null(ps_cmd_find("push", "x"));
}

/* Splits an example as a shell would: blanks only; none has quotes inside. */
static int split(char *line, char **argv)
{
    int argc = 0;

    for (char *word = strtok_r(line, " ", &line); word != NULL && argc < 31;
         word = strtok_r(NULL, " ", &line)) {
        if (strchr("|>", word[0]) != NULL) {
            break;
        }
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return argc;
}

Test(commands, every_example_is_understood)
{
    const ps_cmd_t *cmd = NULL;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        for (size_t j = 0; cmd->examples[j].line != NULL; j++) {
            const char *start = strstr(cmd->examples[j].line, "pscli ");
            psd_error_t *err = psd_error_new();
            ps_args_t args = {0};
            char line[256];
            char *argv[32];
            int argc = 0;

            (void)snprintf(line, sizeof line, "%s", start);
            line[strcspn(line, ")")] = '\0'; /* <(pscli …) */
            argc = split(line, argv);
            cr_assert_eq(ps_args_parse(&args, argc, argv, err), PSD_OK, "%s: %s",
                         cmd->examples[j].line, psd_error_text(err));
            cr_assert_eq(args.cmd, cmd, "%s", cmd->examples[j].line);
            ps_args_done(&args);
            psd_error_destroy(&err);
        }
    }
}

Test(commands, near_words_are_suggested)
{
    cr_assert_str_eq(ps_cmd_suggest(NULL, "xtable"), "table");
    cr_assert_str_eq(ps_cmd_suggest("table", "lst"), "list");
    cr_assert_null(ps_cmd_suggest(NULL, "sandwich"));
    cr_assert_null(ps_cmd_suggest("push", "x"));
}

static char *help_of(const char *noun, const char *verb)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    ps_help_write(file, noun == NULL ? NULL : ps_noun_find(noun),
                  noun == NULL ? NULL : ps_cmd_find(noun, verb));
    (void)fclose(file);
    return text;
}

Test(commands, help_begins_with_examples_and_fits_the_screen)
{
    const ps_cmd_t *cmd = NULL;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        char *text = help_of(cmd->noun, cmd->verb);
        const char *examples = strstr(text, "Examples:");

        cr_assert_not_null(examples);
        cr_assert(examples < strstr(text, "Usage:"));
        for (const char *line = text; line != NULL;
             line = strchr(line, '\n') == NULL ? NULL : strchr(line, '\n') + 1) {
            cr_assert(strcspn(line, "\n") <= 80, "%.*s", (int)strcspn(line, "\n"), line);
        }
        for (size_t j = 0; j < count_options(cmd->options); j++) {
            cr_assert_not_null(strstr(text, cmd->options[j].name));
        }
        free(text);
    }
}

Test(commands, help_of_a_noun_lists_its_verbs)
{
    char *text = help_of("table", NULL);

    cr_assert_not_null(strstr(text, "  create "));
    cr_assert_not_null(strstr(text, "  import "));
    free(text);
    text = help_of(NULL, NULL);
    cr_assert_not_null(strstr(text, "\n  why "));
    cr_assert_not_null(strstr(text, "130 interrupted"));
    free(text);
}

Test(commands, long_text_is_broken_between_words)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);

    for (int i = 0; i < 3; i++) {
        ps_help_fill(file, "one two\n\nthree", 4, 4);
    }
    (void)fclose(file);
    cr_assert(strncmp(text, "one two\n\n    three\n", 19) == 0, "%s", text);
    free(text);
}
