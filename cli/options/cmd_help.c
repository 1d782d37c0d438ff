/* SPDX-License-Identifier: Apache-2.0 */
/* pscli help, completion and version: the commands that need no psd. */
#include "cli/options/help.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define VERB_SIZE 128

psd_status_t ps_cmd_help(ps_cli_t *cli, psd_error_t *err)
{
    const ps_args_t *args = &cli->args;
    const ps_noun_t *noun = NULL;
    const ps_cmd_t *cmd = NULL;
    char verb[VERB_SIZE] = "";

    for (size_t i = 1; i < args->n_words; i++) {
        size_t used = strlen(verb);

        (void)snprintf(verb + used, sizeof verb - used, "%s%s", i == 1 ? "" : " ", args->words[i]);
    }
    if (ps_args_given(args, "man")) {
        return ps_man_write(ps_args_text(args, "man"), err);
    }
    if (args->n_words > 0) {
        noun = ps_noun_find(args->words[0]);
        cmd = ps_cmd_find(args->words[0], args->n_words > 1 ? verb : NULL);
        if (noun == NULL || (args->n_words > 1 && cmd == NULL)) {
            const char *word = noun == NULL ? args->words[0] : verb;
            const char *near = ps_cmd_suggest(noun == NULL ? NULL : noun->name, word);

            return psd_error_set(err, PSD_USAGE, "unknown command \"%s\"%s%s%s", word,
                                 near == NULL ? "" : "; did you mean \"", near == NULL ? "" : near,
                                 near == NULL ? "" : "\"?");
        }
    }
    ps_help_write(cli->out.out, noun, cmd);
    return PSD_OK;
}

psd_status_t ps_cmd_version(ps_cli_t *cli, psd_error_t *err)
{
    (void)err;
    if (ps_format_is_json(cli->out.format)) {
        ps_print(cli->out.out, "{\"schema_version\":1,\"version\":\"%s\"}\n", psd_version());
    } else {
        ps_print(cli->out.out, "pscli %s\n", psd_version());
    }
    return PSD_OK;
}

psd_status_t ps_cmd_completion(ps_cli_t *cli, psd_error_t *err)
{
    static const char *const SHELLS[] = {"bash", "zsh", "fish", NULL};
    const char *shell = ps_cli_word(cli, 0);

    if (strcmp(shell, "bash") == 0) {
        ps_completion_bash(cli->out.out);
    } else if (strcmp(shell, "zsh") == 0) {
        ps_completion_zsh(cli->out.out);
    } else if (strcmp(shell, "fish") == 0) {
        ps_completion_fish(cli->out.out);
    } else {
        const char *near = ps_text_suggest(shell, SHELLS);

        return psd_error_set(err, PSD_USAGE,
                             "unknown shell \"%s\"; %s%s%sallowed: bash, zsh, "
                             "fish",
                             shell, near == NULL ? "" : "did you mean \"", near == NULL ? "" : near,
                             near == NULL ? "" : "\"? ");
    }
    return PSD_OK;
}
