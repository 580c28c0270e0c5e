// Package app is the house: it reads the configuration, builds every part, ties
// them together and runs them until it is told to stop. It is the only package
// that knows everybody.
package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/luanette/luanette/internal/db"
	"github.com/luanette/luanette/internal/event"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/telemetry"
)

// Options is what the process hands to the house beside its configuration.
type Options struct {
	Version string
	Stderr  io.Writer   // logs and the start-up lines; standard output belongs to protocols
	Env     Environment // for variables that parts of the configuration name
}

// House is the whole program, built and ready to run.
type House struct {
	config    *Loaded
	options   Options
	telemetry *telemetry.Telemetry
	log       *slog.Logger
	store     *db.DB
	bus       *event.Bus
	started   time.Time
}

// Build makes every part and starts nothing that listens. The caller runs the
// house or closes it.
func Build(ctx context.Context, config *Loaded, options Options) (*House, error) {
	tel, err := telemetry.Setup(ctx, telemetry.Options{
		Service:   "luanette",
		Version:   options.Version,
		Endpoint:  config.Telemetry.OTLPEndpoint,
		LogLevel:  logLevel(config.Log.Level),
		LogFormat: config.Log.Format,
		Stderr:    options.Stderr,
	})
	if err != nil {
		return nil, err
	}
	h := &House{
		config: config, options: options,
		telemetry: tel, log: tel.Logger(),
		bus:     event.New(event.BusOptions{}),
		started: time.Now(),
	}
	if err := h.openStore(ctx); err != nil {
		return nil, errors.Join(err, h.Close(ctx))
	}
	return h, nil
}

func (h *House) openStore(ctx context.Context) error {
	if err := os.MkdirAll(h.config.Data, 0o700); err != nil {
		return fault.Wrap(fault.Config, err, "make data folder").
			WithHint("choose a folder you may write to with --data or LUANETTE_DATA")
	}
	store, err := db.Open(ctx, h.config.Database, db.Options{})
	if err != nil {
		return err
	}
	h.store = store
	return nil
}

// logLevel reads a level that check has seen to be one.
func logLevel(name string) slog.Level {
	var level slog.Level
	_ = level.UnmarshalText([]byte(name))
	return level
}

// Close gives back what Build took, in the opposite order.
func (h *House) Close(ctx context.Context) error {
	var err error
	if h.store != nil {
		err = h.store.Close()
	}
	return errors.Join(err, h.telemetry.Shutdown(ctx))
}
