/* SPDX-License-Identifier: Apache-2.0 */
/* The commands that look at the cluster, its nodes, jobs, workers, clocks. */
#include "cli/options/commands.h"

#include "cli/cluster/cluster.h"
#include "cli/jobs/jobs.h"

static const ps_example_t STATUS_EXAMPLES[] = {
    {"pscli cluster status", "one screen: nodes, tables, jobs, problems"},
    {"pscli cluster status --watch 2s", "the same, refreshed every two seconds"},
    {"pscli cluster status -o json", "for a script; .problems lists what is wrong"},
    {NULL, NULL}};

static const ps_example_t EVENTS_EXAMPLES[] = {
    {"pscli cluster events", "what happened, oldest first"},
    {"pscli cluster events -n 20", "the last 20"},
    {"pscli cluster events --since 1h --kind table,drop", "tables of the last hour"},
    {"pscli cluster events --follow", "and each further one, until interrupted"},
    {NULL, NULL}};
static const ps_opt_t EVENTS_OPTIONS[] = {
    {.name = "last",
     .letter = 'n',
     .kind = PS_OPT_U64,
     .value = "N",
     .min = 1,
     .max = 10000,
     .fallback = "1000",
     .help = "only the last N events"},
    {.name = "since",
     .kind = PS_OPT_DURATION,
     .value = "DURATION",
     .min = 1,
     .max = 31536000000,
     .help = "only events of the last DURATION (30m, 12h); this and "
             "--kind choose among the last 10000"},
    {.name = "kind",
     .kind = PS_OPT_TEXT,
     .value = "LIST",
     .help = "only events of these kinds, with commas "
             "between them"},
    {.name = "follow",
     .letter = 'f',
     .help = "go on, and show each event as it happens; "
             "json is as jsonl"},
    {.name = NULL}};

static const ps_example_t BACKUP_EXAMPLES[] = {
    {"pscli cluster backup --to psd.backup", "while the cluster runs"}, {NULL, NULL}};
static const ps_opt_t BACKUP_OPTIONS[] = {
    {.name = "to",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "output file; compressed when it ends with .gz or .zst; \"-\" is stdout. Required"},
    {.name = NULL}};
static const ps_example_t RESTORE_EXAMPLES[] = {
    {"pscli cluster restore --from psd.backup --data-dir /var/lib/psd",
     "before psd is started there"},
    {NULL, NULL}};
static const ps_opt_t RESTORE_OPTIONS[] = {
    {.name = "from",
     .kind = PS_OPT_TEXT,
     .value = "FILE",
     .help = "output of \"cluster backup\", compressed or not; \"-\" is stdin. Required"},
    {.name = "data-dir",
     .kind = PS_OPT_TEXT,
     .value = "DIR",
     .help = "data directory of the registry's node; must have no registry. Required"},
    {.name = NULL}};

static const ps_example_t SETTINGS_EXAMPLES[] = {
    {"pscli cluster settings", "each value, and where it comes from"},
    {"pscli cluster settings -o json", "the same for a script, with what the node's file says"},
    {NULL, NULL}};
static const ps_example_t GET_EXAMPLES[] = {
    {"pscli cluster get cluster.repair_after", "the value alone"}, {NULL, NULL}};
static const ps_example_t SET_EXAMPLES[] = {
    {"pscli cluster set cluster.repair_after 120000", "a node that is away for two minutes"},
    {"pscli cluster set copies.even_out false", "no copy moves to even out nodes"},
    {NULL, NULL}};
static const ps_example_t UNSET_EXAMPLES[] = {
    {"pscli cluster unset cluster.repair_after", "what the file of the leading node says counts"},
    {NULL, NULL}};

static const ps_example_t REGISTRY_LIST_EXAMPLES[] = {
    {"pscli cluster registry list", "which nodes have the registry, and who leads"},
    {"pscli cluster registry list -o json", "the same for a script; .stale: no leader said it"},
    {NULL, NULL}};

static const ps_example_t REGISTRY_ADD_EXAMPLES[] = {
    {"pscli cluster registry add d", "node \"d\" votes, as soon as it has caught up"},
    {"pscli cluster registry add d --standby", "it only follows, ready to replace a voter"},
    {"pscli cluster registry add d --dry-run", "whether it could"},
    {NULL, NULL}};
static const ps_opt_t REGISTRY_ADD_OPTIONS[] = {
    {.name = "standby", .help = "without a vote; a voter becomes a stand-by"}, {.name = NULL}};
static const ps_example_t REGISTRY_REMOVE_EXAMPLES[] = {
    {"pscli cluster registry remove a", "node \"a\" keeps its rows, and has no registry"},
    {"pscli cluster registry remove a --dry-run", "whether the others are enough"},
    {NULL, NULL}};
static const ps_example_t REGISTRY_TRANSFER_EXAMPLES[] = {
    {"pscli cluster registry transfer", "any other voter leads"},
    {"pscli cluster registry transfer b", "node \"b\" leads"},
    {NULL, NULL}};
static const ps_opt_t DATA_DIR_OPTIONS[] = {
    {.name = "data-dir",
     .kind = PS_OPT_TEXT,
     .value = "DIR",
     .help = "data directory in which no psd runs. Required"},
    {.name = NULL}};
static const ps_example_t REGISTRY_INSPECT_EXAMPLES[] = {
    {"pscli cluster registry inspect --data-dir /var/lib/psd",
     "which of several directories has the newest term and index"},
    {NULL, NULL}};
static const ps_example_t REGISTRY_SINGLE_EXAMPLES[] = {
    {"pscli cluster registry single --data-dir /var/lib/psd",
     "after all other members were removed"},
    {NULL, NULL}};
static const ps_example_t PROMOTE_EXAMPLES[] = {
    {"pscli node promote d", "as \"pscli cluster registry add d\""}, {NULL, NULL}};
static const ps_example_t DEMOTE_EXAMPLES[] = {
    {"pscli node demote d", "as \"pscli cluster registry add d --standby\""}, {NULL, NULL}};

static const ps_example_t NODE_LIST_EXAMPLES[] = {
    {"pscli node list", "every node, its state and what it holds"},
    {"pscli node list -o name", "only the names, one a line"},
    {NULL, NULL}};
static const ps_example_t NODE_INSPECT_EXAMPLES[] = {
    {"pscli node inspect a", "all details of node \"a\""}, {NULL, NULL}};

static const ps_example_t INVITE_EXAMPLES[] = {
    {"pscli node invite b", "a token; on the host of b: psd --token-file FILE"},
    {"pscli node invite b --ttl 60m -o json", "for a script"},
    {NULL, NULL}};
static const ps_opt_t INVITE_OPTIONS[] = {
    {.name = "ttl",
     .kind = PS_OPT_DURATION,
     .value = "TIME",
     .min = 1000,
     .max = 86400000,
     .help = "how long it counts, up to 86400s; without it 10m"},
    {.name = NULL}};

static const ps_example_t DRAIN_EXAMPLES[] = {
    {"pscli node drain a", "waits until nothing is left on node \"a\""},
    {"pscli node drain a --no-wait", "starts the drain and returns"},
    {"pscli node drain a --dry-run", "what would move, bytes and time"},
    {"pscli node drain a --stay", "cancels the drain"},
    {NULL, NULL}};
static const ps_opt_t DRAIN_OPTIONS[] = {
    {.name = "no-wait",
     .help =
         "do not wait until the node is empty. Without it pscli shows what is left and, when no "
         "copy can move for --timeout, prints the reason and exits with 7; the drain continues"},
    {.name = "stay", .help = "cancel the drain: the node gets copies again"},
    {.name = NULL}};
static const ps_example_t REMOVE_EXAMPLES[] = {
    {"pscli node remove a", "node \"a\", drained and stopped"},
    {"pscli node remove a --force", "node \"a\" is lost, with all its data"},
    {NULL, NULL}};
static const ps_opt_t REMOVE_OPTIONS[] = {
    {.name = "force",
     .help = "also when it is down and has copies; rows that only it had are lost"},
    {.name = NULL}};
static const ps_example_t REBALANCE_EXAMPLES[] = {
    {"pscli cluster rebalance", "balances the nodes; shows what moves"},
    {"pscli cluster rebalance --dry-run", "what would move, bytes and time"},
    {NULL, NULL}};
static const ps_example_t REPAIR_EXAMPLES[] = {
    {"pscli cluster repair", "copies that are missing or catching up"},
    {"pscli cluster repair --wait", "until every partition has all copies"},
    {NULL, NULL}};

static const ps_example_t JOB_LIST_EXAMPLES[] = {
    {"pscli job list", "every job with its state and clocks"},
    {"pscli job list -o jsonl", "one JSON object a line"},
    {NULL, NULL}};
static const ps_example_t JOB_INSPECT_EXAMPLES[] = {
    {"pscli job inspect lr", "all details of job \"lr\""},
    {"pscli job inspect lr --overlay", "who sends to whom, how fast, and why"},
    {"pscli job inspect lr --matrix", "bytes per second between workers, as they measured them"},
    {"pscli job inspect lr --dot | dot -Tsvg > lr.svg", "a drawing of the overlay"},
    {NULL, NULL}};
static const ps_opt_t JOB_INSPECT_OPTIONS[] = {
    {.name = "overlay",
     .help = "the job's overlay: its plan, measured links, what workers lent or sent directly"},
    {.name = "matrix",
     .help = "the same as --overlay, but the bandwidths that workers have measured: rows send to "
             "columns"},
    {.name = "dot", .help = "the same as --overlay, but as a graph for dot of graphviz"},
    {.name = NULL}};
static const ps_example_t CHECK_OVERLAY_EXAMPLES[] = {
    {"pscli job check-overlay lemethod.conf", "what the file sets, and what is wrong with it"},
    {"pscli job check-overlay lemethod.conf --workers 8", "ranks must be below 8, too"},
    {NULL, NULL}};
static const ps_opt_t CHECK_OVERLAY_OPTIONS[] = {{.name = "workers",
                                                  .kind = PS_OPT_U64,
                                                  .value = "N",
                                                  .fallback = "0",
                                                  .max = 4096,
                                                  .help = "of the job; 0: not known"},
                                                 {.name = NULL}};
static const ps_example_t JOB_STOP_EXAMPLES[] = {
    {"pscli job stop lr", "the next push, pull or clock of its workers fails"},
    {"pscli job stop lr --dry-run", "shows what would be stopped"},
    {NULL, NULL}};
static const ps_example_t WORKER_LIST_EXAMPLES[] = {
    {"pscli worker list lr", "rank, state and clock of each worker"}, {NULL, NULL}};
static const ps_example_t CLOCK_LIST_EXAMPLES[] = {
    {"pscli clock list", "slowest and fastest worker of every job"},
    {"pscli clock list --watch 1s", "the same, every second"},
    {NULL, NULL}};
static const ps_example_t CLOCK_INSPECT_EXAMPLES[] = {
    {"pscli clock inspect lr", "each worker's clock, and whom it waits for"},
    {"pscli clock inspect lr -o json", "the same for a script"},
    {NULL, NULL}};
static const ps_example_t WHY_EXAMPLES[] = {
    {"pscli why lr", "one line for each waiting worker, with the reason"},
    {"pscli why", "the only running job"},
    {NULL, NULL}};

static const ps_example_t WORKER_EXEC_EXAMPLES[] = {
    {"mpirun -n 4 -x PSD_ENDPOINT pscli worker exec -- ./train data.libsvm",
     "four workers, started by mpirun without \"pscli run\""},
    {"srun -n 4 pscli worker exec -- ./train data.libsvm", "the same in an allocation of Slurm"},
    {NULL, NULL}};
static const ps_opt_t WORKER_EXEC_OPTIONS[] = {
    {.name = "launch",
     .kind = PS_OPT_TEXT,
     .value = "ID",
     .help = "of \"pscli run\": output and the end go to that launch, in records"},
    {.name = "stdin",
     .help = "of \"pscli run\": settings and orders come on standard input; its end ends the "
             "program"},
    {.name = NULL}};

const ps_cmd_t ps_cmds_cluster[] = {
    {.noun = "cluster",
     .verb = "status",
     .arguments = "",
     .summary = "one screen: nodes, shards, tables, jobs, problems",
     .details = "The exit code is 0 when the cluster is healthy, else 1. If a psd does not answer "
                "within half a second (or --timeout), pscli names the thread that hangs when the "
                "psd is on this host, else the port that does not answer.",
     .examples = STATUS_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_status},
    {.noun = "cluster",
     .verb = "events",
     .arguments = "",
     .summary = "show the history of the cluster",
     .details = "The registry keeps one event for each change: nodes that started, tables created "
                "and dropped, workers that joined, finished or were lost.",
     .examples = EVENTS_EXAMPLES,
     .options = EVENTS_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_events},
    {.noun = "cluster",
     .verb = "rebalance",
     .arguments = "",
     .summary = "move copies until the nodes are balanced",
     .details = "Shows the moves, their bytes and time. With copies.even_out: true, psd rebalances "
                "by itself, a few copies at a time. Pushes and pulls continue meanwhile.",
     .examples = REBALANCE_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_cluster_rebalance},
    {.noun = "cluster",
     .verb = "repair",
     .arguments = "",
     .summary = "show missing copies and the progress of their repair",
     .details =
         "Lists each copy that is missing or being rebuilt, with its bytes and the time left. "
         "Changes nothing: psd rebuilds lost copies by itself. With --wait it shows progress until "
         "no copy is missing; when no copy is being made for --timeout, the exit code is 7.",
     .examples = REPAIR_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_repair},
    {.noun = "cluster",
     .verb = "backup",
     .arguments = "",
     .summary = "save the registry to a file",
     .details = "A complete SQLite database with the cluster's name, nodes, tables, jobs and "
                "history. It has no rows of tables: the nodes store those.",
     .examples = BACKUP_EXAMPLES,
     .options = BACKUP_OPTIONS,
     .run = ps_cmd_cluster_backup},
    {.noun = "cluster",
     .verb = "restore",
     .arguments = "",
     .summary = "restore the registry from a backup, on this machine",
     .details = "pscli checks the file as psd does at its start, and installs it as the registry "
                "of a data directory that has none. Changes since the backup are lost. New numbers "
                "start far above those of the backup, so that no number that nodes and clients "
                "still know is assigned twice.",
     .examples = RESTORE_EXAMPLES,
     .options = RESTORE_OPTIONS,
     .run = ps_cmd_cluster_restore},
    {.noun = "cluster",
     .verb = "settings",
     .arguments = "",
     .summary = "list the settings that the cluster can have as a whole",
     .details = "ORIGIN is \"cluster\" for what was set here, else it says where the node that "
                "leads the registry took the value from. -o wide shows what its file says.",
     .examples = SETTINGS_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_cluster_settings},
    {.noun = "cluster",
     .verb = "get",
     .arguments = "KEY",
     .min_args = 1,
     .max_args = 1,
     .summary = "show one setting of the cluster",
     .details = "",
     .examples = GET_EXAMPLES,
     .run = ps_cmd_cluster_get},
    {.noun = "cluster",
     .verb = "set",
     .arguments = "KEY VALUE",
     .min_args = 2,
     .max_args = 2,
     .summary = "set a setting of the cluster, while it runs",
     .details = "The value is part of the registry, and counts on every node that leads it, also "
                "after a restart, in place of what the nodes' files say. Values are checked as "
                "those of a file; they count at once, workers.heartbeat_ms for clients that "
                "connect from then on. Refused while a node that has a part of the registry runs "
                "an older psd.",
     .examples = SET_EXAMPLES,
     .run = ps_cmd_cluster_set},
    {.noun = "cluster",
     .verb = "unset",
     .arguments = "KEY",
     .min_args = 1,
     .max_args = 1,
     .summary = "leave a setting to the nodes' files again",
     .details = "",
     .examples = UNSET_EXAMPLES,
     .run = ps_cmd_cluster_unset},
    {.noun = "cluster",
     .verb = "registry list",
     .arguments = "",
     .summary = "list the nodes that have the registry",
     .details =
         "Any node that has a part of the registry answers, also while none leads: then the answer "
         "is stale, as that node sees it. LAST is the end of a node's log, LAG what it lacks of "
         "the leader's; only the leader knows them of other nodes, and each node alone knows what "
         "it has APPLIED. HEARD is the time since the node was last heard; after two seconds it "
         "is silent.",
     .examples = REGISTRY_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_registry_list},
    {.noun = "cluster",
     .verb = "registry add",
     .arguments = "NODE",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "let a node vote in the registry, or stand by",
     .details = "A new member gets the registry's database and log first, and votes when it has "
                "caught up; pscli waits for that. With registry.automatic: true psd adds members "
                "by itself.",
     .examples = REGISTRY_ADD_EXAMPLES,
     .options = REGISTRY_ADD_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_registry_add},
    {.noun = "cluster",
     .verb = "registry remove",
     .arguments = "NODE",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "take the registry from a node",
     .details =
         "The node stays in the cluster, with its rows. One that leads hands its lead over first. "
         "Refused when a majority of the other voters is not up. With registry.automatic: true a "
         "node that stands by takes the vote; the removed one is not asked again until \"registry "
         "add\" names it.",
     .examples = REGISTRY_REMOVE_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_registry_remove},
    {.noun = "cluster",
     .verb = "registry transfer",
     .arguments = "[NODE]",
     .max_args = 1,
     .complete = "node",
     .summary = "let another voter lead the registry",
     .details = "Requests under way are asked again at the new leader, and done once.",
     .examples = REGISTRY_TRANSFER_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_registry_transfer},
    {.noun = "cluster",
     .verb = "registry inspect",
     .arguments = "",
     .summary = "show what a stopped node has of the registry",
     .details = "Its member id, term and vote, the first and last entry of its log, what its "
                "database has applied, its lineage, and the members that it knows. Changes "
                "nothing there.",
     .examples = REGISTRY_INSPECT_EXAMPLES,
     .options = DATA_DIR_OPTIONS,
     .run = ps_cmd_registry_inspect},
    {.noun = "cluster",
     .verb = "registry single",
     .arguments = "",
     .summary = "make a stopped member a registry on one node",
     .details =
         "Applies what the log has, forgets the members, and puts the log aside as "
         "registry-log.old-INDEX. Set registry.voters: 1 then. Refused while a psd runs there, and "
         "while other nodes vote: remove those first. When they are lost for good, --yes goes on "
         "without them: what they agreed on without this one is lost, and nodes must join again.",
     .examples = REGISTRY_SINGLE_EXAMPLES,
     .options = DATA_DIR_OPTIONS,
     .run = ps_cmd_registry_single},
    {.noun = "node",
     .verb = "list",
     .arguments = "",
     .summary = "list the nodes of the cluster",
     .details = "",
     .examples = NODE_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_node_list},
    {.noun = "node",
     .verb = "inspect",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "show all details of a node",
     .details = "",
     .examples = NODE_INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_node_inspect},
    {.noun = "node",
     .verb = "invite",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .summary = "make a token by which a new node joins",
     .details =
         "Prints one line, the token. Whoever has it can join once as node NAME until it "
         "expires, so hand it on in a safe way: \"psd --token-file FILE\", or - for standard "
         "input. The secret in it is made here; the cluster gets its public half alone. A "
         "token is void once it is used, another one is made for NAME, or another node "
         "leads the registry. For clusters with security.level: encrypt.",
     .examples = INVITE_EXAMPLES,
     .options = INVITE_OPTIONS,
     .run = ps_cmd_node_invite},
    {.noun = "node",
     .verb = "drain",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "move all copies away from a node",
     .details = "The node gets no more copies, and its copies move to other nodes; pushes and "
                "pulls continue meanwhile. Copies that no other node can take stay, and pscli "
                "names them. --stay cancels the drain.",
     .examples = DRAIN_EXAMPLES,
     .options = DRAIN_OPTIONS,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_node_drain},
    {.noun = "node",
     .verb = "remove",
     .arguments = "NAME",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "forget a node",
     .details =
         "Removes a node that is stopped and has no copies or, with --force, one that is down for "
         "good. If it had the last copies of a partition, rows are lost: pscli asks on a terminal, "
         "elsewhere it needs --yes. A node that is up is refused, as it would join again.",
     .examples = REMOVE_EXAMPLES,
     .options = REMOVE_OPTIONS,
     .run = ps_cmd_node_remove},
    {.noun = "node",
     .verb = "promote",
     .arguments = "NODE",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "let a node vote in the registry",
     .details = "The same as \"pscli cluster registry add NODE\".",
     .examples = PROMOTE_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_node_promote},
    {.noun = "node",
     .verb = "demote",
     .arguments = "NODE",
     .min_args = 1,
     .max_args = 1,
     .complete = "node",
     .summary = "let a node stand by for the registry, without a vote",
     .details = "The same as \"pscli cluster registry add NODE --standby\".",
     .examples = DEMOTE_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_node_demote},
    {.noun = "job",
     .verb = "list",
     .arguments = "",
     .summary = "list the jobs",
     .details = "",
     .examples = JOB_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_job_list},
    {.noun = "job",
     .verb = "inspect",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "show all details of a job",
     .details = "",
     .examples = JOB_INSPECT_EXAMPLES,
     .options = JOB_INSPECT_OPTIONS,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_job_inspect},
    {.noun = "job",
     .verb = "stop",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "stop a job",
     .details = "The next call of each worker fails with E4004. Acknowledged pushes stay. A "
                "stopped job cannot run again; start it under a new name.",
     .examples = JOB_STOP_EXAMPLES,
     .flags = PS_CMD_DRY_RUN,
     .run = ps_cmd_job_stop},
    {.noun = "job",
     .verb = "check-overlay",
     .arguments = "FILE",
     .min_args = 1,
     .max_args = 1,
     .summary = "check the settings file of an overlay",
     .details =
         "FILE has the lines of LeMethod: ADD_CONNECTION FROM TO, SET_SCHEDULE_RATIO RATIO, "
         "SET_SCHEDULE_NUM NUMBER, SET_BANDWIDTH_EXPIRATION REPORTS; also REMOVE_CONNECTION FROM "
         "TO. FROM and TO are ranks of workers. Exit code 2 when a line is wrong.",
     .examples = CHECK_OVERLAY_EXAMPLES,
     .options = CHECK_OVERLAY_OPTIONS,
     .run = ps_cmd_job_check_overlay},
    {.noun = "worker",
     .verb = "list",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "list the workers of a job",
     .details = "",
     .examples = WORKER_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_worker_list},
    {.noun = "worker",
     .verb = "exec",
     .arguments = "-- PROGRAM [ARGS...]",
     .min_args = 1,
     .max_args = (size_t)-1,
     .complete = "program",
     .summary = "run one worker where a launcher starts it",
     .details =
         "\"pscli run\" has a launcher run this beside each worker; by hand it makes a worker of "
         "any process of mpirun, srun or an indexed job of Kubernetes. It sets PSD_WORKER and "
         "PSD_WORKERS from PSD_WORKER, OMPI_COMM_WORLD_RANK, PMI_RANK, PMIX_RANK, SLURM_PROCID "
         "(only inside a step: a batch script alone is one worker) or JOB_COMPLETION_INDEX, else "
         "to 0 of 1. The program runs in a process group of its own; it and all it has started "
         "end when the launcher does. The exit code is the program's, 128 + N if signal N killed "
         "it.",
     .examples = WORKER_EXEC_EXAMPLES,
     .options = WORKER_EXEC_OPTIONS,
     .flags = PS_CMD_REST,
     .run = ps_cmd_worker_exec},
    {.noun = "clock",
     .verb = "list",
     .arguments = "",
     .summary = "list the clocks of every job",
     .details =
         "A clock counts the periods that a worker has finished. max_delay bounds the spread of "
         "the clocks of running workers: 0 is BSP, above 0 SSP, below 0 ASP (no bound).",
     .examples = CLOCK_LIST_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_clock_list},
    {.noun = "clock",
     .verb = "inspect",
     .arguments = "JOB",
     .min_args = 1,
     .max_args = 1,
     .complete = "job",
     .summary = "show each worker's clock, the spread and the bound",
     .details = "",
     .examples = CLOCK_INSPECT_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_clock_inspect},
    {.noun = "why",
     .arguments = "[JOB]",
     .min_args = 0,
     .max_args = 1,
     .complete = "job",
     .summary = "why a job makes no progress, one line per waiting worker",
     .details = "Without JOB: the only running job.",
     .examples = WHY_EXAMPLES,
     .flags = PS_CMD_WATCH,
     .run = ps_cmd_why},
    {.noun = NULL}};
