/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of Kubernetes and YARN. */
#include "cli/launch/manifest.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/alloc.h"

#define PORT 7171
#define NAME_SIZE 54 /* of Kubernetes' 63, with what the names of parts add */

/* The value of one of the workers' variables; "" when there is none. */
static const char *value_of(const ps_launch_t *launch, const char *name)
{
    const size_t size = strlen(name);

    for (size_t i = 0; i < launch->variables.n; i++) {
        if (strncmp(launch->variables.items[i], name, size) == 0 &&
            launch->variables.items[i][size] == '=') {
            return launch->variables.items[i] + size + 1;
        }
    }
    return "";
}

/* The job's name as Kubernetes and YARN allow it: lower-case letters, digits and dashes, and a
 * letter at the beginning. */
static void make_name(const ps_launch_t *launch, char ret_name[NAME_SIZE])
{
    const char *job = value_of(launch, "PSD_JOB");
    size_t n = 0;

    (void)snprintf(ret_name, NAME_SIZE, "%s%s", isalpha((unsigned char)job[0]) ? "" : "job-", job);
    for (; ret_name[n] != '\0'; n++) {
        unsigned char c = (unsigned char)ret_name[n];

        ret_name[n] = isalnum(c) ? (char)tolower(c) : '-';
    }
    while (n > 0 && ret_name[n - 1] == '-') {
        n--;
    }
    ret_name[n] = '\0';
}

/* YAML takes a string of JSON as it is. */
static bool put_string(ps_buffer_t *to, const char *text)
{
    json_t *value = json_string(text);
    char *dump = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY);
    bool ok = dump != NULL && ps_buffer_print(to, "%s", dump);

    json_decref(value);
    free(dump);
    return ok;
}

static bool put_variable(ps_buffer_t *to, const char *name, size_t size, const char *value)
{
    return ps_buffer_print(to, "            - name: %.*s\n              value: ", (int)size,
                           name) &&
           put_string(to, value) && ps_buffer_print(to, "\n");
}

/* Those of every worker; the endpoint is that of the nodes in the manifest, if it has any. */
static bool put_variables(ps_buffer_t *to, const ps_manifest_t *self, const char *endpoint)
{
    const ps_words_t *variables = &self->launch->variables;
    bool ok = true;

    for (size_t i = 0; ok && i < variables->n; i++) {
        const char *item = variables->items[i];
        size_t size = strcspn(item, "=");
        bool is_endpoint = size == 12 && strncmp(item, "PSD_ENDPOINT", size) == 0;

        ok = put_variable(to, item, size, is_endpoint ? endpoint : item + size + 1);
    }
    return ok;
}

static bool put_command(ps_buffer_t *to, const ps_launch_t *launch)
{
    bool ok = ps_buffer_print(to, "          command: [pscli, worker, exec, \"--\"");

    for (size_t i = 0; ok && launch->argv[i] != NULL; i++) {
        ok = ps_buffer_print(to, ", ") && put_string(to, launch->argv[i]);
    }
    return ok && ps_buffer_print(to, "]\n");
}

static bool put_service(ps_buffer_t *to, const char *name)
{
    return ps_buffer_print(to,
                           "apiVersion: v1\n"
                           "kind: Service\n"
                           "metadata:\n"
                           "  name: %s-psd\n"
                           "spec:\n"
                           "  clusterIP: None\n"
                           "  publishNotReadyAddresses: true\n"
                           "  selector:\n"
                           "    app: %s-psd\n"
                           "  ports:\n"
                           "    - name: control\n"
                           "      port: %d\n"
                           "---\n",
                           name, name, PORT);
}

static bool put_set(ps_buffer_t *to, const ps_manifest_t *self, const char *name)
{
    return ps_buffer_print(to,
                           "apiVersion: apps/v1\n"
                           "kind: StatefulSet\n"
                           "metadata:\n"
                           "  name: %s-psd\n"
                           "spec:\n"
                           "  serviceName: %s-psd\n"
                           "  replicas: %" PRIu32 "\n"
                           "  podManagementPolicy: Parallel\n"
                           "  selector:\n"
                           "    matchLabels:\n"
                           "      app: %s-psd\n"
                           "  template:\n"
                           "    metadata:\n"
                           "      labels:\n"
                           "        app: %s-psd\n"
                           "    spec:\n"
                           "      containers:\n"
                           "        - name: psd\n"
                           "          image: ",
                           name, name, self->n_servers, name, name) &&
           put_string(to, self->image == NULL ? "psd" : self->image);
}

/* Pod 0 is the registry. Names of pods resolve late, and not in other clusters: nodes
 * advertise their pods' addresses. */
static bool put_node(ps_buffer_t *to, const char *name)
{
    return ps_buffer_print(to,
                           "\n"
                           "          command:\n"
                           "            - sh\n"
                           "            - -c\n"
                           "            - >-\n"
                           "              case $HOSTNAME in\n"
                           "              *-0) exec psd ;;\n"
                           "              *) exec psd --join tcp://%s-psd-0.%s-psd:%d ;;\n"
                           "              esac\n"
                           "          env:\n"
                           "            - name: POD_IP\n"
                           "              valueFrom:\n"
                           "                fieldRef:\n"
                           "                  fieldPath: status.podIP\n"
                           "            - name: PSD_LISTEN_ENDPOINTS\n"
                           "              value: tcp://0.0.0.0:%d\n"
                           "            - name: PSD_LISTEN_ADVERTISE\n"
                           "              value: $(POD_IP)\n"
                           "            - name: PSD_SECURITY_ALLOW_PLAINTEXT\n"
                           "              value: \"true\"\n"
                           "            - name: PSD_DATA_DIR\n"
                           "              value: /var/lib/psd\n"
                           "          volumeMounts:\n"
                           "            - name: data\n"
                           "              mountPath: /var/lib/psd\n",
                           name, name, PORT, PORT);
}

static bool put_claim(ps_buffer_t *to)
{
    return ps_buffer_print(to, "  volumeClaimTemplates:\n"
                               "    - metadata:\n"
                               "        name: data\n"
                               "      spec:\n"
                               "        accessModes: [ReadWriteOnce]\n"
                               "        resources:\n"
                               "          requests:\n"
                               "            storage: 10Gi\n"
                               "---\n");
}

psd_status_t ps_manifest_kubernetes(const ps_manifest_t *self, ps_buffer_t *to, psd_error_t *err)
{
    const ps_launch_t *launch = self->launch;
    char name[NAME_SIZE] = "";
    char endpoint[3 * NAME_SIZE];
    bool ok = true;

    make_name(launch, name);
    (void)snprintf(endpoint, sizeof endpoint, "tcp://%s-psd-0.%s-psd:%d", name, name, PORT);
    if (self->n_servers > 0) {
        ok =
            put_service(to, name) && put_set(to, self, name) && put_node(to, name) && put_claim(to);
    }
    ok = ok &&
         ps_buffer_print(to,
                         "apiVersion: batch/v1\n"
                         "kind: Job\n"
                         "metadata:\n"
                         "  name: %s\n"
                         "spec:\n"
                         "  completionMode: Indexed\n"
                         "  completions: %" PRIu32 "\n"
                         "  parallelism: %" PRIu32 "\n"
                         "  backoffLimit: 0\n"
                         "  template:\n"
                         "    spec:\n"
                         "      restartPolicy: Never\n"
                         "      containers:\n"
                         "        - name: worker\n"
                         "          image: ",
                         name, launch->n, launch->n) &&
         put_string(to, self->image == NULL ? "psd" : self->image) && ps_buffer_print(to, "\n") &&
         put_command(to, launch) && ps_buffer_print(to, "          env:\n") &&
         put_variables(to, self, self->n_servers > 0 ? endpoint : value_of(launch, "PSD_ENDPOINT"));
    return ok ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a manifest");
}

/* ---- YARN ---- */

static json_t *component(const ps_manifest_t *self, const char *name, uint32_t n,
                         const char *command, json_t *variables)
{
    return json_pack("{s:s,s:i,s:s,s:s,s:{s:s,s:s},s:{s:i,s:s},s:{s:o}}", "name", name,
                     "number_of_containers", (int)n, "launch_command", command, "restart_policy",
                     "NEVER", "artifact", "id", self->image == NULL ? "psd" : self->image, "type",
                     "DOCKER", "resource", "cpus", 1, "memory", "2048", "configuration", "env",
                     variables);
}

static json_t *worker_variables(const ps_manifest_t *self, const char *endpoint)
{
    json_t *list = json_object();

    for (size_t i = 0; list != NULL && i < self->launch->variables.n; i++) {
        const char *item = self->launch->variables.items[i];
        char name[128];

        (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(item, "="), item);
        (void)json_object_set_new(
            list, name,
            json_string(strcmp(name, "PSD_ENDPOINT") == 0 ? endpoint : item + strlen(name) + 1));
    }
    /* YARN numbers the containers of a component from 0. */
    (void)json_object_set_new(list, "PSD_WORKER", json_string("${COMPONENT_ID}"));
    return list;
}

static json_t *node_variables(void)
{
    return json_pack("{s:s,s:s,s:s}", "PSD_LISTEN_ENDPOINTS", "tcp://0.0.0.0:7171",
                     "PSD_SECURITY_ALLOW_PLAINTEXT", "true", "PSD_LISTEN_ADVERTISE",
                     "${COMPONENT_INSTANCE_NAME}.${SERVICE_NAME}.${USER}.${DOMAIN}");
}

psd_status_t ps_manifest_yarn(const ps_manifest_t *self, ps_buffer_t *to, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t command = {0};
    char name[NAME_SIZE] = "";
    char first[3 * NAME_SIZE];
    char join[4 * NAME_SIZE];
    json_t *doc = NULL;
    char *text = NULL;
    json_t *list = json_array();
    bool ok = ps_buffer_print(&command, "pscli worker exec -- ") &&
              ps_quote_all(&command, self->launch->argv);

    make_name(self->launch, name);
    (void)snprintf(first, sizeof first, "tcp://registry-0.%s.${USER}.${DOMAIN}:%d", name, PORT);
    (void)snprintf(join, sizeof join, "psd --join %s", first);
    if (self->n_servers > 0) {
        (void)json_array_append_new(list, component(self, "registry", 1, "psd", node_variables()));
    }
    if (self->n_servers > 1) {
        (void)json_array_append_new(
            list, component(self, "psd", self->n_servers - 1, join, node_variables()));
    }
    ok = ok &&
         json_array_append_new(
             list,
             component(self, "worker", self->launch->n, (const char *)command.data,
                       worker_variables(self, self->n_servers > 0
                                                  ? first
                                                  : value_of(self->launch, "PSD_ENDPOINT")))) == 0;
    doc = json_pack("{s:s,s:s,s:s,s:o}", "name", name, "version", "1", "description",
                    "a job of psd", "components", list);
    text = doc == NULL ? NULL : json_dumps(doc, JSON_INDENT(2));
    ok = ok && text != NULL && ps_buffer_print(to, "%s\n", text);
    json_decref(doc);
    free(text);
    return ok ? PSD_OK : psd_error_set(err, PSD_NOMEM, "no memory for a manifest");
}
