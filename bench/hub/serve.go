package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/luanette/luanette/bench/calls"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/server"
)

// eras of clients and of the upstream, as the hub's namespaces are called too.
var eras = []string{"legacy", "modern"}

// serveUpstream serves the echo tool in both eras.
func serveUpstream(ctx context.Context, address string) error {
	return serve(ctx, address, calls.Echo())
}

// serveHub is luanette serve in front of an upstream twice, once in each era.
func serveHub(ctx context.Context, address, door, upstream, guarded string) error {
	data, err := os.MkdirTemp("", "luanette-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(data) }() // the folder is temporary anyhow
	var text strings.Builder
	fmt.Fprintf(&text, "listen = %q\ndata = %q\n%s[log]\nlevel = \"error\"\n", door, data, calls.Guards[guarded])
	for _, era := range eras {
		fmt.Fprintf(&text, "[upstreams.%s]\nurl = %q\nprotocol = %q\nexpose = \"all\"\n", era, upstream, era)
	}
	file := filepath.Join(data, "luanette.toml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return err
	}
	env := config.Environment{"HOME": data}
	config, err := config.Load(config.Sources{File: file, Env: env})
	if err != nil {
		return err
	}
	server.TuneCollector(config.GCPercent, env)
	house, err := server.Build(ctx, config, server.Options{Version: "bench", Stderr: io.Discard, Env: env})
	if err != nil {
		return err
	}
	ready := make(chan error, 1)
	go func() { ready <- house.Serve(ctx) }()
	return errors.Join(serve(ctx, address, http.NotFoundHandler()), <-ready)
}

// serveProxy passes on what comes, as it comes.
func serveProxy(ctx context.Context, address, to string) error {
	target, err := url.Parse(to)
	if err != nil {
		return err
	}
	return serve(ctx, address, &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport: &http.Transport{MaxIdleConnsPerHost: 1024},
	})
}

// usage is what a process has spent since it began, and holds now.
type usage struct {
	CPU     time.Duration
	Bytes   uint64 // allocated in all
	Objects uint64
	Heap    uint64 // after a collection, when it was asked for
	Stacks  uint64
}

func serve(ctx context.Context, address string, h http.Handler) error {
	mux := http.NewServeMux()
	mux.Handle("/", h)
	mux.HandleFunc("GET /usage", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("collect") {
			runtime.GC()
		}
		_ = json.NewEncoder(w).Encode(spent()) // the reader may have left
	})
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.Handle("GET /debug/pprof/allocs", pprof.Handler("allocs"))
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
