/* SPDX-License-Identifier: Apache-2.0 */
/* Names of libc that libraft's archive takes by their addresses: it was not made for a
 * shared object, in which only names of its own have an address. The linker gives it
 * these in place of stderr and __progname (lib/meson.build). */
#include <dlfcn.h>
#include <stdio.h>

extern FILE *ps_raft_stderr;
extern const char *ps_raft_progname;

FILE *ps_raft_stderr;
const char *ps_raft_progname = "psd";

__attribute__((constructor)) static void find_stderr(void)
{
    FILE *const *theirs = dlsym(RTLD_DEFAULT, "stderr");

    ps_raft_stderr = theirs == NULL ? NULL : *theirs;
}
