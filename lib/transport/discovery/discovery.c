/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what psds of this host say of themselves. */
#include "transport/discovery/discovery.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/discovery/own_address.h"
#include "transport/environment/environment.h"
#include "transport/sockets/reach.h"

#define DEFAULT_ENDPOINT "tcp://127.0.0.1:7171"
#define SYSTEM_DIR "/run/psd"
#define ANNOUNCEMENT "endpoints.json"
#define SUFFIX ".json"
#define TCP "tcp://"
#define IPC "ipc://"
#define MARK '#'
#define TEXT_BYTES_MAX 65536 /* 256 shards' addresses fit */
#define HOST_SIZE 256
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

/* ---- where ---- */

bool ps_discovery_dir(char ret_dir[PATH_MAX])
{
    char state[PATH_MAX];
    char host[HOST_SIZE] = "";
    int n = 0;

    if (ps_environment_state_dir(state, sizeof state) && gethostname(host, sizeof host - 1) == 0) {
        n = snprintf(ret_dir, PATH_MAX, "%s/run/%s", state, host);
    }
    return n > 0 && n < PATH_MAX;
}

/* A namespace of this process; 0: the system does not say. */
static uint64_t namespace_of(const char *kind)
{
    char path[64];
    struct stat is;

    (void)snprintf(path, sizeof path, "/proc/self/ns/%s", kind);
    return stat(path, &is) == 0 ? is.st_ino : 0;
}

bool ps_discovery_print(const ps_discovery_t *self, ps_buffer_t *ret_name, ps_buffer_t *ret_text)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = ps_doc_new();

    return doc != NULL && ps_doc_set_text(doc, "control", self->control) &&
           ps_doc_set_text(doc, "ipc", self->ipc) &&
           ps_doc_set_text(doc, "listens", self->listens) &&
           ps_doc_set_text(doc, "key_file", self->key_file) &&
           ps_doc_set_id(doc, "cluster", &self->cluster) &&
           ps_doc_set_u64(doc, "net", namespace_of("net")) &&
           ps_doc_set_u64(doc, "mount", namespace_of("mnt")) && ps_doc_print(doc, ret_text) &&
           ps_buffer_print(ret_text, "\n") &&
           ps_buffer_print(ret_name, "%s" SUFFIX, self->listens + strlen(TCP));
}

/* ---- one file ---- */

static void close_at(const int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
}

/* Whose file is to be believed: with is_shared the owner's of the directory, too. */
static bool is_trusted(const char *dir, int fd, bool is_shared)
{
    struct stat place;
    struct stat is;

    return fstat(fd, &is) == 0 && stat(dir, &place) == 0 && S_ISREG(is.st_mode) &&
           (is.st_mode & OTHERS_WRITE) == 0 &&
           (is.st_uid == geteuid() || is.st_uid == 0 || (is_shared && is.st_uid == place.st_uid));
}

/* false: there is none for us. */
static bool read_file(const char *dir, const char *name, bool is_shared, ps_doc_t **ret_doc)
{
    char path[PATH_MAX];
    uint8_t text[TEXT_BYTES_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    bool fits = n > 0 && n < PATH_MAX;
    PSD_AUTO(close_at)
    int fd = fits ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    ssize_t size = 0;

    if (fd < 0 || !is_trusted(dir, fd, is_shared)) {
        return false;
    }
    size = read(fd, text, sizeof text);
    return size > 0 &&
           ps_doc_parse((ps_bytes_t){.data = text, .size = (size_t)size}, ret_doc, NULL) == PSD_OK;
}

/* The text of a key, when it begins as it must; else "". */
static void copy_text(const ps_doc_t *doc, const char *key, const char *prefix, char *ret,
                      size_t size)
{
    const char *text = NULL;
    bool has = ps_doc_get_text(doc, key, size - 1, &text, NULL) == PSD_OK &&
               strncmp(text, prefix, strlen(prefix)) == 0;

    (void)snprintf(ret, size, "%s", has ? text : "");
}

/* What was written in another namespace means another port, or another socket. */
static bool is_of_here(const ps_doc_t *doc, const char *key, const char *kind)
{
    uint64_t here = namespace_of(kind);
    uint64_t there = 0;

    return ps_doc_get_u64_or(doc, key, 0, UINT64_MAX, here, &there, NULL) == PSD_OK &&
           there == here;
}

/* false: there is no such file, or it is of no use. */
static bool read_one(const char *dir, const char *name, bool is_shared, ps_discovery_t *ret)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;

    *ret = (ps_discovery_t){.control = ""};
    if (!read_file(dir, name, is_shared, &doc)) {
        return false;
    }
    copy_text(doc, "control", TCP, ret->control, sizeof ret->control);
    copy_text(doc, "ipc", IPC, ret->ipc, sizeof ret->ipc);
    copy_text(doc, "listens", TCP, ret->listens, sizeof ret->listens);
    if (!is_shared) {
        copy_text(doc, "key_file", "/", ret->key_file, sizeof ret->key_file);
    }
    return ps_doc_get_id(doc, "cluster", &ret->cluster, NULL) == PSD_OK &&
           is_of_here(doc, "net", "net") && is_of_here(doc, "mount", "mnt") &&
           (ret->control[0] != '\0' || ret->ipc[0] != '\0');
}

/* ---- all of a user ---- */

typedef bool visit_t(void *self, const char *path, const ps_discovery_t *one);

/* Each file that counts here, until a visit ends it. */
static void visit_own(visit_t *visit, void *self)
{
    char dir[PATH_MAX];
    char path[PATH_MAX];
    DIR *list = ps_discovery_dir(dir) ? opendir(dir) : NULL;
    struct dirent *at = NULL;
    bool goes_on = true;

    while (goes_on && list != NULL && (at = readdir(list)) != NULL) {
        size_t length = strlen(at->d_name);
        ps_discovery_t one;

        if (length > strlen(SUFFIX) && strcmp(at->d_name + length - strlen(SUFFIX), SUFFIX) == 0 &&
            read_one(dir, at->d_name, false, &one) &&
            snprintf(path, sizeof path, "%s/%s", dir, at->d_name) < PATH_MAX) {
            goes_on = visit(self, path, &one);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

typedef struct sweep {
    const char *ipc;
    bool is_start;
} sweep_t;

static bool sweep_one(void *self, const char *path, const ps_discovery_t *one)
{
    const sweep_t *sweep = self;
    int code = strcmp(one->ipc, sweep->ipc) == 0 ? ENOENT : 0;

    if (code == 0 && sweep->is_start) {
        code = ps_reach_ipc(one->ipc);
    }
    if (code == ENOENT || code == ECONNREFUSED) {
        (void)unlink(path);
    }
    return true;
}

void ps_discovery_sweep(const char *ipc, bool is_start)
{
    visit_own(sweep_one, &(sweep_t){.ipc = ipc, .is_start = is_start});
}

/* ---- who is asked for ---- */

/* The runtime_dir that this program knows of. */
static const char *runtime_dir(void)
{
    const char *dir = getenv("PSD_RUNTIME_DIR");

    return dir == NULL || dir[0] == '\0' ? SYSTEM_DIR : dir;
}

/* "" when there is none. */
static const char *port_of(const char *endpoint)
{
    const char *colon = strncmp(endpoint, TCP, strlen(TCP)) == 0 ? strrchr(endpoint, ':') : NULL;

    return colon == NULL || colon < endpoint + strlen(TCP) ? "" : colon + 1;
}

static bool is_port(const char *endpoint, const char *listens)
{
    const char *port = port_of(endpoint);
    size_t length = strcspn(port, "#");

    return length > 0 && strlen(port_of(listens)) == length &&
           strncmp(port, port_of(listens), length) == 0;
}

/* The one that whoever connects to that endpoint comes to. */
static bool is_at(const ps_discovery_t *self, const char *endpoint)
{
    const char *key = strchr(self->control, MARK);
    const char *wanted = strchr(endpoint, MARK);

    return key != NULL && is_port(endpoint, self->listens) &&
           (wanted == NULL || strcmp(wanted, key) == 0) && ps_reach_ipc(self->ipc) == 0 &&
           ps_own_address_leads_to(endpoint, self->listens);
}

typedef struct search {
    const char *endpoint;
    ps_discovery_t *found; /* its cluster's key file is looked for when it is there */
    bool has_found;
} search_t;

static bool find_one(void *self, const char *path, const ps_discovery_t *one)
{
    search_t *search = self;

    (void)path;
    if (is_at(one, search->endpoint)) {
        *search->found = *one;
        search->has_found = true;
    }
    return !search->has_found;
}

/* The first node of that cluster has its admin's key. */
static bool find_key(void *self, const char *path, const ps_discovery_t *one)
{
    ps_discovery_t *found = self;

    (void)path;
    if (one->key_file[0] != '\0' && ps_id_equal(&one->cluster, &found->cluster)) {
        memcpy(found->key_file, one->key_file, sizeof found->key_file);
    }
    return found->key_file[0] == '\0';
}

bool ps_discovery_find(const char *endpoint, ps_discovery_t *ret)
{
    search_t search = {.endpoint = endpoint, .found = ret};

    if (port_of(endpoint)[0] == '\0') {
        return false;
    }
    visit_own(find_one, &search);
    if (!search.has_found) {
        return read_one(runtime_dir(), ANNOUNCEMENT, true, ret) && is_at(ret, endpoint);
    }
    if (ret->key_file[0] == '\0') {
        visit_own(find_key, ret);
    }
    return true;
}

/* One that this user runs in the default data directory. */
static bool find_own(ps_discovery_t *ret)
{
    char dir[PATH_MAX];

    return ps_environment_state_dir(dir, sizeof dir) && read_one(dir, ANNOUNCEMENT, false, ret) &&
           ps_reach_ipc(ret->ipc) == 0;
}

void ps_discovery_nearest(char ret_endpoint[PS_ENDPOINT_MAX + 1])
{
    bool is_named = strcmp(runtime_dir(), SYSTEM_DIR) != 0;
    ps_discovery_t one;
    const char *found = DEFAULT_ENDPOINT;

    if ((!is_named && find_own(&one)) || read_one(runtime_dir(), ANNOUNCEMENT, true, &one)) {
        bool is_open = one.control[0] == '\0' || ps_reach_ipc(one.ipc) == 0;

        found = one.ipc[0] != '\0' && is_open ? one.ipc : one.control;
    }
    (void)snprintf(ret_endpoint, PS_ENDPOINT_MAX + 1, "%s", found);
}
