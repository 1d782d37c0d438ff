/* SPDX-License-Identifier: Apache-2.0 */
/* Key pairs, and their files. */
#include "transport/keys/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "base/text.h"

#define FILE_MAX 4096 /* bytes of a file */

void ps_key_pair_done(ps_key_pair_t *self)
{
    explicit_bzero(self, sizeof *self);
}

psd_status_t ps_key_pair_make(const char *name, ps_key_pair_t *ret_pair, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t pair = {.name = ""};

    if (strnlen(name, PS_KEY_NAME_MAX + 1) > PS_KEY_NAME_MAX || !ps_text_is_name(name)) {
        return psd_error_set(err, PSD_INVALID,
                             "name is \"%.80s\"; allowed: 1..%d letters, digits, \"_\", \".\", "
                             "\"-\", not beginning with \".\" or \"-\"",
                             name, PS_KEY_NAME_MAX);
    }
    memcpy(pair.name, name, strlen(name) + 1);
    if (zmq_curve_keypair(pair.public_key, pair.secret_key) != 0) {
        return psd_error_set(err, PSD_UNSUPPORTED, "no keys: this libzmq was built without CURVE");
    }
    *ret_pair = pair;
    return PSD_OK;
}

/* ---- writing ---- */

static psd_status_t write_all(int fd, const char *text, size_t size, psd_error_t *err)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);

        if (n < 0 && errno != EINTR) {
            return psd_error_set(err, PSD_IO, "%s", strerror(errno));
        }
        text += n < 0 ? 0 : n;
        size -= n < 0 ? 0 : (size_t)n;
    }
    return fsync(fd) == 0 ? PSD_OK : psd_error_set(err, PSD_IO, "%s", strerror(errno));
}

/* The names of the directory are on disk. */
static psd_status_t sync_folder(const char *path, psd_error_t *err)
{
    char folder[PATH_MAX];
    const char *end = strrchr(path, '/');
    int fd = -1;
    psd_status_t rc = PSD_OK;

    (void)snprintf(folder, sizeof folder, "%.*s", end == NULL ? 1 : (int)(end - path + 1),
                   end == NULL ? "." : path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) != 0) {
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

static psd_status_t write_text(int fd, const ps_key_pair_t *pair, psd_error_t *err)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "# A key of psd. Whoever can read this file is \"%s\": keep it to yourself.\n"
                     "name %s\npublic-key %s\nsecret-key %s\n",
                     pair->name, pair->name, pair->public_key, pair->secret_key);
    psd_status_t rc = PSD_OK;

    if (fchmod(fd, S_IRUSR | S_IWUSR) != 0) { /* a umask may have taken something */
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    if (rc == PSD_OK) {
        rc = write_all(fd, text, n < 0 ? 0 : (size_t)n, err);
    }
    explicit_bzero(text, sizeof text);
    return rc;
}

static psd_status_t refuse_taken(const char *path, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO,
                         "%s exists; it is left as it is, because its key may be in use", path);
}

/* Whole under another name first, so that a file of the name is never half a key. */
psd_status_t ps_key_file_write(const char *path, const ps_key_pair_t *pair, psd_error_t *err)
{
    char made[PATH_MAX];
    struct stat file;
    int n = snprintf(made, sizeof made, "%s.XXXXXX", path);
    int fd = -1;
    bool is_taken = lstat(path, &file) == 0;
    psd_status_t rc = PSD_OK;

    if (is_taken) {
        return refuse_taken(path, err);
    }
    errno = ENAMETOOLONG;
    fd = n < 0 || (size_t)n >= sizeof made ? -1 : mkostemp(made, O_CLOEXEC);
    if (fd < 0) {
        return psd_error_set(err, PSD_IO, "cannot make %s: %s", path, strerror(errno));
    }
    rc = write_text(fd, pair, err);
    if (close(fd) != 0 && rc == PSD_OK) {
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    if (rc == PSD_OK && link(made, path) != 0) {
        is_taken = errno == EEXIST;
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    (void)unlink(made);
    if (is_taken) {
        return refuse_taken(path, err);
    }
    if (rc == PSD_OK) {
        rc = sync_folder(path, err);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "cannot write %s", path);
}

psd_status_t ps_key_file_keep(const char *path, const char *old, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if ((unlink(old) != 0 && errno != ENOENT) || link(path, old) != 0) {
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    if (rc == PSD_OK) {
        rc = sync_folder(path, err);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "cannot keep %s as %s", path, old);
}

psd_status_t ps_key_file_swap(const char *path, const char *next, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    if (rename(next, path) != 0) {
        rc = psd_error_set(err, PSD_IO, "%s", strerror(errno));
    }
    if (rc == PSD_OK) {
        rc = sync_folder(path, err);
    }
    return rc == PSD_OK ? PSD_OK : psd_error_wrap(err, rc, "cannot replace %s", path);
}

/* ---- reading ---- */

static psd_status_t check_file(const char *path, int fd, psd_error_t *err)
{
    struct stat file;

    if (fstat(fd, &file) != 0) {
        return psd_error_set(err, PSD_IO, "key file %s: %s", path, strerror(errno));
    }
    if (!S_ISREG(file.st_mode)) {
        return psd_error_set(err, PSD_INVALID, "key file %s is no regular file", path);
    }
    if (file.st_uid != geteuid() && file.st_uid != 0) {
        return psd_error_set(err, PSD_DENIED,
                             "key file %s belongs to uid %u; allowed: your own (uid %u), or root's",
                             path, (unsigned)file.st_uid, (unsigned)geteuid());
    }
    if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return psd_error_set(err, PSD_DENIED,
                             "key file %s has mode %04o, so that others may use the key; "
                             "\"chmod 600\" it, and if they could read it make a new one",
                             path, (unsigned)(file.st_mode & 07777));
    }
    return PSD_OK;
}

/* All of the file into text, which gets its '\0'. */
static psd_status_t read_all(const char *path, int fd, char text[FILE_MAX + 1], psd_error_t *err)
{
    size_t size = 0;

    for (;;) {
        ssize_t n = read(fd, text + size, FILE_MAX + 1 - size);

        if (n < 0 && errno != EINTR) {
            return psd_error_set(err, PSD_IO, "key file %s: %s", path, strerror(errno));
        }
        if (n == 0) {
            break;
        }
        size += n < 0 ? 0 : (size_t)n;
        if (size > FILE_MAX) {
            return psd_error_set(err, PSD_INVALID, "key file %s has more than %d bytes", path,
                                 FILE_MAX);
        }
    }
    text[size] = '\0';
    return memchr(text, '\0', size) == NULL
               ? PSD_OK
               : psd_error_set(err, PSD_INVALID, "key file %s is no text", path);
}

/* Where the value of a line goes; NULL: no such line. */
static char *place_of(ps_key_pair_t *pair, const char *key, size_t *ret_size)
{
    *ret_size = PS_KEY_SIZE + 1;
    if (strcmp(key, "public-key") == 0) {
        return pair->public_key;
    }
    if (strcmp(key, "secret-key") == 0) {
        return pair->secret_key;
    }
    *ret_size = PS_KEY_NAME_MAX + 1;
    return strcmp(key, "name") == 0 ? pair->name : NULL;
}

/* The message has no value: it may be the secret. */
static psd_status_t read_line(const char *path, int number, char *line, ps_key_pair_t *pair,
                              psd_error_t *err)
{
    char *value = strchr(line, ' ');
    char *place = NULL;
    size_t size = 0;

    if (value != NULL) {
        *value++ = '\0';
        place = place_of(pair, line, &size);
    }
    if (place == NULL || place[0] != '\0' || value[0] == '\0' || strlen(value) >= size ||
        (size == PS_KEY_SIZE + 1 && strlen(value) != PS_KEY_SIZE)) {
        return psd_error_set(err, PSD_INVALID,
                             "key file %s, line %d; allowed: \"name NAME\", \"public-key KEY\", "
                             "\"secret-key KEY\", each once; a KEY has %d characters",
                             path, number, PS_KEY_SIZE);
    }
    memcpy(place, value, strlen(value) + 1);
    return PSD_OK;
}

static psd_status_t check_pair(const char *path, const ps_key_pair_t *pair, psd_error_t *err)
{
    char public_key[PS_KEY_SIZE + 1] = "";

    if (!ps_text_is_name(pair->name) || pair->secret_key[0] == '\0') {
        return psd_error_set(err, PSD_INVALID, "key file %s has no %s", path,
                             pair->secret_key[0] == '\0' ? "secret-key" : "name that may be one");
    }
    if (zmq_curve_public(public_key, pair->secret_key) != 0 ||
        strcmp(public_key, pair->public_key) != 0) {
        return psd_error_set(err, PSD_INVALID,
                             "key file %s: public-key and secret-key are no pair; the file is "
                             "damaged",
                             path);
    }
    return PSD_OK;
}

static psd_status_t read_pair(const char *path, char *text, ps_key_pair_t *pair, psd_error_t *err)
{
    char *next = text;
    psd_status_t rc = PSD_OK;

    for (int number = 1; rc == PSD_OK && next != NULL; number++) {
        char *line = strsep(&next, "\n");

        if (line[0] != '\0' && line[0] != '#') {
            rc = read_line(path, number, line, pair, err);
        }
    }
    return rc == PSD_OK ? check_pair(path, pair, err) : rc;
}

psd_status_t ps_key_file_read(const char *path, ps_key_pair_t *ret_pair, psd_error_t *err)
{
    PSD_AUTO(ps_key_pair_done) ps_key_pair_t pair = {.name = ""};
    char text[FILE_MAX + 2] = "";
    /* O_NONBLOCK: a FIFO in its place does not hang the program. */
    int fd = open(path, O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    psd_status_t rc = PSD_OK;

    if (fd < 0) {
        return errno == ENOENT
                   ? psd_error_set(err, PSD_IO,
                                   "there is no key file %s; \"pscli auth keygen\" makes one", path)
                   : psd_error_set(err, PSD_IO, "cannot read key file %s: %s", path,
                                   strerror(errno));
    }
    rc = check_file(path, fd, err);
    if (rc == PSD_OK) {
        rc = read_all(path, fd, text, err);
    }
    if (rc == PSD_OK) {
        rc = read_pair(path, text, &pair, err);
    }
    explicit_bzero(text, sizeof text);
    (void)close(fd);
    if (rc == PSD_OK) {
        *ret_pair = pair;
    }
    return rc;
}
