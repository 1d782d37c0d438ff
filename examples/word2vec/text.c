/* SPDX-License-Identifier: Apache-2.0 */
/* Words, one after the other. */
#include "text.h"

#include <errno.h>
#include <string.h>

#define BUFFER_BYTES (1 << 20)

static psd_status_t refuse(const wv_text_t *self, const char *what, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "%s: %s: %s", self->path, what, strerror(errno));
}

/* By its first bytes, a file of gzip, zstd, xz or bzip2: there are no words. */
static bool is_packed(FILE *file)
{
    static const char *const firsts[] = {"\x1f\x8b", "\x28\xb5\x2f\xfd", "\xfd\x37zXZ"};
    char bytes[8] = "";
    bool found = false;

    if (fread(bytes, 1, sizeof bytes - 1, file) > 0) {
        found = strncmp(bytes, "BZh", 3) == 0 && strncmp(bytes + 4, "1AY", 3) == 0;
        for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
            found = found || strncmp(bytes, firsts[i], strlen(firsts[i])) == 0;
        }
    }
    return found;
}

/* Moves past the line that has the byte before `at`, which belongs to the
 * part before. */
static void skip_line(wv_text_t *self)
{
    int byte = 0;

    while (byte != EOF && byte != '\n') {
        byte = getc_unlocked(self->file);
        self->at += byte == EOF ? 0 : 1;
    }
}

psd_status_t wv_text_open(wv_text_t *self, const char *path, uint32_t part, uint32_t n_parts,
                          psd_error_t *err)
{
    off_t size = 0;
    bool begins = false; /* with the file */

    *self = (wv_text_t){.path = path, .is_line_end = true};
    self->file = fopen(path, "rb");
    if (self->file == NULL) {
        return refuse(self, "cannot be opened", err);
    }
    (void)setvbuf(self->file, NULL, _IOFBF, BUFFER_BYTES);
    if (is_packed(self->file)) {
        wv_text_close(self);
        return psd_error_set(err, PSD_INVALID, "%s: byte 0: it is compressed; allowed: plain text",
                             path);
    }
    if (fseeko(self->file, 0, SEEK_END) != 0 || (size = ftello(self->file)) < 0) {
        psd_status_t rc = refuse(self, "has no size", err);

        wv_text_close(self);
        return rc;
    }
    self->at = (uint64_t)size * part / n_parts;
    self->end = (uint64_t)size * (part + 1) / n_parts;
    begins = self->at == 0;
    self->at -= begins ? 0 : 1;
    if (fseeko(self->file, (off_t)self->at, SEEK_SET) != 0) {
        psd_status_t rc = refuse(self, "cannot be read", err);

        wv_text_close(self);
        return rc;
    }
    if (!begins) {
        skip_line(self);
    }
    return PSD_OK;
}

void wv_text_close(wv_text_t *self)
{
    if (self->file != NULL) {
        (void)fclose(self->file);
        self->file = NULL;
    }
}

wv_token_t wv_text_next(wv_text_t *self)
{
    size_t n = 0;
    int byte = 0;

    if (self->is_line_end && self->at >= self->end) {
        return WV_TEXT_END;
    }
    for (;;) {
        byte = getc_unlocked(self->file);
        if (byte == EOF) {
            break;
        }
        self->at++;
        self->is_line_end = byte == '\n';
        if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') {
            if (n < WV_WORD_MAX) {
                self->word[n++] = (char)byte;
            }
        } else if (n > 0 && byte == '\n') {
            (void)ungetc(byte, self->file); /* the word first */
            self->at--;
            self->is_line_end = false;
            break;
        } else if (n > 0) {
            break;
        } else if (byte == '\n') {
            return WV_LINE_END;
        }
    }
    self->word[n] = '\0';
    return n > 0 ? WV_WORD : WV_TEXT_END;
}

psd_status_t wv_text_check(const wv_text_t *self, psd_error_t *err)
{
    return ferror(self->file) ? refuse(self, "cannot be read", err) : PSD_OK;
}
