/* SPDX-License-Identifier: Apache-2.0 */
/* Files with a token. */
#include "transport/sockets/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STANDARD_INPUT "-"
#define TCP "tcp://"
#define BLANKS " \t\r\n"

/* As key files are checked: who can change the file says which cluster psd joins. Standard input
 * is what psd was given, and need be no file. */
static psd_status_t check_file(int fd, bool is_input, const char *path, psd_error_t *err)
{
    struct stat is = {0};

    if (fstat(fd, &is) != 0) {
        return psd_error_set(err, PSD_CONFIG, "cannot read the token in %s: %s", path,
                             strerror(errno));
    }
    if (!S_ISREG(is.st_mode)) {
        return is_input ? PSD_OK
                        : psd_error_set(err, PSD_CONFIG,
                                        "%s is no regular file; \"-\" takes a token from standard "
                                        "input",
                                        path);
    }
    if (!is_input && is.st_uid != geteuid() && is.st_uid != 0) {
        return psd_error_set(err, PSD_CONFIG,
                             "the file of the token, %s, belongs to uid %u; allowed: your own (uid "
                             "%u), or root's",
                             path, (unsigned)is.st_uid, (unsigned)geteuid());
    }
    if ((is.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        return psd_error_set(err, PSD_CONFIG,
                             "others may read the token in %s; allowed: mode 0600 (chmod 600)",
                             path);
    }
    return PSD_OK;
}

/* The first line, or up to size bytes: what is longer is no token. A terminal or a pipe need not
 * end after the line. */
static psd_status_t read_line(int fd, const char *path, char *text, size_t size, psd_error_t *err)
{
    size_t n = 0;
    ssize_t got = 1;

    while (got > 0 && n < size && memchr(text, '\n', n) == NULL) {
        got = read(fd, text + n, size - n);
        if (got < 0 && errno == EINTR) {
            got = 1;
        } else if (got > 0) {
            n += (size_t)got;
        }
    }
    if (got < 0) {
        return psd_error_set(err, PSD_CONFIG, "cannot read the token in %s: %s", path,
                             strerror(errno));
    }
    text[n < size ? n : size - 1] = '\0';
    return PSD_OK;
}

psd_status_t ps_token_file_read(const char *path, char ret_endpoint[PS_ENDPOINT_MAX + 1],
                                ps_key_pair_t *ret_pair, psd_error_t *err)
{
    bool is_input = strcmp(path, STANDARD_INPUT) == 0;
    char text[PS_TOKEN_MAX + 64] = "";
    int fd = STDIN_FILENO;
    psd_status_t rc = PSD_OK;

    if (!is_input) { /* O_NONBLOCK: a FIFO does not hang the program */
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    if (fd < 0) {
        return psd_error_set(err, PSD_CONFIG, "cannot read the token in %s: %s", path,
                             strerror(errno));
    }
    rc = check_file(fd, is_input, path, err);
    if (rc == PSD_OK) {
        rc = read_line(fd, path, text, sizeof text, err);
    }
    if (rc == PSD_OK) {
        text[strcspn(text, BLANKS)] = '\0'; /* the end of the line is not part of it */
        rc = ps_curve_read_token(text, ret_endpoint, ret_pair, err);
        rc = rc == PSD_OK ? rc : psd_error_wrap(err, PSD_CONFIG, "%s", path);
    }
    explicit_bzero(text, sizeof text);
    if (!is_input) {
        (void)close(fd);
    }
    return rc;
}

bool ps_text_is_token(const char *text)
{
    return strncmp(text, TCP, strlen(TCP)) == 0;
}
