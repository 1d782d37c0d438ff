/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ps_token_file - a file with a token (curve.h)
 *
 * What     Who can change the file says which cluster a node joins or a client trusts, and who can
 *          read it may come first. So it is checked as key files are. "-" is standard input, which
 *          the program was given: that need be no file.
 * Shape    one line of text; what follows it is not read
 * Threads  any; nothing is kept between calls
 */
#ifndef PS_TRANSPORT_TOKEN_FILE_H
#define PS_TRANSPORT_TOKEN_FILE_H

#include "transport/sockets/curve.h"

/*
 * Reads one.
 *
 * ret_endpoint  out  the psd that takes the token
 * ret_pair      out  of the token; the caller clears it
 *
 * Errors: PSD_CONFIG there is no such file, it is another user's, others may read it, or it has no
 * token. The text of the file is never shown.
 */
PSD_MUST_CHECK psd_status_t ps_token_file_read(const char *path,
                                               char ret_endpoint[PS_ENDPOINT_MAX + 1],
                                               ps_key_pair_t *ret_pair, psd_error_t *err);
/* A token was given where the path of its file belongs: all users of the host see arguments. */
bool ps_text_is_token(const char *text);
#endif
