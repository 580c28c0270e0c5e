package main

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/http/pprof"
	"net/url"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/server"
)

// serve serves a handler until ctx is done.
func serve(ctx context.Context, address string, h http.Handler) error {
	s := &http.Server{Addr: address, Handler: h}
	stop := context.AfterFunc(ctx, func() { _ = s.Close() })
	defer stop()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// serveProxy passes requests on as they come.
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

// serveHub is luanette serve, with profiles on another loopback address.
func serveHub(ctx context.Context, address, file string) error {
	env := config.Environment{}
	loaded, err := config.Load(config.Sources{File: file, Env: env, Flags: map[string]string{"listen": address}})
	if err != nil {
		return err
	}
	loaded.TuneCollector(env)
	srv, err := server.Build(ctx, loaded, server.Options{Version: "bench", Stderr: io.Discard, Env: env})
	if err != nil {
		return err
	}
	profiles := make(chan error, 1)
	go func() { profiles <- serve(ctx, profileAddress(address), profileHandler()) }()
	return errors.Join(srv.Serve(ctx), <-profiles)
}

// profileAddress is where the hub at an address serves its profiles: on the same port of
// another loopback address.
func profileAddress(address string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort("127.0.0.2", port)
}

func profileHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.Handle("GET /debug/pprof/allocs", pprof.Handler("allocs"))
	return mux
}
