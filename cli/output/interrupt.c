/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that end a command before its end. */
#include "cli/output/interrupt.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define EXIT_INTERRUPTED 130

/* Global: a signal handler has no argument to find its state by. */
static char unlink_path[PATH_MAX];
static volatile sig_atomic_t has_path;
static volatile sig_atomic_t is_held;
static volatile sig_atomic_t came;

static void on_signal(int number)
{
    static const char WORDS[] = "pscli: E5005 interrupted; run it again\n";

    (void)number;
    if (is_held && !came) {
        came = 1;
        return;
    }
    if (has_path) {
        (void)unlink(unlink_path);
    }
    if (write(STDERR_FILENO, WORDS, sizeof WORDS - 1) < 0) {
        /* No caller is left to report to. */
    }
    _exit(EXIT_INTERRUPTED);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

void ps_interrupt_unlink(const char *path)
{
    has_path = 0;
    if (path != NULL && strlen(path) < sizeof unlink_path) {
        memcpy(unlink_path, path, strlen(path) + 1);
        has_path = 1;
        catch_signals();
    }
}

void ps_interrupt_hold(void)
{
    is_held = 1;
    catch_signals();
}

bool ps_interrupt_came(void)
{
    return came != 0;
}
