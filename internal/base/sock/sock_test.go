package sock_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/sock"
)

// pair is a connection and its other end.
func pair(t testing.TB) (here *sock.Conn, there *net.TCPConn) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(); other.Close() })
	return sock.New(conn), other.(*net.TCPConn)
}

// More than the system holds for a connection goes both ways at once, and comes back.
func TestEcho(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	want := bytes.Repeat([]byte("there and back again. "), 500_000)
	var work sync.WaitGroup
	work.Go(func() {
		_, _ = io.Copy(there, there)
		_ = there.Close()
	})
	work.Go(func() {
		if n, err := here.Write(want); n != len(want) || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
		_ = here.Conn.(*net.TCPConn).CloseWrite()
	})
	got, err := io.ReadAll(here)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(want), err)
	}
	work.Wait()
}

// Whatever goes wrong is said as the connection itself would have said it.
func TestFaultsAreTheConnections(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *testing.T, here *sock.Conn, there *net.TCPConn)
		is    error
	}{
		"closed here":   {func(_ *testing.T, here *sock.Conn, _ *net.TCPConn) { here.Close() }, net.ErrClosed},
		"past deadline": {func(_ *testing.T, here *sock.Conn, _ *net.TCPConn) { _ = here.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"reset": {func(t *testing.T, here *sock.Conn, there *net.TCPConn) {
			_ = there.SetLinger(0)
			_ = there.Close()
			clocktest.Await(t, func() bool { // it has heard of it
				_, err := here.Write([]byte("x"))
				return err != nil
			})
		}, syscall.EPIPE},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, there := pair(t)
			test.spoil(t, here, there)
			_, err := here.Write([]byte("x"))
			_, plain := here.Conn.Write([]byte("x"))
			if !errors.Is(err, test.is) || err.Error() != plain.Error() {
				t.Errorf("Write: %v, want as %v", err, plain)
			}
			if errors.Is(err, syscall.EPIPE) {
				return // read by now
			}
			_, err = here.Read(make([]byte, 1))
			_, plain = here.Conn.Read(make([]byte, 1))
			if !errors.Is(err, test.is) || err.Error() != plain.Error() {
				t.Errorf("Read: %v, want as %v", err, plain)
			}
		})
	}
	t.Run("reset while it reads", func(t *testing.T) {
		t.Parallel()
		here, there := pair(t)
		_ = there.SetLinger(0)
		_ = there.Close()
		_, err := here.Read(make([]byte, 1))
		var op *net.OpError
		if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) || op.Op != "read" || op.Addr.String() != here.RemoteAddr().String() {
			t.Errorf("Read: %v", err)
		}
	})
}

// Closing and a deadline end what is under way.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end func(*sock.Conn)
		is  error
	}{
		"close":    {func(c *sock.Conn) { c.Close() }, net.ErrClosed},
		"deadline": {func(c *sock.Conn) { _ = c.SetDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			here, _ := pair(t)
			var work sync.WaitGroup
			work.Go(func() {
				if _, err := here.Read(make([]byte, 1)); !errors.Is(err, test.is) {
					t.Errorf("Read: %v", err)
				}
			})
			begun := make(chan struct{})
			work.Go(func() {
				_, err := here.Write([]byte("x"))
				close(begun)
				for err == nil { // until nothing more can be held for the other end
					_, err = here.Write(make([]byte, 1<<20))
				}
				if !errors.Is(err, test.is) {
					t.Errorf("Write: %v", err)
				}
			})
			<-begun
			test.end(here)
			work.Wait()
		})
	}
}

func TestSilent(t *testing.T) {
	t.Parallel()
	here, there := pair(t)
	for range 2 {
		if !here.Silent() {
			t.Error("nothing was said, and it is not silent")
		}
	}
	if _, err := there.Write([]byte("psst")); err != nil {
		t.Fatal(err)
	}
	clocktest.Await(t, func() bool { return !here.Silent() })
	here, there = pair(t)
	_ = there.Close()
	clocktest.Await(t, func() bool { return !here.Silent() })
	here.Close()
	if here.Silent() {
		t.Error("a closed one is silent")
	}
	here, _ = pair(t)
	if wrapped := sock.New(struct{ net.Conn }{here}); wrapped.Silent() {
		t.Error("nobody knows, and it is silent")
	}
}

func TestWithoutMemory(t *testing.T) { //nolint:paralleltest // counts what everybody allocates
	here, there := pair(t)
	p := make([]byte, 16)
	if n := testing.AllocsPerRun(100, func() {
		_, _ = here.Write(p)
		_, _ = io.ReadFull(there, p)
		_, _ = there.Write(p)
		_, _ = io.ReadFull(here, p)
		here.Silent()
	}); n > 0 {
		t.Errorf("%v allocations for a read, a write and a look", n)
	}
}
