/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands as a whole: nouns, and looking up. */
#include "cli/options/commands.h"

#include <string.h>

#include "base/text.h"

#define WORDS_MAX 64

static const ps_noun_t NOUNS[] = {
    {"cluster", "the cluster as a whole"},
    {"node", "the psd processes of the cluster"},
    {"table", "create, inspect, export, import and drop tables"},
    {"checkpoint", "save tables to files and restore them"},
    {"push", "send deltas to rows"},
    {"pull", "fetch values of rows"},
    {"plan", "how much memory a table will need"},
    {"data", "convert and inspect files of samples"},
    {"job", "training jobs"},
    {"worker", "the members of a job"},
    {"clock", "clock of each worker, and who waits for whom"},
    {"why", "why a job makes no progress"},
    {"run", "start the workers of a job"},
    {"check", "verdicts for monitoring"},
    {"doctor", "find common problems, and how to fix them"},
    {"slow", "the slowest requests, and where their time went"},
    {"wait", "wait until a condition holds"},
    {"top", "the cluster at work: rates of tables and jobs"},
    {"page", "the link that opens psd's page"},
    {"support-bundle", "what somebody who helps wants to see, in one file"},
    {"auth", "keys, and who may do what"},
    {"bench", "measure pushes and pulls"},
    {"context", "named settings of pscli: which cluster, which output"},
    {"env", "what programs take from the environment"},
    {"explain", "explain an error code"},
    {"completion", "shell completion"},
    {"help", "help for a command"},
    {"version", "the version of pscli"},
};

static const ps_cmd_t *const LISTS[] = {
    ps_cmds_cluster, ps_cmds_unknown, ps_cmds_table, ps_cmds_checkpoint, ps_cmds_plan,
    ps_cmds_data,    ps_cmds_tool,    ps_cmds_watch, ps_cmds_auth,       ps_cmds_bench};

const ps_cmd_t *ps_cmd_at(size_t i)
{
    for (size_t list = 0; list < sizeof LISTS / sizeof LISTS[0]; list++) {
        for (const ps_cmd_t *cmd = LISTS[list]; cmd->noun != NULL; cmd++) {
            if (i == 0) {
                return cmd;
            }
            i--;
        }
    }
    return NULL;
}

/* Short forms of verbs, for users of other tools. */
static const struct {
    const char *shorter, *verb;
} ALIASES[] = {{"ls", "list"}, {"rm", "drop"}, {"rm", "remove"}};

static const ps_cmd_t *find_exact(const char *noun, const char *verb)
{
    const ps_cmd_t *cmd = NULL;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun) != 0 || (cmd->verb == NULL) != (verb == NULL)) {
            continue;
        }
        if (verb == NULL || strcmp(cmd->verb, verb) == 0) {
            return cmd;
        }
    }
    return NULL;
}

bool ps_cmd_is_group(const char *noun, const char *word)
{
    const ps_cmd_t *cmd = NULL;
    size_t size = strlen(word);

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun) == 0 && cmd->verb != NULL &&
            strncmp(cmd->verb, word, size) == 0 && cmd->verb[size] == ' ') {
            return true;
        }
    }
    return false;
}

const ps_cmd_t *ps_cmd_find(const char *noun, const char *verb)
{
    const ps_cmd_t *cmd = find_exact(noun, verb);

    for (size_t i = 0; cmd == NULL && verb != NULL && i < sizeof ALIASES / sizeof ALIASES[0]; i++) {
        if (strcmp(ALIASES[i].shorter, verb) == 0) {
            cmd = find_exact(noun, ALIASES[i].verb);
        }
    }
    return cmd;
}

const ps_noun_t *ps_noun_at(size_t i)
{
    return i < sizeof NOUNS / sizeof NOUNS[0] ? &NOUNS[i] : NULL;
}

const ps_noun_t *ps_noun_find(const char *name)
{
    const ps_noun_t *noun = NULL;

    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        if (strcmp(noun->name, name) == 0) {
            return noun;
        }
    }
    return NULL;
}

const char *ps_cmd_suggest(const char *noun, const char *word)
{
    const char *words[WORDS_MAX] = {NULL};
    size_t n = 0;

    if (noun == NULL) {
        const ps_noun_t *known = NULL;

        for (size_t i = 0; (known = ps_noun_at(i)) != NULL; i++) {
            if (n < WORDS_MAX - 1) {
                words[n++] = known->name;
            }
        }
    } else {
        const ps_cmd_t *cmd = NULL;

        for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
            if (strcmp(cmd->noun, noun) == 0 && cmd->verb != NULL && n < WORDS_MAX - 1) {
                words[n++] = cmd->verb;
            }
        }
    }
    return ps_text_suggest(word, words);
}
