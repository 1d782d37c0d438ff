/* SPDX-License-Identifier: Apache-2.0 */
/* The command line. */
#include "options.h"

#include <inttypes.h>
#include <stddef.h>

#include "../common/program/inputs.h"
#include "../common/program/program.h"

#define AT(member) offsetof(mnist_options_t, member)
static const ps_opt_t OPTIONS[] = {
    {.kind = PS_OPT_HEADING,
     .help = "Data (idx images, their labels beside them; plain, .gz or .zst):"},
    PS_OPT_ROW("train", "FILE", PS_OPT_INPUTS, AT(train),
               "training images; each worker reads all and computes its part of each minibatch"),
    PS_OPT_ROW("test", "FILE", PS_OPT_INPUTS, AT(test),
               "test images; worker 0 measures them after each epoch"),
    {.kind = PS_OPT_HEADING, .help = "Model:"},
    PS_OPT_ROW("model", "softmax|mlp", PS_OPT_CHOICE, AT(network),
               "softmax regression (default), or one hidden layer of rectified units"),
    PS_OPT_NUMBER("hidden", "N", PS_OPT_U32, AT(hidden), 1, 65536,
                  "units of the hidden layer (default 128)"),
    PS_OPT_ROW("table", "NAME", PS_OPT_TEXT, AT(table),
               "table of the weights (default mnist); created if missing, else trained further, "
               "also after a restore of a checkpoint"),
    PS_OPT_ROW("save", "FILE", PS_OPT_OUTPUT, AT(save), "writes the model"),
    PS_OPT_ROW("predict", "FILE", PS_OPT_INPUT, AT(predict),
               "reads such a model instead of training one"),
    PS_OPT_ROW("scores", "FILE", PS_OPT_OUTPUT_HERE, AT(scores),
               "with --predict: writes the class of each test image"),
    {.kind = PS_OPT_HEADING, .help = "Training:"},
    PS_OPT_NUMBER("epochs", "N", PS_OPT_U32, AT(epochs), 1, 1e6,
                  "passes over the images (default 10)"),
    PS_OPT_NUMBER("minibatch", "N", PS_OPT_U32, AT(minibatch), 1, 1e6,
                  "images in a step of all workers together (default 128)"),
    PS_OPT_NUMBER("step", "F", PS_OPT_REAL, AT(step), 1e-9, 1e3, "learning rate (default 0.1)"),
    PS_OPT_NUMBER("momentum", "F", PS_OPT_REAL, AT(momentum), 0, 0.999,
                  "fraction of the last step that is added to each step (default 0); needs BSP"),
    PS_OPT_NUMBER("outer-every", "H", PS_OPT_U32, AT(outer_every), 1, 1e6,
                  "each worker trains its own copy, and after H minibatches pushes what it has "
                  "changed (DiLoCo); a table of its own kind; needs BSP"),
    PS_OPT_NUMBER("outer-fragments", "P", PS_OPT_U32, AT(outer_fragments), 1, 1e6,
                  "with --outer-every: pushes one of P parts of the parameters in turn "
                  "(default 1)"),
    PS_OPT_NUMBER("outer-overlap", "D", PS_OPT_U32, AT(outer_overlap), 0, 1e6,
                  "with --outer-every: pulls D < H minibatches after the push, and keeps what "
                  "changed meanwhile (default 0)"),
    PS_OPT_ROW("average", "yes|no", PS_OPT_CHOICE, AT(average),
               "measures and saves the mean of the parameters after all steps of the last epoch "
               "(default yes), as with a large step they fluctuate; with --outer-every always no"),
    PS_OPT_ROW("seed", "N", PS_OPT_U64, AT(seed),
               "of the first weights and of the order of the images (default 0)"),
    PS_OPT_NUMBER("report", "SECONDS", PS_OPT_REAL, AT(report_s), 0, 86400,
                  "between progress lines (default 0: every epoch)"),
    EX_JOB_OPTIONS(mnist_options_t, job),
    PS_OPT_END,
};
#undef AT

static const ex_command_t COMMAND = {
    "psd-mnist - softmax regression and a small neural network on images\n"
    "\n"
    "Examples:\n"
    "  psd-mnist --train train-images-idx3-ubyte.gz --test "
    "t10k-images-idx3-ubyte.gz\n"
    "      one worker, softmax regression, psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-mnist --model mlp --momentum 0.9 --step 0.05 "
    "--train … --test … --save mlp.txt\n"
    "      four workers that share each minibatch\n"
    "  psd-mnist --predict mlp.txt --test t10k-images-idx3-ubyte.gz\n"
    "      uses a saved model; needs no psd\n",
    OPTIONS,
};

static psd_status_t check(const mnist_options_t *self, psd_error_t *err)
{
    if (self->predict == NULL && self->train == NULL) {
        return psd_error_set(err, PSD_USAGE, "--train FILE is missing");
    }
    if (self->predict != NULL && self->test == NULL) {
        return psd_error_set(err, PSD_USAGE, "--predict needs --test FILE");
    }
    if (self->scores != NULL && self->predict == NULL) {
        return psd_error_set(err, PSD_USAGE, "--scores needs --predict FILE");
    }
    if (self->outer_every == 0 && (self->outer_fragments > 1 || self->outer_overlap > 0)) {
        return psd_error_set(err, PSD_USAGE,
                             "--outer-fragments and --outer-overlap need --outer-every H");
    }
    if (self->outer_every > 0 && self->outer_overlap >= self->outer_every) {
        return psd_error_set(err, PSD_USAGE,
                             "--outer-overlap is %" PRIu32 "; less than --outer-every %" PRIu32
                             " is allowed",
                             self->outer_overlap, self->outer_every);
    }
    return PSD_OK;
}

psd_status_t mnist_options_read(mnist_options_t *self, int argc, char **argv, psd_error_t *err)
{
    psd_status_t rc = PSD_OK;

    *self = (mnist_options_t){
        .table = "mnist",
        .hidden = 128,
        .epochs = 10,
        .minibatch = 128,
        .step = 0.1,
        .outer_fragments = 1,
        .job = EX_JOB_DEFAULTS,
    };
    rc = ex_options_read(&COMMAND, self, argc, argv, &self->help, err);
    if (rc != PSD_OK || self->help) {
        return rc;
    }
    rc = check(self, err);
    return rc == PSD_OK ? ex_inputs_check(&COMMAND, self, err) : rc;
}

void mnist_help(void)
{
    ex_options_help(&COMMAND);
}
