package server

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/music/hootenanny"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// BuildMusic makes a house that has the music backend and nothing else, for a
// process of its own.
func BuildMusic(ctx context.Context, config *Loaded, options Options) (*House, error) {
	tel, err := telemetry.Setup(ctx, telemetry.Options{
		Service: hootenanny.Space, Version: options.Version, Endpoint: config.Telemetry.OTLPEndpoint,
		LogLevel: logLevel(config.Log.Level), LogFormat: config.Log.Format, Stderr: options.Stderr,
	})
	if err != nil {
		return nil, err
	}
	h := &House{
		config: config, options: options, telemetry: tel, log: tel.Logger(),
		bus: event.New(event.BusOptions{}), started: time.Now(), stop: func() {},
	}
	if addr, err := net.ResolveTCPAddr("tcp", config.Listen); err == nil { // where the server in front serves what we keep
		h.listening.Store(baseOf(addr))
	}
	if err := h.furnishMusic(ctx); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

func (h *House) furnishMusic(ctx context.Context) error {
	if err := h.openStore(ctx); err != nil {
		return err
	}
	kept, err := h.openContents(ctx)
	if err != nil {
		return err
	}
	h.contents = kept
	if h.hoot, err = h.musicBackend(ctx); err != nil {
		return err
	}
	if err := h.openJobs(ctx); err != nil {
		return err
	}
	h.hoot.SetJobs(musicJobs{h.jobs})
	return nil
}

// ServeMusic serves the music tools over ZeroMQ until ctx ends, then closes the
// house.
func (h *House) ServeMusic(ctx context.Context, listen, broadcast string) error {
	return h.ServeBackend(ctx, Backend{Name: hootenanny.Space, Listen: listen, Broadcast: broadcast, Source: h.hoot.Tools()})
}
