// A service that offers its profiles over HTTP. It burns CPU, allocates, and lets goroutines wait for each other.
// Prints its address once it listens.
package main

import (
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"runtime"
	"sync"
	"time"
)

var kept [][]byte
var sink int

func burn() {
	for {
		for i := 0; i < 1_000_000; i++ {
			sink += i * i
		}
		time.Sleep(time.Millisecond)
	}
}

func allocate() {
	for {
		block := make([]byte, 64<<10)
		if len(kept) < 100 {
			kept = append(kept, block)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func contend(mutex *sync.Mutex) {
	for {
		mutex.Lock()
		time.Sleep(5 * time.Millisecond)
		mutex.Unlock()
	}
}

func main() {
	runtime.SetMutexProfileFraction(1)
	runtime.SetBlockProfileRate(1)
	runtime.MemProfileRate = 4096
	mutex := &sync.Mutex{}
	go burn()
	go allocate()
	go contend(mutex)
	go contend(mutex)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(listener.Addr())
	panic(http.Serve(listener, nil))
}
