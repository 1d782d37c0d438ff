/* SPDX-License-Identifier: Apache-2.0 */
/* Flags, and the order in which the sources of settings apply. */
#include "daemon/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "daemon/config_file.h"

static const ps_opt_t OPTIONS[] = {
    {.name = "accept-loss"},
    {.name = "check-config"},
    {.name = "config", .value = "FILE", .kind = PS_OPT_TEXT},
    {.name = "data-dir", .value = "DIR", .kind = PS_OPT_TEXT},
    {.name = "force-new-registry"},
    {.name = "help", .letter = 'h'},
    {.name = "join", .value = "URL", .kind = PS_OPT_TEXT, .many = true},
    {.name = "listen", .value = "URL", .kind = PS_OPT_TEXT, .many = true},
    {.name = "name", .value = "NAME", .kind = PS_OPT_TEXT},
    {.name = "print-config"},
    {.name = "rebuild-registry"},
    {.name = "shards", .value = "N", .kind = PS_OPT_TEXT},
    {.name = "token-file", .value = "FILE", .kind = PS_OPT_TEXT},
    {.name = "version"},
    {.name = "yes"},
    PS_OPT_END,
};

/* Options that set a key of the configuration. */
static const struct {
    const char *flag;
    ps_key_id_t id;
} KEYS[] = {
    {"--data-dir", PS_KEY_data_dir},       {"--name", PS_KEY_node_name},
    {"--shards", PS_KEY_shards},           {"--join", PS_KEY_cluster_join},
    {"--listen", PS_KEY_listen_endpoints}, {"--token-file", PS_KEY_security_token_file},
};

const char *ps_options_help(void)
{
    return "examples:\n"
           "  psd                                   one node, no configuration\n"
           "  psd --listen tcp://127.0.0.1:0 --data-dir ./psd-data --shards 2\n"
           "  psd --config psd.yaml                 with settings from a file\n"
           "  psd --config psd.yaml --check-config  is it valid?\n"
           "  psd --print-config                    every value, and who set it\n"
           "\n"
           "usage: psd [OPTION]...\n"
           "Runs a node of the parameter server in the foreground; logs to stderr.\n"
           "\n"
           "  --config FILE    settings from a YAML file (PSD_CONFIG)\n"
           "  --data-dir DIR   data directory: registry and partition logs (PSD_DATA_DIR)\n"
           "  --listen URL     tcp://HOST:PORT or ipc://PATH; may be repeated "
           "(PSD_LISTEN_ENDPOINTS)\n"
           "  --shards N       threads that hold partitions (PSD_SHARDS)\n"
           "  --join URL       join the cluster that the node at URL belongs to; may be\n"
           "                   repeated: psd uses the first that answers (PSD_CLUSTER_JOIN)\n"
           "  --token-file FILE\n"
           "                   join with the token in FILE, or - for standard input, which "
           "\"pscli\n"
           "                   node invite\" has printed; for security.level: encrypt\n"
           "                   (PSD_SECURITY_TOKEN_FILE)\n"
           "  --name NAME      of this node; default: the host's, or the next free one after it\n"
           "                   (PSD_NODE_NAME)\n"
           "  --accept-loss    this once: partitions whose files are damaged, and which have no\n"
           "                   other copy, start empty\n"
           "  --force-new-registry\n"
           "                   this once: the registry goes on from what this node has of it,\n"
           "                   without its other members, which are lost\n"
           "  --rebuild-registry\n"
           "                   this once: all registries are lost; make one here, which takes\n"
           "                   back what the nodes have (pscli cluster rebuild --from-nodes)\n"
           "  --yes            with these two: also when other nodes with a registry answer\n"
           "  --check-config   check the settings and stop\n"
           "  --print-config   print every setting and where it came from\n"
           "  --version        print the version and stop\n"
           "  --help           print this and stop\n"
           "\n"
           "A flag wins over the environment (PSD_ and the key: PSD_LOG_LEVEL=debug), which wins\n"
           "over the file, which wins over the default. Signals: TERM stops cleanly, a second one\n"
           "at once; HUP reloads the settings.\n"
           "\n"
           "exit codes: 0 done, 1 failed, 2 usage or configuration, 4 refused by the cluster,\n"
           "6 data directory of another psd, 9 stored data is damaged\n";
}

psd_status_t ps_options_parse(int argc, char *const *argv, ps_opts_t *ret_options, psd_error_t *err)
{
    *ret_options = (ps_opts_t){.lists = {OPTIONS}};
    return ps_opts_read(ret_options, argc, argv, NULL, NULL, err);
}

static psd_status_t take_flags(const ps_opts_t *self, ps_config_t *config, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    for (size_t i = 0; rc == PSD_OK && i < sizeof KEYS / sizeof KEYS[0]; i++) {
        const ps_origin_t origin = {.source = PS_SOURCE_FLAG, .flag = KEYS[i].flag};
        const char *text = ps_opts_text(self, KEYS[i].flag + strlen("--"));

        rc = text == NULL ? PSD_OK : ps_config_set(config, KEYS[i].id, text, &origin, err);
    }
    return rc;
}

static psd_status_t take_recovery(const ps_opts_t *self, ps_config_t *config, psd_error_t *err)
{
    bool forces = ps_opts_on(self, "force-new-registry");
    bool rebuilds = ps_opts_on(self, "rebuild-registry");

    if (forces && rebuilds) {
        return psd_error_set(err, PSD_USAGE,
                             "--force-new-registry goes on from a registry, --rebuild-registry "
                             "makes one where there is none: give one of them");
    }
    config->recover = forces ? PS_RECOVER_FORCE : rebuilds ? PS_RECOVER_REBUILD : PS_RECOVER_NOT;
    return PSD_OK;
}

psd_status_t ps_options_config(const ps_opts_t *self, ps_config_t *ret_config, psd_error_t *err)
{
    PSD_AUTO(ps_config_done) ps_config_t config = {0};
    const char *flag = ps_opts_text(self, "config");
    const char *file = flag != NULL ? flag : getenv("PSD_CONFIG");
    psd_status_t rc = ps_config_init(&config, err);

    if (rc == PSD_OK && file != NULL) {
        rc = ps_config_load(&config, file, err);
    }
    if (rc == PSD_OK) {
        rc = ps_config_take_env(&config, err);
    }
    if (rc == PSD_OK) {
        rc = take_flags(self, &config, err);
        config.accept_loss = ps_opts_on(self, "accept-loss");
        config.recover_anyway = ps_opts_on(self, "yes");
    }
    if (rc == PSD_OK) {
        rc = take_recovery(self, &config, err);
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
