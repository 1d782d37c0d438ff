/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as processes, their links, and the clean-up. */
#include "support/cluster.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "support/keeper.h"
#include "support/netns.h"
#include "support/tmpfs.h"

#define READY_MS 60000
#define STEP_MS 5
#define PATH_SIZE (PATH_MAX + 64)
#define ANNOUNCEMENT_SIZE 16384

static void pause_a_step(void)
{
    const struct timespec step = {.tv_nsec = STEP_MS * 1000000L};

    (void)nanosleep(&step, NULL);
}

static void path_of(const cluster_t *self, unsigned node, const char *name, char ret[PATH_SIZE])
{
    (void)snprintf(ret, PATH_SIZE, "%.3000s/%s%s%s", self->dir.path, self->nodes[node].name,
                   name[0] == '\0' ? "" : "/", name);
}

static FILE *open_file(const cluster_t *self, unsigned node, const char *name)
{
    char path[PATH_SIZE];

    path_of(self, node, name, path);
    return fopen(path, "re");
}

bool cluster_can(cluster_net_t net)
{
    return net != CLUSTER_NETNS || netns_can();
}

/* ---- one node ---- */

/* Addresses that no other test of this machine has: by process and node. */
static void settle_hosts(cluster_t *self, unsigned node)
{
    cluster_node_t *n = &self->nodes[node];
    unsigned place = ((unsigned)getpid() & 0x3ffffU) << 5 | node << 1;
    unsigned high = 0x40U | place >> 16; /* 127.64 and above: unused */

    (void)snprintf(n->name, sizeof n->name, "n%u", node);
    if (self->net == CLUSTER_NETNS) {
        (void)snprintf(n->host, sizeof n->host, "10.77.0.%u", 10 + node);
    } else {
        (void)snprintf(n->host, sizeof n->host, "127.%u.%u.%u", high, place >> 8 & 0xff,
                       place & 0xff);
    }
    memcpy(n->front, n->host, sizeof n->front);
    if (self->net == CLUSTER_PROXY) {
        (void)snprintf(n->front, sizeof n->front, "127.%u.%u.%u", high, place >> 8 & 0xff,
                       (place & 0xff) | 1);
    }
}

static bool write_config(const cluster_t *self, unsigned node, const char *config)
{
    char path[PATH_SIZE];
    FILE *file = NULL;
    bool done = false;

    path_of(self, node, "", path);
    if (mkdir(path, 0700) != 0) {
        perror(path);
        return false;
    }
    path_of(self, node, "data", path);
    if (mkdir(path, 0700) != 0) {
        perror(path);
        return false;
    }
    path_of(self, node, "psd.yaml", path);
    file = fopen(path, "we");
    config = config == NULL ? "" : config;
    done = file != NULL &&
           fprintf(file,
                   "%s%s%s%snode:\n  name: %s\nlisten:\n  advertise: %s\n"
                   "security:\n  allow_plaintext: %s\n",
                   config, strstr(config, "registry:") == NULL ? "registry:\n  voters: 1\n" : "",
                   strstr(config, "workers:") == NULL ? "workers:\n  lost_after_ms: 60000\n" : "",
                   self->calm ? "cluster:\n  suspect_after: 3000\n" : "", self->nodes[node].name,
                   self->nodes[node].front, self->net == CLUSTER_NETNS ? "true" : "false") > 0;
    if (file == NULL || fclose(file) != 0 || !done) {
        perror(path);
        return false;
    }
    return true;
}

/* In the child. */
static void become(const cluster_t *self, unsigned node, const char *program)
{
    const cluster_node_t *n = &self->nodes[node];
    char listen[CLUSTER_TEXT_SIZE * 2];
    char data[PATH_SIZE];
    char config[PATH_SIZE];
    char log[PATH_SIZE];
    const char *arguments[] = {program,    "--listen", listen,   "--data-dir",           data,
                               "--config", config,     "--join", self->nodes[0].control, NULL};
    int fd = -1;

    (void)snprintf(listen, sizeof listen, "tcp://%s:%u", n->host, n->port);
    path_of(self, node, "data", data);
    path_of(self, node, "psd.yaml", config);
    path_of(self, node, "log", log);
    if (node == 0) {
        arguments[7] = NULL;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd >= 0) {
        (void)dup2(fd, STDOUT_FILENO);
        (void)dup2(fd, STDERR_FILENO);
    }
    if (n->netns >= 0 && !netns_enter(n->netns)) {
        _exit(126);
    }
    (void)execv(program, (char *const *)(uintptr_t)arguments);
    _exit(127);
}

/* The announcement of a node that is ready; "" while it is not. */
static void read_announcement(const cluster_t *self, unsigned node, char ret[ANNOUNCEMENT_SIZE])
{
    FILE *file = open_file(self, node, "data/endpoints.json");
    size_t n = 0;

    if (file != NULL) {
        n = fread(ret, 1, ANNOUNCEMENT_SIZE - 1, file);
        (void)fclose(file);
    }
    ret[n] = '\0';
}

/* The port of the next "tcp://…:PORT" in a text; 0: none. Moves *at past it. */
static uint16_t next_port(const char **at)
{
    const char *found = strstr(*at, "tcp://");
    const char *end = found == NULL ? NULL : strchr(found, '"');

    if (end == NULL) {
        return 0;
    }
    *at = end;
    while (end[-1] != ':' && end > found) {
        end--;
    }
    return (uint16_t)strtoul(end, NULL, 10);
}

/* Opens the links to a node that has announced itself: control first. */
static bool open_ways(cluster_t *self, unsigned node)
{
    cluster_node_t *n = &self->nodes[node];
    char text[ANNOUNCEMENT_SIZE];
    const char *at = text;
    uint16_t port = 0;
    bool done = true;

    read_announcement(self, node, text);
    at = strstr(text, "\"control\"");
    at = at == NULL ? text : at;
    port = next_port(&at);
    if (n->port == 0) {
        char front[CLUSTER_TEXT_SIZE];

        memcpy(front, n->front, sizeof front);
        (void)snprintf(n->control, sizeof n->control, "tcp://%.40s:%u", front, port);
        n->port = port;
    }
    if (port == 0 || port != n->port) {
        (void)fprintf(stderr, "%s announces: %s\n", n->name, text);
        return false;
    }
    if (self->net != CLUSTER_PROXY) {
        return true;
    }
    tcp_proxy_forget_doors(n->proxy);
    at = strstr(text, "\"shards\"");
    done = tcp_proxy_open_door(n->proxy, port, n->host, port) == port;
    while (done && at != NULL && (port = next_port(&at)) != 0) {
        done = tcp_proxy_open_door(n->proxy, port, n->host, port) == port;
    }
    return done;
}

static bool has_ended(cluster_node_t *n)
{
    int status = 0;

    if (waitpid(n->pid, &status, WNOHANG) == n->pid) {
        n->pid = 0;
        return true;
    }
    return false;
}

/* A child before its exec has all our sockets, also those of doors that are
 * closed and reopened meanwhile. */
static bool fork_to(cluster_t *self, unsigned node, const char *program)
{
    cluster_node_t *n = &self->nodes[node];
    int fds[2] = {-1, -1};
    char byte = 0;

    if (pipe2(fds, O_CLOEXEC) != 0) {
        perror("pipe");
        return false;
    }
    (void)fflush(NULL);
    n->pid = fork();
    if (n->pid == 0) {
        become(self, node, program);
    }
    (void)close(fds[1]);
    while (n->pid > 0 && read(fds[0], &byte, 1) > 0) {
    }
    (void)close(fds[0]);
    return n->pid > 0;
}

static bool spawn_node(cluster_t *self, unsigned node)
{
    const char *program = getenv("PSD_PROGRAM");
    char path[PATH_SIZE];

    if (program == NULL) {
        (void)fprintf(stderr, "PSD_PROGRAM does not name the daemon\n");
        return false;
    }
    path_of(self, node, "data/endpoints.json", path);
    (void)unlink(path);
    return fork_to(self, node, program);
}

static bool await_node(cluster_t *self, unsigned node)
{
    cluster_node_t *n = &self->nodes[node];
    char path[PATH_SIZE];

    path_of(self, node, "data/endpoints.json", path);
    for (int waited = 0; n->pid > 0 && waited < READY_MS; waited += STEP_MS) {
        if (access(path, R_OK) == 0) {
            return open_ways(self, node);
        }
        if (has_ended(n)) {
            break;
        }
        pause_a_step();
    }
    (void)fprintf(stderr, "node %s did not get ready\n", n->name);
    return false;
}

static bool start_node(cluster_t *self, unsigned node)
{
    return spawn_node(self, node) && await_node(self, node);
}

static bool mount_data(const cluster_t *self, unsigned node)
{
    char path[PATH_SIZE];

    path_of(self, node, "data", path);
    return tmpfs_mount(path, self->data_bytes);
}

static bool prepare_node(cluster_t *self, unsigned node, const char *config)
{
    cluster_node_t *n = &self->nodes[node];

    n->netns = -1;
    settle_hosts(self, node);
    if (self->net == CLUSTER_PROXY) {
        n->proxy = tcp_proxy_new(n->front);
        if (n->proxy == NULL) {
            return false;
        }
    }
    if (self->net == CLUSTER_NETNS) {
        n->netns = netns_add(node);
        if (n->netns < 0) {
            return false;
        }
    }
    return write_config(self, node, config) && (self->data_bytes == 0 || mount_data(self, node));
}

/* ---- the cluster ---- */

bool cluster_start(cluster_t *self, const cluster_args_t *args)
{
    *self = (cluster_t){.net = args->net,
                        .calm = args->calm,
                        .config = args->config,
                        .data_bytes = args->data_bytes,
                        .keeper_fd = -1};
    if (args->n_nodes == 0 || args->n_nodes > CLUSTER_NODES_MAX || !temp_dir_make(&self->dir) ||
        !keeper_start(self->dir.path, &self->keeper, &self->keeper_fd) ||
        (self->net == CLUSTER_NETNS && !netns_enter_hub()) ||
        (self->data_bytes != 0 && !tmpfs_enter())) {
        (void)fprintf(stderr, "no cluster of %u nodes\n", args->n_nodes);
        return false;
    }
    for (unsigned i = 0; i < args->n_nodes; i++) {
        if (!cluster_add(self)) {
            return false;
        }
    }
    return true;
}

bool cluster_add(cluster_t *self)
{
    unsigned node = self->n_nodes;

    if (node == CLUSTER_NODES_MAX) {
        return false;
    }
    self->n_nodes++;
    return prepare_node(self, node, self->config) && start_node(self, node);
}

/* A node that has ended by itself, or that the test must end; useful for the
 * cause of a failure. */
static void print_end(cluster_t *self, unsigned node)
{
    cluster_node_t *n = &self->nodes[node];
    int status = 0;

    if (n->pid > 0 && waitpid(n->pid, &status, WNOHANG) == n->pid) {
        (void)fprintf(stderr, "%s: ended by itself, %s %d\n", n->name,
                      WIFSIGNALED(status) ? "signal" : "exit code",
                      WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        n->pid = 0;
    }
}

static void print_log(const cluster_t *self, unsigned node)
{
    FILE *file = open_file(self, node, "log");
    char line[1024];

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        (void)fprintf(stderr, "%s: %s", self->nodes[node].name, line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

void cluster_drop(cluster_t *self, bool failed)
{
    int status = 0;

    for (unsigned i = 0; i < self->n_nodes; i++) {
        cluster_node_t *n = &self->nodes[i];

        if (failed) {
            print_end(self, i);
        }
        if (n->pid > 0) {
            (void)cluster_kill(self, i, SIGKILL);
        }
        if (failed) {
            print_log(self, i);
        }
        tcp_proxy_destroy(&n->proxy);
        if (n->netns >= 0) {
            (void)close(n->netns);
        }
        if (self->data_bytes != 0) {
            char path[PATH_SIZE];

            path_of(self, i, "data", path);
            tmpfs_unmount(path);
        }
    }
    if (self->keeper > 0) {
        (void)close(self->keeper_fd);
        (void)waitpid(self->keeper, &status, 0);
    }
    temp_dir_drop(&self->dir); /* if there was no keeper */
    *self = (cluster_t){.keeper_fd = -1};
}

bool cluster_kill(cluster_t *self, unsigned node, int signal_number)
{
    cluster_node_t *n = &self->nodes[node];
    int status = 0;

    if (n->pid <= 0 || kill(n->pid, signal_number) != 0 || waitpid(n->pid, &status, 0) != n->pid) {
        return false;
    }
    n->pid = 0;
    return (WIFSIGNALED(status) && WTERMSIG(status) == signal_number) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

bool cluster_freeze(cluster_t *self, unsigned node)
{
    pid_t pid = self->nodes[node].pid;
    int status = 0;

    return pid > 0 && kill(pid, SIGSTOP) == 0 && waitpid(pid, &status, WUNTRACED) == pid &&
           WIFSTOPPED(status);
}

bool cluster_thaw(cluster_t *self, unsigned node)
{
    pid_t pid = self->nodes[node].pid;
    int status = 0;

    return pid > 0 && kill(pid, SIGCONT) == 0 && waitpid(pid, &status, WCONTINUED) == pid &&
           WIFCONTINUED(status);
}

bool cluster_restart(cluster_t *self, unsigned node)
{
    return self->nodes[node].pid == 0 && start_node(self, node);
}

bool cluster_restart_all(cluster_t *self, unsigned first)
{
    bool good = true;

    for (unsigned i = 0; i < self->n_nodes && good; i++) {
        unsigned node = (first + i) % self->n_nodes;

        good = self->nodes[node].pid != 0 || spawn_node(self, node);
    }
    for (unsigned i = 0; i < self->n_nodes && good; i++) {
        good = await_node(self, i);
    }
    return good;
}

bool cluster_fill(cluster_t *self, unsigned node)
{
    char path[PATH_SIZE];

    path_of(self, node, "data", path);
    return self->data_bytes != 0 && tmpfs_fill(path);
}

bool cluster_empty(cluster_t *self, unsigned node)
{
    char path[PATH_SIZE];

    path_of(self, node, "data", path);
    return self->data_bytes != 0 && tmpfs_empty(path);
}

bool cluster_set_link(cluster_t *self, unsigned node, bool in_up, bool out_up)
{
    cluster_node_t *n = &self->nodes[node];

    if (self->net == CLUSTER_NETNS) {
        return netns_set_link(n->netns, node, in_up, out_up);
    }
    if (self->net != CLUSTER_PROXY) {
        return false;
    }
    tcp_proxy_set_flow(n->proxy, TCP_WAY_IN, in_up ? TCP_FLOW_PASS : TCP_FLOW_HOLD);
    tcp_proxy_set_flow(n->proxy, TCP_WAY_OUT, out_up ? TCP_FLOW_PASS : TCP_FLOW_HOLD);
    return true;
}

bool cluster_set_rate(cluster_t *self, unsigned node, uint64_t bytes_per_s)
{
    cluster_node_t *n = &self->nodes[node];

    if (self->net == CLUSTER_NETNS) {
        return netns_set_rate(n->netns, node, bytes_per_s);
    }
    if (self->net != CLUSTER_PROXY) {
        return false;
    }
    tcp_proxy_set_rate(n->proxy, TCP_WAY_IN, bytes_per_s);
    tcp_proxy_set_rate(n->proxy, TCP_WAY_OUT, bytes_per_s);
    return true;
}

uint64_t cluster_resident(const cluster_t *self, unsigned node)
{
    char path[64];
    char line[256];
    uint64_t kib = 0;
    FILE *file = NULL;

    (void)snprintf(path, sizeof path, "/proc/%d/status", self->nodes[node].pid);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmRSS:", 6) == 0) {
            kib = strtoull(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kib * 1024;
}

bool cluster_log_has(const cluster_t *self, unsigned node, const char *part)
{
    FILE *file = open_file(self, node, "log");
    char line[1024];
    bool has = false;

    while (!has && file != NULL && fgets(line, sizeof line, file) != NULL) {
        has = strstr(line, part) != NULL;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return has;
}
