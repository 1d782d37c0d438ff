/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lane is met: what lies at its path already, and servers that hand
 * over what they should not. */
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lane_kit.h"
#include "transport/lane/lane_meet.h"

static bool has_mode(const char *path, mode_t mode)
{
    struct stat is;

    return lstat(path, &is) == 0 && (is.st_mode & S_IFMT) == mode;
}

static bool listens(const char *path, psd_status_t status, psd_error_t *err)
{
    int fd = -1;

    CHECK_ERROR(ps_lane_listen_at(path, PS_PEERS_OWNER, &fd, err), status, "", err);
    CHECK((fd >= 0) == (status == PSD_OK));
    if (fd >= 0) {
        (void)close(fd); /* the socket's file stays: it is stale now */
    }
    return true;
}

/* A file stays, and so does a link to what is stale; a stale socket goes. */
static bool only_stale_sockets_are_removed(const char *dir, psd_error_t *err)
{
    char path[PATH_MAX + 16];
    char to[PATH_MAX + 16];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%s/s.lane", dir);
    (void)snprintf(to, sizeof to, "%s/to.lane", dir);
    file = fopen(path, "wb");
    CHECK(file != NULL && fclose(file) == 0);
    CHECK(listens(path, PSD_IO, err));
    CHECK(has_mode(path, S_IFREG));
    CHECK(unlink(path) == 0);
    CHECK(listens(path, PSD_OK, err));
    CHECK(has_mode(path, S_IFSOCK));
    CHECK(listens(path, PSD_OK, err));
    CHECK(rename(path, to) == 0 && symlink(to, path) == 0);
    CHECK(listens(path, PSD_IO, err));
    CHECK(has_mode(path, S_IFLNK) && has_mode(to, S_IFSOCK));
    return true;
}

/* ---- a server that hands over too much ---- */

#define FILES_MAX 4

typedef struct giver {
    int listener;
    size_t n_files;
} giver_t;

/* A greeting of the right form, and files beside it. */
static void *give(void *arg)
{
    const giver_t *self = arg;
    struct pollfd item = {.fd = self->listener, .events = POLLIN};
    char greeting[240] = "psdlane\0\1";
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(FILES_MAX * sizeof(int))] = {0};
    struct iovec bytes = {.iov_base = greeting, .iov_len = sizeof greeting};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = CMSG_SPACE(self->n_files * sizeof(int))};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int fd = -1;

    if (poll(&item, 1, PATIENCE_MS) != 1) {
        return NULL;
    }
    fd = ps_lane_accept(self->listener);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(self->n_files * sizeof(int));
    for (size_t i = 0; i < self->n_files; i++) {
        memcpy(CMSG_DATA(head) + i * sizeof(int), &fd, sizeof fd);
    }
    (void)sendmsg(fd, &message, MSG_NOSIGNAL);
    (void)close(fd);
    return NULL;
}

static size_t n_open_files(void)
{
    size_t n = 0;
    DIR *dir = opendir("/proc/self/fd");

    while (dir != NULL && readdir(dir) != NULL) {
        n++;
    }
    (void)closedir(dir);
    return n;
}

static bool files_too_many_are_closed(const char *dir, psd_error_t *err)
{
    char path[PATH_MAX + 16];
    giver_t giver = {.listener = -1};
    size_t n_before = 0;

    (void)snprintf(path, sizeof path, "%s/g.lane", dir);
    CHECK_OK(ps_lane_listen_at(path, PS_PEERS_OWNER, &giver.listener, err), err);
    n_before = n_open_files();
    for (giver.n_files = 1; giver.n_files <= FILES_MAX; giver.n_files++) {
        pthread_t thread;
        ps_lane_share_t *share = NULL;
        int fd = -1;

        CHECK(pthread_create(&thread, NULL, give, &giver) == 0);
        /* one file is looked at, and is no memory */
        CHECK_ERROR(ps_lane_meet(path, PATIENCE_MS, &fd, &share, err), PSD_PROTO,
                    giver.n_files == 1 ? "rings" : "no lane is offered there", err);
        CHECK(pthread_join(thread, NULL) == 0);
        CHECK(n_open_files() == n_before);
    }
    (void)close(giver.listener);
    return true;
}

int main(void)
{
    temp_dir_t dir;
    psd_error_t *err = psd_error_new();
    bool ok = temp_dir_make(&dir) && err != NULL;

    ok = ok && only_stale_sockets_are_removed(dir.path, err) &&
         files_too_many_are_closed(dir.path, err);
    temp_dir_drop(&dir);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
