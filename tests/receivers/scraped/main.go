// SPDX-License-Identifier: Apache-2.0

// A program that exposes net/http/pprof, and does what its profiles show: it allocates, contends for
// a mutex, blocks and computes, a known number of times for each POST /work?rounds=N.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

var (
	mutex sync.Mutex
	kept  [][]byte
	sink  uint64
)

//go:noinline
func allocate(rounds int) {
	for i := 0; i < rounds; i++ {
		kept = append(kept, make([]byte, 1000))
	}
}

//go:noinline
func contend(rounds int) {
	var all sync.WaitGroup
	for i := 0; i < rounds; i++ {
		mutex.Lock()
		all.Add(1)
		go func() {
			mutex.Lock()
			mutex.Unlock()
			all.Done()
		}()
		time.Sleep(time.Millisecond)
		mutex.Unlock()
		all.Wait()
	}
}

//go:noinline
func compute() {
	for {
		for i := 0; i < 1000000; i++ {
			sink += uint64(i) * sink
		}
		time.Sleep(time.Millisecond)
	}
}

func work(w http.ResponseWriter, r *http.Request) {
	rounds, _ := strconv.Atoi(r.URL.Query().Get("rounds"))
	allocate(rounds * 100)
	contend(rounds)
	runtime.GC()
	runtime.GC()
}

func main() {
	runtime.MemProfileRate = 1
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	http.HandleFunc("/work", work)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go compute()
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	fmt.Fprintln(os.Stderr, http.Serve(listener, nil))
}
