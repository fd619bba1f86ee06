#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs the gateway on docker/quickstart.yaml, or on CONFIG, and feeds it with a real profile: its own, taken while it is
# under load. QUICKSTART_OTLP_PORT, _PPROF_PORT, _HEALTH_PORT, _SELF_PORT and _METRICS_PORT choose other ports.
set -eu
gateway=$1
config=${CONFIG:-docker/quickstart.yaml}
if [ ! -r "$config" ]; then
	echo "CONFIG: cannot read $config" >&2
	exit 1
fi
port=$(sed -n 's/.*{env:QUICKSTART_PPROF_PORT:-\([0-9]*\)}.*/\1/p' "$config")
pprof="http://127.0.0.1:${QUICKSTART_PPROF_PORT:-$port}/v1/pprof"
self="http://127.0.0.1:${QUICKSTART_SELF_PORT:-1777}/debug/pprof/profile"
metrics="http://127.0.0.1:${QUICKSTART_METRICS_PORT:-8888}/metrics"
host=$(uname -n)
user=$(id -un 2>/dev/null || id -u)
profile=out/portcullis.pb.gz
mkdir -p out
rm -f out/gateway.log # what an earlier run said is no sign of this one

"$gateway" --config "$config" 2>out/gateway.log &
process=$!
load=
end() {
	[ -z "$1" ] || kill "$1" 2>/dev/null || true
	[ -z "$1" ] || wait "$1" 2>/dev/null || true
}
finish() {
	end "$load"
	end "$process"
}
trap finish EXIT
trap 'exit 1' INT TERM

tries=0
until grep -q 'Everything is ready' out/gateway.log; do
	tries=$((tries + 1))
	if ! kill -0 "$process" 2>/dev/null || [ "$tries" -gt 100 ]; then
		echo "the gateway did not start:" >&2
		grep '^Error: ' out/gateway.log >&2 || tail -n 5 out/gateway.log >&2
		! grep -q 'already in use' out/gateway.log ||
			echo "(QUICKSTART_{OTLP,PPROF,HEALTH,SELF,METRICS}_PORT choose other ports)" >&2
		exit 1
	fi
	sleep 0.1
done
echo "gateway:  $gateway --config $config (process $process, log in out/gateway.log)"

# An idle process uses no CPU time, so each profile is taken while the one before is sent again and again.
echo "profile:  the gateway's own, 3 seconds under load, into $profile"
for seconds in 1 1 3; do
	"$gateway" send "$self?seconds=$seconds" "$profile"
	end "$load"
	load=
	if [ "$seconds" != 3 ]; then
		"$gateway" send --repeat 1000000 "$profile" "$pprof?service.name=load" 2>/dev/null &
		load=$!
	fi
done
sleep 1.2 # the load's last batch closes before, so that the newest file is the profile
"$gateway" send "$profile" "$pprof?service.name=portcullis&service.version=quickstart&host.name=$host&user.name=$user"
received=$("$gateway" send "$metrics" /dev/stdout |
	sed -n 's/^otelcol_receiver_accepted_profile_samples{receiver="pprof".*} //p')
echo "received: $received samples by pprof over HTTP"

echo
echo "What the policy of $config does to it (keys and counts, never values):"
"$gateway" explain --config "$config" "$profile" \
	service.name=portcullis service.version=quickstart "host.name=$host" "user.name=$user"

trap - EXIT
finish
newest=$(find out/pprof -name '*.pb.gz' | sort | tail -n 1)
echo
echo "What arrived:"
echo "  out/profiles*.jsonl  $(cat out/profiles*.jsonl | wc -l) OTLP requests as JSON, one a line"
echo "  out/pprof/           $(find out/pprof -name '*.pb.gz' | wc -l) pprof files; the newest is $newest"
echo "Look at it:  go tool pprof -top $newest"
if grep -q '^  pyroscope:' "$config"; then
	store=${PYROSCOPE_URL:-http://127.0.0.1:4040}
	if grep -q 'Exporting failed' out/gateway.log; then
		echo "  (Pyroscope at $store did not take it, or not all of it: see out/gateway.log)"
	else
		echo "  or in Pyroscope at $store, service portcullis, type process_cpu / cpu"
	fi
fi
exit 0
