/* SPDX-License-Identifier: Apache-2.0 */
/*
 * psd-lda - topics of documents on a psd parameter server
 *
 * What     A user's program: it sees <psd.h> and <psd_data.h>. Each process is
 *          one worker with a part of the documents; how often each word has
 *          each topic is a table on the server.
 */
#include "../common/program/program.h"
#include "infer.h"
#include "options.h"
#include "train.h"

static psd_status_t run(int argc, char **argv, psd_error_t *err)
{
    lda_options_t options;
    psd_status_t rc = lda_options_read(&options, argc, argv, err);

    if (rc == PSD_OK && options.help) {
        lda_help();
        return PSD_OK;
    }
    if (rc != PSD_OK) {
        return rc;
    }
    return options.infer != NULL ? lda_infer(&options, err) : lda_train(&options, err);
}

int main(int argc, char **argv)
{
    return ex_program("psd-lda", run, argc, argv);
}
