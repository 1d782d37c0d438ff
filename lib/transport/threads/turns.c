/* SPDX-License-Identifier: Apache-2.0 */
/* The page, its file, and the places in it. */
#include "transport/threads/turns.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "transport/threads/thread.h"
#include "transport/threads/turns_proc.h"

#define BESIDE PS_TURNS_FILE ".new"
#define MEMORY_NAME                                          \
    "psd-threads" /* of the page, where the file is a disk's \
                   */

struct ps_turns {
    ps_turns_head_t *page; /* mapped */
    size_t size;
    int fd;                /* of what is mapped; open, so that it is found */
    pthread_mutex_t mutex; /* of entering and leaving */
};

/* ---- the page ---- */

static psd_status_t say_io(const char *dir, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "cannot write %s/%s: %s", dir, PS_TURNS_FILE,
                         strerror(errno));
}

static bool is_in_memory(int dir_fd)
{
    struct statfs is;

    return fstatfs(dir_fd, &is) == 0 && (is.f_type == TMPFS_MAGIC || is.f_type == RAMFS_MAGIC);
}

/* Where the page is: a file of the directory, or, when that is a disk's, memory
 * that only the process has. */
static int open_page(int dir_fd, int file_fd, size_t size)
{
    int fd = -1;

    if (is_in_memory(dir_fd)) {
        fd = fcntl(file_fd, F_DUPFD_CLOEXEC, 0);
        errno = fd < 0 ? errno : posix_fallocate(fd, 0, (off_t)size);
        if (fd >= 0 && errno != 0) {
            (void)close(fd);
            return -1;
        }
        return fd;
    }
    fd = (int)syscall(SYS_memfd_create, MEMORY_NAME, 1U /* MFD_CLOEXEC */);
    if (fd >= 0 && ftruncate(fd, (off_t)size) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static bool map_page(ps_turns_t *self, int dir_fd, int file_fd)
{
    void *page = MAP_FAILED;

    self->fd = open_page(dir_fd, file_fd, self->size);
    if (self->fd >= 0) {
        page = mmap(NULL, self->size, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd, 0);
    }
    if (page == MAP_FAILED) {
        return false;
    }
    self->page = page;
    return true;
}

/* The head is written, and the file gets its name. */
static bool publish(ps_turns_t *self, int dir_fd, int file_fd, uint32_t n_places)
{
    ps_turns_head_t head = {.magic = PS_TURNS_MAGIC,
                            .version = PS_TURNS_VERSION,
                            .n_places = n_places,
                            .pid = getpid(),
                            .started = ps_turns_started(getpid()),
                            .fd = -1};

    *self->page = head;
    if (!is_in_memory(dir_fd)) {
        head.fd = self->fd;
        head.n_places = 0;
        if (pwrite(file_fd, &head, sizeof head, 0) != (ssize_t)sizeof head) {
            return false;
        }
    }
    return renameat(dir_fd, BESIDE, dir_fd, PS_TURNS_FILE) == 0;
}

static psd_status_t make(ps_turns_t *self, const char *dir, mode_t mode, uint32_t n_places,
                         psd_error_t *err)
{
    int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int file_fd = -1;
    bool done = false;

    if (dir_fd < 0) {
        return say_io(dir, err);
    }
    (void)unlinkat(dir_fd, BESIDE, 0); /* a life that was killed left it */
    file_fd = openat(dir_fd, BESIDE, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    done = file_fd >= 0 && fchmod(file_fd, mode) == 0 && map_page(self, dir_fd, file_fd) &&
           publish(self, dir_fd, file_fd, n_places);
    if (!done) {
        (void)say_io(dir, err);
        (void)unlinkat(dir_fd, BESIDE, 0);
    }
    if (file_fd >= 0) {
        (void)close(file_fd);
    }
    (void)close(dir_fd);
    return done ? PSD_OK : PSD_IO;
}

psd_status_t ps_turns_open(const char *dir, mode_t mode, uint32_t n_places, ps_turns_t **ret_turns,
                           psd_error_t *err)
{
    PSD_AUTO(ps_turns_close) ps_turns_t *self = ps_alloc(1, sizeof *self);
    psd_status_t rc = PSD_OK;

    if (self == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s/%s", dir, PS_TURNS_FILE);
    }
    self->fd = -1;
    self->size = sizeof(ps_turns_head_t) + n_places * sizeof(ps_turn_t);
    (void)pthread_mutex_init(&self->mutex, NULL); /* cannot fail on Linux */
    rc = make(self, dir, mode, n_places, err);
    if (rc == PSD_OK) {
        *ret_turns = self;
        self = NULL;
    }
    return rc;
}

void ps_turns_close(ps_turns_t **self_p)
{
    ps_turns_t *self = *self_p;

    if (self == NULL) {
        return;
    }
    if (self->page != NULL) {
        (void)munmap(self->page, self->size);
    }
    if (self->fd >= 0) {
        (void)close(self->fd);
    }
    (void)pthread_mutex_destroy(&self->mutex);
    ps_free(self);
    *self_p = NULL;
}

void ps_turns_listen(ps_turns_t *self, const char *endpoint)
{
    char *listens = self->page->listens;
    size_t size = strlen(listens);

    if (endpoint[0] != '\0' && size + strlen(endpoint) + 2 <= PS_TURNS_LISTENS_SIZE) {
        (void)snprintf(listens + size, PS_TURNS_LISTENS_SIZE - size, "%s%s", size == 0 ? "" : " ",
                       endpoint);
    }
}

const ps_turns_head_t *ps_turns_page(const ps_turns_t *self)
{
    return self->page;
}

/* ---- places ---- */

static void set_name(ps_turn_t *turn, const char *name)
{
    char text[PS_TURN_NAME_SIZE] = "";

    (void)snprintf(text, sizeof text, "%s", name);
    for (size_t i = 0; i < PS_TURN_NAME_SIZE / 8; i++) {
        uint64_t part = 0;

        memcpy(&part, text + 8 * i, sizeof part);
        atomic_store_explicit(&turn->name[i], part, memory_order_relaxed);
    }
}

static ps_turn_t *take_place(ps_turns_t *self, const char *name, pid_t tid, bool probed)
{
    void *after_head = self->page + 1; /* at a multiple of 64 */
    ps_turn_t *places = after_head;
    ps_turn_t *found = NULL;

    (void)pthread_mutex_lock(&self->mutex);
    for (uint32_t i = 0; found == NULL && i < self->page->n_places; i++) {
        if (atomic_load_explicit(&places[i].tid, memory_order_relaxed) == 0) {
            found = &places[i];
        }
    }
    if (found != NULL) {
        atomic_store_explicit(&found->probed, probed, memory_order_relaxed);
        set_name(found, name);
        ps_turn_works(found);
        atomic_store_explicit(&found->tid, tid, memory_order_release);
    }
    (void)pthread_mutex_unlock(&self->mutex);
    return found;
}

ps_turn_t *ps_turns_enter(ps_turns_t *self, const char *name)
{
    pid_t tid = (pid_t)syscall(SYS_gettid);

    if (tid != getpid()) {
        char mine[PS_TURN_NAME_SIZE];

        (void)snprintf(mine, sizeof mine, "%s", name);
        (void)pthread_setname_np(pthread_self(), mine);
    }
    return self == NULL ? NULL : take_place(self, name, tid, false);
}

ps_turn_t *ps_turns_add(ps_turns_t *self, const char *name, pid_t tid)
{
    return take_place(self, name, tid, false);
}

ps_turn_t *ps_turns_add_probed(ps_turns_t *self, const char *name, pid_t tid)
{
    char path[64];
    int fd = -1;

    (void)snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        (void)!write(fd, name, strlen(name)); /* only a name */
        (void)close(fd);
    }
    return take_place(self, name, tid, true);
}

void ps_turn_leave(ps_turn_t **turn_p)
{
    if (*turn_p != NULL) {
        atomic_store_explicit(&(*turn_p)->tid, 0, memory_order_release);
        *turn_p = NULL;
    }
}

void ps_turn_wait(ps_turn_t *turn, pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    const struct timespec end = ps_cond_end_in(PS_TURN_WAIT_MS);

    ps_turn_waits(turn);
    (void)pthread_cond_timedwait(condition, mutex, &end);
}
