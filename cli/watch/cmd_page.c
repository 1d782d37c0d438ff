/* SPDX-License-Identifier: Apache-2.0 */
/* pscli page: the link that opens psd's page, from the files of a psd of this host. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "cli/watch/local_psd.h"
#include "cli/watch/watch.h"

static const ps_column_t PAGE[] = {{"URL", "url", PS_UNIT_NONE, false},
                                   {"NODE", "node", PS_UNIT_NONE, false},
                                   {NULL, NULL, PS_UNIT_NONE, false}};

/* As a browser elsewhere has it: no address of all addresses, but this host's name. */
static void name_host(ps_local_psd_t *self)
{
    static const char *const WILDCARDS[] = {"http://0.0.0.0:", "http://[::]:"};
    char host[128] = "";
    char port[16];

    for (size_t i = 0; i < sizeof WILDCARDS / sizeof WILDCARDS[0]; i++) {
        if (strncmp(self->http, WILDCARDS[i], strlen(WILDCARDS[i])) == 0 &&
            gethostname(host, sizeof host - 1) == 0) {
            (void)snprintf(port, sizeof port, "%.15s", self->http + strlen(WILDCARDS[i]));
            (void)snprintf(self->http, sizeof self->http, "http://%s:%s", host, port);
            return;
        }
    }
}

psd_status_t ps_cmd_page(ps_cli_t *cli, psd_error_t *err)
{
    PSD_AUTO(ps_json_unref) json_t *doc = NULL;
    ps_local_psd_t found;
    psd_status_t rc = ps_local_psd_find(cli, &found, err);

    if (rc != PSD_OK) {
        return rc;
    }
    name_host(&found);
    doc = json_pack("{s:o,s:s}", "url", json_sprintf("%s/#token=%s", found.http, found.token),
                    "node", found.node);
    if (doc == NULL) {
        return psd_error_set(err, PSD_NOMEM, "no memory for the link");
    }
    if (cli->out.format == PS_FORMAT_TABLE || cli->out.format == PS_FORMAT_WIDE) {
        ps_print(cli->out.out, "%s\n", ps_json_text(doc, "url"));
    } else {
        ps_out_object(&cli->out, doc, PAGE);
    }
    return PSD_OK;
}
