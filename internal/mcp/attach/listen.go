package attach

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/filelock"
	"github.com/luanette/luanette/internal/base/httpjson"
)

// protocol is the name of the pipe of messages in the Upgrade header.
const protocol = "luanette-stdio"

// Options are what a server offers to processes of the same user.
type Options struct {
	// Serve serves one MCP client until it disconnects.
	Serve func(ctx context.Context, in io.Reader, out io.Writer, want Want) error
	// Conn returns the context of a connection; nil: that of Listen.
	Conn func(ctx context.Context, c net.Conn) context.Context
	// Client returns the context for an MCP client on a connection, or why it is refused; nil:
	// none is.
	Client func(ctx context.Context) (context.Context, error)
	// Owner returns why a connection may not use the rest; nil: all may.
	Owner func(ctx context.Context) error
	// API is what the server serves over HTTP, without authentication.
	API http.Handler
	// Info describes the server; Clients is set by the listener.
	Info func() Info
	// Stop ends a server in the background; nil if it is none.
	Stop func()
	// Reload reads the configuration again. It returns the settings that need a restart.
	Reload func(ctx context.Context) (waiting []string, err error)
}

// Listener serves the processes that attach. Close ends it.
type Listener struct {
	options Options
	lock    *filelock.Lock
	place   Place
	folder  string // of the socket, to remove; or ""
	web     *http.Server
	work    sync.WaitGroup

	mu      sync.Mutex
	clients int
	retired bool // it accepts no more clients
}

// Reserve makes this process the server of a place. It returns nil if another process is
// that, which with wait it waits for to end.
func Reserve(ctx context.Context, place Place, wait bool) (*filelock.Lock, error) {
	take := func() (*filelock.Lock, error) { return filelock.Try(place.file("lock")) }
	if wait {
		take = func() (*filelock.Lock, error) { return filelock.Wait(ctx, place.file("lock")) }
	}
	lock, err := take()
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "reserve %s", place.Folder).WithHint("choose a data folder you may write to with --data or LUANETTE_DATA")
	}
	return lock, nil
}

// Listen serves those who attach to a place. The lock is that of Reserve; Close releases
// it. Requests end when ctx does, or with the connections.
func Listen(ctx context.Context, place Place, lock *filelock.Lock, options Options) (*Listener, error) {
	l := &Listener{options: options, lock: lock, place: place}
	socket, err := l.listen(ctx)
	if err != nil {
		_ = lock.Unlock() // the first error is the cause
		return nil, fault.Wrap(fault.Config, err, "listen on a socket in %s", place.Folder)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /mcp", l.attach)
	mux.Handle("GET /info", l.forOwner(http.HandlerFunc(l.info)))
	mux.Handle("POST /stop", l.forOwner(http.HandlerFunc(l.stop)))
	mux.Handle("POST /reload", l.forOwner(http.HandlerFunc(l.reload)))
	for _, path := range []string{"/api/v1/", "GET /health", "GET /ready", "POST /mcp", "DELETE /mcp"} {
		mux.Handle(path, l.forOwner(options.API))
	}
	l.web = &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, ConnContext: options.Conn,
	}
	l.work.Go(func() { _ = l.web.Serve(ownerOnly{socket}) }) // it ends with Close
	return l, nil
}

// listen opens the socket and stores where it is.
func (l *Listener) listen(ctx context.Context) (net.Listener, error) {
	path, folder, err := l.place.newSocket()
	if err != nil {
		return nil, err
	}
	l.folder = folder
	var config net.ListenConfig
	socket, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	text, _ := json.Marshal(record{path, os.Getpid()}) // it always encodes
	if err := os.WriteFile(l.place.file("json"), text, 0o600); err != nil {
		return nil, errors.Join(err, socket.Close())
	}
	return socket, nil
}

// ownerOnly is a listener that accepts only processes of the same user. The socket's mode
// says the same; this is a second check where the system can tell who connects.
type ownerOnly struct{ net.Listener }

func (l ownerOnly) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || isUser(conn, os.Getuid()) {
			return conn, err
		}
		_ = conn.Close() // it is refused
	}
}

// Retire accepts no more clients, unless there is one. It reports whether it does so.
func (l *Listener) Retire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = l.retired || l.clients == 0
	return l.retired
}

// add counts a client that comes or leaves, and reports whether it is accepted.
func (l *Listener) add(n int) (accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n > 0 && l.retired {
		return false
	}
	l.clients += n
	return true
}

// forOwner serves connections that may use everything.
func (l *Listener) forOwner(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.options.Owner != nil {
			if err := l.options.Owner(r.Context()); err != nil {
				httpjson.Error(w, http.StatusForbidden, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (l *Listener) info(w http.ResponseWriter, _ *http.Request) {
	info := l.options.Info()
	l.mu.Lock()
	clients, retired := l.clients, l.retired
	l.mu.Unlock()
	if info.Clients = clients; retired {
		refuseRetired(w)
		return
	}
	httpjson.JSON(w, http.StatusOK, info)
}

func refuseRetired(w http.ResponseWriter) {
	httpjson.JSON(w, http.StatusServiceUnavailable, map[string]string{"message": "the server is about to end"})
}

// stop ends a server in the background, so that another can take its place.
func (l *Listener) stop(w http.ResponseWriter, _ *http.Request) {
	if l.options.Stop == nil {
		httpjson.JSON(w, http.StatusConflict, map[string]string{"message": "this server was not started in the background"})
		return
	}
	w.WriteHeader(http.StatusAccepted)
	l.options.Stop()
}

// Reloaded is the answer to a request to reload.
type Reloaded struct {
	Waiting []string `json:"restart_needed,omitempty"` // settings that changed and need a restart
	Error   string   `json:"error,omitempty"`          // why the old configuration stays in effect
	Hint    string   `json:"hint,omitempty"`
}

// reload has the server read its configuration again.
func (l *Listener) reload(w http.ResponseWriter, r *http.Request) {
	waiting, err := l.options.Reload(r.Context())
	answer := Reloaded{Waiting: waiting}
	if err != nil {
		answer.Error, answer.Hint = err.Error(), fault.HintOf(err)
	}
	httpjson.JSON(w, http.StatusOK, answer)
}

// attach makes the connection a pipe of MCP messages and serves it.
func (l *Listener) attach(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != protocol {
		httpjson.JSON(w, http.StatusUpgradeRequired, map[string]string{"message": "send Upgrade: " + protocol})
		return
	}
	ctx := r.Context()
	if l.options.Client != nil {
		var err error
		if ctx, err = l.options.Client(ctx); err != nil {
			httpjson.Error(w, http.StatusForbidden, err)
			return
		}
	}
	if !l.add(1) {
		refuseRetired(w)
		return
	}
	defer l.add(-1)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return // the client is disconnected
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol); err != nil {
		return
	}
	in := struct {
		io.Reader
		io.Closer
	}{buffered.Reader, conn}
	_ = l.options.Serve(ctx, in, conn, Want{Menu: r.URL.Query().Get("menu"), Set: r.URL.Query().Get("set")}) // the client is disconnected in any case
}

// Close ends the listener and its place. Attached clients end with their server.
func (l *Listener) Close() error {
	err := errors.Join(os.Remove(l.place.file("json")), l.web.Close())
	l.work.Wait()
	if l.folder != "" {
		err = errors.Join(err, os.RemoveAll(l.folder))
	}
	return errors.Join(err, l.lock.Unlock())
}
