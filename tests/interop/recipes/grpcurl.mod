// SPDX-License-Identifier: Apache-2.0
// How grpcurl is built (interop/golang.py); what it needs is pinned by its own go.mod.
module portcullis.test/grpcurl

go 1.26.0

require github.com/fullstorydev/grpcurl v1.9.3
