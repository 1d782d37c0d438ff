/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lane is met: what lies at its path already. */
#include <sys/stat.h>
#include <unistd.h>

#include "lane_kit.h"
#include "transport/lane_meet.h"

static bool
has_mode(const char *path, mode_t mode)
{
    struct stat is;

    return lstat(path, &is) == 0 && (is.st_mode & S_IFMT) == mode;
}

static bool
listens(const char *path, psd_status_t status, psd_error_t *err)
{
    int fd = -1;

    CHECK_ERROR(ps_lane_listen_at(path, PS_LANE_OWNER, &fd, err), status, "",
                err);
    CHECK((fd >= 0) == (status == PSD_OK));
    if (fd >= 0) {
        (void)close(fd); /* the socket's file stays: it is stale now */
    }
    return true;
}

/* A file stays, and so does a link to what is stale; a stale socket goes. */
static bool
only_stale_sockets_are_removed(const char *dir, psd_error_t *err)
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

int
main(void)
{
    temp_dir_t dir;
    psd_error_t *err = psd_error_new();
    bool ok = temp_dir_make(&dir) && err != NULL;

    ok = ok && only_stale_sockets_are_removed(dir.path, err);
    temp_dir_drop(&dir);
    psd_error_destroy(&err);
    return ok ? 0 : 1;
}
