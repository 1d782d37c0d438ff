/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what psds of this host say of themselves. */
#include "transport/discovery/discovery.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/environment/environment.h"
#include "transport/sockets/reach.h"
#include "wire/messages/doc.h"

#define DEFAULT_ENDPOINT "tcp://127.0.0.1:7171"
#define SYSTEM_DIR "/run/psd"
#define ANNOUNCEMENT "endpoints.json"
#define SUFFIX ".json"
#define NET "/proc/self/ns/net"
#define TCP "tcp://"
#define IPC "ipc://"
#define TEXT_BYTES_MAX 65536 /* 256 shards' addresses fit */
#define HOST_SIZE 256
#define PORT_MAX 65535
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

uint32_t ps_discovery_port(const char *endpoint)
{
    const char *mark = strchr(endpoint, '#');
    size_t length = mark == NULL ? strlen(endpoint) : (size_t)(mark - endpoint);
    const char *colon = strncmp(endpoint, TCP, strlen(TCP)) == 0 && length > strlen(TCP)
                            ? memrchr(endpoint + strlen(TCP), ':', length - strlen(TCP))
                            : NULL;
    char *end = NULL;
    unsigned long port = colon == NULL ? 0 : strtoul(colon + 1, &end, 10);

    return port <= PORT_MAX && end == endpoint + length ? (uint32_t)port : 0;
}

/* ---- where ---- */

/* The directory that the system has made for this user. */
static bool has_user_dir(char ret_dir[PATH_MAX])
{
    struct stat is;

    (void)snprintf(ret_dir, PATH_MAX, "/run/user/%" PRIu32, (uint32_t)geteuid());
    return stat(ret_dir, &is) == 0 && S_ISDIR(is.st_mode) && is.st_uid == geteuid();
}

bool ps_discovery_dir(char ret_dir[PATH_MAX])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char base[PATH_MAX];
    char host[HOST_SIZE] = "";
    int n = 0;

    if (runtime != NULL && runtime[0] == '/') {
        n = snprintf(ret_dir, PATH_MAX, "%s/psd", runtime);
    } else if (has_user_dir(base)) {
        n = snprintf(ret_dir, PATH_MAX, "%s/psd", base);
    } else if (ps_environment_state_dir(base, sizeof base) &&
               gethostname(host, sizeof host - 1) == 0) {
        n = snprintf(ret_dir, PATH_MAX, "%s/run/%s", base, host);
    }
    return n > 0 && n < PATH_MAX;
}

void ps_discovery_name(uint32_t port, char ret_name[PS_DISCOVERY_NAME_SIZE])
{
    (void)snprintf(ret_name, PS_DISCOVERY_NAME_SIZE, "%" PRIu32 SUFFIX, port);
}

uint64_t ps_discovery_net(void)
{
    struct stat is;

    return stat(NET, &is) == 0 ? is.st_ino : 0;
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
    PSD_AUTO(close_at)
    int fd =
        n < 0 || n >= PATH_MAX ? -1 : open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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

/* false: there is no such file, or it is of no use. */
static bool read_one(const char *dir, const char *name, bool is_shared, ps_discovery_t *ret)
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    uint64_t here = ps_discovery_net();
    uint64_t net = here;

    if (!read_file(dir, name, is_shared, &doc)) {
        return false;
    }
    copy_text(doc, "control", TCP, ret->control, sizeof ret->control);
    copy_text(doc, "ipc", IPC, ret->ipc, sizeof ret->ipc);
    copy_text(doc, "key_file", "/", ret->key_file, sizeof ret->key_file);
    return ps_doc_get_u64_or(doc, "net", 0, UINT64_MAX, here, &net, NULL) == PSD_OK &&
           net == here && (ret->control[0] != '\0' || ret->ipc[0] != '\0');
}

void ps_discovery_withdraw(uint32_t port, const char *ipc)
{
    char dir[PATH_MAX];
    char name[PS_DISCOVERY_NAME_SIZE];
    char path[PATH_MAX];
    ps_discovery_t one;

    ps_discovery_name(port, name);
    if (ps_discovery_dir(dir) && read_one(dir, name, false, &one) && strcmp(one.ipc, ipc) == 0 &&
        snprintf(path, sizeof path, "%s/%s", dir, name) < PATH_MAX) {
        (void)unlink(path);
    }
}

void ps_discovery_sweep(const char *dir, const char *ipc)
{
    DIR *list = opendir(dir);
    struct dirent *at = NULL;

    while (list != NULL && (at = readdir(list)) != NULL) {
        size_t length = strlen(at->d_name);
        ps_discovery_t one;

        if (length > strlen(SUFFIX) && strcmp(at->d_name + length - strlen(SUFFIX), SUFFIX) == 0 &&
            read_one(dir, at->d_name, false, &one) &&
            (strcmp(one.ipc, ipc) == 0 || !ps_reach_ipc_listens(one.ipc))) {
            (void)unlinkat(dirfd(list), at->d_name, 0);
        }
    }
    if (list != NULL) {
        (void)closedir(list);
    }
}

/* ---- who is asked for ---- */

/* The runtime_dir that this program knows of. */
static const char *runtime_dir(void)
{
    const char *dir = getenv("PSD_RUNTIME_DIR");

    return dir == NULL || dir[0] == '\0' ? SYSTEM_DIR : dir;
}

static bool is_at(const ps_discovery_t *self, uint32_t port)
{
    return strchr(self->control, '#') != NULL && ps_discovery_port(self->control) == port &&
           ps_reach_ipc_listens(self->ipc);
}

bool ps_discovery_find(uint32_t port, ps_discovery_t *ret)
{
    char dir[PATH_MAX];
    char name[PS_DISCOVERY_NAME_SIZE];

    ps_discovery_name(port, name);
    return port != 0 &&
           ((ps_discovery_dir(dir) && read_one(dir, name, false, ret) && is_at(ret, port)) ||
            (read_one(runtime_dir(), ANNOUNCEMENT, true, ret) && is_at(ret, port)));
}

/* One that this user runs in the default data directory. */
static bool find_own(ps_discovery_t *ret)
{
    char dir[PATH_MAX];

    return ps_environment_state_dir(dir, sizeof dir) && read_one(dir, ANNOUNCEMENT, false, ret) &&
           ps_reach_ipc_listens(ret->ipc);
}

void ps_discovery_nearest(char ret_endpoint[PS_ENDPOINT_MAX + 1])
{
    bool is_named = strcmp(runtime_dir(), SYSTEM_DIR) != 0;
    ps_discovery_t one;
    const char *found = DEFAULT_ENDPOINT;

    if ((!is_named && find_own(&one)) || read_one(runtime_dir(), ANNOUNCEMENT, true, &one)) {
        bool is_open = one.control[0] == '\0' || ps_reach_ipc_listens(one.ipc);

        found = one.ipc[0] != '\0' && is_open ? one.ipc : one.control;
    }
    (void)snprintf(ret_endpoint, PS_ENDPOINT_MAX + 1, "%s", found);
}
