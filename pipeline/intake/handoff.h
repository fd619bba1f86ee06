/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PIPELINE_INTAKE_HANDOFF_H
#define PIPELINE_INTAKE_HANDOFF_H

#include "net/io.h"
#include "pipeline/intake/documents.h"

/*
 * Who runs a request whose body is complete: the I/O thread that has read it, if it is too small to
 * delay the thread's other connections, or else a worker.
 */

/* The maximum size of what an I/O thread runs itself, decompressed too. It takes less than a
 * millisecond with every processor (docs/GRPC.md). For `here_max` of documents_load. */
enum { HANDOFF_INLINE_BYTES = 65536 };

/* Ends in gate_submit or gate_run_here. The I/O thread is the one that has read the request; NULL:
 * none. Decides by the size that the body states; documents_load finds out whether that is true.
 * [the I/O thread] */
void handoff_request(struct gate *gate, struct inbound *in, struct io_thread *thread,
		     const struct document_format *format, enum coding coding, struct view body);

#endif
