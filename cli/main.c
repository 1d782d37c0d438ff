/* SPDX-License-Identifier: Apache-2.0 */
/* pscli: reads the command line, runs the command, reports the result. */
#include <stdio.h>

#include "base/alloc.h"
#include "cli/cli.h"
#include "cli/options/help.h"

static psd_status_t run(ps_cli_t *cli, int argc, char *const *argv, psd_error_t *err)
{
    psd_status_t rc = ps_cli_init(cli, argc, argv, err);

    if (rc != PSD_OK) {
        return rc;
    }
    if (cli->args.help) {
        ps_help_write(cli->out.out, cli->args.noun, cli->args.cmd);
        return ps_out_finish(&cli->out, err);
    }
    if (cli->args.version) {
        psd_status_t shown = ps_cmd_version(cli, err);

        return shown != PSD_OK ? shown : ps_out_finish(&cli->out, err);
    }
    return ps_cli_run(cli, err);
}

int main(int argc, char **argv)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    PSD_AUTO(ps_cli_done) ps_cli_t cli = {0};
    psd_status_t rc = run(&cli, argc, argv, err);
    int exit_code = psd_status_exit(rc);

    if (rc != PSD_OK) {
        ps_out_error(&cli.out, rc,
                     psd_error_text(err)[0] != '\0' ? psd_error_text(err) : psd_status_text(rc),
                     cli.details);
        (void)fflush(cli.out.out);
    } else if (cli.exit_code != 0) {
        exit_code = cli.exit_code;
    }
    return exit_code;
}
