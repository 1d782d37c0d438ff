/* SPDX-License-Identifier: Apache-2.0 */
/* The token: its file, and whether a request has it. */
#include "daemon/http/http_token.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hex.h"
#include "server/config/place.h"
#include "transport/threads/clock.h"

#define DIGITS (PS_HTTP_TOKEN_SIZE - 1)
#define BASIC_MAX 256 /* bytes of "USER:PASSWORD" */

static bool is_token(const char *text)
{
    return strspn(text, "0123456789abcdef") == DIGITS && text[DIGITS] == '\0';
}

/* ---- the file ---- */

static psd_status_t refuse(const char *path, const char *why, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "%s: %s; psd makes a new one when the file is removed", path,
                         why);
}

/* Reads it. *ret_there: the file exists. */
static psd_status_t read_token(const char *path, char ret_token[PS_HTTP_TOKEN_SIZE],
                               bool *ret_there, psd_error_t *err)
{
    char text[PS_HTTP_TOKEN_SIZE + 1] = "";
    struct stat is = {0};
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int code = errno;
    ssize_t size = 0;

    *ret_there = fd >= 0 || code != ENOENT;
    if (fd < 0) {
        return *ret_there ? refuse(path, strerror(code), err) : PSD_OK;
    }
    size = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) ? read(fd, text, sizeof text - 1) : -1;
    (void)close(fd);
    if (size < 0) {
        return refuse(path, "it cannot be read", err);
    }
    if (is.st_uid != geteuid()) {
        return refuse(path, "it belongs to another user", err);
    }
    if ((is.st_mode & 077) != 0) {
        return refuse(path, "others than its owner may use it", err);
    }
    text[strcspn(text, "\n")] = '\0';
    if (!is_token(text)) {
        return refuse(path, "it has no token", err);
    }
    memcpy(ret_token, text, PS_HTTP_TOKEN_SIZE);
    return PSD_OK;
}

static psd_status_t make_token(const char *dir, char ret_token[PS_HTTP_TOKEN_SIZE],
                               psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    uint8_t bytes[DIGITS / 2];
    psd_status_t rc = ps_random(bytes, sizeof bytes, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (!ps_hex_write(&text, (ps_bytes_t){.data = bytes, .size = sizeof bytes}) ||
        !ps_buffer_append(&text, "\n", 1)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for %s", PS_HTTP_TOKEN_FILE);
    }
    memcpy(ret_token, text.data, DIGITS);
    ret_token[DIGITS] = '\0';
    return ps_place_write(dir, PS_HTTP_TOKEN_FILE, 0600,
                          (ps_bytes_t){.data = text.data, .size = text.size}, err);
}

psd_status_t ps_http_token_load(const char *dir, char ret_token[PS_HTTP_TOKEN_SIZE],
                                psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    bool is_there = false;
    psd_status_t rc = PSD_OK;

    if (!ps_buffer_print(&path, "%s/%s", dir, PS_HTTP_TOKEN_FILE)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    rc = read_token((const char *)path.data, ret_token, &is_there, err);
    return rc == PSD_OK && !is_there ? make_token(dir, ret_token, err) : rc;
}

/* ---- requests ---- */

/* Looks at every digit, whichever differs. */
static bool is_same(const char *token, const char *given, size_t size)
{
    unsigned differ = size == DIGITS ? 0 : 1;

    for (size_t i = 0; i < DIGITS; i++) {
        differ |= (unsigned)(token[i] ^ (i < size ? given[i] : 0));
    }
    return differ == 0;
}

static int value_of(char c)
{
    static const char ALPHABET[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c == '\0' ? NULL : strchr(ALPHABET, c);

    return at == NULL ? -1 : (int)(at - ALPHABET);
}

/* base64 up to its end or padding. Gives the bytes; 0: it is none, or too long. */
static size_t decode(const char *text, char ret[BASIC_MAX])
{
    unsigned bits = 0;
    int n_bits = 0;
    size_t size = 0;

    for (; *text != '\0' && *text != '='; text++) {
        int value = value_of(*text);

        if (value < 0 || size == BASIC_MAX) {
            return 0;
        }
        bits = ((bits << 6) | (unsigned)value) & 0xFFFF;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            ret[size++] = (char)(bits >> n_bits);
        }
    }
    return size;
}

static bool fits_basic(const char *token, const char *encoded)
{
    char text[BASIC_MAX];
    size_t size = decode(encoded, text);
    const char *colon = memchr(text, ':', size);

    return colon != NULL && is_same(token, colon + 1, size - (size_t)(colon + 1 - text));
}

/* The text after the scheme; NULL: it is another one. */
static const char *after_scheme(const char *authorization, const char *scheme)
{
    size_t size = strlen(scheme);

    return strncasecmp(authorization, scheme, size) == 0 && authorization[size] == ' '
               ? authorization + size + 1
               : NULL;
}

bool ps_http_token_fits(const char token[PS_HTTP_TOKEN_SIZE], const char *authorization)
{
    const char *given = NULL;

    if (authorization == NULL) {
        return false;
    }
    given = after_scheme(authorization, "Bearer");
    if (given != NULL) {
        return is_same(token, given, strlen(given));
    }
    given = after_scheme(authorization, "Basic");
    return given != NULL && fits_basic(token, given);
}
