/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets with a file, its mode, and the groups of users that connect. */
#include "transport/lane/door.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"

#define BACKLOG 4096     /* a whole job may come at once; the system has a limit of its own */
#define NAME_SIZE 64     /* of a user or group in a text */
#define RECORD_SIZE 4096 /* of the system's about one */
#define RECORD_MAX ((size_t)1 << 20)
#define GROUPS_MAX 65536 /* of one process, by Linux */

mode_t ps_peers_mode(ps_door_peers_t peers)
{
    switch (peers) {
    case PS_PEERS_ANY:
        return 0666;
    case PS_PEERS_GROUP:
        return 0660;
    case PS_PEERS_OWNER:
    default:
        return 0600;
    }
}

/* ---- names --------------------------------------------------------------- */

/* The system's name of the group, or its number. */
static void group_name(gid_t gid, char ret[NAME_SIZE])
{
    int code = ERANGE;

    (void)snprintf(ret, NAME_SIZE, "%lu", (unsigned long)gid);
    for (size_t size = RECORD_SIZE; code == ERANGE && size <= RECORD_MAX; size *= 4) {
        struct group group;
        struct group *found = NULL;
        char *record = ps_alloc(size, 1); /* all members are in it */

        code = record == NULL ? ENOMEM : getgrgid_r(gid, &group, record, size, &found);
        if (found != NULL) {
            (void)snprintf(ret, NAME_SIZE, "%.*s", NAME_SIZE - 1, found->gr_name);
        }
        ps_free(record);
    }
}

static void user_name(uid_t uid, char ret[NAME_SIZE])
{
    struct passwd user;
    struct passwd *found = NULL;
    char record[RECORD_SIZE];

    if (getpwuid_r(uid, &user, record, sizeof record, &found) == 0 && found != NULL) {
        (void)snprintf(ret, NAME_SIZE, "%.*s", NAME_SIZE - 1, found->pw_name);
    } else {
        (void)snprintf(ret, NAME_SIZE, "%lu", (unsigned long)uid);
    }
}

/* ---- listening ----------------------------------------------------------- */

static void close_fd(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
    *fd = -1;
}

static psd_status_t failed(psd_error_t *err)
{
    int code = errno;
    char text[128] = "";

    return psd_error_set(err, PSD_IO, "%s", strerror_r(code, text, sizeof text));
}

static bool is_refused(const struct sockaddr_un *at, int type)
{
    PSD_AUTO(close_fd)
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    return fd >= 0 && connect(fd, (const struct sockaddr *)at, sizeof *at) != 0 &&
           errno == ECONNREFUSED;
}

/* Removes the stale file of a listener that is gone. A file that is no socket
 * stays, and so does a socket of another type: a connection to it fails with
 * another error. */
static void remove_stale(const struct sockaddr_un *at, int type)
{
    struct stat is;

    if (lstat(at->sun_path, &is) == 0 && S_ISSOCK(is.st_mode) && is_refused(at, type)) {
        (void)unlink(at->sun_path);
    }
}

/* The directory may give its files another group than ours. A service may not
 * be allowed to call chown, so that it is only called where it is needed. */
static bool set_mode(const char *path, ps_door_peers_t peers)
{
    struct stat is;

    return lstat(path, &is) == 0 &&
           (peers != PS_PEERS_GROUP || is.st_gid == getegid() ||
            lchown(path, (uid_t)-1, getegid()) == 0) &&
           chmod(path, ps_peers_mode(peers)) == 0;
}

psd_status_t ps_door_listen(const char *path, int type, ps_door_peers_t peers, int *ret_fd,
                            psd_error_t *err)
{
    PSD_AUTO(close_fd) int fd = -1;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof at.sun_path) {
        return psd_error_set(err, PSD_INVALID, "a path of %zu bytes; allowed: 1 .. %zu", length,
                             sizeof at.sun_path - 1);
    }
    memcpy(at.sun_path, path, length + 1);
    remove_stale(&at, type);
    fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) != 0) {
        return failed(err);
    }
    /* No client can connect before it listens. */
    if (!set_mode(path, peers) || listen(fd, BACKLOG) != 0) {
        psd_status_t rc = failed(err);

        (void)unlink(path);
        return rc;
    }
    *ret_fd = fd;
    fd = -1;
    return PSD_OK;
}

/* ---- users that connect -------------------------------------------------- */

/* One of the groups that the peer had when it connected. */
static bool has_group(int fd, gid_t group)
{
    PSD_AUTO(ps_free_at) gid_t *groups = NULL;
    socklen_t size = 0;

    /* Asked without room, it says how much it wants. */
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &size) == 0 || errno != ERANGE ||
        size > GROUPS_MAX * sizeof *groups) {
        return false; /* it has none, or the system does not tell */
    }
    groups = ps_alloc_raw(size / sizeof *groups, sizeof *groups);
    if (groups == NULL || getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) != 0) {
        return false;
    }
    for (size_t i = 0; i < size / sizeof *groups; i++) {
        if (groups[i] == group) {
            return true;
        }
    }
    return false;
}

bool ps_door_admits(int fd, ps_door_peers_t peers, psd_error_t *err)
{
    struct ucred peer = {.uid = (uid_t)-1};
    socklen_t size = sizeof peer;
    char group[NAME_SIZE + 24] = "";
    psd_status_t rc = PSD_DENIED;

    if (peers == PS_PEERS_ANY) {
        return true;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && size == sizeof peer &&
        (peer.uid == geteuid() || peer.uid == 0 ||
         (peers == PS_PEERS_GROUP && (peer.gid == getegid() || has_group(fd, getegid()))))) {
        return true;
    }
    if (peers == PS_PEERS_GROUP) {
        char name[NAME_SIZE];

        group_name(getegid(), name);
        (void)snprintf(group, sizeof group, "group \"%s\", ", name);
    }
    rc = psd_error_set(err, PSD_DENIED, "lane for user %ld; allowed: %suser %ld and root",
                       (long)peer.uid, group, (long)geteuid());
    (void)rc;
    return false;
}

/* ---- users that are refused ---------------------------------------------- */

/* The file itself, or else the first directory above it that can be read: it
 * denies the access. */
static bool find_closed(const char *path, char at[PS_DOOR_TEXT], struct stat *is)
{
    (void)snprintf(at, PS_DOOR_TEXT, "%s", path);
    while (stat(at, is) != 0) {
        char *slash = strrchr(at, '/');

        if (errno != EACCES || slash == NULL || slash == at) {
            return false;
        }
        *slash = '\0';
    }
    return true;
}

static void tell_denied(const char *path, char ret[PS_DOOR_TEXT])
{
    char at[PS_DOOR_TEXT];
    char owner[NAME_SIZE];
    char group[NAME_SIZE];
    char user[NAME_SIZE];
    struct stat is;
    mode_t wanted = 0;

    (void)snprintf(ret, PS_DOOR_TEXT, "Permission denied");
    if (strlen(path) >= sizeof at || !find_closed(path, at, &is)) {
        return;
    }
    wanted = S_ISDIR(is.st_mode) ? S_IXGRP : S_IWGRP;
    user_name(geteuid(), user);
    if ((is.st_mode & wanted) != 0) {
        group_name(is.st_gid, group);
        (void)snprintf(ret, PS_DOOR_TEXT,
                       "user %.32s is not in group \"%.32s\" (usermod -aG "
                       "%.32s %.32s, then log in again)",
                       user, group, group, user);
        return;
    }
    user_name(is.st_uid, owner);
    (void)snprintf(ret, PS_DOOR_TEXT, "Permission denied: it is open to user \"%.32s\" alone",
                   owner);
}

const char *ps_door_reason(const char *path, int code, char ret[PS_DOOR_TEXT])
{
    char text[PS_DOOR_TEXT];

    if (code == EACCES) {
        tell_denied(path, ret);
    } else {
        (void)snprintf(ret, PS_DOOR_TEXT, "%s", strerror_r(code, text, sizeof text));
    }
    return ret;
}
