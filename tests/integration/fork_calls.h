/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork_calls - every function of libpsd, and what it has to do in a forked
 * child with what its parent has made
 *
 * What     it_fork compares these lists with what the library exports: a new
 *          function without a row fails the test.
 */
#ifndef PS_TESTS_FORK_CALLS_H
#define PS_TESTS_FORK_CALLS_H

/* Of the parent's: PSD_CLOSED at once, with "forked" in the text and nothing of
 * what err said before. `t` is a things_t. X(name, arguments) */
#define FORK_CLOSED(X)                                                                            \
    X(psd_attach, (t->client, t->client, err))                                                    \
    X(psd_barrier, (t->client, MANY_MS, err))                                                     \
    X(psd_checkpoint_drop, (t->client, "none", err))                                              \
    X(psd_checkpoint_newest, (t->client, NULL, &t->checkpoint, err))                              \
    X(psd_checkpoint_resume, (t->client, "none", "job", 0, 0, MANY_MS, err))                      \
    X(psd_checkpoint_start, (t->client, "none", NULL, &t->count, err))                            \
    X(psd_checkpoint_wait, (t->client, 1, MANY_MS, err))                                          \
    X(psd_clock, (t->client, err))                                                                \
    X(psd_fail, (t->client, "no reason", MANY_MS, err))                                           \
    X(psd_fetch, (t->table, t->all, false, 0, NULL, &t->result, err))                             \
    X(psd_flush, (t->client, MANY_MS, err))                                                       \
    X(psd_join, (t->client, "other", 0, 1, 0, err))                                               \
    X(psd_leave, (t->client, MANY_MS, err))                                                       \
    X(psd_localizer_run, (t->localizer, t->rows, N_ROWS, err))                                    \
    X(psd_localizer_set_min_count, (t->localizer, 2, 64, err))                                    \
    X(psd_poll, (t->client, t->ticket, &t->done, err))                                            \
    X(psd_pull, (t->table, t->rows, N_ROWS, t->values, N_ROWS, err))                              \
    X(psd_pull_changed, (t->table, t->all, t->seen, false, NULL, &t->result, err))                \
    X(psd_pull_start, (t->table, t->all, t->values, N_ROWS, NULL, &t->other, err))                \
    X(psd_push, (t->table, t->rows, N_ROWS, t->values, N_ROWS, err))                              \
    X(psd_push_begin, (t->table, t->all, &t->begun, &t->place, &t->n_place, err))                 \
    X(psd_push_commit, (&t->draft, NULL, &t->other, err))                                         \
    X(psd_push_rest, (t->table, err))                                                             \
    X(psd_push_start, (t->table, t->all, t->values, N_ROWS, NULL, &t->other, err))                \
    X(psd_pushpull, (t->table, t->rows, N_ROWS, t->values, t->values, N_ROWS, err))               \
    X(psd_pushpull_start, (t->table, t->all, t->values, t->values, N_ROWS, NULL, &t->other, err)) \
    X(psd_reader_summary, (t->reader, t->summary, err))                                           \
    X(psd_reader_next, (t->reader, 10, t->samples, err))                                          \
    X(psd_request, (t->client, "{\"op\":\"node_list\"}", MANY_MS, &t->reply, err))                \
    X(psd_table_axpy, (t->table, 1, t->table, t->all, NULL, err))                                 \
    X(psd_table_create, (t->client, "new", NULL, &t->made, err))                                  \
    X(psd_table_dot, (t->table, t->table, t->all, NULL, &t->number, err))                         \
    X(psd_table_drop, (t->client, "sums", err))                                                   \
    X(psd_table_ensure, (t->client, "sums", NULL, &t->made, err))                                 \
    X(psd_table_fill, (t->table, t->all, 1, NULL, err))                                           \
    X(psd_table_nonzeros, (t->table, t->all, NULL, &t->count, err))                               \
    X(psd_table_norm, (t->table, t->all, NULL, &t->number, err))                                  \
    X(psd_table_open, (t->client, "sums", &t->made, err))                                         \
    X(psd_table_scale, (t->table, t->all, 2, NULL, err))                                          \
    X(psd_table_sum, (t->table, t->all, NULL, &t->number, err))                                   \
    X(psd_table_top, (t->table, t->all, 1, NULL, &t->result, err))                                \
    X(psd_train_add_to_server, (t->train, 0, t->rows, 1, t->values, 1, err))                      \
    X(psd_train_begin, (t->train, err))                                                           \
    X(psd_train_clock_begin, (t->running, err))                                                   \
    X(psd_train_clock_end, (t->running, err))                                                     \
    X(psd_train_config_begin, (t->train, err))                                                    \
    X(psd_train_config_end, (t->train, err))                                                      \
    X(psd_train_dump, (t->train, 0, t->out_path, err))                                            \
    X(psd_train_end, (t->running, MANY_MS, err))                                                  \
    X(psd_train_intent, (t->running, 0, t->rows, 1, 1, 2, err))                                   \
    X(psd_train_load, (t->train, 0, t->in_path, err))                                             \
    X(psd_train_push_block, (t->running, NULL, NULL, MANY_MS, err))                               \
    X(psd_train_set, (t->train, "trainers", "2", err))                                            \
    X(psd_train_table, (t->train, "other", NULL, &t->number_of, err))                             \
    X(psd_train_next_slice, (t->running, MANY_MS, &t->count, &t->number_of, err))                 \
    X(psd_train_wait, (t->running, MANY_MS, err))                                                 \
    X(psd_wait, (t->client, t->ticket, MANY_MS, err))                                             \
    X(psd_wait_all, (t->client, MANY_MS, err))                                                    \
    X(psd_work_done, (t->work, 1, 0, MANY_MS, err))                                               \
    X(psd_work_next, (t->work, MANY_MS, &t->count, &t->number_of, err))                           \
    X(psd_work_open, (t->client, "w", 2, 1, &t->other_work, err))                                 \
    X(psd_writer_commit, (t->writer, err))                                                        \
    X(psd_writer_write, (t->writer, t->samples, err))

/* Of the parent's: frees memory, sends nothing, removes nothing; in this order.
 */
#define FORK_FREE(X)                          \
    X(psd_push_abandon, (&t->draft))          \
    X(psd_table_close, (&t->table))           \
    X(psd_work_close, (&t->work))             \
    X(psd_close, (&t->client))                \
    X(psd_train_destroy, (&t->train))         \
    X(psd_train_destroy, (&t->running))       \
    X(psd_reader_close, (&t->reader))         \
    X(psd_writer_close, (&t->writer))         \
    X(psd_localizer_destroy, (&t->localizer)) \
    X(psd_summary_destroy, (&t->summary))     \
    X(psd_seen_destroy, (&t->seen))           \
    X(psd_samples_destroy, (&t->samples))     \
    X(psd_select_destroy, (&t->all))

/* Of the parent's: says what it knows, as before the fork. */
#define FORK_LOOK(X)                            \
    X(psd_clock_count, (t->client))             \
    X(psd_first_worker, (t->client))            \
    X(psd_lost_workers, (t->client))            \
    X(psd_worker, (t->client))                  \
    X(psd_table_cols, (t->table))               \
    X(psd_table_name, (t->table))               \
    X(psd_table_rows, (t->table))               \
    X(psd_table_type, (t->table))               \
    X(psd_table_value_size, (t->table))         \
    X(psd_train_client, (t->train))             \
    X(psd_train_count, (t->running, "blocks"))  \
    X(psd_train_left_s, (t->running))           \
    X(psd_train_first_clock, (t->running))      \
    X(psd_train_max_delay, (t->running))        \
    X(psd_train_rate, (t->running))             \
    X(psd_train_table_handle, (t->train, 0))    \
    X(psd_train_worker, (t->running))           \
    X(psd_train_workers, (t->running))          \
    X(psd_reader_bad, (t->reader, 0))           \
    X(psd_reader_bad_count, (t->reader))        \
    X(psd_reader_bytes, (t->reader, &t->count)) \
    X(psd_reader_format, (t->reader))           \
    X(psd_reader_labels, (t->reader))           \
    X(psd_reader_sample_count, (t->reader))     \
    X(psd_reader_vocabulary, (t->reader))       \
    X(psd_reader_warning, (t->reader))          \
    X(psd_writer_beside, (t->writer))           \
    X(psd_localizer_count, (t->localizer))      \
    X(psd_localizer_counts, (t->localizer))     \
    X(psd_localizer_ids, (t->localizer))        \
    X(psd_localizer_keys, (t->localizer))

/* Made of memory alone, or made anew: the same in a child as anywhere. Those of
 * call-backs (psd_loader_…, psd_trainer_…) have no handle outside of them; the
 * first are tried in a child that a call-back forks. */
/* clang-format off: it knows no end of a row */
#define FORK_ANYWHERE(X)                 \
    X(psd_call_destroy)                  \
    X(psd_call_new)                      \
    X(psd_call_set_ack)                  \
    X(psd_call_set_after)                \
    X(psd_call_set_borrow)               \
    X(psd_call_set_command)              \
    X(psd_call_set_ends_clock)           \
    X(psd_call_set_filter)               \
    X(psd_call_set_priority)             \
    X(psd_call_set_timeout_ms)           \
    X(psd_call_set_trace)                \
    X(psd_checkpoint_clock)              \
    X(psd_checkpoint_destroy)            \
    X(psd_checkpoint_job)                \
    X(psd_checkpoint_name)               \
    X(psd_checkpoint_unix_ms)            \
    X(psd_connect)                       \
    X(psd_error_clear)                   \
    X(psd_error_destroy)                 \
    X(psd_error_new)                     \
    X(psd_error_set)                     \
    X(psd_error_status)                  \
    X(psd_error_text)                    \
    X(psd_error_wrap)                    \
    X(psd_free)                          \
    X(psd_loader_element)                \
    X(psd_loader_rows)                   \
    X(psd_loader_table)                  \
    X(psd_localizer_new)                 \
    X(psd_options_destroy)               \
    X(psd_options_new)                   \
    X(psd_options_set_guest)             \
    X(psd_options_set_on_wait)           \
    X(psd_options_set_spin_us)           \
    X(psd_options_set_timeout_ms)        \
    X(psd_options_set_transport)         \
    X(psd_options_set_wait)              \
    X(psd_reader_open)                   \
    X(psd_reader_options_destroy)        \
    X(psd_reader_options_new)            \
    X(psd_reader_options_set_bits)       \
    X(psd_reader_options_set_cache)      \
    X(psd_reader_options_set_constant)   \
    X(psd_reader_options_set_entries)    \
    X(psd_reader_options_set_format)     \
    X(psd_reader_options_set_hash_all)   \
    X(psd_reader_options_set_labels)     \
    X(psd_reader_options_set_max_lines)  \
    X(psd_reader_options_set_merge)      \
    X(psd_reader_options_set_rows)       \
    X(psd_reader_options_set_scale)      \
    X(psd_reader_options_set_share)      \
    X(psd_reader_options_set_strict)     \
    X(psd_reader_options_set_vocabulary) \
    X(psd_result_count)                  \
    X(psd_result_destroy)                \
    X(psd_result_row)                    \
    X(psd_samples_count)                 \
    X(psd_samples_entries)               \
    X(psd_samples_entry_count)           \
    X(psd_samples_group_count)           \
    X(psd_samples_group_ids)             \
    X(psd_samples_groups)                \
    X(psd_samples_initials)              \
    X(psd_samples_keys)                  \
    X(psd_samples_labels)                \
    X(psd_samples_new)                   \
    X(psd_samples_queries)               \
    X(psd_samples_starts)                \
    X(psd_samples_tag)                   \
    X(psd_samples_values)                \
    X(psd_samples_weights)               \
    X(psd_seen_new)                      \
    X(psd_select_all_cols)               \
    X(psd_select_all_rows)               \
    X(psd_select_col_range)              \
    X(psd_select_cols)                   \
    X(psd_select_lengths)                \
    X(psd_select_new)                    \
    X(psd_select_row_range)              \
    X(psd_select_rows)                   \
    X(psd_select_sparse)                 \
    X(psd_spec_destroy)                  \
    X(psd_spec_new)                      \
    X(psd_spec_set)                      \
    X(psd_status_code)                   \
    X(psd_status_exit)                   \
    X(psd_status_hint)                   \
    X(psd_status_name)                   \
    X(psd_status_text)                   \
    X(psd_summary_add)                   \
    X(psd_summary_entry_count)           \
    X(psd_summary_key_count)             \
    X(psd_summary_key_range)             \
    X(psd_summary_label)                 \
    X(psd_summary_label_count)           \
    X(psd_summary_label_range)           \
    X(psd_summary_most_entries)          \
    X(psd_summary_new)                   \
    X(psd_summary_sample_count)          \
    X(psd_summary_unlabelled_count)      \
    X(psd_trace_count)                   \
    X(psd_trace_destroy)                 \
    X(psd_trace_endpoint)                \
    X(psd_trace_is_told)                 \
    X(psd_trace_kind)                    \
    X(psd_trace_new)                     \
    X(psd_trace_partition)               \
    X(psd_trace_start_us)                \
    X(psd_trace_us)                      \
    X(psd_train_new)                     \
    X(psd_train_on)                      \
    X(psd_train_on_load)                 \
    X(psd_train_on_progress)             \
    X(psd_train_set_total)               \
    X(psd_trainer_add_f64)               \
    X(psd_trainer_add_i64)               \
    X(psd_trainer_add_row)               \
    X(psd_trainer_count)                 \
    X(psd_trainer_done)                  \
    X(psd_trainer_get_f64)               \
    X(psd_trainer_get_i64)               \
    X(psd_trainer_get_row)               \
    X(psd_trainer_id)                    \
    X(psd_trainer_row)                   \
    X(psd_trainer_share)                 \
    X(psd_version)                       \
    X(psd_vocabulary_count)              \
    X(psd_vocabulary_destroy)            \
    X(psd_vocabulary_find)               \
    X(psd_vocabulary_read)               \
    X(psd_vocabulary_word)               \
    X(psd_writer_open)                   \
    X(psd_writer_set_lossy)
/* clang-format on */
#endif
