package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
)

// subject is a server that the suite tests.
type subject struct {
	name  string
	kind  kind
	era   string // of the reference server; empty for our own
	url   string
	close func() error
}

// kind is what the suite connects to.
type kind int

const (
	own     kind = iota // the hub with its own tools; nothing may fail
	alone               // the reference server
	through             // the hub with the reference server as upstream
)

// Eras of the reference server.
const (
	modern = "modern"
	legacy = "legacy"
)

// The tested programs: the fixture on our own server, and the everything-server of the Go
// SDK.
const (
	fixture   = "github.com/luanette/luanette/test/conformance/fixture"
	reference = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"
)

// startAll starts every subject: our own server, the reference server, and the hub with
// the reference server as upstream, both in either era.
func startAll(ctx context.Context, log *slog.Logger) ([]subject, error) {
	var all []subject
	binary, err := build(ctx, fixture)
	if err != nil {
		return all, err
	}
	first, err := start(ctx, subject{name: "hub, own tools", kind: own}, binary, "-listen")
	if err != nil {
		return all, err
	}
	first.url += "/mcp"
	all = append(all, first)
	if binary, err = build(ctx, reference); err != nil {
		return all, err
	}
	upstreams := map[string]string{}
	for _, era := range []string{modern, legacy} {
		s := subject{name: "reference server, " + era, kind: alone, era: era}
		if s, err = start(ctx, s, binary, fmt.Sprintf("-stateless=%t", era == modern), "-http"); err != nil {
			return all, err
		}
		all = append(all, s)
		upstreams[era] = s.url
	}
	behind, err := startThrough(ctx, upstreams, log)
	return append(all, behind...), err
}

// startThrough serves servers of both eras through a hub.
func startThrough(ctx context.Context, upstreams map[string]string, log *slog.Logger) ([]subject, error) {
	database, remove, err := openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	relay, err := taskrelay.Open(ctx, database, taskrelay.Options{Node: "conformance", Log: log})
	if err != nil {
		return nil, err
	}
	manager := upstream.New(upstream.Options{Log: log, ClientName: "luanette", ClientVersion: "conformance", Tasks: relay})
	relay.Start(manager)
	for era, url := range upstreams {
		if err := manager.Add(upstream.Spec{Name: era, URL: url, Protocol: era}); err != nil {
			return nil, err
		}
	}
	h := hub.New(hub.Options{Name: "luanette", Version: "conformance", Tools: noTools{}, Upstreams: peers{manager}, RelayedTasks: relay, Log: log})
	url, stop, err := listen("127.0.0.1:0", h)
	return []subject{
		{name: "through the hub, modern upstream", kind: through, era: modern, url: url + "/mcp/" + modern, close: func() error { return nil }},
		{name: "through the hub, legacy upstream", kind: through, era: legacy, url: url + "/mcp/" + legacy, close: func() error {
			err := stop()
			relay.Close()
			manager.Close()
			return errors.Join(err, remove())
		}},
	}, err
}

// openDatabase makes a database in a temporary folder.
func openDatabase(ctx context.Context) (database *db.DB, remove func() error, err error) {
	folder, err := os.MkdirTemp("", "conformance-database")
	if err != nil {
		return nil, nil, err
	}
	database, err = db.Open(ctx, "sqlite:"+filepath.Join(folder, "tasks.db"), db.Options{})
	return database, func() error { return errors.Join(database.Close(), os.RemoveAll(folder)) }, err
}

// peers adapts a manager's upstreams to the hub.
type peers struct{ *upstream.Manager }

func (p peers) Peer(_ context.Context, namespace string) (hub.Peer, bool) {
	return p.Manager.Peer(namespace)
}

// Owner implements hub.Upstreams: all share one connection.
func (peers) Owner(context.Context, string) string { return "" }

// listen serves a hub until stop is called.
func listen(address string, h *hub.Hub) (url string, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", func() error { return nil }, err
	}
	server := &http.Server{Handler: h.Handler()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns when closed
	}()
	return "http://" + listener.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = h.Close(ctx) // ctx ends, which cancels what still runs
		err := server.Close()
		<-done
		return err
	}, nil
}

// build makes the program of a package.
func build(ctx context.Context, pkg string) (binary string, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, filepath.Base(pkg))
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return binary, nil
}

// start runs a server and waits until it listens. The last argument is the flag
// that takes the address.
func start(ctx context.Context, s subject, binary string, args ...string) (subject, error) {
	address := net.JoinHostPort("127.0.0.1", netguardtest.ReservedPort())
	cmd := exec.CommandContext(ctx, binary, append(args, address)...)
	if err := cmd.Start(); err != nil {
		return s, err
	}
	s.url = "http://" + address
	s.close = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return errors.Join(err, os.RemoveAll(filepath.Dir(binary)))
	}
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return s, conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return s, ctx.Err()
}

// noTools is the source of a hub that serves only upstreams.
type noTools struct{}

func (noTools) Tools(context.Context) ([]tool.Info, error) { return nil, nil }

func (noTools) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{}, fault.New(fault.ToolNotFound, "no tool named %q", call.Ref.Name)
}
