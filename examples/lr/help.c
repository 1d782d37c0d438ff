/* SPDX-License-Identifier: Apache-2.0 */
/* The help text. */
#include <stdio.h>

#include "options.h"

static const char TEXT[] =
    "psd-lr - sparse logistic regression on a psd parameter server\n"
    "\n"
    "Examples:\n"
    "  psd-lr --train a.libsvm --test b.libsvm\n"
    "      one worker, FTRL, against the psd on tcp://127.0.0.1:7171\n"
    "  pscli run -n 4 -- psd-lr --train a.libsvm --test b.libsvm --max-delay "
    "2\n"
    "      four workers, of which none is more than 2 clocks ahead\n"
    "  psd-lr --train a.libsvm --objective l2:1 --epochs 60 --save model.txt\n"
    "      the exact optimum of sum log(1+exp(-y w.x)) + 1/2 |w|^2\n"
    "  psd-lr --predict model.txt --test b.libsvm --scores p.txt\n"
    "      uses a saved model; needs no psd\n"
    "\n"
    "Data (libsvm text: label index:value ...; labels 0 1 -1 +1):\n"
    "  --train FILE       worker i of n takes every n-th example\n"
    "  --test FILE        measured at the end, by worker 0\n"
    "  --features N       greatest index allowed (default: as found in FILE)\n"
    "Model:\n"
    "  --table NAME       of the weights, row = index (default lr); made when "
    "it\n"
    "                     is not there, else trained further\n"
    "  --updater NAME     ftrl (default), adagrad, sgd; when given, a table "
    "that\n"
    "                     is there must have it, with the same settings\n"
    "  --alpha F --beta F --l1 F --l2 F\n"
    "                     its settings (ftrl 0.1 1 1 1, adagrad 0.2 1 0 0, "
    "sgd\n"
    "                     0.01 - 0 0)\n"
    "  --objective l2:C   trains for F = C sum log(1+exp(-y w.x)) + 1/2 |w|^2\n"
    "                     and reports F; with adagrad (its default) or sgd\n"
    "  --save FILE        writes the weights that are not zero: index value\n"
    "  --predict FILE     reads such a model instead of training one\n"
    "  --scores FILE      writes the probability of each test example\n"
    "Training:\n"
    "  --epochs N         passes over the data (default 5)\n"
    "  --minibatch N      examples of a worker in one step (default 100)\n"
    "  --clock-every N    minibatches in one clock (default 1)\n"
    "  --meet-every N     epochs after which all workers wait for each other, "
    "so\n"
    "                     that in ASP too none falls far behind (default 1; "
    "0:\n"
    "                     only at the end)\n"
    "  --max-delay N      0 BSP, N SSP, -1 ASP (default $PSD_MAX_DELAY, else "
    "0)\n"
    "  --seed N           of the order of the examples (default 0)\n"
    "  --report SECONDS   between progress lines (default 1); 0: every epoch\n"
    "  --timeout SECONDS  of every wait (default 30)\n"
    "  --help\n"
    "\n"
    "Environment, set by pscli run: PSD_ENDPOINT, PSD_JOB, PSD_WORKER,\n"
    "PSD_WORKERS, PSD_MAX_DELAY. Exit codes are those of pscli: 0 done, 1 "
    "failed,\n"
    "2 usage or data not understood, 3 cannot connect, 7 deadline passed.\n";

void
lr_help(void)
{
    (void)fputs(TEXT, stdout);
}
