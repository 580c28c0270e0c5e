package httpserver

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/httpjson/httpjsontest"
)

func staying() bool { return false }

// TestLeaveResetsNothing lets clients connect while a listener leaves: every one of them is
// either served or refused.
func TestLeaveResetsNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere, connections that were not accepted yet are reset")
	}
	listener, err := Listen(t.Context(), Options{Address: "127.0.0.1:0", MaxConnections: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				_, _ = io.CopyN(conn, conn, 1) // a client that was reset says so
			})
		}
	})
	var served atomic.Int64
	for range 32 {
		all.Go(func() {
			for {
				conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
				if err != nil {
					return
				}
				_, err = conn.Write([]byte("?"))
				if err == nil {
					_, err = io.ReadFull(conn, make([]byte, 1))
				}
				_ = conn.Close()
				if err != nil {
					t.Errorf("a client was neither served nor refused: %v", err)
					return
				}
				served.Add(1)
			}
		})
	}
	clocktest.Await(t, func() bool { return served.Load() > 100 })
	listener.Leave()
	all.Wait()
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String()); err == nil {
		t.Error("a listener that left accepts a connection")
	}
}

// TestLeavingClosesConnections checks that each response of a server that leaves is the last
// of its connection.
func TestLeavingClosesConnections(t *testing.T) {
	t.Parallel()
	listener, err := Listen(t.Context(), Options{Address: "127.0.0.1:0", MaxConnections: 10})
	if err != nil {
		t.Fatal(err)
	}
	var leaving atomic.Bool
	web := New(t.Context(), slog.New(slog.DiscardHandler), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), leaving.Load)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = web.Serve(listener) }()
	for _, want := range []bool{false, true} {
		leaving.Store(want)
		answer, err := httpjsontest.Client.Get(URL(listener.Addr()))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.Close != want {
			t.Errorf("leaving is %t, and the response closes its connection: %t", want, answer.Close)
		}
	}
	_ = web.Close()
	<-ended
}
