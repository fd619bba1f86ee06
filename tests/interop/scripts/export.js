// SPDX-License-Identifier: Apache-2.0
// A client on grpc-js: sends each file as one Export, all at once over one connection.
//
//	node export.js TARGET FILE...    prints a line with the status code of each call
"use strict";
const fs = require("fs");
const grpc = require("@grpc/grpc-js");

const METHOD = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export";
const [target, ...files] = process.argv.slice(2);
const client = new grpc.Client(target, grpc.credentials.createInsecure());
const same = (bytes) => bytes;
let open = files.length;

for (const file of files) {
	client.makeUnaryRequest(METHOD, same, same, fs.readFileSync(file), (error) => {
		console.log(error ? error.code : 0);
		if (--open === 0)
			client.close();
	});
}
