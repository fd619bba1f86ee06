// SPDX-License-Identifier: Apache-2.0
// A service with godeltaprof's handlers (interop/agents.py); its sums are in godeltaprof.sum.
module portcullis.test/godeltaprof

go 1.26.0

require github.com/grafana/pyroscope-go/godeltaprof v0.1.11

require github.com/klauspost/compress v1.18.7 // indirect
