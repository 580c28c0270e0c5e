package httpservertest

import (
	"net"
	"net/http"
	"sync"
	"testing"
)

// Pipe serves one connection that has no buffer: what the client does not read, the
// handler cannot write. It works with virtual time.
func Pipe(t testing.TB, handler http.Handler) net.Conn {
	t.Helper()
	client, server := net.Pipe()
	listener := &pipeListener{closed: make(chan struct{}), conns: make(chan net.Conn, 1)}
	listener.conns <- server
	s := &http.Server{Handler: handler} // the tests are about what slow clients do to handlers
	var work sync.WaitGroup
	work.Go(func() { _ = s.Serve(listener) })
	t.Cleanup(func() {
		_ = client.Close()
		_ = s.Close()
		work.Wait()
	})
	return client
}

type pipeListener struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Net: "unix", Name: "pipe"} }
