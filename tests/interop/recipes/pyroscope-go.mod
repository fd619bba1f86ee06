// SPDX-License-Identifier: Apache-2.0
// What a program with Pyroscope's SDK is made of (interop/golang.py); its sums are in pyroscope-go.sum.
module portcullis.test/pyroscope-go

go 1.26.0

require github.com/grafana/pyroscope-go v1.4.3

require (
	github.com/grafana/pyroscope-go/godeltaprof v0.1.11 // indirect
	github.com/klauspost/compress v1.18.7 // indirect
)
