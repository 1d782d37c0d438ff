/* SPDX-License-Identifier: Apache-2.0 */
/* transport/keys/key_file.h: key pairs and their files. */
#include "transport/keys/key_file.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/temp_dir.h"

static temp_dir_t temp;
static char path[PATH_MAX + 16];
static psd_error_t *err;

static void set_up(void)
{
    temp_dir_make(&temp);
    (void)snprintf(path, sizeof path, "%s/a.key", temp.path);
    err = psd_error_new();
    cr_assert_not_null(err);
}

static void take_down(void)
{
    psd_error_destroy(&err);
    temp_dir_drop(&temp);
}

TestSuite(key_file, .init = set_up, .fini = take_down);

static ps_key_pair_t make(void)
{
    ps_key_pair_t pair;

    cr_assert_eq(ps_key_pair_make("alice", &pair, err), PSD_OK, "%s", psd_error_text(err));
    return pair;
}

static void write_text(const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, text, size), (ssize_t)size);
    cr_assert_eq(close(fd), 0);
}

static void assert_not_read(psd_status_t status, const char *text)
{
    ps_key_pair_t read = {.name = "as it was"};

    cr_assert_eq(ps_key_file_read(path, &read, err), status, "%s", psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), text), "%s", psd_error_text(err));
    cr_assert_not_null(strstr(psd_error_text(err), path), "%s", psd_error_text(err));
    cr_assert_str_eq(read.name, "as it was");
    psd_error_clear(err);
}

Test(key_file, what_was_written_is_read)
{
    ps_key_pair_t pair = make();
    ps_key_pair_t read;
    struct stat file;

    cr_assert_eq(strlen(pair.public_key), PS_KEY_SIZE);
    cr_assert_eq(strlen(pair.secret_key), PS_KEY_SIZE);
    cr_assert_eq(ps_key_file_write(path, &pair, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_eq(stat(path, &file), 0);
    cr_assert_eq(file.st_mode & 07777, 0600, "whatever the umask");
    cr_assert_eq(ps_key_file_read(path, &read, err), PSD_OK, "%s", psd_error_text(err));
    cr_assert_str_eq(read.name, "alice");
    cr_assert_str_eq(read.public_key, pair.public_key);
    cr_assert_str_eq(read.secret_key, pair.secret_key);
    ps_key_pair_done(&read);
    cr_assert_eq(read.secret_key[0], '\0');
}

Test(key_file, two_pairs_differ)
{
    ps_key_pair_t one = make();
    ps_key_pair_t other = make();

    cr_assert_str_neq(one.secret_key, other.secret_key);
    cr_assert_str_neq(one.public_key, other.public_key);
}

Test(key_file, a_name_that_is_none_is_refused)
{
    ps_key_pair_t pair;
    char long_name[80];

    memset(long_name, 'a', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    cr_assert_eq(ps_key_pair_make("a b", &pair, err), PSD_INVALID);
    cr_assert_eq(ps_key_pair_make("", &pair, err), PSD_INVALID);
    cr_assert_eq(ps_key_pair_make("../x", &pair, err), PSD_INVALID);
    cr_assert_eq(ps_key_pair_make(long_name, &pair, err), PSD_INVALID);
}

Test(key_file, a_file_that_exists_is_left_as_it_is)
{
    ps_key_pair_t pair = make();
    char text[8] = "";
    int fd = -1;

    write_text("mine", 4);
    cr_assert_eq(ps_key_file_write(path, &pair, err), PSD_IO);
    cr_assert_not_null(strstr(psd_error_text(err), "exists; it is left as it is"));
    fd = open(path, O_RDONLY);
    cr_assert_eq(read(fd, text, sizeof text), 4);
    cr_assert_eq(close(fd), 0);
    cr_assert_str_eq(text, "mine");
}

/* Nor is a file written where a link points to. */
Test(key_file, a_link_is_not_followed_when_writing)
{
    ps_key_pair_t pair = make();
    char target[PATH_MAX + 16];

    (void)snprintf(target, sizeof target, "%s/target", temp.path);
    cr_assert_eq(symlink(target, path), 0);
    cr_assert_eq(ps_key_file_write(path, &pair, err), PSD_IO);
    cr_assert_neq(access(target, F_OK), 0);
}

Test(key_file, each_thing_wrong_with_the_file_has_its_error)
{
    ps_key_pair_t pair = make();

    assert_not_read(PSD_IO, "there is no key file");
    cr_assert_eq(ps_key_file_write(path, &pair, err), PSD_OK);
    cr_assert_eq(chmod(path, 0640), 0);
    assert_not_read(PSD_DENIED, "has mode 0640");
    cr_assert_eq(chmod(path, 0602), 0);
    assert_not_read(PSD_DENIED, "has mode 0602");
    cr_assert_eq(chmod(path, 0600), 0);
    cr_assert_eq(unlink(path), 0);
    cr_assert_eq(mkdir(path, 0700), 0);
    assert_not_read(PSD_INVALID, "is no regular file");
    cr_assert_eq(rmdir(path), 0);
    cr_assert_eq(mkfifo(path, 0600), 0);
    assert_not_read(PSD_INVALID, "is no regular file"); /* and does not wait for a writer */
}

Test(key_file, a_file_of_another_user_is_not_read)
{
    ps_key_pair_t pair = make();

    if (geteuid() != 0) {
        cr_skip("only root can give a file away");
    }
    cr_assert_eq(ps_key_file_write(path, &pair, err), PSD_OK);
    cr_assert_eq(chown(path, 65534, 65534), 0);
    assert_not_read(PSD_DENIED, "belongs to uid 65534");
}

/* The secret is in no message. */
Test(key_file, what_is_no_key_file_is_refused_by_its_line)
{
    ps_key_pair_t pair = make();
    ps_key_pair_t other = make();
    char text[8192];
    const char *const bad[] = {"",
                               "# only words\n",
                               "name alice\n",
                               "name a b\nsecret-key x\n",
                               "name alice\nname bob\n",
                               "secret-key\n",
                               "secret-key \n",
                               "key 123\n",
                               "name alice\r\n",
                               "public-key short\n"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(bad[i], strlen(bad[i]));
        assert_not_read(PSD_INVALID, "key file");
    }
    (void)snprintf(text, sizeof text, "name alice\npublic-key %s\nsecret-key %s\n",
                   other.public_key, pair.secret_key);
    write_text(text, strlen(text));
    assert_not_read(PSD_INVALID, "are no pair");
    (void)snprintf(text, sizeof text, "name alice\npublic-key %s\nsecret-key %s1\n",
                   pair.public_key, pair.secret_key);
    write_text(text, strlen(text));
    {
        ps_key_pair_t read;

        cr_assert_eq(ps_key_file_read(path, &read, err), PSD_INVALID);
        cr_assert_null(strstr(psd_error_text(err), pair.secret_key));
        psd_error_clear(err);
    }
    memset(text, '#', sizeof text);
    write_text(text, sizeof text);
    assert_not_read(PSD_INVALID, "has more than 4096 bytes");
    write_text("name al\0ice\n", 12);
    assert_not_read(PSD_INVALID, "is no text");
}

/* Every cut of a good file is refused, or, without its last newline, read. */
Test(key_file, a_file_that_is_cut_off_is_refused)
{
    ps_key_pair_t pair = make();
    char text[512] = "";
    ssize_t size = 0;
    int fd = -1;

    cr_assert_eq(ps_key_file_write(path, &pair, err), PSD_OK);
    fd = open(path, O_RDONLY);
    size = read(fd, text, sizeof text);
    cr_assert_eq(close(fd), 0);
    for (ssize_t n = 0; n < size; n++) {
        ps_key_pair_t read;

        write_text(text, (size_t)n);
        cr_assert_eq(ps_key_file_read(path, &read, err) == PSD_OK, n == size - 1, "%zd", n);
        psd_error_clear(err);
    }
}
