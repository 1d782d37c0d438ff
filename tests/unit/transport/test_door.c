/* SPDX-License-Identifier: Apache-2.0 */
/* Doors have the mode that they shall have, and say whom they let in. */
#include "transport/lane/door.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_dir.h"

static temp_dir_t dir;
static char path[PATH_MAX];
static psd_error_t *err;

static void set_up(void)
{
    err = psd_error_new();
    cr_assert(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%.3000s/a.ipc", dir.path);
}

static void tear_down(void)
{
    psd_error_destroy(&err);
    temp_dir_drop(&dir);
}

TestSuite(door, .init = set_up, .fini = tear_down);

static mode_t mode_of(const char *file)
{
    struct stat is;

    cr_assert_eq(lstat(file, &is), 0);
    return is.st_mode;
}

Test(door, its_mode_is_no_matter_of_the_umask)
{
    static const struct {
        ps_door_peers_t peers;
        mode_t mode;
    } CASES[] = {{PS_PEERS_OWNER, 0600}, {PS_PEERS_GROUP, 0660}, {PS_PEERS_ANY, 0666}};
    static const mode_t MASKS[] = {0000, 0022, 0077, 0777};

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        for (size_t k = 0; k < sizeof MASKS / sizeof *MASKS; k++) {
            int fd = -1;
            mode_t before = umask(MASKS[k]);
            psd_status_t rc = ps_door_listen(path, SOCK_STREAM, CASES[i].peers, &fd, err);

            (void)umask(before);
            cr_assert_eq(rc, PSD_OK, "%s", psd_error_text(err));
            cr_expect_eq(mode_of(path), S_IFSOCK | CASES[i].mode);
            (void)close(fd);
            (void)unlink(path);
        }
    }
}

Test(door, its_group_is_ours_in_a_directory_of_another_one)
{
    int fd = -1;
    struct stat is;

    if (geteuid() == 0) {
        cr_assert_eq(chown(dir.path, (uid_t)-1, 54321), 0);
    }
    cr_assert_eq(chmod(dir.path, 02770), 0);
    cr_assert_eq(ps_door_listen(path, SOCK_STREAM, PS_PEERS_GROUP, &fd, err), PSD_OK, "%s",
                 psd_error_text(err));
    cr_assert_eq(stat(path, &is), 0);
    cr_expect_eq(is.st_gid, getegid());
    (void)close(fd);
}

Test(door, one_who_is_gone_is_replaced_and_nobody_else)
{
    int fd = -1;
    int other = -1;
    FILE *file = NULL;

    cr_assert_eq(ps_door_listen(path, SOCK_STREAM, PS_PEERS_OWNER, &fd, err), PSD_OK);
    cr_assert_eq(ps_door_listen(path, SOCK_STREAM, PS_PEERS_OWNER, &other, err), PSD_IO);
    cr_expect_str_eq(psd_error_text(err), "Address already in use");
    psd_error_clear(err);
    (void)close(fd);
    cr_assert_eq(ps_door_listen(path, SOCK_STREAM, PS_PEERS_OWNER, &fd, err), PSD_OK, "%s",
                 psd_error_text(err));
    (void)close(fd);
    cr_assert_eq(unlink(path), 0);
    file = fopen(path, "we");
    cr_assert(file != NULL && fclose(file) == 0);
    cr_assert_eq(ps_door_listen(path, SOCK_STREAM, PS_PEERS_OWNER, &fd, err), PSD_IO);
    cr_expect_eq(mode_of(path) & S_IFMT, S_IFREG);
}

Test(door, a_path_that_no_socket_can_have_is_refused)
{
    char name[200];
    int fd = -1;

    memset(name, 'n', sizeof name);
    name[108] = '\0';
    cr_assert_eq(ps_door_listen(name, SOCK_STREAM, PS_PEERS_OWNER, &fd, err), PSD_INVALID);
    cr_expect_str_eq(psd_error_text(err), "a path of 108 bytes; allowed: 1 .. 107");
}

Test(door, we_come_in_ourselves)
{
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    cr_expect(ps_door_admits(ends[0], PS_PEERS_OWNER, err));
    cr_expect(ps_door_admits(ends[0], PS_PEERS_GROUP, err));
    cr_expect(ps_door_admits(ends[0], PS_PEERS_ANY, err));
    (void)close(ends[0]);
    (void)close(ends[1]);
}

/* The texts are made from the file, so that root sees them too. */
Test(door, who_is_refused_is_told_the_group)
{
    char why[PS_DOOR_TEXT];
    int fd = -1;

    cr_assert_eq(ps_door_listen(path, SOCK_STREAM, PS_PEERS_GROUP, &fd, err), PSD_OK);
    (void)ps_door_reason(path, EACCES, why);
    cr_expect(strstr(why, " is not in group \"") != NULL, "%s", why);
    cr_expect(strstr(why, "usermod -aG ") != NULL, "%s", why);
    cr_assert_eq(chmod(path, 0600), 0);
    (void)ps_door_reason(path, EACCES, why);
    cr_expect(strstr(why, "Permission denied: it is open to user \"") == why, "%s", why);
    (void)ps_door_reason(path, ECONNREFUSED, why);
    cr_expect_str_eq(why, "Connection refused");
    (void)close(fd);
}
