/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_DEFLATE_CODES_H
#define NET_DEFLATE_CODES_H

/*
 * Precomputed Huffman codes for deflate (RFC 1951 3.2.7), built from real profiles as HPACK's code
 * was built from headers. Building a code for a body of 6 KB takes longer than the rest of its
 * compression, and the content of profiles differs little. Compared with codes of their own, 61
 * real profiles of up to 96 KiB compress to 0.98 to 1.11 times the size, half of them to at most
 * 1.014. Each of five kinds of profiles, when excluded from building the codes, compresses to at
 * most 1.05 times the size. The codes are constants, so no byte of one request affects the output
 * of another.
 *
 * Each covers every symbol, so it can encode any bytes.
 */
enum deflate_code {
	DEFLATE_WHOLE,   /* an OTLP message as it leaves: records and text */
	DEFLATE_RECORDS, /* all of it but the string table */
	DEFLATE_TEXT,    /* the string table */
	DEFLATE_CODES
};

struct isal_hufftables;

/* In ISA-L's form; lives as long as the process. [any thread] */
struct isal_hufftables *deflate_code(enum deflate_code code);

#endif
