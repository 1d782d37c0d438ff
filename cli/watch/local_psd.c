/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a data directory, and one request by HTTP. */
#include "cli/watch/local_psd.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/bytes.h"
#include "transport/environment/environment.h"

#define PATH_SIZE 4200
#define TOKEN_DIGITS (PS_LOCAL_TOKEN_SIZE - 1)
#define SYSTEM_DIR "/var/lib/psd"
#define PLACES_MAX 2
#define ANSWER_MAX ((size_t)64 << 20)
#define PIECE 65536

/* ---- its files ---- */

typedef struct places {
    char at[PLACES_MAX][PATH_SIZE];
    size_t n;
} places_t;

/* Where psd keeps its data, as it chooses by itself. */
static void find_places(const ps_cli_t *cli, places_t *self)
{
    const char *given = ps_args_given(&cli->args, "data-dir") ? ps_args_text(&cli->args, "data-dir")
                                                              : getenv("PSD_DATA_DIR");

    self->n = 0;
    if (given != NULL && given[0] != '\0') {
        (void)snprintf(self->at[self->n++], PATH_SIZE, "%.4000s", given);
        return;
    }
    self->n += ps_environment_state_dir(self->at[self->n], PATH_SIZE) ? 1 : 0;
    (void)snprintf(self->at[self->n++], PATH_SIZE, SYSTEM_DIR);
}

static void close_at(const int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
    }
}

/* Opens DIR/NAME, a file of the directory's owner. NULL: it cannot, and errno says why. Root
 * may look into a directory that anybody made: a link there leads to any file. */
static FILE *open_file(const char *dir, const char *name, char ret_path[PATH_SIZE])
{
    PSD_AUTO(close_at) int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = at < 0 ? -1 : openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int code = errno;
    struct stat place = {0};
    struct stat is = {0};

    (void)snprintf(ret_path, PATH_SIZE, "%.4100s/%s", dir, name);
    if (fd < 0) {
        errno = code;
        return NULL;
    }
    if (fstat(at, &place) != 0 || fstat(fd, &is) != 0 || !S_ISREG(is.st_mode) ||
        is.st_uid != place.st_uid) {
        (void)close(fd);
        errno = EPERM;
        return NULL;
    }
    return fdopen(fd, "r");
}

/* Why a file was not opened. */
static psd_status_t refuse_file(const char *path, int code, psd_error_t *err)
{
    switch (code) {
    case ELOOP:
        return psd_error_set(err, PSD_DENIED, "%s is a symbolic link, which psd never makes", path);
    case EPERM:
        return psd_error_set(err, PSD_DENIED, "%s is not a file of its directory's owner", path);
    case EACCES:
        return psd_error_set(err, PSD_DENIED, "%s: %s; run this as the user of psd, or root", path,
                             strerror(code));
    default:
        return psd_error_set(err, PSD_IO, "%s: %s", path, strerror(code));
    }
}

/* The first place with endpoints.json; one that is not ours is not passed over. */
static psd_status_t read_announcement(const places_t *places, const char **ret_dir,
                                      json_t **ret_doc, psd_error_t *err)
{
    char path[PATH_SIZE];

    for (size_t i = 0; i < places->n; i++) {
        FILE *file = open_file(places->at[i], "endpoints.json", path);
        bool is_gone = file == NULL && (errno == ENOENT || errno == ENOTDIR);

        if (is_gone) {
            continue;
        }
        if (file == NULL) {
            return refuse_file(path, errno, err);
        }
        *ret_doc = json_loadf(file, 0, NULL);
        (void)fclose(file);
        *ret_dir = places->at[i];
        return json_is_object(*ret_doc) ? PSD_OK
                                        : psd_error_set(err, PSD_DAMAGED, "%s is no JSON", path);
    }
    return psd_error_set(
        err, PSD_CONNECT, "no psd has started in %s%s%s; --data-dir names its data directory",
        places->at[0], places->n > 1 ? " or " : "", places->n > 1 ? places->at[1] : "");
}

static psd_status_t read_token(const char *dir, char ret_token[PS_LOCAL_TOKEN_SIZE],
                               psd_error_t *err)
{
    char path[PATH_SIZE];
    FILE *file = open_file(dir, "http.token", path);
    size_t size = 0;

    if (file == NULL) {
        return refuse_file(path, errno, err);
    }
    size = fread(ret_token, 1, TOKEN_DIGITS, file);
    ret_token[size] = '\0';
    (void)fclose(file);
    return strspn(ret_token, "0123456789abcdef") == TOKEN_DIGITS
               ? PSD_OK
               : psd_error_set(err, PSD_DAMAGED, "%s has no token", path);
}

psd_status_t ps_local_psd_find(const ps_cli_t *cli, ps_local_psd_t *ret, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *found = NULL;
    places_t places;
    const char *dir = NULL;
    psd_status_t rc = PSD_OK;

    find_places(cli, &places);
    rc = read_announcement(&places, &dir, &found, err);
    if (rc != PSD_OK) {
        return rc;
    }
    (void)snprintf(ret->node, sizeof ret->node, "%s", ps_json_text(found, "node"));
    (void)snprintf(ret->http, sizeof ret->http, "%s", ps_json_text(found, "http"));
    ret->pid = ps_json_u64(found, "pid");
    if (ret->http[0] == '\0') {
        return psd_error_set(err, PSD_CONNECT,
                             "node \"%s\" has no HTTP port: http.listen is off, or auto where psd "
                             "opens no tcp port",
                             ret->node);
    }
    return read_token(dir, ret->token, err);
}

/* ---- one request ---- */

/* HOST of "http://HOST:PORT" or "http://[HOST]:PORT". Gives PORT; NULL: there is none. */
static const char *take_apart(const char *http, char ret_host[PS_LOCAL_HTTP_SIZE])
{
    const char *from = strncmp(http, "http://", 7) == 0 ? http + 7 : http;
    const char *colon = strrchr(from, ':');
    size_t size = colon == NULL ? 0 : (size_t)(colon - from);

    if (size > 2 && from[0] == '[') {
        from++;
        size -= 2;
    }
    (void)snprintf(ret_host, PS_LOCAL_HTTP_SIZE, "%.*s", (int)size, from);
    return colon == NULL ? NULL : colon + 1;
}

/* /metrics needs the token where psd listens beyond loopback; health never does. What needs
 * none is asked without: whatever listens there would get to know it. */
static bool wants_token(const ps_local_psd_t *self, const char *path)
{
    char host[PS_LOCAL_HTTP_SIZE];

    if (strcmp(path, "/healthz") == 0 || strcmp(path, "/readyz") == 0) {
        return false;
    }
    (void)take_apart(self->http, host);
    return strcmp(path, "/metrics") != 0 ||
           !(strncmp(host, "127.", 4) == 0 || strcmp(host, "localhost") == 0 ||
             strcmp(host, "::1") == 0 || strcmp(host, "lo") == 0);
}

static psd_status_t connect_to(const char *http, uint32_t timeout_ms, int *ret_fd, psd_error_t *err)
{
    const struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    const struct timeval wait = {.tv_sec = timeout_ms / 1000,
                                 .tv_usec = (suseconds_t)(timeout_ms % 1000) * 1000};
    struct addrinfo *found = NULL;
    char host[PS_LOCAL_HTTP_SIZE];
    const char *port = take_apart(http, host);
    int code = 0;

    if (port == NULL || getaddrinfo(host, port, &want, &found) != 0) {
        return psd_error_set(err, PSD_CONNECT, "%s: no such address", http);
    }
    *ret_fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*ret_fd < 0 || setsockopt(*ret_fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait) != 0 ||
        setsockopt(*ret_fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) != 0 ||
        connect(*ret_fd, found->ai_addr, found->ai_addrlen) != 0) {
        code = errno;
    }
    freeaddrinfo(found);
    return code == 0 ? PSD_OK : psd_error_set(err, PSD_CONNECT, "%s: %s", http, strerror(code));
}

static psd_status_t send_request(int fd, const ps_local_psd_t *self, const char *path,
                                 psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    bool shows = wants_token(self, path);

    if (!ps_buffer_print(&text, "GET %s HTTP/1.0\r\n%s%s%s\r\n", path,
                         shows ? "Authorization: Bearer " : "", shows ? self->token : "",
                         shows ? "\r\n" : "")) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a request");
    }
    return send(fd, text.data, text.size, MSG_NOSIGNAL) == (ssize_t)text.size
               ? PSD_OK
               : psd_error_set(err, PSD_CONNECT, "%s: %s", self->http, strerror(errno));
}

/* Up to the end of the connection. */
static psd_status_t receive(int fd, const ps_local_psd_t *self, ps_buffer_t *text, psd_error_t *err)
{
    for (;;) {
        ssize_t n = 0;

        if (text->size > ANSWER_MAX || !ps_buffer_reserve(text, PIECE)) {
            return psd_error_set(err, PSD_NOMEM, "no memory for an answer");
        }
        n = recv(fd, text->data + text->size, PIECE - 1, 0);
        if (n < 0 && errno != EINTR) {
            return psd_error_set(err, PSD_CONNECT, "%s does not answer: %s", self->http,
                                 strerror(errno));
        }
        if (n == 0) {
            return ps_buffer_append(text, "", 1)
                       ? PSD_OK
                       : psd_error_set(err, PSD_NOMEM, "no memory for an answer");
        }
        text->size += n > 0 ? (size_t)n : 0;
    }
}

/* Takes the head off; text keeps the body with its '\0'. */
static psd_status_t take_body(const ps_local_psd_t *self, ps_buffer_t *text, psd_error_t *err)
{
    const char *all = (const char *)text->data;
    const char *body = strstr(all, "\r\n\r\n");
    size_t before = 0;

    if (strncmp(all, "HTTP/1.", 7) != 0 || body == NULL) {
        return psd_error_set(err, PSD_PROTO, "%s gives no answer of HTTP", self->http);
    }
    before = (size_t)(body + 4 - all);
    memmove(text->data, text->data + before, text->size - before);
    text->size -= before;
    return PSD_OK;
}

psd_status_t ps_local_psd_text(const ps_local_psd_t *self, const char *path, uint32_t timeout_ms,
                               ps_buffer_t *ret_text, psd_error_t *err)
{
    PSD_AUTO(close_at) int fd = -1;
    psd_status_t rc = connect_to(self->http, timeout_ms, &fd, err);

    if (rc == PSD_OK) {
        rc = send_request(fd, self, path, err);
    }
    if (rc == PSD_OK) {
        rc = receive(fd, self, ret_text, err);
    }
    return rc == PSD_OK ? take_body(self, ret_text, err) : rc;
}
