// Package hootenanny is the music backend: contents and artifacts with tags,
// annotations and lineage, ABC tunes and MIDI files, audio rendered with
// SoundFonts, a timeline with a transport on a software clock, and music models
// behind HTTP services. It provides tools; tools that take long start jobs.
//
// It implements no protocol: the server offers its tools in process or over ZMQ,
// and its contents over HTTP.
package hootenanny

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"io/fs"
	"log/slog"
	"net/http"
	"runtime"

	"go.opentelemetry.io/otel/propagation"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/db"
	"github.com/luanette/luanette/internal/tools/modelspec"
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Space is the namespace of the tools.
const Space = "hootenanny"

// Migrations create the tables of the package.
//
//go:embed migrations/*.sql
var Migrations embed.FS

//go:embed tools/*.md
var pages embed.FS

// Options configure the backend.
type Options struct {
	Store      Store                     // of contents and artifacts
	Events     *event.Bus                // to publish on and subscribe to; may be nil
	Clock      clock.Clock               // nil means real time
	Log        *slog.Logger              // nil means no log
	Node       string                    // name of this process among those that share the database
	Folders    []string                  // from which files may be uploaded by path
	URL        func() string             // base URL of our HTTP server, such as http://127.0.0.1:8081; nil or "" if there is none
	Services   Services                  // addresses of the models
	Models     map[string]modelspec.Spec // further models, by the names of their tools
	HTTP       *http.Client              // client for the models; nil means a default one
	Propagator propagation.TextMapPropagator
}

// Backend provides the music tools. It is safe for concurrent use. Close stops its
// goroutines.
type Backend struct {
	db      *db.DB
	store   Store
	jobs    Jobs
	options Options
	events  *event.Bus
	clock   clock.Clock
	gardens *gardens
	ring    *ring
	set     *toolset.Set
	workers map[string]worker
	defined []definedModel
	players chan struct{} // limits concurrent rendering
}

// Open opens the backend and migrates its tables in the database.
func Open(ctx context.Context, database *db.DB, o Options) (*Backend, error) {
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HTTP == nil {
		o.HTTP = &http.Client{}
	}
	if o.Propagator == nil {
		o.Propagator = propagation.TraceContext{}
	}
	if o.URL == nil {
		o.URL = func() string { return "" }
	}
	o.Services = o.Services.orDefault()
	if err := database.Migrate(ctx, "hoot", Migrations); err != nil { // the name from before the package was called hootenanny
		return nil, err
	}
	h := &Backend{db: database, store: o.Store, jobs: noJobs{}, options: o, events: o.Events, clock: o.Clock}
	gardens, err := openGardens(ctx, database, o)
	if err != nil {
		return nil, err
	}
	h.gardens, h.players = gardens, make(chan struct{}, runtime.GOMAXPROCS(0))
	if err := h.makeTools(); err != nil {
		return nil, err
	}
	h.ring = newRing(o.Events, o.Clock) //nolint:contextcheck // it subscribes until Close
	return h, nil
}

// makeTools makes the tools and the workers of those that start jobs.
func (h *Backend) makeTools() error {
	if err := h.defineModels(); err != nil {
		return err
	}
	families := h.families()
	models, err := h.definedTools(families)
	if err != nil {
		return err
	}
	h.workers = h.allWorkers()
	h.set = toolset.NewSet(Space, append(families, models)...)
	return nil
}

// SetJobs sets where jobs run. It must be called before any tool is called.
func (h *Backend) SetJobs(jobs Jobs) { h.jobs = jobs }

// Tools returns the tools of the backend.
func (h *Backend) Tools() *toolset.Set { return h.set }

// Close stops the transports and the subscription to events.
func (h *Backend) Close(ctx context.Context) {
	h.gardens.close(ctx)
	h.ring.close()
}

// families returns all tools, grouped.
func (h *Backend) families() [][]toolset.Tool {
	return [][]toolset.Tool{
		h.contentTools(), h.artifactTools(), h.graphTools(), h.identityTools(), h.jobTools(), h.abcTools(), h.mediaTools(),
		h.gardenTools(), h.eventTools(), h.modelTools(), h.helpTools(),
	}
}

// texts returns the descriptions of the tools.
func texts() fs.FS {
	sub, err := fs.Sub(pages, "tools")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}

// define makes a tool; its description is in tools/<name>.md.
func define[In, Out any](name string, hints tool.Hints, do func(ctx context.Context, call tool.Call, in In) (Out, error)) toolset.Tool {
	return toolset.Define(texts(), name, hints, do)
}

// Hints of tools.
func reads() tool.Hints   { return tool.Hints{ReadOnly: true, ClosedWorld: true} }
func puts() tool.Hints    { return tool.Hints{NonDestructive: true, Idempotent: true, ClosedWorld: true} }
func adds() tool.Hints    { return tool.Hints{NonDestructive: true, ClosedWorld: true} }
func changes() tool.Hints { return tool.Hints{Idempotent: true, ClosedWorld: true} }
func asks() tool.Hints    { return tool.Hints{NonDestructive: true} }

// noArguments is the input of a tool without arguments.
type noArguments struct{}

// newID returns a new random id.
func newID(kind string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return kind + "_" + hex.EncodeToString(b[:])
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidParams, format, args...)
}
