/* SPDX-License-Identifier: Apache-2.0 */
/* sim_quorum [--seed N] [--seeds N] [--verbose] */
#include <stdlib.h>
#include <string.h>

#include "sim_quorum.h"

int main(int argc, char **argv)
{
    uint64_t first = 1;
    uint64_t n = 1;
    bool verbose = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else if (i + 1 < argc && strcmp(argv[i], "--seed") == 0) {
            first = strtoull(argv[++i], NULL, 10);
        } else if (i + 1 < argc && strcmp(argv[i], "--seeds") == 0) {
            n = strtoull(argv[++i], NULL, 10);
        } else {
            (void)fprintf(stderr, "sim_quorum [--seed N] [--seeds N] [--verbose]\n");
            return 2;
        }
    }
    return sim_quorum_search(first, n, verbose) == UINT64_MAX ? 0 : 1;
}
