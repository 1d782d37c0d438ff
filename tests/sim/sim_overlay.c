/* SPDX-License-Identifier: Apache-2.0 */
/* sim_overlay --seed N [--seeds COUNT] [--verbose]: runs the simulator on COUNT seeds
 * from N. Ends with 1 at the first that breaks a promise, with its trace. */
#include "sim_overlay.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static int usage(void)
{
    (void)fputs("usage: sim_overlay --seed N [--seeds COUNT] [--verbose]\n", stderr);
    return 2;
}

int main(int argc, char **argv)
{
    uint64_t seed = 1;
    uint64_t n_seeds = 1;
    bool verbose = false;

    for (int i = 1; i < argc; i++) {
        bool more = i + 1 < argc;

        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (strcmp(argv[i], "--seed") == 0 && more) {
            if (!ps_text_u64(argv[++i], &seed)) {
                return usage();
            }
        } else if (strcmp(argv[i], "--seeds") == 0 && more) {
            if (!ps_text_u64(argv[++i], &n_seeds)) {
                return usage();
            }
        } else {
            return usage();
        }
    }
    return overlay_search(seed, n_seeds, verbose) == UINT64_MAX ? 0 : 1;
}
