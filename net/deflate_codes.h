/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_DEFLATE_CODES_H
#define NET_DEFLATE_CODES_H

/*
 * Huffman codes for deflate (RFC 1951 3.2.7) that were made once, of real profiles, as HPACK's was
 * of headers. To make a code for a body of 6 KB takes longer than all else about compressing it;
 * and what profiles consist of differs little from one to the next: 61 real ones of up to 96 KiB
 * become 0.98 to 1.11 of what they would with codes of their own, half of them at most 1.014; each
 * of five kinds, when left out of the making, at most 1.05. They are constants: no byte of one
 * request shapes what becomes of another.
 *
 * Each has a code for each symbol, so that any bytes can be written with it.
 */
enum deflate_code {
	DEFLATE_WHOLE,   /* an OTLP message as it leaves: records and text */
	DEFLATE_RECORDS, /* all of it but the string table */
	DEFLATE_TEXT,    /* the string table */
	DEFLATE_CODES
};

struct isal_hufftables;

/* As ISA-L wants it; lives as long as the process. [any thread] */
struct isal_hufftables *deflate_code(enum deflate_code code);

#endif
