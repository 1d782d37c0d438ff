/* SPDX-License-Identifier: Apache-2.0 */
/* A stream on top of a ps_file_out. */
#include "cli/output/new_file.h"

#include "base/alloc.h"
#include "cli/output/interrupt.h"

#define BUFFER_BYTES ((size_t)1 << 20)

/* fopencookie(3): what is less than size is an error. */
static ssize_t write_out(void *cookie, const char *bytes, size_t size)
{
    ps_new_file_t *self = cookie;

    if (self->rc == PSD_OK) {
        self->rc = ps_file_out_write(self->out, bytes, size, self->why);
    }
    return self->rc == PSD_OK ? (ssize_t)size : 0;
}

psd_status_t ps_new_file_open(ps_new_file_t *ret_file, const char *path, mode_t mode,
                              psd_error_t *err)
{
    static const cookie_io_functions_t FUNCTIONS = {.write = write_out};
    psd_status_t rc = ps_file_out_open(path, mode, &ret_file->out, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (ps_file_out_beside(ret_file->out)[0] != '\0') {
        ps_interrupt_unlink(ps_file_out_beside(ret_file->out));
    }
    ret_file->rc = PSD_OK;
    ret_file->why = psd_error_new();
    ret_file->buffer = ps_alloc_raw(BUFFER_BYTES, 1);
    ret_file->file = fopencookie(ret_file, "w", FUNCTIONS);
    if (ret_file->why == NULL || ret_file->buffer == NULL || ret_file->file == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory to write %s", path);
    }
    (void)setvbuf(ret_file->file, ret_file->buffer, _IOFBF, BUFFER_BYTES);
    return PSD_OK;
}

psd_status_t ps_new_file_check(const ps_new_file_t *self, psd_error_t *err)
{
    if (self->rc == PSD_OK) {
        return PSD_OK;
    }
    psd_error_clear(err); /* the writer's error says more than the printer's */
    return psd_error_set(err, self->rc, "%s", psd_error_text(self->why));
}

psd_status_t ps_new_file_commit(ps_new_file_t *self, uint64_t *ret_bytes, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    (void)fflush(self->file); /* rc has the error */
    rc = ps_new_file_check(self, err);
    if (rc == PSD_OK) {
        rc = ps_file_out_commit(self->out, err);
    }
    *ret_bytes = ps_file_out_bytes(self->out);
    return rc;
}

void ps_new_file_done(ps_new_file_t *self)
{
    if (self->file != NULL) {
        (void)fclose(self->file);
        self->file = NULL;
    }
    ps_free(self->buffer);
    self->buffer = NULL;
    psd_error_destroy(&self->why);
    if (self->out != NULL) {
        ps_file_out_close(&self->out);
        ps_interrupt_unlink(NULL);
    }
}
