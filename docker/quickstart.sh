#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the gateway on docker/quickstart.yaml and feeds it with a real profile: its own, taken while it is under load.
set -eu
gateway=$1
config=docker/quickstart.yaml
pprof="http://127.0.0.1:${QUICKSTART_PPROF_PORT:-4040}/v1/pprof"
self="http://127.0.0.1:${QUICKSTART_SELF_PORT:-1777}/debug/pprof/profile"
health="http://127.0.0.1:${QUICKSTART_HEALTH_PORT:-13133}/"
host=$(hostname)
mkdir -p out

"$gateway" --config "$config" 2>out/gateway.log &
process=$!
load=
finish() {
	[ -z "$load" ] || kill "$load" 2>/dev/null || true
	kill "$process" 2>/dev/null || true
	wait "$process" 2>/dev/null || true
}
trap finish EXIT
trap 'exit 1' INT TERM

tries=0
until "$gateway" send "$health" /dev/null 2>/dev/null; do
	tries=$((tries + 1))
	if ! kill -0 "$process" 2>/dev/null || [ "$tries" -gt 100 ]; then
		echo "the gateway did not start:" >&2
		tail -n 5 out/gateway.log >&2
		exit 1
	fi
	sleep 0.1
done
echo "gateway:  $gateway --config $config (process $process, log in out/gateway.log)"

echo "load:     its own first profile, sent again and again"
"$gateway" send "$self?seconds=1" out/first.pb.gz
while "$gateway" send --repeat 2000 out/first.pb.gz "$pprof?service.name=load"; do :; done 2>/dev/null &
load=$!
echo "profile:  3 seconds of the gateway under that load"
"$gateway" send "$self?seconds=3" out/portcullis.pb.gz
kill "$load" 2>/dev/null || true
wait "$load" 2>/dev/null || true
load=
"$gateway" send out/portcullis.pb.gz \
	"$pprof?service.name=portcullis&service.version=quickstart&host.name=$host&build.directory=$PWD"

echo
echo "What the policy of $config does to it (keys and counts, never values):"
"$gateway" explain --config "$config" out/portcullis.pb.gz \
	service.name=portcullis service.version=quickstart "host.name=$host" "build.directory=$PWD" 2>/dev/null

trap - EXIT
finish
newest=$(find out/pprof -name '*.pb.gz' | sort | tail -n 1)
echo
echo "What arrived:"
echo "  out/profiles.jsonl   $(wc -l <out/profiles.jsonl) OTLP requests as JSON, one a line"
echo "  out/pprof/           $(find out/pprof -name '*.pb.gz' | wc -l) pprof files; the newest is $newest"
echo "Look at it:  go tool pprof -top $newest"
