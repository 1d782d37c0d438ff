/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that start and explain. */
#include "cli/options/commands.h"

#include "cli/cluster/cluster.h"
#include "cli/jobs/jobs.h"
#include "cli/options/args_context.h"
#include "cli/options/help.h"

#define MANY ((size_t)-1)

static const char *const LAUNCHERS[] = {"local", "ssh", "mpi", "slurm", "kubernetes", "yarn", NULL};

static const ps_example_t RUN_EXAMPLES[] = {
    {"pscli run -n 4 -- ./train data.libsvm", "four workers, one a process"},
    {"pscli run -n 4 --max-delay 2 --job lr -- ./train data.libsvm",
     "at most two clocks apart, under the job name \"lr\""},
    {"pscli run -n 2 --servers 1 -- ./train data.libsvm",
     "with a private psd when none is running"},
    {"pscli run -n 4 --servers embed -- ./train data.libsvm", "each worker is a node of psd, too"},
    {"pscli run -n 4 --launcher ssh --hosts a:2,b:2 -- ./train data.libsvm",
     "two workers on each of two hosts, by ssh"},
    {"pscli run -n 8 --launcher slurm --batch job.sh -- ./train data.libsvm",
     "writes a script for sbatch"},
    {"pscli run -n 4 --launcher mpi --dry-run -- ./train data.libsvm",
     "shows the command of mpirun, ready to paste"},
    {NULL, NULL}};
static const char *const OVERLAYS[] = {"off", "auto", "tree", "pairs", "queue", NULL};
static const ps_opt_t RUN_OPTIONS[] = {
    {.name = "workers",
     .letter = 'n',
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 4096,
     .fallback = "1",
     .help = "number of workers to start"},
    {.name = "servers",
     .kind = PS_OPT_TEXT,
     .value = "M|embed[:M]",
     .fallback = "0",
     .help = "when no psd answers at the endpoint, start a private one of M nodes on this host, "
             "in temporary directories, and stop it at the end. embed: every worker, or the first "
             "M, is a node itself, in its own process; pscli has their registry, or rank 0 with "
             "launcher mpi and PSD_TRANSPORT=mpi. Workers on other hosts need "
             "PSD_SECURITY_ALLOW_PLAINTEXT=true, but not with that transport"},
    {.name = "launcher",
     .kind = PS_OPT_CHOICE,
     .value = "LAUNCHER",
     .words = LAUNCHERS,
     .fallback = "local",
     .help = "how workers are started; kubernetes and yarn: only as text, with --dry-run"},
    {.name = "hosts",
     .kind = PS_OPT_TEXT,
     .value = "LIST",
     .help = "of ssh, mpi: HOST or HOST:SLOTS, with commas between them; they fill in that order, "
             "and without slots get the same number of workers each"},
    {.name = "hostfile",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "of ssh, mpi: the same, a host a line, also as \"HOST slots=N\""},
    {.name = "ssh",
     .kind = PS_OPT_TEXT,
     .value = "COMMAND",
     .fallback = "ssh",
     .help = "the ssh program and options, as \"ssh -F FILE\""},
    {.name = "mpi", .kind = PS_OPT_TEXT, .value = "OPTIONS", .help = "more options of mpirun"},
    {.name = "slurm",
     .kind = PS_OPT_TEXT,
     .value = "OPTIONS",
     .help = "more options of srun; with --batch, of the #SBATCH line"},
    {.name = "batch",
     .kind = PS_OPT_OUTPUT_HERE,
     .value = "FILE",
     .help = "of slurm: write a script for sbatch, and start nothing; --yes replaces a file"},
    {.name = "oversubscribe", .help = "of mpi, slurm: more workers than there are slots"},
    {.name = "restart",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 0,
     .max = 1000,
     .fallback = "0",
     .help = "start a worker that failed again, under its rank, at most N times each"},
    {.name = "env",
     .kind = PS_OPT_TEXT,
     .value = "NAMES",
     .help = "variables that workers on other hosts get, besides PSD_… and LD_LIBRARY_PATH, with "
             "commas between them"},
    {.name = "address",
     .kind = PS_OPT_TEXT,
     .value = "ADDRESS",
     .help = "of this host, at which a private psd listens; default: that on the route to the "
             "workers' hosts"},
    {.name = "pscli",
     .kind = PS_OPT_TEXT,
     .value = "PATH",
     .help = "pscli on the workers' hosts; default: the path it has here"},
    {.name = "image",
     .kind = PS_OPT_TEXT,
     .value = "NAME",
     .help = "of kubernetes, yarn: the containers' image (default psd)"},
    {.name = "job",
     .kind = PS_OPT_TEXT,
     .value = "JOB",
     .help = "name of the job; default: PROGRAM and the time"},
    {.name = "max-delay",
     .kind = PS_OPT_I32,
     .value = "D",
     .fallback = "0",
     .help = "maximum spread of the workers' clocks: 0 BSP, above 0 SSP, below 0 ASP"},
    {.name = "overlay",
     .kind = PS_OPT_CHOICE,
     .value = "POLICY",
     .words = OVERLAYS,
     .help = "tree: workers add up each other's deltas on the way to the servers; auto: where that "
             "makes clocks faster; pairs, queue: along links that were found to be fast; all with "
             "--max-delay 0. Default: what PSD_OVERLAY says, else off"},
    {.name = "site",
     .kind = PS_OPT_TEXT,
     .value = "SITES",
     .help = "where workers are, for the overlay: NAME:N,NAME:N,... by rank, as east:4,west:4; "
             "default: what PSD_SITE says on each host"},
    {.name = "allow-lost",
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 0,
     .max = 4095,
     .fallback = "0",
     .help = "exit with 0 if at most N workers failed and the others finished all slices of the "
             "job's work queues"},
    {.name = "psd",
     .kind = PS_OPT_TEXT,
     .value = "PROGRAM",
     .help = "the private psd; default: the one next to pscli, else from PATH"},
    {.name = NULL}};

static const ps_example_t CONTEXT_LIST_EXAMPLES[] = {
    {"pscli context list", "all, and which one is the current one"}, {NULL, NULL}};
static const ps_example_t CONTEXT_SHOW_EXAMPLES[] = {
    {"pscli context show", "the current one"}, {"pscli context show lab", "another"}, {NULL, NULL}};
static const ps_example_t CONTEXT_SET_EXAMPLES[] = {
    {"pscli context set lab endpoint=tcp://10.0.0.5:7171", "a name for a cluster"},
    {"pscli context set lab timeout=30s output=", "one setting more, and one less"},
    {NULL, NULL}};
static const ps_example_t CONTEXT_USE_EXAMPLES[] = {
    {"pscli context use lab", "commands without --context go there"},
    {"pscli context use --none", "no current one"},
    {NULL, NULL}};
static const ps_example_t CONTEXT_DROP_EXAMPLES[] = {{"pscli context drop lab", "forget it"},
                                                     {NULL, NULL}};
static const ps_opt_t CONTEXT_USE_OPTIONS[] = {
    {.name = "none", .help = "no context is the current one"}, {.name = NULL}};
static const ps_example_t ENV_EXAMPLES[] = {
    {"pscli env", "every setting, its value and whose variable says it"},
    {"PSD_ALIASES=dmtk pscli env", "with the names of DMTK"},
    {NULL, NULL}};
static const ps_example_t EXPLAIN_EXAMPLES[] = {
    {"pscli explain E2003", "what the code means and what to do"},
    {"pscli explain", "every code"},
    {NULL, NULL}};
static const ps_example_t COMPLETION_EXAMPLES[] = {
    {"source <(pscli completion bash)", "in ~/.bashrc"},
    {"pscli completion zsh > \"${fpath[1]}/_pscli\"", "for zsh"},
    {"pscli completion fish > ~/.config/fish/completions/pscli.fish", "for fish"},
    {NULL, NULL}};
static const ps_example_t HELP_EXAMPLES[] = {
    {"pscli help table create", "the same as pscli table create --help"},
    {"pscli help --man DIR", "writes the man pages to DIR"},
    {NULL, NULL}};
static const ps_example_t VERSION_EXAMPLES[] = {{"pscli version", "the same as pscli --version"},
                                                {NULL, NULL}};
static const ps_opt_t HELP_OPTIONS[] = {
    {.name = "man", .kind = PS_OPT_TEXT, .value = "DIR", .help = "write every man page to DIR"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_tool[] = {
    {.noun = "run",
     .arguments = "-- PROGRAM [ARGS...]",
     .min_args = 1,
     .max_args = MANY,
     .complete = "program",
     .summary = "start the workers of a job",
     .details =
         "Each worker gets PSD_ENDPOINT, PSD_JOB, PSD_WORKER (its rank), PSD_WORKERS and "
         "PSD_MAX_DELAY in its environment. pscli prints each line of a worker with its rank in "
         "front. (stdout of a worker is a pipe, so a C program buffers it in blocks: use setvbuf "
         "or stdbuf -oL.) With -o json, jsonl, csv, tsv or name all lines go to stderr, and the "
         "result of each worker to stdout. pscli forwards signals to the workers; the third one "
         "kills them. When a worker fails before it has joined a job that waits for it, pscli "
         "stops the others. A worker that fails later is lost at once: the others continue and get "
         "its slices, and \"pscli why\" says how it ended. The exit code is that of the first "
         "worker that failed (128 + N if signal N killed it). When a signal N ended pscli, it is "
         "the greatest one, and at least 128 + N. With a launcher, a worker whose end nobody "
         "reported counts as 137, or as the launcher's own exit code. 1 says that a host, mpirun "
         "or srun does not start workers, 2 that hosts or slots are wrong. Files are not copied: "
         "PROGRAM and pscli have the same path on all hosts.",
     .examples = RUN_EXAMPLES,
     .options = RUN_OPTIONS,
     .flags = PS_CMD_REST | PS_CMD_DRY_RUN,
     .run = ps_cmd_run},
    {.noun = "context",
     .verb = "list",
     .arguments = "",
     .summary = "list the contexts",
     .details = "Needs no psd.",
     .examples = CONTEXT_LIST_EXAMPLES,
     .run = ps_cmd_context_list},
    {.noun = "context",
     .verb = "show",
     .arguments = "[NAME]",
     .max_args = 1,
     .complete = "context",
     .summary = "show the settings of a context",
     .details = "Without NAME, of the current one. Needs no psd.",
     .examples = CONTEXT_SHOW_EXAMPLES,
     .run = ps_cmd_context_show},
    {.noun = "context",
     .verb = "set",
     .arguments = "NAME KEY=VALUE...",
     .min_args = 2,
     .max_args = MANY,
     .complete = "context",
     .summary = "make or change a context",
     .details = "KEY is the name of a global option without its dashes: endpoint, timeout, output "
                "and the others. An empty VALUE takes the setting out; the rest of the file stays "
                "as it is. Needs no psd.",
     .examples = CONTEXT_SET_EXAMPLES,
     .run = ps_cmd_context_set},
    {.noun = "context",
     .verb = "use",
     .arguments = "[NAME]",
     .max_args = 1,
     .complete = "context",
     .summary = "make a context the current one",
     .details = "Its settings count for commands without --context, unless a flag, a variable "
                "PSCLI_… or PSD_ENDPOINT says another. Needs no psd.",
     .examples = CONTEXT_USE_EXAMPLES,
     .options = CONTEXT_USE_OPTIONS,
     .run = ps_cmd_context_use},
    {.noun = "context",
     .verb = "drop",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "context",
     .summary = "remove a context",
     .details = "If it is the current one, there is none from then on. Needs no psd.",
     .examples = CONTEXT_DROP_EXAMPLES,
     .run = ps_cmd_context_drop},
    {.noun = "env",
     .arguments = "",
     .summary = "show what programs take from the environment",
     .details =
         "Every setting of libpsd with its value and its origin: psd's own variable, or other "
         "systems' (DMLC_NUM_WORKER, ENABLE_LEMETHOD), which psd's own overrules; then the keys "
         "of psd.yaml and options of pscli that the environment sets, and variables that set "
         "nothing. PSD_ALIASES names the families of names that are read: dmlc, overlay, dmtk, "
         "parameter_server; default: the first two. Two names that differ are an error, and so is "
         "a name that psd refuses. Needs no psd.",
     .examples = ENV_EXAMPLES,
     .run = ps_cmd_env},
    {.noun = "explain",
     .arguments = "[CODE]",
     .max_args = 1,
     .complete = "code",
     .summary = "what an error code means and what to do",
     .details = "CODE is the code that errors show (E2003), or its name (NO_TABLE). Needs no psd.",
     .examples = EXPLAIN_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_explain},
    {.noun = "completion",
     .arguments = "SHELL",
     .min_args = 1,
     .max_args = 1,
     .complete = "shell",
     .summary = "write completion for bash, zsh or fish",
     .details = "",
     .examples = COMPLETION_EXAMPLES,
     .run = ps_cmd_completion},
    {.noun = "help",
     .arguments = "[COMMAND [VERB]]",
     .max_args = 3,
     .complete = "command",
     .summary = "help for a command",
     .details = "",
     .examples = HELP_EXAMPLES,
     .options = HELP_OPTIONS,
     .run = ps_cmd_help},
    {.noun = "version",
     .arguments = "",
     .summary = "show the version",
     .details = "",
     .examples = VERSION_EXAMPLES,
     .run = ps_cmd_version},
    {.noun = NULL}};
