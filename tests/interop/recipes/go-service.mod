// SPDX-License-Identifier: Apache-2.0
// A program of the standard library only (interop/golang.py).
module portcullis.test/go-service

go 1.26.0
