/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_HTTP_HTTP_ATTEMPT_H
#define NET_HTTP_HTTP_ATTEMPT_H

#include <curl/curl.h>
#include <stdbool.h>

/* What libcurl knows of a request only while it works on it, and has forgotten when it reports why
 * the request has failed. [loop thread] */
enum { HTTP_ATTEMPT_SOCKETS = 4 };

struct http_attempt {
	CURL *curl;
	bool secure;                       /* the URL is of https */
	int sockets[HTTP_ATTEMPT_SOCKETS]; /* the last ones that were opened; -1: none */
	unsigned opened;
	/* errno of a connection that the server of one of the addresses has ended; libcurl has that
	 * of the last address only. 0: none */
	int reset;
	/* of the connection's TLS: the last alert that the server has sent (0: none), and whether
	 * it has asked for a certificate of the client */
	int alert;
	bool asked;
	char text[CURL_ERROR_SIZE]; /* what libcurl says of the failure */
};

/* Sets the options of the request that the attempt needs. */
void http_attempt_init(struct http_attempt *attempt, CURL *curl, const char *url);
/* A socket is about to be closed. It need not be one of this attempt's. */
void http_attempt_closing(struct http_attempt *attempt, int fd);

#endif
