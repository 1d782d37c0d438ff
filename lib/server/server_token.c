/* SPDX-License-Identifier: Apache-2.0 */
/* The token by which a node joins, from the file that security.token_file names. */
#include "server/server_inner.h"
#include "transport/sockets/token_file.h"

psd_status_t ps_server_read_token(const ps_server_t *self, char ret_endpoint[PS_ENDPOINT_MAX + 1],
                                  ps_key_pair_t *ret_pair, psd_error_t *err)
{
    const char *path = self->config->security.token_file;

    return ps_text_is_token(path)
               ? psd_error_set(
                     err, PSD_CONFIG,
                     "security.token_file is a token; allowed: the path of a file with "
                     "one, or \"-\". Make another token: all users of a host see arguments")
               : ps_token_file_read(path, ret_endpoint, ret_pair, err);
}
