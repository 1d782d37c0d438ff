/* SPDX-License-Identifier: Apache-2.0 */
/* A file that appears when it is complete. */
#include "output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

psd_status_t ex_output_open(ex_output_t *ret_output, const char *path, psd_error_t *err)
{
    int length = snprintf(ret_output->beside, EX_PATH_SIZE, "%s.part", path);

    ret_output->path = path;
    if (length < 0 || length >= EX_PATH_SIZE) {
        return psd_error_set(err, PSD_IO, "write %.80s...: path too long", path);
    }
    ret_output->file = fopen(ret_output->beside, "we");
    return ret_output->file != NULL
               ? PSD_OK
               : psd_error_set(err, PSD_IO, "write %s: %s", ret_output->beside, strerror(errno));
}

psd_status_t ex_output_finish(ex_output_t *self, bool good, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    good = good && fflush(self->file) == 0 && fsync(fileno(self->file)) == 0;
    good = fclose(self->file) == 0 && good;
    self->file = NULL;
    if (!good || rename(self->beside, self->path) != 0) {
        rc = psd_error_set(err, PSD_IO, "write %s: %s", self->path, strerror(errno));
        (void)unlink(self->beside);
    }
    return rc;
}
