/* SPDX-License-Identifier: Apache-2.0 */
/* The first program of the README does what the README says. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "support/check.h"
#include "support/daemon.h"

/* Runs the program and reads the first line that it prints. */
static bool run(const char *program, char *ret_line, int size)
{
    int ends[2];
    FILE *out = NULL;
    pid_t pid = -1;
    int status = 0;

    CHECK(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)execl(program, program, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    out = fdopen(ends[0], "r");
    CHECK(out != NULL && fgets(ret_line, size, out) != NULL);
    (void)fclose(out);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    return true;
}

static bool says_what_it_should(const daemon_t *daemon)
{
    const char *program = getenv("PSD_HELLO_PROGRAM");
    char line[256] = "";

    CHECK(program != NULL);
    CHECK(setenv("PSD_ENDPOINT", daemon->control, 1) == 0);
    CHECK(run(program, line, sizeof line));
    CHECK(strcmp(line, "0.5 1.5 2.5\n") == 0);
    CHECK(run(program, line, sizeof line));
    CHECK(strcmp(line, "1 3 5\n") == 0);
    return true;
}

int main(void)
{
    daemon_t daemon;
    bool ok = daemon_start(&daemon, NULL) && says_what_it_should(&daemon);

    daemon_drop(&daemon, !ok);
    return ok ? 0 : 1;
}
