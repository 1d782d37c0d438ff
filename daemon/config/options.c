/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, and the order in which the sources of settings are heard. */
#include "daemon/config/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

typedef enum flag {
    FLAG_ACCEPT_LOSS,
    FLAG_CHECK_CONFIG,
    FLAG_CONFIG,
    FLAG_DATA_DIR,
    FLAG_HELP,
    FLAG_JOIN,
    FLAG_LISTEN,
    FLAG_NAME,
    FLAG_PRINT_CONFIG,
    FLAG_SHARDS,
    FLAG_VERSION,
    FLAG_COUNT
} flag_t;

static const struct {
    const char *name;
    const char *wants; /* what its value is; NULL: it has none */
} FLAGS[FLAG_COUNT] = {
    [FLAG_ACCEPT_LOSS] = {"--accept-loss", NULL},
    [FLAG_CHECK_CONFIG] = {"--check-config", NULL},
    [FLAG_CONFIG] = {"--config", "FILE"},
    [FLAG_DATA_DIR] = {"--data-dir", "DIR"},
    [FLAG_HELP] = {"--help", NULL},
    [FLAG_JOIN] = {"--join", "URL"},
    [FLAG_LISTEN] = {"--listen", "URL"},
    [FLAG_NAME] = {"--name", "NAME"},
    [FLAG_PRINT_CONFIG] = {"--print-config", NULL},
    [FLAG_SHARDS] = {"--shards", "N"},
    [FLAG_VERSION] = {"--version", NULL},
};

const char *ps_options_help(void)
{
    return "examples:\n"
           "  psd                                   one node, no "
           "configuration\n"
           "  psd --listen tcp://127.0.0.1:0 --data-dir ./psd-data --shards 2\n"
           "  psd --config psd.yaml                 with settings from a file\n"
           "  psd --config psd.yaml --check-config  is it right?\n"
           "  psd --print-config                    every value, and who set "
           "it\n"
           "\n"
           "usage: psd [OPTION]...\n"
           "Runs a node of the parameter server in the foreground; logs to "
           "stderr.\n"
           "\n"
           "  --config FILE    settings from a YAML file (PSD_CONFIG)\n"
           "  --data-dir DIR   where the registry is kept (PSD_DATA_DIR)\n"
           "  --listen URL     tcp://HOST:PORT or ipc://PATH; may be repeated "
           "(PSD_LISTEN_ENDPOINTS)\n"
           "  --shards N       threads that hold partitions (PSD_SHARDS)\n"
           "  --join URL       become a node of the cluster whose registry is "
           "at URL; may be\n"
           "                   repeated: the first that answers "
           "(PSD_CLUSTER_JOIN)\n"
           "  --name NAME      of this node; by default the host's, or the "
           "next free "
           "one after it\n"
           "                   (PSD_NODE_NAME)\n"
           "  --accept-loss    this once: partitions whose files are damaged, "
           "and of which there is\n"
           "                   no other copy, begin anew, empty\n"
           "  --check-config   check the settings and stop\n"
           "  --print-config   print every setting and where it came from\n"
           "  --version        print the version and stop\n"
           "  --help           print this and stop\n"
           "\n"
           "A flag wins over the environment (PSD_ and the key: "
           "PSD_LOG_LEVEL=debug), which wins\n"
           "over the file, which wins over the default. Signals: TERM stops "
           "cleanly, a second one\n"
           "at once; HUP reads the settings again.\n"
           "\n"
           "exit codes: 0 done, 1 failed, 2 usage or configuration, 4 refused "
           "by the cluster,\n"
           "6 the data directory is another's, 9 stored data is damaged\n";
}

/* The flag that the word names, up to its end or a '='. */
static flag_t find_flag(const char *word)
{
    size_t length = strcspn(word, "=");

    for (int flag = 0; flag < FLAG_COUNT; flag++) {
        if (strlen(FLAGS[flag].name) == length && strncmp(FLAGS[flag].name, word, length) == 0) {
            return (flag_t)flag;
        }
    }
    return FLAG_COUNT;
}

static psd_status_t refuse_word(const char *word, psd_error_t *err)
{
    const char *names[FLAG_COUNT + 1];
    const char *near = NULL;

    for (int flag = 0; flag < FLAG_COUNT; flag++) {
        names[flag] = FLAGS[flag].name;
    }
    names[FLAG_COUNT] = NULL;
    if (word[0] != '-') {
        return psd_error_set(err, PSD_USAGE,
                             "\"%s\" is not an option, and psd takes no other "
                             "words; see --help",
                             word);
    }
    near = ps_text_suggest(word, names);
    if (near != NULL) {
        return psd_error_set(err, PSD_USAGE, "unknown option %s; did you mean %s?", word, near);
    }
    return psd_error_set(err, PSD_USAGE, "unknown option %s; see --help", word);
}

static psd_status_t take_flag(ps_options_t *self, flag_t flag, const char *value, psd_error_t *err)
{
    switch (flag) {
    case FLAG_ACCEPT_LOSS:
        self->accept_loss = true;
        break;
    case FLAG_CHECK_CONFIG:
        self->check_config = true;
        break;
    case FLAG_CONFIG:
        self->config = value;
        break;
    case FLAG_DATA_DIR:
        self->data_dir = value;
        break;
    case FLAG_HELP:
        self->help = true;
        break;
    case FLAG_JOIN:
        if (self->n_join == PS_OPTIONS_LISTEN_MAX) {
            return psd_error_set(err, PSD_USAGE, "--join is given more than %d times",
                                 PS_OPTIONS_LISTEN_MAX);
        }
        self->join[self->n_join++] = value;
        break;
    case FLAG_LISTEN:
        if (self->n_listen == PS_OPTIONS_LISTEN_MAX) {
            return psd_error_set(err, PSD_USAGE, "--listen is given more than %d times",
                                 PS_OPTIONS_LISTEN_MAX);
        }
        self->listen[self->n_listen++] = value;
        break;
    case FLAG_NAME:
        self->name = value;
        break;
    case FLAG_PRINT_CONFIG:
        self->print_config = true;
        break;
    case FLAG_SHARDS:
        self->shards = value;
        break;
    case FLAG_VERSION:
        self->version = true;
        break;
    case FLAG_COUNT:
    default:
        break;
    }
    return PSD_OK;
}

psd_status_t ps_options_parse(int argc, char *const *argv, ps_options_t *ret_options,
                              psd_error_t *err)
{
    ps_options_t options = {0};

    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        flag_t flag = strcmp(word, "-h") == 0 ? FLAG_HELP : find_flag(word);
        const char *value = strchr(word, '=');
        psd_status_t rc = PSD_OK;

        if (flag == FLAG_COUNT) {
            return refuse_word(word, err);
        }
        if (FLAGS[flag].wants == NULL && value != NULL) {
            return psd_error_set(err, PSD_USAGE, "%s takes no value", FLAGS[flag].name);
        }
        if (FLAGS[flag].wants != NULL) {
            value = value != NULL ? value + 1 : argv[++i];
            if (value == NULL) {
                return psd_error_set(err, PSD_USAGE, "%s wants %s", FLAGS[flag].name,
                                     FLAGS[flag].wants);
            }
        }
        rc = take_flag(&options, flag, value, err);
        if (rc != PSD_OK) {
            return rc;
        }
    }
    *ret_options = options;
    return PSD_OK;
}

static psd_status_t set_flag(ps_config_t *config, ps_key_id_t id, flag_t flag, const char *text,
                             psd_error_t *err)
{
    const ps_origin_t origin = {.source = PS_SOURCE_FLAG, .flag = FLAGS[flag].name};

    return text == NULL ? PSD_OK : ps_config_set(config, id, text, &origin, err);
}

/* Several --listen, or --join, are the items of one list. */
static psd_status_t set_list(ps_config_t *config, ps_key_id_t id, flag_t flag,
                             const char *const *items, size_t n_items, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};

    for (size_t i = 0; i < n_items; i++) {
        if (!ps_buffer_print(&text, "%s%s", i == 0 ? "" : ",", items[i])) {
            return psd_error_set(err, PSD_NOMEM, "no memory for %s", FLAGS[flag].name);
        }
    }
    return set_flag(config, id, flag, n_items == 0 ? NULL : (const char *)text.data, err);
}

static psd_status_t take_flags(const ps_options_t *self, ps_config_t *config, psd_error_t *err)
{
    psd_status_t rc = set_flag(config, PS_KEY_data_dir, FLAG_DATA_DIR, self->data_dir, err);

    if (rc != PSD_OK) {
        return rc;
    }
    rc = set_flag(config, PS_KEY_node_name, FLAG_NAME, self->name, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = set_flag(config, PS_KEY_shards, FLAG_SHARDS, self->shards, err);
    if (rc != PSD_OK) {
        return rc;
    }
    rc = set_list(config, PS_KEY_cluster_join, FLAG_JOIN, self->join, self->n_join, err);
    if (rc != PSD_OK) {
        return rc;
    }
    return set_list(config, PS_KEY_listen_endpoints, FLAG_LISTEN, self->listen, self->n_listen,
                    err);
}

psd_status_t ps_options_config(const ps_options_t *self, ps_config_t *ret_config, psd_error_t *err)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    const char *file = self->config != NULL ? self->config : getenv("PSD_CONFIG");
    psd_status_t rc = ps_config_init(&config, err);

    if (rc == PSD_OK && file != NULL) {
        rc = ps_config_load(&config, file, err);
    }
    if (rc == PSD_OK) {
        rc = ps_config_take_env(&config, err);
    }
    if (rc == PSD_OK) {
        rc = take_flags(self, &config, err);
        config.accept_loss = self->accept_loss;
    }
    if (rc == PSD_OK) {
        rc = ps_config_check(&config, err);
    }
    if (rc != PSD_OK) {
        return rc;
    }
    *ret_config = config;
    config = (ps_config_t){0};
    return PSD_OK;
}
