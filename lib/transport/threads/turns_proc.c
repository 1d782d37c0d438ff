/* SPDX-License-Identifier: Apache-2.0 */
/* Reads /proc. */
#include "transport/threads/turns_proc.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PATH_SIZE 128
#define PROGRAM "psd\n"
#define MEMORY_LINK "/memfd:psd-threads (deleted)"
#define FILE_END "/threads"

/* A small file, as text. false: it cannot be read. */
static bool read_text(const char *path, char *ret_text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

    if (fd >= 0) {
        (void)close(fd);
    }
    ret_text[n < 0 ? 0 : n] = '\0';
    return n > 0;
}

/* The text after the name, which may have any characters; NULL: nothing. */
static const char *behind_name(const char *stat)
{
    const char *at = strrchr(stat, ')');

    return at == NULL || at[1] != ' ' ? NULL : at + 2;
}

uint64_t ps_turns_started(pid_t pid)
{
    char path[PATH_SIZE];
    char text[1024];
    const char *at = NULL;
    uint64_t started = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    if (read_text(path, text, sizeof text)) {
        at = behind_name(text);
    }
    /* The state is the 3rd field, the beginning the 22nd. */
    if (at == NULL || sscanf(at,
                             "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                             "%*s %*s %*s %*s %" SCNu64,
                             &started) != 1) {
        return 0;
    }
    return started;
}

char ps_turns_state(pid_t pid, pid_t tid)
{
    char path[PATH_SIZE];
    char text[1024];
    const char *at = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
    if (read_text(path, text, sizeof text)) {
        at = behind_name(text);
    }
    return at == NULL ? '?' : at[0];
}

static bool is_in_our_network(const char *pid)
{
    char path[PATH_SIZE];
    char theirs[PATH_SIZE];
    char ours[PATH_SIZE];
    ssize_t n = 0;
    ssize_t m = 0;

    (void)snprintf(path, sizeof path, "/proc/%.20s/ns/net", pid);
    n = readlink(path, theirs, sizeof theirs);
    m = readlink("/proc/self/ns/net", ours, sizeof ours);
    return n > 0 && n == m && memcmp(theirs, ours, (size_t)n) == 0;
}

static bool may_be_page(const char *path)
{
    char link[PATH_MAX];
    ssize_t n = readlink(path, link, sizeof link - 1);
    size_t size = n < 0 ? 0 : (size_t)n;

    link[size] = '\0';
    return strcmp(link, MEMORY_LINK) == 0 ||
           (size >= strlen(FILE_END) && strcmp(link + size - strlen(FILE_END), FILE_END) == 0);
}

static bool each_file(const char *pid, bool (*visit)(void *context, const char *path),
                      void *context)
{
    char path[PATH_SIZE];
    DIR *files = NULL;
    const struct dirent *entry = NULL;
    bool is_over = false;

    (void)snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    files = opendir(path);
    while (files != NULL && !is_over && (entry = readdir(files)) != NULL) {
        (void)snprintf(path, sizeof path, "/proc/%.20s/fd/%.20s", pid, entry->d_name);
        is_over = may_be_page(path) && visit(context, path);
    }
    if (files != NULL) {
        (void)closedir(files);
    }
    return is_over;
}

bool ps_turns_each(bool (*visit)(void *context, const char *path), void *context)
{
    DIR *all = opendir("/proc");
    const struct dirent *entry = NULL;
    bool is_over = false;

    while (all != NULL && !is_over && (entry = readdir(all)) != NULL) {
        char path[PATH_SIZE];
        char name[32];

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') {
            continue;
        }
        (void)snprintf(path, sizeof path, "/proc/%.20s/comm", entry->d_name);
        is_over = read_text(path, name, sizeof name) && strcmp(name, PROGRAM) == 0 &&
                  is_in_our_network(entry->d_name) && each_file(entry->d_name, visit, context);
    }
    if (all != NULL) {
        (void)closedir(all);
    }
    return is_over;
}

/* An address is one of this host's when a socket can have it. */
static bool can_bind(int family, const void *address, socklen_t size)
{
    int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool can = fd >= 0 && bind(fd, address, size) == 0;

    if (fd >= 0) {
        (void)close(fd);
    }
    return can;
}

bool ps_turns_is_here(const char *host)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    char name[256] = "";

    if (strcmp(host, "localhost") == 0 || strcmp(host, "*") == 0) {
        return true;
    }
    if (inet_pton(AF_INET, host, &four.sin_addr) == 1) {
        return can_bind(AF_INET, &four, sizeof four);
    }
    if (inet_pton(AF_INET6, host, &six.sin6_addr) == 1) {
        return can_bind(AF_INET6, &six, sizeof six);
    }
    return gethostname(name, sizeof name - 1) == 0 && strcmp(host, name) == 0;
}
