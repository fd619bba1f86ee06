// SPDX-License-Identifier: Apache-2.0

// A client on grpc-go; clients.py says what it is asked and what it prints.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// Messages are bytes.
type identity struct{}

func (identity) Marshal(v any) ([]byte, error) { return *v.(*[]byte), nil }
func (identity) Unmarshal(data []byte, v any) error {
	*v.(*[]byte) = append([]byte{}, data...)
	return nil
}
func (identity) Name() string { return "proto" }

type call struct {
	method string
	body   []byte
}

type options map[string]string

func (o options) number(name string, otherwise int) int {
	if o[name] == "" {
		return otherwise
	}
	n, err := strconv.Atoi(o[name])
	check(err)
	return n
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func read(name string) []byte {
	data, err := os.ReadFile(name)
	check(err)
	return data
}

func (o options) security() credentials.TransportCredentials {
	if o["ca"] == "" {
		return insecure.NewCredentials()
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(read(o["ca"])) {
		check(errors.New("no certificate in " + o["ca"]))
	}
	config := &tls.Config{RootCAs: roots}
	if o["cert"] != "" {
		own, err := tls.LoadX509KeyPair(o["cert"], o["key"])
		check(err)
		config.Certificates = []tls.Certificate{own}
	}
	return credentials.NewTLS(config)
}

func (o options) dial() []grpc.DialOption {
	dial := []grpc.DialOption{grpc.WithTransportCredentials(o.security()),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(identity{}))}
	if o["gzip"] != "" {
		dial = append(dial, grpc.WithDefaultCallOptions(grpc.UseCompressor(gzip.Name)))
	}
	if seconds := o.number("keepalive", 0); seconds > 0 {
		dial = append(dial, grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: time.Duration(seconds) * time.Second, PermitWithoutStream: true}))
	}
	return dial
}

func arguments(words []string) (options, []call) {
	given, calls := options{}, []call{}
	for _, word := range words {
		if method, file, found := strings.Cut(word, ":"); found && method[0] == '/' {
			calls = append(calls, call{method, read(file)})
		} else if name, value, found := strings.Cut(word, "="); found {
			given[name] = value
		}
	}
	return given, calls
}

func (c call) send(connection *grpc.ClientConn, deadline time.Duration) string {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	var answer []byte
	err := connection.Invoke(ctx, c.method, &c.body, &answer)
	return fmt.Sprintf("%d %x", status.Code(err), answer)
}

// Sends all calls, so many at once, and returns when the last one is answered.
func round(connection *grpc.ClientConn, calls []call, atOnce int, deadline time.Duration, answered func(string)) {
	todo := make(chan call)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for c := range todo {
				answered(c.send(connection, deadline))
			}
		})
	}
	for _, c := range calls {
		todo <- c
	}
	close(todo)
	workers.Wait()
}

func main() {
	given, calls := arguments(os.Args[2:])
	connection, err := grpc.NewClient("passthrough:///"+os.Args[1], given.dial()...)
	check(err)
	answers, lock := map[string]int{}, sync.Mutex{}
	for i := range given.number("rounds", 1) {
		if i > 0 {
			time.Sleep(time.Duration(given.number("pause", 0)) * time.Second)
		}
		round(connection, calls, given.number("calls", 1), time.Duration(given.number("deadline", 60))*time.Second,
			func(answer string) {
				lock.Lock()
				answers[answer]++
				lock.Unlock()
			})
	}
	check(connection.Close())
	for answer, count := range answers {
		fmt.Println(count, answer)
	}
}
