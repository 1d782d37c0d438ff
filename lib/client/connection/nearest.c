/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up the endpoints of this host's psd in its file. */
#include "client/connection/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "wire/messages/doc.h"

#define DEFAULT_ENDPOINT "tcp://127.0.0.1:7171"
#define RUNTIME_DIR "/run/psd"
#define TEXT_BYTES_MAX 65536 /* 256 shards' addresses fit */
#define PATH_BYTES_MAX 4096

/* The whole of endpoints.json; false: there is none for us. */
static bool read_announcement(char ret[TEXT_BYTES_MAX], size_t *ret_size)
{
    const char *dir = getenv("PSD_RUNTIME_DIR");
    char path[PATH_BYTES_MAX];
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "%.4000s/endpoints.json",
                   dir == NULL || dir[0] == '\0' ? RUNTIME_DIR : dir);
    file = fopen(path, "re");
    if (file == NULL) {
        return false;
    }
    *ret_size = fread(ret, 1, TEXT_BYTES_MAX, file);
    (void)fclose(file);
    return *ret_size > 0;
}

/* The text of a key, when it begins as it must; else "". */
static const char *endpoint_of(const ps_doc_t *doc, const char *key, const char *prefix)
{
    const char *text = NULL;

    return ps_doc_get_text(doc, key, PS_ENDPOINT_MAX, &text, NULL) == PSD_OK &&
                   strncmp(text, prefix, strlen(prefix)) == 0
               ? text
               : "";
}

/* A server listens there, and accepts us. */
static bool is_open(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    bool connected = false;
    int fd = -1;

    if (length == 0 || length >= sizeof to.sun_path) {
        return false;
    }
    memcpy(to.sun_path, path, length + 1);
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    connected = connect(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    (void)close(fd);
    return connected;
}

void ps_nearest_endpoint(char ret_endpoint[PS_ENDPOINT_MAX + 1])
{
    PSD_AUTO(ps_doc_destroy) ps_doc_t *doc = NULL;
    char text[TEXT_BYTES_MAX];
    size_t size = 0;
    const char *found = DEFAULT_ENDPOINT;

    if (read_announcement(text, &size) &&
        ps_doc_parse((ps_bytes_t){.data = (const uint8_t *)text, .size = size}, &doc, NULL) ==
            PSD_OK) {
        const char *ipc = endpoint_of(doc, "ipc", "ipc://");
        const char *tcp = endpoint_of(doc, "control", "tcp://");

        if (ipc[0] != '\0' && (tcp[0] == '\0' || is_open(ipc + strlen("ipc://")))) {
            found = ipc;
        } else if (tcp[0] != '\0') {
            found = tcp;
        }
    }
    (void)snprintf(ret_endpoint, PS_ENDPOINT_MAX + 1, "%s", found);
}
