/* SPDX-License-Identifier: Apache-2.0 */
/* Words become a command, and options get their values by precedence. */
#include "cli/options/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/options/args_context.h"

#define VERB_SIZE 128

static psd_status_t refuse_word(const char *what, const char *noun, const char *word,
                                psd_error_t *err)
{
    const char *near = ps_cmd_suggest(noun, word);

    if (near != NULL) {
        return psd_error_set(err, PSD_USAGE, "unknown %s \"%s\"; did you mean \"%s%s%s\"?", what,
                             word, noun == NULL ? "" : noun, noun == NULL ? "" : " ", near);
    }
    return psd_error_set(err, PSD_USAGE, "unknown %s \"%s\"", what, word);
}

static psd_status_t add_word(ps_args_t *self, const char *word, psd_error_t *err)
{
    if (!ps_grow(&self->words, &self->words_capacity, self->n_words + 1, sizeof *self->words)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the command line");
    }
    self->words[self->n_words++] = word;
    return PSD_OK;
}

/* From here on the command and its options are known. */
static void set_cmd(ps_args_t *self, const ps_cmd_t *cmd)
{
    self->cmd = cmd;
    if (cmd != NULL) {
        self->opts.lists[1] = cmd->options;
        self->opts.where = NULL;
    }
}

/* The verb, or one of its two words. */
static psd_status_t read_verb(ps_args_t *self, const char *word, psd_error_t *err)
{
    const char *noun = self->noun->name;
    char verb[VERB_SIZE];

    (void)snprintf(verb, sizeof verb, "%s%s%s", self->group == NULL ? "" : self->group,
                   self->group == NULL ? "" : " ", word);
    set_cmd(self, ps_cmd_find(noun, verb));
    if (self->cmd == NULL && self->group == NULL && ps_cmd_is_group(noun, word)) {
        self->group = word;
        return PSD_OK;
    }
    return self->cmd != NULL ? PSD_OK : refuse_word("command", noun, verb, err);
}

/* A word that is not an option: the noun, its verb, or an argument of the command. */
static psd_status_t read_word(void *arg, const char *word, bool *ret_rest, psd_error_t *err)
{
    ps_args_t *self = arg;

    if (self->noun == NULL) {
        self->noun = ps_noun_find(word);
        if (self->noun == NULL) {
            return refuse_word("command", NULL, word, err);
        }
        set_cmd(self, ps_cmd_find(word, NULL));
        return PSD_OK;
    }
    if (self->cmd == NULL) {
        return read_verb(self, word, err);
    }
    *ret_rest = *ret_rest || (self->cmd->flags & PS_CMD_REST) != 0;
    return add_word(self, word, err);
}

/* Without an endpoint it takes the one that programs use. */
static psd_status_t read_programs_endpoint(ps_args_t *self, psd_error_t *err)
{
    static const char EMBED[] = "embed:";
    psd_status_t rc = PSD_OK;

    if (ps_args_given(self, "endpoint") || self->help || self->version) {
        return PSD_OK;
    }
    rc = ps_environment_read("PSD_ENDPOINT", &self->programs_endpoint, err);
    /* Of a worker that serves: pscli inside of it asks the cluster, and serves nobody. */
    if (rc == PSD_OK && self->programs_endpoint.text != NULL &&
        strncmp(self->programs_endpoint.text, EMBED, sizeof EMBED - 1) == 0 &&
        self->programs_endpoint.text[sizeof EMBED - 1] != '\0') {
        self->programs_endpoint.text += sizeof EMBED - 1;
    }
    return rc != PSD_OK || self->programs_endpoint.text == NULL
               ? rc
               : ps_opts_offer(&self->opts, ps_opts_find(&self->opts, "endpoint"),
                               self->programs_endpoint.text, self->programs_endpoint.origin, err);
}

/* Of pscli run: another system's name for the file of hosts. */
static psd_status_t read_hostfile(ps_args_t *self, psd_error_t *err)
{
    int i = ps_opts_find(&self->opts, "hostfile");
    psd_status_t rc = PSD_OK;

    if (i < 0 || ps_args_given(self, "hostfile")) {
        return PSD_OK;
    }
    rc = ps_environment_read("PSCLI_HOSTFILE", &self->hostfile, err);
    return rc != PSD_OK || self->hostfile.text == NULL
               ? rc
               : ps_opts_offer(&self->opts, i, self->hostfile.text, self->hostfile.origin, err);
}

static psd_status_t read_context(ps_args_t *self, const char *name, psd_error_t *err)
{
    return ps_args_context_read(name, &self->context, ps_args_context_offer, &self->opts, err);
}

/* What mends a broken context, or tells how, does not read it. */
static bool is_help(const char *noun)
{
    static const char *const NOUNS[] = {"context", "help", "version", "completion", "explain"};

    for (size_t i = 0; i < sizeof NOUNS / sizeof NOUNS[0]; i++) {
        if (strcmp(noun, NOUNS[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Weaker than all that was said of this run. */
static psd_status_t read_current_context(ps_args_t *self, psd_error_t *err)
{
    char name[PS_CONTEXT_NAME_MAX + 1] = "";
    psd_status_t rc = PSD_OK;

    if (ps_args_given(self, "context") || self->help || self->version || self->noun == NULL ||
        is_help(self->noun->name)) {
        return PSD_OK;
    }
    rc = ps_args_context_current(name, err);
    return rc != PSD_OK || name[0] == '\0' ? rc : read_context(self, name, err);
}

static psd_status_t check_words(const ps_args_t *self, psd_error_t *err)
{
    const ps_cmd_t *cmd = self->cmd;

    if (self->noun == NULL) {
        return psd_error_set(err, PSD_USAGE, "no command given");
    }
    if (cmd == NULL) {
        return psd_error_set(err, PSD_USAGE, "\"%s%s%s\" needs a verb; see \"pscli %s --help\"",
                             self->noun->name, self->group == NULL ? "" : " ",
                             self->group == NULL ? "" : self->group, self->noun->name);
    }
    const char *gap = cmd->verb == NULL ? "" : " ";
    const char *verb = cmd->verb == NULL ? "" : cmd->verb;
    const char *blank = cmd->arguments[0] == '\0' ? "" : " ";

    if (self->n_words < cmd->min_args) {
        return psd_error_set(err, PSD_USAGE, "too few arguments: pscli %s%s%s%s%s", cmd->noun, gap,
                             verb, blank, cmd->arguments);
    }
    if (self->n_words > cmd->max_args) {
        return psd_error_set(err, PSD_USAGE, "unexpected argument \"%s\": pscli %s%s%s%s%s",
                             self->words[cmd->max_args], cmd->noun, gap, verb, blank,
                             cmd->arguments);
    }
    return PSD_OK;
}

static psd_status_t check_flags(const ps_args_t *self, psd_error_t *err)
{
    static const struct {
        const char *name;
        unsigned flag;
    } RULES[] = {{"watch", PS_CMD_WATCH}, {"dry-run", PS_CMD_DRY_RUN}};

    for (size_t i = 0; i < sizeof RULES / sizeof RULES[0]; i++) {
        const ps_opt_t *opt = NULL;
        const ps_opts_value_t *value = ps_opts_value(&self->opts, RULES[i].name, &opt);

        /* From the environment or a context it applies only to commands that support it. */
        if (value->text != NULL && strncmp(value->origin, "--", 2) == 0 &&
            (self->cmd->flags & RULES[i].flag) == 0 &&
            !(RULES[i].flag == PS_CMD_DRY_RUN && (self->cmd->flags & PS_CMD_WATCH) != 0)) {
            return psd_error_set(err, PSD_USAGE, "\"%s%s%s\" has no --%s", self->cmd->noun,
                                 self->cmd->verb == NULL ? "" : " ",
                                 self->cmd->verb == NULL ? "" : self->cmd->verb, RULES[i].name);
        }
    }
    return PSD_OK;
}

psd_status_t ps_args_parse(ps_args_t *self, int argc, char *const *argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    self->opts.lists[0] = ps_opts_global;
    self->opts.where = " before the command";
    rc = ps_opts_read(&self->opts, argc, argv, read_word, self, err);
    if (rc != PSD_OK) {
        return rc;
    }
    self->help = ps_args_given(self, "help");
    self->version = ps_args_given(self, "version");
    rc = ps_opts_read_env(&self->opts, PS_ARGS_ENV, getenv, err);
    if (rc == PSD_OK && ps_args_given(self, "context")) {
        rc = read_context(self, ps_args_text(self, "context"), err);
    }
    if (rc == PSD_OK) {
        rc = read_programs_endpoint(self, err);
    }
    if (rc == PSD_OK) {
        rc = read_current_context(self, err);
    }
    if (rc == PSD_OK) {
        rc = read_hostfile(self, err);
    }
    if (rc != PSD_OK || self->help || self->version) {
        return rc;
    }
    rc = check_words(self, err);
    return rc != PSD_OK ? rc : check_flags(self, err);
}

const char *ps_args_find_format(int argc, char *const *argv)
{
    const char *found = NULL;

    for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-o") == 0 || strcmp(argv[i], "--output") == 0) {
            found = i + 1 < argc ? argv[i + 1] : found;
        } else if (strncmp(argv[i], "--output=", 9) == 0) {
            found = argv[i] + 9;
        } else if (strncmp(argv[i], "-o", 2) == 0) {
            found = argv[i] + 2;
        }
    }
    return found != NULL ? found : getenv("PSCLI_OUTPUT");
}
