/* SPDX-License-Identifier: Apache-2.0 */
/* Small files with a checksum at their end. */
#include "server/config/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "server/config/place.h"

#define BYTES_MAX ((size_t)4 << 20)
#define PIECE_BYTES 4096
#define END ",\"checksum\":\"%016" PRIx64 "\"}"
#define END_SIZE 31

/* false: errno says why. */
static bool read_all(int fd, ps_buffer_t *text)
{
    char piece[PIECE_BYTES];
    ssize_t n = read(fd, piece, sizeof piece);

    while (n > 0) {
        if (text->size + (size_t)n > BYTES_MAX) {
            errno = EFBIG;
            return false;
        }
        if (!ps_buffer_append(text, piece, (size_t)n)) {
            errno = ENOMEM;
            return false;
        }
        n = read(fd, piece, sizeof piece);
    }
    return n == 0;
}

static psd_status_t read_file(const char *dir, const char *name, ps_buffer_t *text, bool *ret_there,
                              psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t path = {0};
    bool done = false;
    int fd = -1;

    *ret_there = false;
    if (!ps_buffer_print(&path, "%s/%s", dir, name)) {
        return psd_error_set(err, PSD_NOMEM, "no memory for a path");
    }
    fd = open((const char *)path.data, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return PSD_OK;
    }
    done = fd >= 0 && read_all(fd, text);
    if (!done) {
        (void)psd_error_set(err, PSD_IO, "cannot read %s/%s: %s", dir, name, strerror(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    *ret_there = done;
    return done ? PSD_OK : PSD_IO;
}

static void print_end(const void *text, size_t size, char ret[END_SIZE + 1])
{
    (void)snprintf(ret, END_SIZE + 1, END, ps_hash_bytes(text, size, 0));
}

static psd_status_t check_end(const ps_buffer_t *text, psd_error_t *err)
{
    size_t before = text->size < END_SIZE ? 0 : text->size - END_SIZE;
    char end[END_SIZE + 1];

    print_end(text->data, before, end);
    if (before == 0 || memcmp(text->data + before, end, END_SIZE) != 0) {
        return psd_error_set(err, PSD_DAMAGED,
                             "bytes 0 to %zu do not match the checksum at byte %zu", before,
                             before);
    }
    return PSD_OK;
}

psd_status_t ps_sealed_blame(const char *dir, const char *name, psd_status_t rc, psd_error_t *err)
{
    return rc == PSD_NOMEM ? rc : psd_error_wrap(err, PSD_DAMAGED, "%s/%s", dir, name);
}

psd_status_t ps_sealed_read(const char *dir, const char *name, ps_doc_t **ret_doc, psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    bool is_there = false;
    psd_status_t rc = read_file(dir, name, &text, &is_there, err);

    *ret_doc = NULL;
    if (rc != PSD_OK || !is_there) {
        return rc;
    }
    rc = check_end(&text, err);
    if (rc == PSD_OK) {
        rc = ps_doc_parse((ps_bytes_t){.data = text.data, .size = text.size}, ret_doc, err);
    }
    return rc == PSD_OK ? PSD_OK : ps_sealed_blame(dir, name, rc, err);
}

psd_status_t ps_sealed_write(const char *dir, const char *name, const ps_doc_t *doc,
                             psd_error_t *err)
{
    PSD_AUTO(ps_buffer_done) ps_buffer_t text = {0};
    char end[END_SIZE + 1];
    bool done = ps_doc_print(doc, &text);

    if (done) {
        text.size--; /* its last brace */
        print_end(text.data, text.size, end);
        done = ps_buffer_print(&text, "%s", end);
    }
    return done ? ps_place_write(dir, name, 0600,
                                 (ps_bytes_t){.data = text.data, .size = text.size}, err)
                : psd_error_set(err, PSD_NOMEM, "no memory for %s", name);
}
