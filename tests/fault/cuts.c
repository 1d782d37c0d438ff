/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts, and the history. */
#include "cuts.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "support/check.h"
#include "support/zmtp.h"

#define ANSWER_S 20 /* for what is sent again after a cut */
#define LINE_SIZE 4096
#define ASK_MS 60000

static void log_path(const cluster_t *cluster, unsigned node, char ret[4200])
{
    (void)snprintf(ret, 4200, "%.4000s/%s/log", cluster->dir.path, cluster->nodes[node].name);
}

static long log_size(const cluster_t *cluster, unsigned node)
{
    char path[4200];
    FILE *file = NULL;
    long size = -1;

    log_path(cluster, node, path);
    file = fopen(path, "re");
    if (file != NULL && fseek(file, 0, SEEK_END) == 0) {
        size = ftell(file);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return size;
}

static bool ask_for_table(const cut_t *self)
{
    char question[200];

    (void)snprintf(question, sizeof question,
                   "{\"v\":1,\"id\":%" PRIu64 ",\"session\":1,\"op\":\"table_create\","
                   "\"spec\":{\"name\":\"cut%u\",\"rows\":10}}",
                   (UINT64_C(1) << 40) + self->number, self->number);
    return zmtp_send(self->fd, 0, question, strlen(question));
}

bool cut_begin(cut_t *self, cluster_t *cluster, unsigned node, unsigned number)
{
    const struct timeval patience = {.tv_sec = ANSWER_S};
    bool in_up = number % 3 == 2;
    bool out_up = number % 3 == 1;

    *self = (cut_t){.node = node,
                    .number = number,
                    .fd = zmtp_connect(cluster->nodes[node].control),
                    .from = log_size(cluster, node)};
    CHECK(self->fd >= 0 && self->from >= 0);
    CHECK(setsockopt(self->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0);
    CHECK(cluster_set_link(cluster, node, in_up, out_up));
    return ask_for_table(self);
}

bool cut_end(cut_t *self, cluster_t *cluster)
{
    char reply[4096];
    size_t size = 0;

    self->to = log_size(cluster, self->node);
    CHECK(cluster_set_link(cluster, self->node, true, true));
    if (zmtp_receive(self->fd, reply, sizeof reply, &size)) {
        self->was_asked = true;
        self->is_acked = strstr(reply, "\"status\":\"OK\"") != NULL;
    }
    (void)close(self->fd);
    return self->to >= 0;
}

/* ---- the end ---- */

/* The change that a line of the log tells of. false: it tells of none. */
static bool read_change(const char *line, uint64_t *ret_epoch, char ret_text[LINE_SIZE])
{
    const char *epoch = strstr(line, " epoch=");
    const char *text = strstr(line, " text=");
    size_t n = 0;

    if (epoch == NULL || text == NULL || strstr(line, " work_changed ") != NULL) {
        return false;
    }
    *ret_epoch = strtoull(epoch + strlen(" epoch="), NULL, 10);
    (void)snprintf(ret_text, LINE_SIZE, "%s", text + strlen(" text="));
    n = strcspn(ret_text, "\n");
    ret_text[n] = '\0';
    if (n >= 2 && ret_text[0] == '"' && ret_text[n - 1] == '"') {
        memmove(ret_text, ret_text + 1, n - 2);
        ret_text[n - 2] = '\0';
    }
    return true;
}

static bool has_event(const json_t *events, uint64_t epoch, const char *text)
{
    const json_t *event = NULL;
    size_t i = 0;

    json_array_foreach(events, i, event)
    {
        const char *found = json_string_value(json_object_get(event, "text"));

        if (found != NULL && strcmp(found, text) == 0 &&
            (uint64_t)json_integer_value(json_object_get(event, "epoch")) == epoch) {
            return true;
        }
    }
    return false;
}

static bool check_lines(const cut_t *self, const cluster_t *cluster, const json_t *events)
{
    char path[4200];
    char line[LINE_SIZE];
    char text[LINE_SIZE];
    unsigned n = 0;
    FILE *file = NULL;
    bool good = true;

    log_path(cluster, self->node, path);
    file = fopen(path, "re");
    CHECK(file != NULL && fseek(file, self->from, SEEK_SET) == 0);
    while (good && ftell(file) < self->to && fgets(line, sizeof line, file) != NULL) {
        uint64_t epoch = 0;

        if (!read_change(line, &epoch, text)) {
            continue;
        }
        n++;
        good = has_event(events, epoch, text);
        if (!good) {
            (void)fprintf(stderr, "round %u: n%u had this alone: %s", self->number, self->node,
                          line);
        }
    }
    (void)fclose(file);
    (void)fprintf(stderr, "round %u: n%u, %u changes around the cut, all shared\n", self->number,
                  self->node, n);
    return good;
}

bool cut_check(const cut_t *self, const cluster_t *cluster, psd_client_t *client, psd_error_t *err)
{
    char *reply = NULL;
    char name[32];
    json_t *doc = NULL;
    bool good = false;

    CHECK_OK(
        psd_request(client, "{\"op\":\"cluster_events\",\"limit\":10000}", ASK_MS, &reply, err),
        err);
    doc = json_loads(reply, 0, NULL);
    psd_free(reply);
    good = doc != NULL && check_lines(self, cluster, json_object_get(doc, "events"));
    json_decref(doc);
    if (good && self->is_acked) {
        psd_table_t *table = NULL;

        (void)snprintf(name, sizeof name, "cut%u", self->number);
        CHECK_OK(psd_table_open(client, name, &table, err), err);
        psd_table_close(&table);
    }
    return good;
}
