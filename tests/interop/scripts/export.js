// SPDX-License-Identifier: Apache-2.0
// A client on grpc-js; clients.py says what it is asked and what it prints.
"use strict";
const fs = require("fs");
const grpc = require("@grpc/grpc-js");

const [target, ...words] = process.argv.slice(2);
const calls = words.filter((word) => word.startsWith("/")).map((word) => {
	const [method, file] = word.split(":");
	return {method, body: fs.readFileSync(file)};
});
const options = Object.fromEntries(words.filter((word) => !word.startsWith("/")).map((word) => word.split("=")));
const number = (name, otherwise) => Number(options[name] || otherwise);
const same = (bytes) => bytes;
const answers = new Map();

function credentials() {
	const read = (name) => options[name] ? fs.readFileSync(options[name]) : null;
	return options.ca ? grpc.credentials.createSsl(read("ca"), read("key"), read("cert")) : grpc.credentials.createInsecure();
}

function channelOptions() {
	const given = {};
	if (options.gzip)
		given["grpc.default_compression_algorithm"] = grpc.compressionAlgorithms.gzip;
	if (options.keepalive) {
		given["grpc.keepalive_time_ms"] = number("keepalive") * 1000;
		given["grpc.keepalive_permit_without_calls"] = 1;
	}
	return given;
}

const client = new grpc.Client(target, credentials(), channelOptions());

function send({method, body}) {
	return new Promise((done) => {
		const deadline = Date.now() + number("deadline", 60) * 1000;
		client.makeUnaryRequest(method, same, same, body, {deadline}, (error, answer) => {
			done(error ? `${error.code} ` : `0 ${answer.toString("hex")}`);
		});
	});
}

// Sends all calls, so many at once, and ends when the last one is answered.
async function round() {
	const todo = calls.values();
	const worker = async () => {
		for (const call of todo) {
			const answer = await send(call);
			answers.set(answer, (answers.get(answer) || 0) + 1);
		}
	};
	await Promise.all(Array.from({length: number("calls", 1)}, worker));
}

(async () => {
	for (let i = 0; i < number("rounds", 1); i++) {
		if (i)
			await new Promise((done) => setTimeout(done, number("pause", 0) * 1000));
		await round();
	}
	client.close();
	answers.forEach((count, answer) => console.log(count, answer));
})();
