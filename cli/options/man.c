/* SPDX-License-Identifier: Apache-2.0 */
/* Man pages from the same table as --help: pscli.1 and a page for each noun. */
#include "cli/options/help.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "cli/output/output.h"

/* Text with roff's special characters escaped. */
static void write_roff(FILE *file, const char *text)
{
    bool at_start = true;

    for (; *text != '\0'; text++) {
        if (at_start && (*text == '.' || *text == '\'')) {
            (void)fputs("\\&", file);
        }
        at_start = *text == '\n';
        if (*text == '\\') {
            (void)fputs("\\e", file);
        } else if (*text == '-') {
            (void)fputs("\\-", file);
        } else if (strncmp(text, "\n\n", 2) == 0) {
            (void)fputs("\n.PP\n", file);
            text++;
        } else {
            (void)putc(*text, file);
        }
    }
}

static void write_line(FILE *file, const char *text)
{
    write_roff(file, text);
    (void)putc('\n', file);
}

static void write_title(FILE *file, const char *page, const char *summary)
{
    ps_print(file,
             ".\\\" SPDX-License-Identifier: Apache-2.0\n"
             ".\\\" Made by \"pscli help --man DIR\"; do not edit.\n"
             ".TH \"%s\" 1 \"\" \"psd\" \"psd\"\n.nh\n.ad l\n.SH NAME\n",
             page);
    write_roff(file, page);
    ps_print(file, " \\- ");
    write_line(file, summary);
}

static void write_examples(FILE *file, const ps_example_t *examples)
{
    for (; examples->line != NULL; examples++) {
        ps_print(file, ".TP\n.B ");
        write_line(file, examples->line);
        write_line(file, examples->says);
    }
}

static void write_options(FILE *file, const ps_opt_t *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        ps_print(file, ".TP\n");
        if (options->letter != '\0') {
            ps_print(file, "\\fB\\-%c\\fR, ", options->letter);
        }
        ps_print(file, "\\fB\\-\\-");
        write_roff(file, options->name);
        ps_print(file, "\\fR%s%s%s\n", options->value != NULL ? " \\fI" : "",
                 options->value != NULL ? options->value : "",
                 options->value != NULL ? "\\fR" : "");
        write_roff(file, options->help);
        for (size_t i = 0; options->words != NULL && options->words[i] != NULL; i++) {
            ps_print(file, "%s", i == 0 ? "; one of " : ", ");
            write_roff(file, options->words[i]);
        }
        if (options->fallback != NULL) {
            ps_print(file, " (default ");
            write_roff(file, options->fallback);
            ps_print(file, ")");
        }
        ps_print(file, ".\n");
    }
}

static void write_cmd(FILE *file, const ps_cmd_t *cmd)
{
    ps_print(file, ".SS \"pscli %s%s%s\"\n", cmd->noun, cmd->verb == NULL ? "" : " ",
             cmd->verb == NULL ? "" : cmd->verb);
    ps_print(file, "%c", cmd->summary[0] & ~0x20);
    write_roff(file, cmd->summary + 1);
    ps_print(file, ".\n.PP\n.B pscli %s%s%s\n[OPTIONS] ", cmd->noun, cmd->verb == NULL ? "" : " ",
             cmd->verb == NULL ? "" : cmd->verb);
    write_line(file, cmd->arguments);
    if (cmd->details[0] != '\0') {
        ps_print(file, ".PP\n");
        write_line(file, cmd->details);
    }
    ps_print(file, ".PP\nExamples:\n");
    write_examples(file, cmd->examples);
    if (cmd->options != NULL) {
        ps_print(file, ".PP\nOptions:\n");
        write_options(file, cmd->options);
    }
}

static void write_noun(FILE *file, const ps_noun_t *noun)
{
    const ps_cmd_t *cmd = NULL;
    char page[64];

    (void)snprintf(page, sizeof page, "pscli-%s", noun->name);
    write_title(file, page, noun->summary);
    ps_print(file, ".SH COMMANDS\n");
    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun->name) == 0) {
            write_cmd(file, cmd);
        }
    }
    ps_print(file, ".SH \"OPTIONS OF EVERY COMMAND\"\nSee\n.BR pscli (1).\n"
                   ".SH \"SEE ALSO\"\n.BR pscli (1),\n.BR psd (1)\n");
}

static void write_exit_codes(FILE *file)
{
    static const char *const CODES[][2] = {
        {"0", "done"},
        {"1", "failed"},
        {"2", "usage or configuration"},
        {"3", "cannot connect"},
        {"4", "not allowed"},
        {"5", "not found"},
        {"6", "conflict or precondition"},
        {"7", "deadline passed after the connection stood, outcome unknown"},
        {"8", "partly done"},
        {"9", "data damaged"},
        {"130", "interrupted"},
    };

    ps_print(file, ".SH \"EXIT STATUS\"\n");
    for (size_t i = 0; i < sizeof CODES / sizeof CODES[0]; i++) {
        ps_print(file, ".TP\n.B %s\n%s\n", CODES[i][0], CODES[i][1]);
    }
}

static void write_all(FILE *file)
{
    const ps_noun_t *noun = NULL;

    write_title(file, "pscli", "inspect and manage a psd cluster");
    ps_print(file, ".SH SYNOPSIS\n.B pscli\n[OPTIONS] COMMAND [VERB] [ARGUMENTS]\n"
                   ".SH COMMANDS\n");
    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        ps_print(file, ".TP\n.BR pscli\\-%s (1)\n", noun->name);
        write_line(file, noun->summary);
    }
    ps_print(file, ".SH OPTIONS\n");
    write_options(file, ps_opts_global);
    ps_print(file, ".SH ENVIRONMENT\nEvery option has a variable: PSCLI_TIMEOUT for "
                   "\\-\\-timeout, PSCLI_ROW_FORMAT for \\-\\-row\\-format. A flag "
                   "wins over the environment, that over the context, that over the "
                   "default.\n"
                   ".TP\n.B NO_COLOR\nNo colors, when it is not empty.\n"
                   ".SH FILES\n.TP\n.I ~/.config/pscli/contexts/NAME\nSettings for "
                   "\\-\\-context NAME: lines like "
                   "endpoint=tcp://10.0.0.5:7171; see pscli\\-context(1).\n"
                   ".TP\n.I ~/.config/pscli/current\nThe name of the context that counts "
                   "without \\-\\-context.\n"
                   ".SH OUTPUT\nData goes to stdout, words to stderr. An error is "
                   "one line on stderr: its code, what is wrong, what to do. With "
                   "\\-o json and \\-o jsonl it is an object on stdout.\n");
    write_exit_codes(file);
    ps_print(file, ".SH \"SEE ALSO\"\n.BR psd (1)\n");
}

static psd_status_t write_page(const char *directory, const ps_noun_t *noun, psd_error_t *err)
{
    char path[PATH_MAX];
    FILE *file = NULL;
    int n = snprintf(path, sizeof path, "%s/pscli%s%s.1", directory, noun == NULL ? "" : "-",
                     noun == NULL ? "" : noun->name);

    if (n > 0 && (size_t)n < sizeof path) {
        file = fopen(path, "we");
    }
    if (file == NULL) {
        return psd_error_set(err, PSD_IO, "%s cannot be written: %s", path, strerror(errno));
    }
    if (noun == NULL) {
        write_all(file);
    } else {
        write_noun(file, noun);
    }
    bool failed = ferror(file) != 0;

    if (fclose(file) != 0 || failed) {
        return psd_error_set(err, PSD_IO, "%s cannot be written: %s", path, strerror(errno));
    }
    return PSD_OK;
}

psd_status_t ps_man_write(const char *directory, psd_error_t *err)
{
    const ps_noun_t *noun = NULL;
    psd_status_t rc = write_page(directory, NULL, err);

    for (size_t i = 0; rc == PSD_OK && (noun = ps_noun_at(i)) != NULL; i++) {
        rc = write_page(directory, noun, err);
    }
    return rc;
}
