/* SPDX-License-Identifier: Apache-2.0 */
/* Words become a command, and options get their values by precedence. */
#include "cli/options/args.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "cli/options/args_context.h"

void ps_args_done(ps_args_t *self)
{
    for (size_t i = 0; i < PS_OPTS_MAX; i++) {
        ps_free(self->values[i].joined);
    }
    ps_free(self->words);
    ps_free(self->context);
    *self = (ps_args_t){0};
}

static size_t n_global(void)
{
    size_t n = 0;

    while (ps_opts_global[n].name != NULL) {
        n++;
    }
    return n;
}

/* Option i of those that are known so far; NULL behind the last. */
static const ps_opt_t *opt_at(const ps_args_t *self, size_t i)
{
    size_t n = n_global();

    if (i < n) {
        return &ps_opts_global[i];
    }
    if (self->cmd == NULL || self->cmd->options == NULL) {
        return NULL;
    }
    for (size_t j = 0; j < i - n; j++) {
        if (self->cmd->options[j].name == NULL) {
            return NULL;
        }
    }
    return self->cmd->options[i - n].name == NULL ? NULL : &self->cmd->options[i - n];
}

/* Index of an option by its long name (length bytes); -1: none. */
static int find_opt(const ps_args_t *self, const char *name, size_t length)
{
    const ps_opt_t *opt = NULL;

    for (int i = 0; (opt = opt_at(self, (size_t)i)) != NULL; i++) {
        if (strlen(opt->name) == length && strncmp(opt->name, name, length) == 0) {
            return i;
        }
    }
    return -1;
}

/* Index of an option by its letter; -1: none. */
static int find_letter(const ps_args_t *self, char letter)
{
    const ps_opt_t *opt = NULL;

    for (int i = 0; (opt = opt_at(self, (size_t)i)) != NULL; i++) {
        if (opt->letter == letter) {
            return i;
        }
    }
    return -1;
}

static psd_status_t refuse_option(const ps_args_t *self, const char *word, psd_error_t *err)
{
    const char *words[PS_OPTS_MAX + 1] = {NULL};
    const ps_opt_t *opt = NULL;
    const char *near = NULL;
    char name[64] = "";
    size_t length = strcspn(word, "=");

    for (size_t i = 0; (opt = opt_at(self, i)) != NULL; i++) {
        words[i] = opt->name;
    }
    if (length > 2 && length - 2 < sizeof name && word[1] == '-') {
        memcpy(name, word + 2, length - 2);
        near = ps_text_suggest(name, words);
    }
    if (near != NULL) {
        return psd_error_set(err, PSD_USAGE, "unknown option \"%.*s\"; did you mean --%s?",
                             (int)length, word, near);
    }
    return psd_error_set(err, PSD_USAGE, "unknown option \"%.*s\"%s", (int)length, word,
                         self->cmd == NULL ? " before the command" : "");
}

static psd_status_t set_value(ps_args_t *self, int at, const char *value, const char *origin,
                              psd_error_t *err)
{
    ps_args_value_t *slot = &self->values[at];
    psd_status_t rc = ps_args_check(opt_at(self, (size_t)at), value, origin, err);

    if (rc != PSD_OK) {
        return rc;
    }
    slot->text = value;
    (void)snprintf(slot->origin, sizeof slot->origin, "%s", origin);
    return PSD_OK;
}

/* Adds a value to those that a repeated option has already. */
static psd_status_t add_value(ps_args_t *self, int at, const char *value, const char *origin,
                              psd_error_t *err)
{
    ps_args_value_t *slot = &self->values[at];
    psd_status_t rc = ps_args_check(opt_at(self, (size_t)at), value, origin, err);
    size_t size = strlen(slot->text) + strlen(value) + 2;
    char *joined = rc == PSD_OK ? ps_alloc(size, 1) : NULL;

    if (rc != PSD_OK) {
        return rc;
    }
    if (joined == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the command line");
    }
    (void)snprintf(joined, size, "%s,%s", slot->text, value);
    ps_free(slot->joined);
    slot->joined = joined;
    slot->text = joined;
    return PSD_OK;
}

/* Reads the option at argv[*at] and its value, and moves *at to the last word
 * that it took. */
static psd_status_t read_option(ps_args_t *self, int argc, char *const *argv, int *at,
                                psd_error_t *err)
{
    const char *word = argv[*at];
    bool is_long = word[1] == '-';
    size_t length = strcspn(word + 2, "=");
    const char *value = NULL;
    char origin[72];
    int i = is_long ? find_opt(self, word + 2, length) : find_letter(self, word[1]);
    const ps_opt_t *opt = i < 0 ? NULL : opt_at(self, (size_t)i);

    if (opt == NULL) {
        return refuse_option(self, word, err);
    }
    (void)snprintf(origin, sizeof origin, "--%s", opt->name);
    if (is_long && word[2 + length] == '=') {
        value = word + 2 + length + 1;
    } else if (!is_long && word[2] != '\0') {
        value = word + 2;
    }
    if (opt->kind == PS_OPT_SWITCH) {
        if (value != NULL) {
            return psd_error_set(err, PSD_USAGE, "%s takes no value", origin);
        }
        value = "true";
    } else if (value == NULL) {
        if (*at + 1 >= argc) {
            return psd_error_set(err, PSD_USAGE, "%s needs a value: %s", origin, opt->value);
        }
        value = argv[++*at];
    }
    return opt->many && self->values[i].text != NULL ? add_value(self, i, value, origin, err)
                                                     : set_value(self, i, value, origin, err);
}

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

/* A word that is no option: the noun, its verb, or one of the command's. */
static psd_status_t read_word(ps_args_t *self, const char *word, psd_error_t *err)
{
    if (self->noun == NULL) {
        self->noun = ps_noun_find(word);
        if (self->noun == NULL) {
            return refuse_word("command", NULL, word, err);
        }
        self->cmd = ps_cmd_find(word, NULL);
        return PSD_OK;
    }
    if (self->cmd == NULL) {
        self->cmd = ps_cmd_find(self->noun->name, word);
        return self->cmd != NULL ? PSD_OK : refuse_word("command", self->noun->name, word, err);
    }
    return add_word(self, word, err);
}

static psd_status_t read_line(ps_args_t *self, int argc, char *const *argv, psd_error_t *err)
{
    bool only_words = false;

    for (int i = 1; i < argc; i++) {
        psd_status_t rc = PSD_OK;

        if (!only_words && strcmp(argv[i], "--") == 0) {
            only_words = true;
            continue;
        }
        if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            rc = read_option(self, argc, argv, &i, err);
        } else {
            rc = read_word(self, argv[i], err);
            only_words = only_words || (self->cmd != NULL && self->n_words > 0 &&
                                        (self->cmd->flags & PS_CMD_REST) != 0);
        }
        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

void ps_args_env_name(const ps_opt_t *opt, char ret_name[PS_ENV_NAME_SIZE])
{
    (void)snprintf(ret_name, PS_ENV_NAME_SIZE, "PSCLI_%s", opt->name);
    for (char *at = ret_name; *at != '\0'; at++) {
        if (*at == '-') {
            *at = '_';
        } else if (*at >= 'a' && *at <= 'z') {
            *at = (char)(*at - 'a' + 'A');
        }
    }
}

static psd_status_t read_environment(ps_args_t *self, psd_error_t *err)
{
    const ps_opt_t *opt = NULL;

    for (int i = 0; (opt = opt_at(self, (size_t)i)) != NULL; i++) {
        char name[PS_ENV_NAME_SIZE];
        const char *value = NULL;

        ps_args_env_name(opt, name);
        value = self->values[i].text == NULL ? getenv(name) : NULL;
        if (value == NULL || value[0] == '\0' || strcmp(opt->name, "help") == 0 ||
            strcmp(opt->name, "version") == 0) {
            continue;
        }
        psd_status_t rc = set_value(self, i, value, name, err);

        if (rc != PSD_OK) {
            return rc;
        }
    }
    return PSD_OK;
}

static psd_status_t set_from_context(void *arg, const char *key, const char *value,
                                     const char *origin, psd_error_t *err)
{
    ps_args_t *self = arg;
    int i = find_opt(self, key, strlen(key));

    if (i < 0 || (size_t)i >= n_global() || strcmp(key, "context") == 0) {
        return psd_error_set(err, PSD_USAGE,
                             "%s: unknown key; allowed: endpoint, output, "
                             "timeout and the other global options",
                             origin);
    }
    if (self->values[i].text != NULL) {
        return ps_args_check(opt_at(self, (size_t)i), value, origin, err);
    }
    return set_value(self, i, value, origin, err);
}

/* Who names no endpoint means the one that programs use. */
static psd_status_t read_programs_endpoint(ps_args_t *self, psd_error_t *err)
{
    static const char NAME[] = "PSD_ENDPOINT";
    const char *value = getenv(NAME);

    if (value == NULL || value[0] == '\0' || ps_args_given(self, "endpoint")) {
        return PSD_OK;
    }
    return set_value(self, find_opt(self, "endpoint", strlen("endpoint")), value, NAME, err);
}

static psd_status_t check_words(const ps_args_t *self, psd_error_t *err)
{
    const ps_cmd_t *cmd = self->cmd;

    if (self->noun == NULL) {
        return psd_error_set(err, PSD_USAGE, "no command given");
    }
    if (cmd == NULL) {
        return psd_error_set(err, PSD_USAGE, "\"%s\" wants a verb; see \"pscli %s --help\"",
                             self->noun->name, self->noun->name);
    }
    const char *gap = cmd->verb == NULL ? "" : " ";
    const char *verb = cmd->verb == NULL ? "" : cmd->verb;
    const char *blank = cmd->arguments[0] == '\0' ? "" : " ";

    if (self->n_words < cmd->min_args) {
        return psd_error_set(err, PSD_USAGE, "too few words: pscli %s%s%s%s%s", cmd->noun, gap,
                             verb, blank, cmd->arguments);
    }
    if (self->n_words > cmd->max_args) {
        return psd_error_set(err, PSD_USAGE, "\"%s\" is too much: pscli %s%s%s%s%s",
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
        int at = find_opt(self, RULES[i].name, strlen(RULES[i].name));
        const ps_args_value_t *value = &self->values[at];

        /* From environment or context it is a wish for commands that can. */
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
    psd_status_t rc = read_line(self, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    self->help = ps_args_given(self, "help");
    self->version = ps_args_given(self, "version");
    rc = read_environment(self, err);
    if (rc == PSD_OK && ps_args_given(self, "context")) {
        rc = ps_args_context_read(ps_args_text(self, "context"), &self->context, set_from_context,
                                  self, err);
    }
    if (rc == PSD_OK) {
        rc = read_programs_endpoint(self, err);
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

static const ps_args_value_t *value_of(const ps_args_t *self, const char *name,
                                       const ps_opt_t **ret_opt)
{
    int i = find_opt(self, name, strlen(name));

    assert(i >= 0);
    *ret_opt = opt_at(self, (size_t)i);
    return &self->values[i];
}

const char *ps_args_text(const ps_args_t *self, const char *name)
{
    const ps_opt_t *opt = NULL;
    const ps_args_value_t *value = value_of(self, name, &opt);

    return value->text != NULL ? value->text : opt->fallback;
}

bool ps_args_given(const ps_args_t *self, const char *name)
{
    const ps_opt_t *opt = NULL;

    return value_of(self, name, &opt)->text != NULL;
}

bool ps_args_is_count(const ps_args_t *self, const char *name)
{
    const ps_opt_t *opt = NULL;

    (void)value_of(self, name, &opt);
    return opt->kind == PS_OPT_COUNT;
}

uint64_t ps_args_u64(const ps_args_t *self, const char *name)
{
    const char *text = ps_args_text(self, name);
    uint64_t value = 0;

    return text != NULL && ps_text_count(text, &value) ? value : 0;
}

int64_t ps_args_i64(const ps_args_t *self, const char *name)
{
    const char *text = ps_args_text(self, name);
    int64_t value = 0;

    return text != NULL && ps_text_i64(text, &value) ? value : 0;
}

uint64_t ps_args_ms(const ps_args_t *self, const char *name)
{
    const char *text = ps_args_text(self, name);
    uint64_t value = 0;

    return text != NULL && ps_text_duration(text, &value) ? value : 0;
}
