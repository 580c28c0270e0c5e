package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/luanette/luanette/internal/hub"
	"github.com/luanette/luanette/internal/upstream"
	"github.com/luanette/luanette/test/conformance/fixture"
)

// subject is a server the suite is pointed at.
type subject struct {
	name  string
	kind  kind
	era   string // of the reference server; empty for our own
	url   string
	close func() error
}

// kind is what stands between the suite and the tools.
type kind int

const (
	own     kind = iota // the hub; all of it is ours, so nothing may fail
	alone               // the reference server
	through             // the hub, with the reference server behind it
)

// Eras of the reference server.
const (
	modern = "modern"
	legacy = "legacy"
)

// reference is the everything-server of the Go SDK.
const reference = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"

// startAll starts every subject: our own server, the reference as it is, and the
// reference behind the hub, both in either era.
func startAll(ctx context.Context, log *slog.Logger) ([]subject, error) {
	var all []subject
	first, err := startOwn(ctx, "127.0.0.1:0", "", log)
	if err != nil {
		return all, err
	}
	all = append(all, first)
	binary, err := buildReference(ctx)
	if err != nil {
		return all, err
	}
	upstreams := map[string]string{}
	for _, era := range []string{modern, legacy} {
		s, err := startReference(ctx, binary, era)
		if err != nil {
			return all, err
		}
		all = append(all, s)
		upstreams[era] = s.url
	}
	behind, err := startThrough(ctx, upstreams, log)
	return append(all, behind...), err
}

// startOwn serves the fixture with our own server, and beside it the upstream at
// a URL, if there is one.
func startOwn(ctx context.Context, address, up string, log *slog.Logger) (subject, error) {
	ctx, cancel := context.WithCancel(ctx)
	opts := fixture.New(ctx).Options()
	opts.Log = log
	manager := upstream.New(upstream.Options{Log: log})
	opts.Upstreams = peers{manager}
	if up != "" {
		if err := manager.Add(upstream.Spec{Name: "up", URL: up}); err != nil {
			cancel()
			return subject{}, err
		}
	}
	url, stop, err := listen(address, hub.New(opts))
	return subject{name: "hub, own tools", kind: own, url: url + "/mcp", close: func() error {
		cancel()
		defer manager.Close()
		return stop()
	}}, err
}

// startThrough serves the reference servers behind a hub.
func startThrough(ctx context.Context, upstreams map[string]string, log *slog.Logger) ([]subject, error) {
	manager := upstream.New(upstream.Options{Log: log, ClientName: "luanette", ClientVersion: "conformance"})
	for era, url := range upstreams {
		if err := manager.Add(upstream.Spec{Name: era, URL: url, Protocol: era}); err != nil {
			return nil, err
		}
	}
	h := hub.New(hub.Options{Name: "luanette", Version: "conformance", Tools: fixture.New(ctx), Upstreams: peers{manager}, Log: log})
	url, stop, err := listen("127.0.0.1:0", h)
	return []subject{
		{name: "through the hub, modern upstream", kind: through, era: modern, url: url + "/mcp/" + modern, close: func() error { return nil }},
		{name: "through the hub, legacy upstream", kind: through, era: legacy, url: url + "/mcp/" + legacy, close: func() error {
			err := stop()
			manager.Close()
			return err
		}},
	}, err
}

// peers shows a manager's upstreams to the hub.
type peers struct{ *upstream.Manager }

func (p peers) Peer(namespace string) (hub.Peer, bool) { return p.Manager.Peer(namespace) }

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
		_ = h.Close(ctx) // what still runs then is called off
		err := server.Close()
		<-done
		return err
	}, nil
}

func buildReference(ctx context.Context) (string, error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "everything-server")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, reference).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", reference, err, text)
	}
	return binary, nil
}

// startReference runs the reference server of one era and waits until it listens.
func startReference(ctx context.Context, binary, era string) (subject, error) {
	address, err := freeAddress()
	if err != nil {
		return subject{}, err
	}
	cmd := exec.CommandContext(ctx, binary, "-http", address, fmt.Sprintf("-stateless=%t", era == modern))
	if err := cmd.Start(); err != nil {
		return subject{}, err
	}
	s := subject{name: "reference server, " + era, kind: alone, era: era, url: "http://" + address, close: func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return err
	}}
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return s, conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return s, ctx.Err()
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
