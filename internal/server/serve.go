package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/luanette/luanette/internal/access/owner"
	"github.com/luanette/luanette/internal/base/httpserver"
	"github.com/luanette/luanette/internal/core/principal"
)

// Limits of the steps of a shutdown, after the drain.
const (
	closeTimeout = 500 * time.Millisecond // for connections to end
	graceTimeout = time.Second            // for child processes to end
	flushTimeout = time.Second            // for one part to finish
	storeTimeout = 10 * time.Second       // for what must be stored
)

// Serve serves HTTP until ctx ends, then lets running requests finish and closes the
// server.
func (srv *Server) Serve(ctx context.Context) error {
	if err := srv.checkKeyRequired(ctx, srv.config.Listen); err != nil {
		return errors.Join(err, srv.Close(ctx))
	}
	if srv.relay != nil {
		srv.relay.Ready(ctx) // clients that follow events from the start miss none
	}
	listener, err := httpserver.Listen(ctx, httpserver.Options{
		Address: srv.config.Listen, CertFile: srv.config.TLSCert, KeyFile: srv.config.TLSKey,
		MaxConnections: srv.config.MaxConnections, Log: srv.log,
	})
	if err != nil {
		return errors.Join(err, srv.Close(ctx))
	}
	backend, stopBridge, err := srv.startBridge(ctx)
	if err != nil {
		_ = listener.Close() // no connection was accepted yet
		return errors.Join(err, srv.Close(ctx))
	}
	srv.listening.Store(srv.config.Scheme() + strings.TrimPrefix(httpserver.URL(listener.Addr()), "http"))
	srv.node.SetAddress(httpserver.URL(listener.Addr()))
	srv.printAddresses(ctx, listener.Addr(), backend)
	srv.precompile()
	srv.rekey()
	srv.returnMemory()

	requests, endRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer endRequests()
	web := httpserver.New(requests, srv.log, srv.handler(), srv.draining.Load)
	web.ConnContext = owner.WithConn
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()

	select {
	case err = <-failed: // the listener failed
		stopBridge()
	case <-ctx.Done():
		srv.delayShutdown(ctx)
		srv.moveClients(listener, web)
		var leaving sync.WaitGroup
		leaving.Go(stopBridge)
		srv.drain(ctx)
		leaving.Wait()
		endRequests()
		err = shut(ctx, web)
		<-failed
	}
	err = errors.Join(err, srv.Close(ctx))
	if srv.config.Log.Format == "json" {
		srv.log.InfoContext(ctx, "stopped", "node", srv.node.Name(), "uptime", time.Since(srv.started))
	}
	return err
}

// ServeStdio serves one MCP client on in and out until the input or ctx ends, then closes
// the server. The client is within a set of tools, unless that is empty.
func (srv *Server) ServeStdio(ctx context.Context, set string, in io.Reader, out io.Writer) error {
	srv.precompile()
	srv.returnMemory()
	who, err := srv.localPeers.Identify(ctx)
	if err == nil {
		who.Keyless = true
		err = srv.hub.ServeStdio(principal.With(ctx, who.InSet(set)), in, out)
	}
	if ctx.Err() != nil {
		err = nil // a normal stop
	}
	return errors.Join(err, srv.Close(ctx))
}

// precompileDelay leaves the processor to the first requests.
const precompileDelay = time.Second

// precompile stores the compiled JavaScript engine if this start is the first on its data
// folder.
func (srv *Server) precompile() {
	srv.runBackground(func(ctx context.Context) {
		select {
		case <-time.After(precompileDelay):
			srv.scripts.js.Precompile() //nolint:contextcheck // what has begun is stored
		case <-ctx.Done():
		}
	})
}

// shut closes the HTTP server.
func shut(ctx context.Context, s *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		return s.Close()
	}
	return nil
}

// printAddresses prints where the server is reachable.
func (srv *Server) printAddresses(ctx context.Context, addr net.Addr, backend string) {
	base := srv.config.Scheme() + "://" + addr.String()
	if srv.config.Log.Format == "json" { // every line is for a program
		srv.log.InfoContext(ctx, "listening", "version", srv.options.Version, "node", srv.node.Name(), "address", base,
			"backend", backend, "data", srv.config.Data, "config", srv.config.File)
		return
	}
	fmt.Fprintf(srv.options.Stderr, "luanette %s is listening on %s\n", srv.options.Version, base)
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() { // no address to open
		base = fmt.Sprintf("%s://localhost:%d", srv.config.Scheme(), tcp.Port)
	}
	for _, line := range [][2]string{
		{"public", srv.config.PublicURL},
		{"page", base + srv.pagePath(ctx)},
		{"MCP", base + "/mcp"},
		{"health", base + "/health"},
		{"ZeroMQ", backend},
		{"data", srv.config.Data},
		{"config", orNone(srv.config.File)},
		{"keys", srv.keysNeeded(ctx)},
	} {
		if line[1] != "" {
			fmt.Fprintf(srv.options.Stderr, "  %-8s %s\n", line[0], line[1])
		}
	}
}

// pagePath is the path of the page. On a server without keys it signs the owner in, once.
func (srv *Server) pagePath(ctx context.Context) string {
	if needed, err := srv.auth.KeyRequired(ctx); err != nil || needed {
		return "/"
	}
	return srv.auth.OwnerLink() + " (signs one browser in; `luanette open` does it again)"
}

// keysNeeded says whether clients need a key.
func (srv *Server) keysNeeded(ctx context.Context) string {
	if shut, err := srv.auth.KeyRequired(ctx); err == nil && !shut {
		return map[owner.Local]string{
			owner.AsGuest: "none: programs on this machine are guests, who may use tools; `luanette key create NAME` makes one",
			owner.AsOwner: "none: programs on this machine may do everything; `luanette key create NAME` makes one",
			owner.AsNone:  "none: only the owner of the machine is served; `luanette key create NAME` makes one",
		}[srv.localPeers.Local]
	}
	return "needed; `luanette key list` shows them"
}

func orNone(text string) string {
	if text == "" {
		return "none; `luanette config show` prints the defaults"
	}
	return text
}

// delayShutdown keeps serving for a while after the stop signal, so that load balancers
// see that the server is not ready before it refuses requests.
func (srv *Server) delayShutdown(ctx context.Context) {
	srv.draining.Store(true)
	srv.node.AnnounceDrain(ctx)
	if wait := time.Duration(srv.config.ShutdownDelay); wait > 0 {
		srv.log.InfoContext(ctx, "shutting down: not ready, still serving", "for", wait)
		time.Sleep(wait)
	}
}

// lastRequests is how long open connections are served after new ones are refused.
const lastRequests = 400 * time.Millisecond

// moveClients makes clients and load balancers use the other nodes, before requests are
// refused here.
func (srv *Server) moveClients(listener *httpserver.Listener, web *http.Server) {
	if !srv.isShared() {
		return // nobody else could serve them
	}
	listener.Leave()
	time.Sleep(lastRequests)
	web.SetKeepAlivesEnabled(false) // also closes those that wait for a request
}

// drain lets running calls and chat turns finish, ends the streams of clients and accepts
// nothing new. It does not wait for jobs: they resume after the restart or on another
// node.
func (srv *Server) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Duration(srv.config.Drain))
	defer cancel()
	var all sync.WaitGroup
	if srv.turns != nil {
		all.Go(func() {
			if left := srv.turns.Drain(ctx); left > 0 {
				srv.log.WarnContext(ctx, "messages left to answer after the restart", "count", left)
			}
		})
	}
	all.Go(func() {
		if left := srv.toolsAPI.Drain(ctx); left > 0 {
			srv.log.WarnContext(ctx, "calls at /tools ended early", "count", left)
		}
	})
	all.Go(func() {
		if err := srv.hub.Close(ctx); err != nil {
			srv.log.WarnContext(ctx, "calls ended early", "error", err)
		}
	})
	all.Wait()
}
