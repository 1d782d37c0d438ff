/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces, veth pairs and traffic shaping, with ip and tc. */
#include "support/netns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 24
#define COMMAND_SIZE 256

bool netns_enter(int netns)
{
    return setns(netns, CLONE_NEWNET) == 0;
}

/* In the child: splits at blanks; nothing of ours has blanks inside. */
static void become(char *command)
{
    char *arguments[ARGUMENTS_MAX] = {NULL};
    char *rest = command;

    for (int i = 0; i < ARGUMENTS_MAX - 1; i++) {
        arguments[i] = strtok_r(i == 0 ? command : NULL, " ", &rest);
    }
    (void)execvp(arguments[0], arguments);
    _exit(127);
}

/* Runs it there, or here with netns -1. quiet: it may fail. */
static bool run_in(int netns, bool quiet, const char *command)
{
    int status = 0;
    pid_t pid = -1;
    char copy[COMMAND_SIZE];

    (void)snprintf(copy, sizeof copy, "%s", command);
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        int nothing = quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;

        if (netns >= 0 && !netns_enter(netns)) {
            _exit(126);
        }
        if (nothing >= 0) {
            (void)dup2(nothing, STDERR_FILENO);
        }
        become(copy);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
        if (!quiet) {
            (void)fprintf(stderr, "failed: %s\n", command);
        }
        return false;
    }
    return true;
}

/* Makes a new namespace; this process stays where it is. */
static int make(void)
{
    int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    int made = -1;

    if (here >= 0 && unshare(CLONE_NEWNET) == 0) {
        made = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
        if (!netns_enter(here)) {
            perror("setns");
            (void)close(made);
            made = -1;
        }
    }
    if (here >= 0) {
        (void)close(here);
    }
    return made;
}

bool netns_can(void)
{
    int status = 0;
    pid_t pid = -1;

    (void)fflush(NULL);
    pid = fork();
    if (pid == 0) {
        /* Makes everything needed later; it ends with this child. */
        bool can = netns_enter_hub();
        int netns = can ? netns_add(0) : -1;

        can = can && netns >= 0 && netns_set_link(netns, 0, false, false) &&
              netns_set_rate(netns, 0, 1000000);
        _exit(can ? 0 : 1);
    }
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0) {
        return true;
    }
    (void)fprintf(stderr, "network namespaces with veth, bridge and tbf cannot be had "
                          "here: they need root and iproute2\n");
    return false;
}

bool netns_enter_hub(void)
{
    if (unshare(CLONE_NEWNET) != 0) {
        (void)fprintf(stderr, "a network namespace of our own: %s\n", strerror(errno));
        return false;
    }
    return run_in(-1, false, "ip link set lo up") &&
           run_in(-1, false, "ip link add hub type bridge") &&
           run_in(-1, false, "ip addr add 10.77.0.1/24 dev hub") &&
           run_in(-1, false, "ip link set hub up");
}

/* Makes the pair inside the namespace and moves one end to the hub. */
static bool connect_to_hub(int netns, unsigned node)
{
    char command[COMMAND_SIZE];

    (void)snprintf(command, sizeof command, "ip link add hub%u type veth peer name eth0", node);
    if (!run_in(netns, false, command)) {
        return false;
    }
    (void)snprintf(command, sizeof command, "ip link set hub%u netns %d", node, (int)getpid());
    if (!run_in(netns, false, command)) {
        return false;
    }
    (void)snprintf(command, sizeof command, "ip link set hub%u master hub", node);
    if (!run_in(-1, false, command)) {
        return false;
    }
    (void)snprintf(command, sizeof command, "ip link set hub%u up", node);
    if (!run_in(-1, false, command)) {
        return false;
    }
    (void)snprintf(command, sizeof command, "ip addr add 10.77.0.%u/24 dev eth0", 10 + node);
    return run_in(netns, false, command) && run_in(netns, false, "ip link set lo up") &&
           run_in(netns, false, "ip link set eth0 up");
}

int netns_add(unsigned node)
{
    int netns = make();

    if (netns < 0) {
        perror("a network namespace for a node");
    } else if (!connect_to_hub(netns, node)) {
        (void)close(netns);
        netns = -1;
    }
    return netns;
}

/* A slow link lets a few packets through at once, not seconds of its rate,
 * which would look like a fast one; and its queue is a second or two, as a
 * modem's. */
#define SLOW_BYTES_PER_S 100000
#define SLOW_BURST "burst 3000 latency 1500ms"
#define BURST "burst 64k latency 200ms"
/* A fast one needs more at once, or the kernel's timers make it slow: with 64k
 * 1 Gbit/s is a third of that. */
#define FAST_BYTES_PER_S 100000000
#define FAST_BURST "burst 256k latency 50ms"

/* Packets that leave by that device: all lost, slow, or normal. A queue of
 * one byte holds no packet. */
static bool shape(int netns, const char *device, bool is_up, uint64_t bytes_per_s)
{
    char command[COMMAND_SIZE];

    (void)snprintf(command, sizeof command, "tc qdisc del dev %s root", device);
    (void)run_in(netns, true, command);
    if (is_up && bytes_per_s == 0) {
        return true;
    }
    if (is_up) {
        (void)snprintf(command, sizeof command, "tc qdisc add dev %s root tbf rate %llubps %s",
                       device, (unsigned long long)bytes_per_s,
                       bytes_per_s < SLOW_BYTES_PER_S   ? SLOW_BURST
                       : bytes_per_s < FAST_BYTES_PER_S ? BURST
                                                        : FAST_BURST);
    } else {
        (void)snprintf(command, sizeof command, "tc qdisc add dev %s root bfifo limit 1", device);
    }
    return run_in(netns, false, command);
}

bool netns_set_link(int netns, unsigned node, bool in_up, bool out_up)
{
    char device[16];

    (void)snprintf(device, sizeof device, "hub%u", node);
    return shape(-1, device, in_up, 0) && shape(netns, "eth0", out_up, 0);
}

bool netns_set_device(int netns, bool is_up)
{
    return run_in(netns, false, is_up ? "ip link set eth0 up" : "ip link set eth0 down");
}

bool netns_set_hole(int netns, unsigned to, bool is_there)
{
    char command[COMMAND_SIZE];

    (void)snprintf(command, sizeof command, "ip route %s blackhole 10.77.0.%u/32",
                   is_there ? "add" : "del", 10 + to);
    return run_in(netns, false, command);
}

bool netns_set_rate(int netns, unsigned node, uint64_t bytes_per_s)
{
    char device[16];

    (void)snprintf(device, sizeof device, "hub%u", node);
    return shape(-1, device, true, bytes_per_s) && shape(netns, "eth0", true, bytes_per_s);
}

/* ---- sites ---- */

__attribute__((format(printf, 1, 2))) static bool run_here(const char *format, ...)
{
    char command[COMMAND_SIZE];
    va_list list;

    va_start(list, format);
    (void)vsnprintf(command, sizeof command, format, list);
    va_end(list);
    return run_in(-1, false, command);
}

bool netns_add_site(unsigned site, uint64_t bytes_per_s)
{
    char up[16];
    char down[16];

    (void)snprintf(up, sizeof up, "up%u", site);
    (void)snprintf(down, sizeof down, "down%u", site);
    return run_here("ip link add site%u type bridge", site) &&
           run_here("ip link add %s type veth peer name %s", up, down) &&
           run_here("ip link set %s master hub", up) &&
           run_here("ip link set %s master site%u", down, site) &&
           run_here("ip link set site%u up", site) && run_here("ip link set %s up", up) &&
           run_here("ip link set %s up", down) && shape(-1, up, true, bytes_per_s) &&
           shape(-1, down, true, bytes_per_s);
}

bool netns_move(unsigned node, unsigned site)
{
    return run_here("ip link set hub%u master site%u", node, site);
}

uint64_t netns_passed(unsigned site, bool out)
{
    char device[16];
    char line[512];
    uint64_t bytes = 0;
    FILE *file = fopen("/proc/self/net/dev", "re");

    (void)snprintf(device, sizeof device, "up%u:", site);
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = strstr(line, device);

        if (at != NULL) {
            at += strlen(device);
            for (int column = 0; column <= (out ? 0 : 8); column++) {
                bytes = strtoull(at, &at, 10);
            }
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}
