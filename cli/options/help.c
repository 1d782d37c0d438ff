/* SPDX-License-Identifier: Apache-2.0 */
/* --help: examples first, then commands and options. */
#include "cli/options/help.h"

#include <string.h>

#include "cli/output/output.h"

#define LINE_WIDTH 78
#define OPTION_INDENT 24

void ps_help_fill(FILE *file, const char *text, size_t indent, size_t used)
{
    while (*text != '\0') {
        size_t length = strcspn(text, " \n");

        if (used > indent && used + 1 + length > LINE_WIDTH) {
            ps_print(file, "\n%*s", (int)indent, "");
            used = indent;
        } else if (used > indent) {
            (void)putc(' ', file);
            used++;
        }
        ps_print(file, "%.*s", (int)length, text);
        used += length;
        text += length;
        if (strncmp(text, "\n\n", 2) == 0) {
            ps_print(file, "\n\n%*s", (int)indent, "");
            used = indent;
        }
        text += strspn(text, " \n");
    }
    (void)putc('\n', file);
}

static void write_examples(FILE *file, const ps_example_t *examples)
{
    ps_print(file, "Examples:\n");
    for (; examples->line != NULL; examples++) {
        ps_print(file, "  %s\n      ", examples->line);
        ps_help_fill(file, examples->says, 6, 6);
    }
}

static void write_option(FILE *file, const ps_opt_t *opt)
{
    char left[80];
    char text[600];
    int n = 0;

    (void)snprintf(left, sizeof left, "  %s%c%s--%s%s%s", opt->letter != '\0' ? "-" : " ",
                   opt->letter != '\0' ? opt->letter : ' ', opt->letter != '\0' ? ", " : "  ",
                   opt->name, opt->value != NULL ? " " : "", opt->value != NULL ? opt->value : "");
    n = snprintf(text, sizeof text, "%s", opt->help);
    for (size_t i = 0; opt->words != NULL && opt->words[i] != NULL; i++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "%s%s", i == 0 ? "; one of " : ", ",
                      opt->words[i]);
    }
    if (opt->fallback != NULL) {
        (void)snprintf(text + n, sizeof text - (size_t)n, " (default %s)", opt->fallback);
    }
    ps_print(file, "%-*s", OPTION_INDENT, left);
    if (strlen(left) >= OPTION_INDENT) {
        ps_print(file, "\n%*s", OPTION_INDENT, "");
    }
    ps_help_fill(file, text, OPTION_INDENT, OPTION_INDENT);
}

static void write_options(FILE *file, const char *title, const ps_opt_t *options)
{
    if (options == NULL) {
        return;
    }
    ps_print(file, "\n%s:\n", title);
    for (; options->name != NULL; options++) {
        write_option(file, options);
    }
}

static void write_cmd(FILE *file, const ps_cmd_t *cmd)
{
    const char *gap = cmd->verb == NULL ? "" : " ";
    const char *verb = cmd->verb == NULL ? "" : cmd->verb;

    ps_print(file, "pscli %s%s%s - %s\n\n", cmd->noun, gap, verb, cmd->summary);
    write_examples(file, cmd->examples);
    ps_print(file, "\nUsage: pscli %s%s%s [OPTIONS] %s\n", cmd->noun, gap, verb, cmd->arguments);
    if (cmd->details[0] != '\0') {
        (void)putc('\n', file);
        ps_help_fill(file, cmd->details, 0, 0);
    }
    write_options(file, "Options", cmd->options);
    write_options(file, "Options of every command", ps_opts_global);
    ps_print(file, "\nEvery option has an environment variable: PSCLI_TIMEOUT for "
                   "--timeout.\n");
}

/* Of the column of verbs. */
static int verb_width(const ps_noun_t *noun)
{
    const ps_cmd_t *cmd = NULL;
    size_t width = 12;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun->name) == 0 && cmd->verb != NULL &&
            strlen(cmd->verb) + 2 > width) {
            width = strlen(cmd->verb) + 2;
        }
    }
    return (int)width;
}

static void write_noun(FILE *file, const ps_noun_t *noun)
{
    const ps_cmd_t *cmd = NULL;

    ps_print(file, "pscli %s - %s\n\nExamples:\n", noun->name, noun->summary);
    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun->name) == 0) {
            ps_print(file, "  %s\n      ", cmd->examples[0].line);
            ps_help_fill(file, cmd->examples[0].says, 6, 6);
        }
    }
    ps_print(file, "\nUsage: pscli %s VERB ...\n\nVerbs:\n", noun->name);
    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun->name) == 0) {
            ps_print(file, "  %-*s%s\n", verb_width(noun), cmd->verb, cmd->summary);
        }
    }
    ps_print(file, "\n\"pscli %s VERB --help\" shows the options of one.\n", noun->name);
}

/* Of the column of commands. */
static int noun_width(void)
{
    const ps_noun_t *noun = NULL;
    size_t width = 12;

    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        width = strlen(noun->name) + 2 > width ? strlen(noun->name) + 2 : width;
    }
    return (int)width;
}

static void write_all(FILE *file)
{
    const ps_noun_t *noun = NULL;

    ps_print(file, "pscli - inspect and manage a psd cluster\n\n"
                   "Examples:\n"
                   "  pscli cluster status\n"
                   "      is the cluster healthy?\n"
                   "  pscli table create w --rows 1000\n"
                   "      a table of 1000 rows with one float each\n"
                   "  pscli push w 1=0.5 3=0.5\n"
                   "      send two deltas\n"
                   "  pscli pull w 1,3 -o json\n"
                   "      fetch the rows back\n"
                   "  pscli run -n 4 -- ./train data.libsvm\n"
                   "      a training job of four workers\n"
                   "  pscli why lr\n"
                   "      why job \"lr\" makes no progress\n\n"
                   "Usage: pscli [OPTIONS] COMMAND [VERB] [ARGUMENTS]\n\n"
                   "Commands:\n");
    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        ps_print(file, "  %-*s%s\n", noun_width(), noun->name, noun->summary);
    }
    write_options(file, "Options", ps_opts_global);
    ps_print(file, "\nEvery option has an environment variable: PSCLI_TIMEOUT for "
                   "--timeout.\nA flag wins over the environment, that over the "
                   "context, that over the default.\n\n"
                   "Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 "
                   "cannot connect,\n4 not allowed, 5 not found, 6 conflict, 7 "
                   "deadline passed (outcome unknown),\n8 partly done, 9 data "
                   "damaged, 130 interrupted.\n\n"
                   "\"pscli COMMAND --help\" shows the verbs and options of one.\n");
}

void ps_help_write(FILE *file, const ps_noun_t *noun, const ps_cmd_t *cmd)
{
    if (cmd != NULL) {
        write_cmd(file, cmd);
    } else if (noun != NULL) {
        write_noun(file, noun);
    } else {
        write_all(file);
    }
}
