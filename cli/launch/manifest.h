/* SPDX-License-Identifier: Apache-2.0 */
/* ps_manifest - a launch as text for Kubernetes and YARN; nothing is contacted */
#ifndef PS_CLI_MANIFEST_H
#define PS_CLI_MANIFEST_H

#include "cli/launch/launch.h"

typedef struct ps_manifest {
    const ps_launch_t *launch; /* its variables have PSD_JOB */
    const char *image;         /* of the containers; NULL: "psd" */
    uint32_t n_servers;        /* nodes of psd; 0: PSD_ENDPOINT names one that runs */
} ps_manifest_t;

/* YAML: a Service without an address and a StatefulSet of nodes (pod 0 has the registry, the
 * others join it; all advertise their pod's address), and an indexed Job of workers. Errors:
 * PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_manifest_kubernetes(const ps_manifest_t *self, ps_buffer_t *to,
                                                   psd_error_t *err);
/* JSON: a service file of YARN, for "yarn app -launch NAME FILE". Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_manifest_yarn(const ps_manifest_t *self, ps_buffer_t *to,
                                             psd_error_t *err);
#endif
