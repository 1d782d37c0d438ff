/* SPDX-License-Identifier: Apache-2.0 */
/* Writes beside, flushes, renames. */
#include "cli/new_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/interrupt.h"
#include "data/file_out.h"

#define BUFFER_BYTES (1 << 20)

static psd_status_t
fail(const ps_new_file_t *self, psd_error_t *err)
{
    return psd_error_set(err, PSD_IO, "%s cannot be written: %s", self->path,
                         strerror(errno));
}

psd_status_t
ps_new_file_open(ps_new_file_t *ret_file,
                 const char *path,
                 mode_t mode,
                 psd_error_t *err)
{
    mode_t mask = umask(0);
    int fd = -1;
    int n = snprintf(ret_file->path, PATH_MAX, "%s", path);
    int m = snprintf(ret_file->beside, PATH_MAX, "%s.XXXXXX", path);

    (void)umask(mask);
    if (n >= PATH_MAX || m >= PATH_MAX) {
        ret_file->beside[0] = '\0';
        return psd_error_set(err, PSD_INVALID,
                             "the file's path is longer than %d", PATH_MAX);
    }
    fd = mkostemp(ret_file->beside, O_CLOEXEC);
    if (fd < 0) {
        ret_file->beside[0] = '\0';
        return fail(ret_file, err);
    }
    ps_interrupt_unlink(ret_file->beside);
    (void)fchmod(fd, mode & ~mask); /* mkostemp makes it 0600 */
    ret_file->file = fdopen(fd, "w");
    if (ret_file->file == NULL) {
        (void)close(fd);
        return fail(ret_file, err);
    }
    (void)setvbuf(ret_file->file, NULL, _IOFBF, BUFFER_BYTES);
    return PSD_OK;
}

psd_status_t
ps_new_file_commit(ps_new_file_t *self, uint64_t *ret_bytes, psd_error_t *err)
{
    FILE *file = self->file;
    struct stat info = {0};

    if (fflush(file) != 0 || ferror(file) || fsync(fileno(file)) != 0 ||
        fstat(fileno(file), &info) != 0) {
        return fail(self, err);
    }
    self->file = NULL;
    if (fclose(file) != 0 || rename(self->beside, self->path) != 0) {
        return fail(self, err);
    }
    ps_interrupt_unlink(NULL);
    self->beside[0] = '\0';
    ps_file_out_flush_name(self->path);
    *ret_bytes = (uint64_t)info.st_size;
    return PSD_OK;
}

void
ps_new_file_done(ps_new_file_t *self)
{
    if (self->file != NULL) {
        (void)fclose(self->file);
        self->file = NULL;
    }
    if (self->beside[0] != '\0') {
        (void)unlink(self->beside);
        ps_interrupt_unlink(NULL);
        self->beside[0] = '\0';
    }
}
