/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion for bash, zsh and fish, from the table of commands
 *
 * What     bash gets a function that knows every command's words; zsh runs the
 *          same function through its bashcompinit; fish gets one line for each
 *          word. Names of tables, jobs and nodes come from the cluster, with a
 *          timeout of 300 ms.
 */
#include "cli/options/help.h"

#include <string.h>

#include "cli/output/output.h"

#define ASK_TABLES "pscli table list -o name --timeout 300ms 2>/dev/null"
#define ASK_JOBS "pscli job list -o name --timeout 300ms 2>/dev/null"
#define ASK_NODES "pscli node list -o name --timeout 300ms 2>/dev/null"
#define ASK_CONTEXTS "pscli context list -o name 2>/dev/null"
#define ASK_CODES "pscli explain -o name 2>/dev/null"

/* The shell command that lists what the first word may be; NULL: files. */
static const char *asking(const ps_cmd_t *cmd)
{
    static const char *const ASKS[][2] = {{"table", ASK_TABLES},
                                          {"job", ASK_JOBS},
                                          {"node", ASK_NODES},
                                          {"code", ASK_CODES},
                                          {"context", ASK_CONTEXTS},
                                          {"shell", "printf \"%s\\n\" bash zsh fish"},
                                          {"check", "printf \"%s\\n\" health lag clocks backup"}};

    for (size_t i = 0; i < sizeof ASKS / sizeof ASKS[0]; i++) {
        if (cmd->complete != NULL && strcmp(cmd->complete, ASKS[i][0]) == 0) {
            return ASKS[i][1];
        }
    }
    return NULL;
}

static void write_flags(FILE *file, const ps_opt_t *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        ps_print(file, " --%s", options->name);
    }
}

/* The length of a verb's first word. */
static size_t first_word(const ps_cmd_t *cmd)
{
    return strcspn(cmd->verb, " ");
}

/* A verb of two words, the first in its noun that begins with its first word. */
static bool begins_group(const ps_cmd_t *cmd, size_t at)
{
    if (cmd->verb == NULL || cmd->verb[first_word(cmd)] == '\0') {
        return false;
    }
    for (size_t i = 0; i < at; i++) {
        const ps_cmd_t *before = ps_cmd_at(i);

        if (strcmp(before->noun, cmd->noun) == 0 && before->verb != NULL &&
            strncmp(before->verb, cmd->verb, first_word(cmd) + 1) == 0) {
            return false;
        }
    }
    return true;
}

/* The verbs of a noun; of two words only the first. */
static void write_verbs(FILE *file, const ps_noun_t *noun)
{
    const ps_cmd_t *cmd = NULL;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, noun->name) == 0 && cmd->verb != NULL &&
            (cmd->verb[first_word(cmd)] == '\0' || begins_group(cmd, i))) {
            ps_print(file, " %.*s", (int)first_word(cmd), cmd->verb);
        }
    }
}

/* The second words of the verbs that begin as that one. */
static void write_second_words(FILE *file, const ps_cmd_t *first)
{
    const ps_cmd_t *cmd = NULL;
    size_t size = first_word(first) + 1;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (strcmp(cmd->noun, first->noun) == 0 && cmd->verb != NULL &&
            strncmp(cmd->verb, first->verb, size) == 0) {
            ps_print(file, " %s", cmd->verb + size);
        }
    }
}

/* For each group of verbs of two words: `begins`, noun and first word, `between`;
 * then the second words and `ends` or, when that is "", the first word and $word. */
static void write_groups(FILE *file, const char *begins, const char *between, const char *ends)
{
    const ps_cmd_t *cmd = NULL;

    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        if (!begins_group(cmd, i)) {
            continue;
        }
        ps_print(file, "%s%s %.*s%s", begins, cmd->noun, (int)first_word(cmd), cmd->verb, between);
        if (ends[0] == '\0') {
            ps_print(file, "%.*s $word\"\n", (int)first_word(cmd), cmd->verb);
        } else {
            write_second_words(file, cmd);
            ps_print(file, "%s", ends);
        }
    }
}

static void write_nouns(FILE *file)
{
    const ps_noun_t *noun = NULL;

    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        ps_print(file, " %s", noun->name);
    }
}

/* case arms for the options that take one of some words */
static void write_bash_words(FILE *file, const ps_opt_t *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        if (options->words == NULL) {
            continue;
        }
        ps_print(file, "    --%s", options->name);
        if (options->letter != '\0') {
            ps_print(file, "|-%c", options->letter);
        }
        ps_print(file, ") words=\"");
        for (size_t i = 0; options->words[i] != NULL; i++) {
            ps_print(file, "%s%s", i == 0 ? "" : " ", options->words[i]);
        }
        ps_print(file, "\"; value=1 ;;\n");
    }
}

/* The words that a command takes, as case arms. */
static void write_bash_cmd(FILE *file, const ps_cmd_t *cmd)
{
    const char *ask = asking(cmd);

    ps_print(file, "    \"%s%s%s\")\n", cmd->noun, cmd->verb == NULL ? "" : " ",
             cmd->verb == NULL ? "" : cmd->verb);
    if (cmd->options != NULL) {
        ps_print(file, "        flags+=\"");
        write_flags(file, cmd->options);
        ps_print(file, "\"\n        case $previous in\n");
        write_bash_words(file, cmd->options);
        ps_print(file, "        esac\n");
    }
    if (ask != NULL) {
        ps_print(file,
                 "        [ -z \"%s$value\" ] && [[ $current != -* ]] &&\n"
                 "            words=$(%s)\n",
                 (cmd->flags & PS_CMD_ALIKE) != 0 ? "" : "$rest", ask);
    } else if (cmd->complete != NULL && strcmp(cmd->complete, "command") == 0) {
        ps_print(file, "        words=\"");
        write_nouns(file);
        ps_print(file, "\"\n");
    }
    ps_print(file, "        ;;\n");
}

static void write_function(FILE *file)
{
    const ps_noun_t *noun = NULL;
    const ps_cmd_t *cmd = NULL;

    ps_print(file, "_pscli() {\n"
                   "    local current previous word flags i\n"
                   "    local noun=\"\" verb=\"\" rest=\"\" words=\"\" value=\"\"\n"
                   "    current=${COMP_WORDS[COMP_CWORD]}\n"
                   "    previous=${COMP_WORDS[COMP_CWORD - 1]}\n"
                   "    flags=\"");
    write_flags(file, ps_opts_global);
    ps_print(file, "\"\n"
                   "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                   "        word=${COMP_WORDS[i]}\n"
                   "        case $word in\n"
                   "        --endpoint|--context|--output|-o|--timeout|--watch) "
                   "((i++)) ;;\n"
                   "        -*) ;;\n"
                   "        *)\n"
                   "            if [ -z \"$noun\" ]; then noun=$word\n"
                   "            elif [ -z \"$verb\" ]; then verb=$word\n");
    write_groups(file, "            elif [ \"$noun $verb\" = \"", "\" ]; then verb=\"", "");
    ps_print(file, "            else rest=$word; fi ;;\n"
                   "        esac\n"
                   "    done\n"
                   "    case $noun in\n"
                   "    \"\") words=\"");
    write_nouns(file);
    ps_print(file, "\" ;;\n");
    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        if (ps_cmd_find(noun->name, NULL) == NULL) {
            ps_print(file, "    %s) [ -z \"$verb\" ] && words=\"", noun->name);
            write_verbs(file, noun);
            ps_print(file, "\" ;;\n");
        } else {
            ps_print(file, "    %s) rest=$verb; verb=\"\" ;;\n", noun->name);
        }
    }
    ps_print(file, "    esac\n"
                   "    case \"$noun${verb:+ $verb}\" in\n");
    write_groups(file, "    \"", "\") words=\"", "\" ;;\n");
    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        write_bash_cmd(file, cmd);
    }
    ps_print(file, "    esac\n"
                   "    case $previous in\n");
    write_bash_words(file, ps_opts_global);
    ps_print(file, "    --from|--to|--man|--psd) [ -n \"$value\" ] || "
                   "words=$(compgen -f -- \"$current\"); value=1 ;;\n"
                   "    esac\n"
                   "    [ -z \"$value\" ] && [[ $current == -* ]] && "
                   "words=$flags\n"
                   "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- "
                   "\"$current\")\n"
                   "}\n");
}

void ps_completion_bash(FILE *file)
{
    ps_print(file, "# SPDX-License-Identifier: Apache-2.0\n"
                   "# bash completion, made by \"pscli completion bash\"\n"
                   "# shellcheck shell=bash\n");
    write_function(file);
    ps_print(file, "complete -o default -F _pscli pscli\n"); /* files */
}

void ps_completion_zsh(FILE *file)
{
    const ps_noun_t *noun = NULL;
    const ps_cmd_t *cmd = NULL;

    ps_print(file, "#compdef pscli\n"
                   "# SPDX-License-Identifier: Apache-2.0\n"
                   "# zsh completion, made by \"pscli completion zsh\"\n"
                   "_pscli() {\n"
                   "    local -a words_ flags\n"
                   "    local noun= verb= word ask=\n"
                   "    for word in ${words[2,CURRENT-1]}; do\n"
                   "        [[ $word == -* ]] && continue\n"
                   "        if [[ -z $noun ]]; then noun=$word\n"
                   "        elif [[ -z $verb ]]; then verb=$word\n");
    write_groups(file, "        elif [[ \"$noun $verb\" == \"", "\" ]]; then verb=\"", "");
    ps_print(file, "        fi\n"
                   "    done\n"
                   "    flags=(");
    write_flags(file, ps_opts_global);
    ps_print(file, ")\n    case $noun in\n    '') words_=(");
    write_nouns(file);
    ps_print(file, ") ;;\n");
    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        if (ps_cmd_find(noun->name, NULL) == NULL) {
            ps_print(file, "    %s) [[ -z $verb ]] && words_=(", noun->name);
            write_verbs(file, noun);
            ps_print(file, ") ;;\n");
        } else {
            ps_print(file, "    %s) verb=\"\" ;;\n", noun->name);
        }
    }
    ps_print(file, "    esac\n    case \"$noun${verb:+ $verb}\" in\n");
    write_groups(file, "    '", "') words_=(", ") ;;\n");
    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        ps_print(file, "    '%s%s%s') flags+=(", cmd->noun, cmd->verb == NULL ? "" : " ",
                 cmd->verb == NULL ? "" : cmd->verb);
        write_flags(file, cmd->options);
        ps_print(file, ")");
        if (asking(cmd) != NULL) {
            ps_print(file, "; ask='%s'", asking(cmd));
        }
        ps_print(file, " ;;\n");
    }
    ps_print(file, "    esac\n"
                   "    if [[ $PREFIX == -* ]]; then compadd -- $flags; return; fi\n"
                   "    [[ -n $ask ]] && words_=($(eval $ask))\n"
                   "    if (( $#words_ )); then compadd -- $words_; else _files; fi\n"
                   "}\n"
                   "_pscli \"$@\"\n");
}

static void write_fish_text(FILE *file, const char *text)
{
    (void)putc('\'', file);
    for (; *text != '\0'; text++) {
        if (*text == '\'' || *text == '\\') {
            (void)putc('\\', file);
        }
        (void)putc(*text, file);
    }
    (void)putc('\'', file);
}

static void write_fish_options(FILE *file, const char *condition, const ps_opt_t *options)
{
    for (; options != NULL && options->name != NULL; options++) {
        ps_print(file, "complete -c pscli");
        if (condition[0] != '\0') {
            ps_print(file, " -n '%s'", condition);
        }
        ps_print(file, " -l %s", options->name);
        if (options->letter != '\0') {
            ps_print(file, " -s %c", options->letter);
        }
        if (options->words != NULL) {
            ps_print(file, " -x -a '");
            for (size_t i = 0; options->words[i] != NULL; i++) {
                ps_print(file, "%s%s", i == 0 ? "" : " ", options->words[i]);
            }
            ps_print(file, "'");
        } else if (options->value != NULL) {
            ps_print(file, " -r");
        }
        ps_print(file, " -d ");
        write_fish_text(file, options->help);
        (void)putc('\n', file);
    }
}

/* Of a verb of two words. */
static void write_fish_second(FILE *file, const ps_cmd_t *cmd, char *condition, size_t size)
{
    const char *second = cmd->verb + first_word(cmd) + 1;

    ps_print(file,
             "complete -c pscli -f -n '__fish_seen_subcommand_from %s; and "
             "__fish_seen_subcommand_from %.*s; and not __fish_seen_subcommand_from",
             cmd->noun, (int)first_word(cmd), cmd->verb);
    write_second_words(file, cmd);
    ps_print(file, "' -a %s -d ", second);
    write_fish_text(file, cmd->summary);
    (void)putc('\n', file);
    (void)snprintf(condition, size,
                   "__fish_seen_subcommand_from %s; and __fish_seen_subcommand_from %.*s; and "
                   "__fish_seen_subcommand_from %s",
                   cmd->noun, (int)first_word(cmd), cmd->verb, second);
}

/* The first word of a group of verbs. */
static void write_fish_group(FILE *file, const ps_cmd_t *cmd)
{
    ps_print(file,
             "complete -c pscli -f -n '__fish_seen_subcommand_from %s; and "
             "not __fish_seen_subcommand_from",
             cmd->noun);
    write_verbs(file, ps_noun_find(cmd->noun));
    ps_print(file, "' -a %.*s\n", (int)first_word(cmd), cmd->verb);
}

static void write_fish_cmd(FILE *file, const ps_cmd_t *cmd, size_t at)
{
    char condition[240];
    bool has_second = cmd->verb != NULL && cmd->verb[first_word(cmd)] != '\0';

    (void)snprintf(condition, sizeof condition, "__fish_seen_subcommand_from %s%s%s", cmd->noun,
                   cmd->verb == NULL ? "" : "; and __fish_seen_subcommand_from ",
                   cmd->verb == NULL ? "" : cmd->verb);
    if (begins_group(cmd, at)) {
        write_fish_group(file, cmd);
    }
    if (has_second) {
        write_fish_second(file, cmd, condition, sizeof condition);
    } else if (cmd->verb != NULL) {
        ps_print(file,
                 "complete -c pscli -f -n '__fish_seen_subcommand_from %s; and "
                 "not __fish_seen_subcommand_from",
                 cmd->noun);
        write_verbs(file, ps_noun_find(cmd->noun));
        ps_print(file, "' -a %s -d ", cmd->verb);
        write_fish_text(file, cmd->summary);
        (void)putc('\n', file);
    }
    if (asking(cmd) != NULL) {
        ps_print(file, "complete -c pscli -f -n '%s' -a '(%s)'\n", condition, asking(cmd));
    }
    write_fish_options(file, condition, cmd->options);
}

void ps_completion_fish(FILE *file)
{
    const ps_noun_t *noun = NULL;
    const ps_cmd_t *cmd = NULL;

    ps_print(file, "# SPDX-License-Identifier: Apache-2.0\n"
                   "# fish completion, made by \"pscli completion fish\"\n");
    for (size_t i = 0; (noun = ps_noun_at(i)) != NULL; i++) {
        ps_print(file, "complete -c pscli -f -n __fish_use_subcommand -a %s -d ", noun->name);
        write_fish_text(file, noun->summary);
        (void)putc('\n', file);
    }
    write_fish_options(file, "", ps_opts_global);
    for (size_t i = 0; (cmd = ps_cmd_at(i)) != NULL; i++) {
        write_fish_cmd(file, cmd, i);
    }
}
