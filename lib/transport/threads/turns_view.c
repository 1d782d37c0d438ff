/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and reads the page of another process. It is copied, not mapped: when a
 * file is truncated, a reader that has it mapped would crash. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/threads/turns_look.h"
#include "transport/threads/turns_proc.h"

#define PATH_SIZE 4096
#define HOST_SIZE 256
#define TCP "tcp://"
#define IPC "ipc://"

/* ---- one page ---- */

static psd_status_t check_head(const char *path, const ps_turns_head_t *head, psd_error_t *err)
{
    if (head->magic != PS_TURNS_MAGIC) {
        return psd_error_set(err, PSD_DAMAGED, "%s is not a page of threads", path);
    }
    if (head->version != PS_TURNS_VERSION) {
        return psd_error_set(err, PSD_VERSION, "%s has version %u; this program reads %d", path,
                             head->version, PS_TURNS_VERSION);
    }
    if (head->n_places > PS_TURNS_PLACES_MAX) {
        return psd_error_set(err, PSD_DAMAGED, "%s: %u places; allowed: 0..%d", path,
                             head->n_places, PS_TURNS_PLACES_MAX);
    }
    if (head->pid <= 0 || head->pid > INT32_MAX || head->started == 0 ||
        ps_turns_started((pid_t)head->pid) != head->started) {
        return psd_error_set(err, PSD_CLOSED, "process %lld, which wrote %s, is gone",
                             (long long)head->pid, path);
    }
    return PSD_OK;
}

static psd_status_t read_head(const char *path, int fd, ps_turns_head_t *ret_head, psd_error_t *err)
{
    ssize_t n = fd < 0 ? -1 : pread(fd, ret_head, sizeof *ret_head, 0);

    if (n < 0) {
        return psd_error_set(err, PSD_IO, "cannot read %s: %s", path, strerror(errno));
    }
    if ((size_t)n != sizeof *ret_head) {
        return psd_error_set(err, PSD_DAMAGED, "%s is not a page of threads", path);
    }
    ret_head->listens[PS_TURNS_LISTENS_SIZE - 1] = '\0';
    return check_head(path, ret_head, err);
}

/* The page itself may be memory that only the process has. */
static psd_status_t open_it(const char *path, int *ret_fd, ps_turns_head_t *ret_head,
                            psd_error_t *err)
{
    bool is_link = strncmp(path, "/proc/", strlen("/proc/")) == 0;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (is_link ? 0 : O_NOFOLLOW));
    psd_status_t rc = read_head(path, fd, ret_head, err);

    if (rc == PSD_OK && ret_head->fd >= 0) {
        char memory[64];

        (void)snprintf(memory, sizeof memory, "/proc/%d/fd/%d", (pid_t)ret_head->pid, ret_head->fd);
        (void)close(fd);
        fd = open(memory, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        rc = read_head(memory, fd, ret_head, err);
    }
    if (rc != PSD_OK && fd >= 0) {
        (void)close(fd);
    }
    *ret_fd = rc == PSD_OK ? fd : -1;
    return rc;
}

/* Memory for the copy, aligned as places are. */
static ps_turns_head_t *map_copy(size_t size)
{
    void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return copy == MAP_FAILED ? NULL : copy;
}

psd_status_t ps_turns_view_open(const char *path, ps_turns_view_t *ret_view, psd_error_t *err)
{
    ps_turns_view_t view = {.fd = -1};
    ps_turns_head_t head;
    psd_status_t rc = open_it(path, &view.fd, &head, err);

    if (rc != PSD_OK) {
        return rc;
    }
    view.size = sizeof head + head.n_places * sizeof(ps_turn_t);
    view.page = map_copy(view.size);
    if (view.page == NULL) {
        rc = psd_error_set(err, PSD_NOMEM, "no memory for %s", path);
    } else if (!ps_turns_view_read(&view)) {
        rc = psd_error_set(err, PSD_DAMAGED, "%s is shorter than it says", path);
    }
    if (rc != PSD_OK) {
        ps_turns_view_done(&view);
        return rc;
    }
    *ret_view = view;
    return PSD_OK;
}

bool ps_turns_view_read(ps_turns_view_t *self)
{
    uint32_t n_places = (uint32_t)((self->size - sizeof *self->page) / sizeof(ps_turn_t));
    ssize_t n = pread(self->fd, self->page, self->size, 0);

    self->page->n_places = n_places; /* even if the file was changed */
    self->page->listens[PS_TURNS_LISTENS_SIZE - 1] = '\0';
    return n == (ssize_t)self->size;
}

void ps_turns_view_done(ps_turns_view_t *self)
{
    if (self->page != NULL) {
        (void)munmap(self->page, self->size);
    }
    if (self->fd > 0) {
        (void)close(self->fd);
    }
    *self = (ps_turns_view_t){0};
}

/* ---- whose it is ---- */

/* "tcp://HOST:PORT": HOST without brackets, and the port's text. */
static bool split_tcp(const char *endpoint, char ret_host[HOST_SIZE], const char **ret_port)
{
    const char *host = endpoint + strlen(TCP);
    const char *colon = strrchr(endpoint, ':');
    size_t size = 0;

    if (strncmp(endpoint, TCP, strlen(TCP)) != 0 || colon < host) {
        return false;
    }
    size = (size_t)(colon - host);
    if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
        host++;
        size -= 2;
    }
    if (size >= HOST_SIZE) {
        return false;
    }
    memcpy(ret_host, host, size);
    ret_host[size] = '\0';
    *ret_port = colon + 1;
    return true;
}

static bool is_same(const char *asked, const char *listens)
{
    char host[HOST_SIZE];
    char bound[HOST_SIZE];
    const char *port = NULL;
    const char *bound_port = NULL;

    return strcmp(asked, listens) == 0 ||
           (split_tcp(asked, host, &port) && split_tcp(listens, bound, &bound_port) &&
            strcspn(port, "#") == strlen(bound_port) && /* a key may follow */
            strncmp(port, bound_port, strlen(bound_port)) == 0 && ps_turns_is_here(host));
}

static bool listens_on(const ps_turns_view_t *view, const char *endpoint)
{
    char list[PS_TURNS_LISTENS_SIZE];
    char *rest = list;
    const char *one = NULL;

    memcpy(list, view->page->listens, sizeof list);
    while ((one = strsep(&rest, " ")) != NULL) {
        if (one[0] != '\0' && is_same(endpoint, one)) {
            return true;
        }
    }
    return false;
}

typedef struct wanted {
    const char *endpoint;
    ps_turns_view_t *view;
} wanted_t;

static bool try_page(void *context, const char *path)
{
    const wanted_t *wanted = context;
    ps_turns_view_t view = {0};

    if (ps_turns_view_open(path, &view, NULL) != PSD_OK) {
        return false;
    }
    if (!listens_on(&view, wanted->endpoint)) {
        ps_turns_view_done(&view);
        return false;
    }
    *wanted->view = view;
    return true;
}

psd_status_t ps_turns_view_find(const char *endpoint, const char *const *dirs,
                                ps_turns_view_t *ret_view, psd_error_t *err)
{
    wanted_t wanted = {.endpoint = endpoint, .view = ret_view};
    char path[PATH_SIZE];
    const char *slash = strrchr(endpoint, '/');

    if (strncmp(endpoint, IPC "/", strlen(IPC "/")) == 0) {
        psd_status_t rc = PSD_OK;

        (void)snprintf(path, sizeof path, "%.*s/%s", (int)(slash - endpoint - (long)strlen(IPC)),
                       endpoint + strlen(IPC), PS_TURNS_FILE);
        rc = ps_turns_view_open(path, ret_view, err);
        if (rc == PSD_OK || rc == PSD_CLOSED) {
            return rc;
        }
    }
    for (size_t i = 0; dirs[i] != NULL; i++) {
        (void)snprintf(path, sizeof path, "%s/%s", dirs[i], PS_TURNS_FILE);
        if (try_page(&wanted, path)) {
            return PSD_OK;
        }
    }
    return ps_turns_each(try_page, &wanted)
               ? PSD_OK
               : psd_error_set(err, PSD_NO_NODE,
                               "no psd on this host that can be inspected listens on %s", endpoint);
}
