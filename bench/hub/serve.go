package main

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/hub"
	"github.com/luanette/luanette/internal/tool"
	"github.com/luanette/luanette/internal/upstream"
)

// eras of clients and of the upstream, as the hub's namespaces are called too.
var eras = []string{"legacy", "modern"}

// echo is the one tool that is called.
type echo struct{ infos []tool.Info }

func newEcho() *echo {
	return &echo{infos: []tool.Info{{Ref: tool.Ref{Name: "echo"}, Description: "Says the same", Input: json.RawMessage(`{"type":"object"}`)}}}
}

func (e *echo) Tools(context.Context) ([]tool.Info, error) { return e.infos, nil }

func (e *echo) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{Raw: json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"structuredContent":` + string(call.Args) + `}`)}, nil
}

// serveUpstream serves the echo tool in both eras.
func serveUpstream(ctx context.Context, address string) error {
	return serve(ctx, address, hub.New(hub.Options{Name: "echo", Version: "1", Tools: newEcho()}))
}

// serveHub stands in front of an upstream twice, once in each era.
func serveHub(ctx context.Context, address, url string) error {
	manager := upstream.New(upstream.Options{})
	defer manager.Close()
	for _, era := range eras {
		if err := manager.Add(upstream.Spec{Name: era, URL: url, Protocol: era}); err != nil {
			return err
		}
	}
	return serve(ctx, address, hub.New(hub.Options{Name: "hub", Version: "1", Tools: newEcho(), Upstreams: peers{manager}}))
}

type peers struct{ *upstream.Manager }

func (p peers) Peer(namespace string) (hub.Peer, bool) { return p.Manager.Peer(namespace) }

// usage is what a process has spent since it began, and holds now.
type usage struct {
	CPU     time.Duration
	Bytes   uint64 // allocated in all
	Objects uint64
	Heap    uint64 // after a collection, when it was asked for
	Stacks  uint64
}

func serve(ctx context.Context, address string, h *hub.Hub) error {
	mux := http.NewServeMux()
	mux.Handle("/", h.Handler())
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("collect") {
			runtime.GC()
		}
		_ = json.NewEncoder(w).Encode(spent()) // the reader may have left
	})
	server := &http.Server{Addr: address, Handler: mux}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	err := server.ListenAndServe()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func spent() usage {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	var r syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &r) // cannot fail for oneself
	return usage{
		CPU:     time.Duration(r.Utime.Nano() + r.Stime.Nano()),
		Bytes:   m.TotalAlloc,
		Objects: m.Mallocs,
		Heap:    m.HeapAlloc,
		Stacks:  m.StackInuse,
	}
}
