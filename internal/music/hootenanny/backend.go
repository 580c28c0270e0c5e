// Package hootenanny is the music backend: contents and artifacts with tags,
// annotations and lineage, ABC tunes and MIDI files, audio rendered with
// SoundFonts, a timeline with a transport on a software clock, and music models
// behind HTTP services. It provides tools; tools that take long start jobs.
//
// It implements no protocol: the server offers its tools in process or over ZMQ,
// and its contents over HTTP.
package hootenanny

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/store/artifact"
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
	Files      *artifact.Files           // contents and artifacts
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
	files   *artifact.Files
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
	if err := database.Migrate(ctx, "hoot", Migrations); err != nil { // the name from before the package was called hootenanny
		return nil, err
	}
	h := &Backend{db: database, files: o.Files, jobs: noJobs{}, options: o, events: o.Events, clock: o.Clock}
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
		h.gardenTools(), h.eventTools(), h.helpTools(),
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

// Services are the addresses of the models, each an HTTP server of its own. An
// empty address means the default port on this machine.
type Services struct {
	Orpheus           string
	OrpheusClassifier string
	OrpheusBridge     string
	OrpheusLoops      string
	MusicGen          string
	CLAP              string
	YuE               string
	BeatThis          string
	Anticipatory      string
}

// service is one model.
type service struct {
	name    string
	address string        // without the path of requests
	path    string        // of requests
	setting string        // name of the setting with its address
	timeout time.Duration // of one request
}

// Limits for requests to a model.
const (
	maxReply      = 256 << 20        // bytes of a reply
	busyTimeout   = 10 * time.Minute // how long a busy model is retried
	maxRetryDelay = 30 * time.Second // between two attempts
	maxAttempts   = 3                // of a request that fails in the service
)

// ask sends a request to a model and decodes the reply. A busy model is retried after
// its Retry-After, a request that fails in the service a few times.
func (h *Backend) ask(ctx context.Context, t Task, s service, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fault.Wrap(fault.Internal, err, "ask %s", s.name)
	}
	began, failures := h.clock.Now(), 0
	for attempt := 1; ; attempt++ {
		t.Progress(0.1, "waiting for "+s.name)
		again, err := h.post(ctx, s, body, answer)
		if again == nil {
			return err
		}
		wait, why := again.wait(attempt), "is busy"
		if again.failed != nil {
			if failures++; failures >= maxAttempts {
				return again.failed
			}
			why = "failed"
		}
		if h.clock.Now().Add(wait).Sub(began) > busyTimeout {
			return fault.New(fault.Unavailable, "%s is still busy after %s", s.name, busyTimeout).WithHint("try again later")
		}
		h.options.Log.DebugContext(ctx, "model request repeated", "service", s.name, "attempt", attempt, "wait", wait, "error", again.failed)
		t.Progress(0.05, fmt.Sprintf("%s %s, retrying in %s", s.name, why, wait.Round(time.Millisecond)))
		if err := h.clock.Sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// retry says that a request is to be repeated, and when.
type retry struct {
	after  time.Duration
	failed error // why the request failed; nil if the model is only busy
}

// wait is the delay before the next attempt: as long as the model says, or an
// increasing delay.
func (b *retry) wait(attempt int) time.Duration {
	if b.after > 0 {
		return min(b.after, maxRetryDelay)
	}
	wait := min(time.Second<<min(attempt-1, 10), maxRetryDelay)
	return wait/2 + mathrand.N(wait/2) // jitter
}

// post sends the request once.
func (h *Backend) post(ctx context.Context, s service, body []byte, answer any) (*retry, error) {
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(limited, http.MethodPost, s.address+s.path, bytes.NewReader(body))
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "ask %s", s.name).WithHint("check the setting %s", s.setting)
	}
	r.Header.Set("Content-Type", "application/json")
	h.options.Propagator.Inject(ctx, propagation.HeaderCarrier(r.Header))
	response, err := h.options.HTTP.Do(r)
	if err != nil {
		return s.unreachable(ctx, limited, err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(io.LimitReader(response.Body, maxReply+1))
	switch {
	case err != nil:
		return s.unreachable(ctx, limited, err)
	case len(raw) > maxReply:
		return nil, fault.New(fault.Limit, "%s replied with more than %d bytes", s.name, maxReply).WithHint("ask for less, such as a shorter sound or fewer variations")
	}
	return h.answered(s, response, raw, answer)
}

// answered decodes the reply of a model.
func (h *Backend) answered(s service, r *http.Response, raw []byte, answer any) (*retry, error) {
	after := retryAfter(r.Header.Get("Retry-After"), h.clock.Now())
	switch {
	case r.StatusCode == http.StatusTooManyRequests || r.StatusCode == http.StatusServiceUnavailable:
		return &retry{after: after}, nil
	case r.StatusCode == http.StatusUnprocessableEntity || r.StatusCode == http.StatusBadRequest:
		return nil, invalid("%s rejected the request: %s", s.name, serviceError(raw)).WithHint("change the arguments as it says")
	case r.StatusCode != http.StatusOK:
		err := fault.New(fault.Upstream, "%s replied with status %d: %s", s.name, r.StatusCode, serviceError(raw)).WithHint("check the log of the service at %s", s.address)
		if r.StatusCode >= http.StatusInternalServerError && r.StatusCode != http.StatusNotImplemented {
			return &retry{after: after, failed: err}, nil
		}
		return nil, err
	}
	if err := json.Unmarshal(raw, answer); err != nil {
		return nil, s.badReply(fault.Wrap(fault.Upstream, err, "read the reply of %s", s.name))
	}
	return nil, nil
}

// badReply adds a hint to the error about a reply that is not as expected.
func (s service) badReply(err *fault.Error) *fault.Error {
	return err.WithHint("check with %s that the %s service is at %s, and its log", s.setting, s.name, s.address)
}

// unreachable is the error for a model that cannot be reached. A connection that broke is
// retried: a service that restarts closes its connections.
func (s service) unreachable(ctx, limited context.Context, err error) (*retry, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		return nil, fault.New(fault.Timeout, "%s did not reply within %s", s.name, s.timeout).WithHint("reduce the request, or check the service at %s", s.address)
	}
	details := map[string]string{"service": s.name, "address": s.address}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return nil, fault.Wrap(fault.Unavailable, err, "the %s service is not running at %s", s.name, s.address).
			WithHint("start it, or set its address with %s", s.setting).WithDetails(details)
	}
	return &retry{failed: fault.Wrap(fault.Unavailable, err, "the connection to the %s service at %s broke", s.name, s.address).
		WithHint("check the log of the service").WithDetails(details)}, nil
}

// serviceError is the error text of a model: {"detail": …}, {"error": …}, or text.
func serviceError(raw []byte) string {
	var reply struct {
		Detail json.RawMessage `json:"detail"`
		Error  json.RawMessage `json:"error"`
	}
	text := string(raw)
	if json.Unmarshal(raw, &reply) == nil {
		for _, part := range []json.RawMessage{reply.Detail, reply.Error} {
			var plain string
			if json.Unmarshal(part, &plain) == nil && plain != "" {
				return clip(plain)
			}
			if len(part) > 0 {
				return clip(string(part))
			}
		}
	}
	return clip(strings.TrimSpace(text))
}

// clip truncates the text of a service for an error message.
func clip(text string) string {
	const limit = 500
	text = strings.ToValidUTF8(text, "?")
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit]) + "…"
	}
	return text
}

// retryAfter reads the header: seconds, or a date.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// WhyOff says why a tool of this package's namespace is not found in a server that runs
// without it; nil for all other names.
func WhyOff(name string) error {
	if !strings.HasPrefix(name, Space+".") && !strings.HasPrefix(name, Space+"__") {
		return nil
	}
	return fault.New(fault.ToolNotFound, "no tool %q: the music tools are switched off", name).
		WithHint("start the server with `luanette serve --music`, or set music.enabled = true; docs/music.md")
}

func (h *Backend) helpTools() []toolset.Tool {
	return []toolset.Tool{define("help", reads(), h.help)}
}

type helpIn struct {
	Tool     string `json:"tool,omitempty" jsonschema:"name of a tool" max:"64"`
	Category string `json:"category,omitempty" jsonschema:"such as cas, artifact, graph, job, abc, garden or orpheus" max:"64"`
}

// Help is the result of help.
type Help struct {
	Categories []string       `json:"categories,omitempty"`
	Tools      []ToolHelp     `json:"tools,omitempty"`
	Schema     toolset.Object `json:"input_schema,omitempty"`
}

// ToolHelp is the name and description of a tool.
type ToolHelp struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Text has one line per item.
func (h Help) Text() string {
	var lines []string
	if len(h.Categories) > 0 {
		lines = append(lines, "Categories: "+strings.Join(h.Categories, ", "))
	}
	for _, t := range h.Tools {
		lines = append(lines, t.Name+": "+t.Description)
	}
	return strings.Join(lines, "\n")
}

// category returns the category of a tool, derived from its name.
func category(name string) string {
	switch family, _, _ := strings.Cut(name, "_"); family {
	case "add":
		return "graph"
	case "midi", "audio", "time", "convert":
		return "media"
	case "musicgen", "yue", "clap", "beatthis", "anticipatory":
		return "models"
	default:
		return family
	}
}

func (h *Backend) help(ctx context.Context, _ tool.Call, in helpIn) (Help, error) {
	all, err := h.set.Tools(ctx)
	if err != nil {
		return Help{}, err
	}
	families := map[string][]ToolHelp{}
	names := make([]string, len(all))
	for i, info := range all {
		names[i] = info.Name
		one := ToolHelp{info.Name, info.Description}
		if info.Name == in.Tool {
			return Help{Tools: []ToolHelp{one}, Schema: toolset.Object(info.Input)}, nil
		}
		families[category(info.Name)] = append(families[category(info.Name)], one)
	}
	switch known := sortedKeys(families); {
	case in.Tool != "":
		return Help{}, unknownName("tool", in.Tool, names)
	case in.Category == "":
		return Help{Categories: known}, nil
	case families[in.Category] == nil:
		return Help{}, unknownName("category", in.Category, known)
	}
	return Help{Tools: families[in.Category]}, nil
}

func unknownName(what, name string, known []string) error {
	err := fault.New(fault.NotFound, "unknown %s %q", what, name)
	if close := suggest.Names(name, known, 3); len(close) > 0 {
		return err.WithHint("did you mean %s?", strings.Join(close, " or "))
	}
	return err.WithHint("%s", fmt.Sprintf("known: %s", strings.Join(known, ", ")))
}
