// SPDX-License-Identifier: Apache-2.0

// An OTLP server made of the Collector's own model of profiles: keeps what that understood, in its JSON.
//
//	pdata GRPC_PORT HTTP_PORT DIRECTORY    prints "ready"; the files are DIRECTORY/000001.json and so on, each whole
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	_ "google.golang.org/grpc/encoding/gzip"
)

type server struct {
	pprofileotlp.UnimplementedGRPCServer
	directory string
	number    atomic.Int64
}

func (s *server) keep(request pprofileotlp.ExportRequest) error {
	data, err := request.MarshalJSON()
	if err != nil {
		return err
	}
	path := filepath.Join(s.directory, fmt.Sprintf("%06d.json", s.number.Add(1)))
	if err := os.WriteFile(path+".part", data, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".part", path)
}

func (s *server) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	return pprofileotlp.NewExportResponse(), s.keep(request)
}

func read(r *http.Request) (pprofileotlp.ExportRequest, error) {
	request := pprofileotlp.NewExportRequest()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return request, err
	}
	if r.Header.Get("Content-Type") == "application/json" {
		return request, request.UnmarshalJSON(body)
	}
	return request, request.UnmarshalProto(body)
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request, err := read(r)
	if err == nil {
		err = s.keep(request)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func listen(port string) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func main() {
	s := &server{directory: os.Args[3]}
	calls := grpc.NewServer(grpc.MaxRecvMsgSize(1 << 30))
	pprofileotlp.RegisterGRPCServer(calls, s)
	web := listen(os.Args[2])
	go func() { log.Fatal(http.Serve(web, s)) }()
	front := listen(os.Args[1])
	fmt.Println("ready")
	log.Fatal(calls.Serve(front))
}
