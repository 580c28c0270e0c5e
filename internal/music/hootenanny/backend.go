// Package hootenanny is the music backend: contents and artifacts with their tags,
// annotations and family, tunes and MIDI files, sound from SoundFonts, a timeline
// with a transport on a software clock, and models that are asked over HTTP. What
// it can do is a set of tools; what takes long is a job.
//
// It knows no protocol: the house serves its tools in process or over ZMQ, and
// its contents over HTTP.
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
	"github.com/luanette/luanette/internal/tools/toolset"
)

// Space is the namespace of the tools.
const Space = "hootenanny"

//go:embed migrations/*.sql
var migrations embed.FS

//go:embed tools/*.md
var pages embed.FS

// Options is what the backend needs of the house.
type Options struct {
	Store      Store         // where contents and artifacts are kept
	Events     *event.Bus    // is told what happens, and heard; may be nil
	Clock      clock.Clock   // nil means the machine's
	Log        *slog.Logger  // nil means nobody
	Folders    []string      // whose files may be uploaded by path
	URL        func() string // where our HTTP server is, such as http://127.0.0.1:8081; nil or "" when there is none
	Services   Services      // where the models are
	HTTP       *http.Client  // to reach them; nil means a plain one
	Propagator propagation.TextMapPropagator
}

// Backend is the backend. It is safe for concurrent use; Close ends what it runs in
// the background.
type Backend struct {
	db      *db.DB
	store   Store
	jobs    Jobs
	options Options
	events  *event.Bus
	clock   clock.Clock
	garden  *garden
	ring    *ring
	set     *toolset.Set
	works   map[string]work
	players chan struct{} // a place for each that plays sound at once
}

// Subscribe makes the backend over a database, whose tables it brings up to date.
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
	if err := database.Migrate(ctx, "hoot", migrations); err != nil {
		return nil, err
	}
	h := &Backend{db: database, store: o.Store, jobs: noJobs{}, options: o, events: o.Events, clock: o.Clock}
	garden, err := openGarden(ctx, database, o.Clock, o.Events)
	if err != nil {
		return nil, err
	}
	h.garden, h.ring = garden, newRing(o.Events, o.Clock) //nolint:contextcheck // it listens until Close
	h.players = make(chan struct{}, runtime.GOMAXPROCS(0))
	h.works = h.allWorks()
	h.set = toolset.NewSet(Space, h.families()...)
	return h, nil
}

// SetJobs tells where jobs run. It is called once, before any tool is.
func (h *Backend) SetJobs(jobs Jobs) { h.jobs = jobs }

// Tools is what the backend can do.
func (h *Backend) Tools() *toolset.Set { return h.set }

// Close stops the transport and what listens to events.
func (h *Backend) Close() {
	h.garden.close()
	h.ring.close()
}

// families is every tool.
func (h *Backend) families() [][]toolset.Tool {
	return [][]toolset.Tool{
		h.contentTools(), h.artifactTools(), h.graphTools(), h.identityTools(), h.jobTools(), h.abcTools(), h.mediaTools(),
		h.gardenTools(), h.eventTools(), h.modelTools(), h.helpTools(),
	}
}

// texts are the descriptions of the tools.
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

// Traits of tools.
func reads() tool.Hints   { return tool.Hints{ReadOnly: true, ClosedWorld: true} }
func keeps() tool.Hints   { return tool.Hints{NonDestructive: true, Idempotent: true, ClosedWorld: true} }
func adds() tool.Hints    { return tool.Hints{NonDestructive: true, ClosedWorld: true} }
func changes() tool.Hints { return tool.Hints{Idempotent: true, ClosedWorld: true} }
func asks() tool.Hints    { return tool.Hints{NonDestructive: true} }

// nothing is the arguments of a tool that takes none.
type nothing struct{}

// newID is a name nobody has guessed or given before.
func newID(kind string) string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return kind + "_" + hex.EncodeToString(b[:])
}

func invalid(format string, args ...any) *fault.Error {
	return fault.New(fault.InvalidParams, format, args...)
}
