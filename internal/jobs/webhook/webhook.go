// Package webhook receives requests of other services at POST /hooks/NAME. A request that
// is signed as its hook requires starts a job with the body as params. The job is stored
// before the request is acknowledged, and a delivery that comes again starts no other.
package webhook

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	silent "go.opentelemetry.io/otel/trace/noop"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/base/queue"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

// Hook is an address that a service sends requests to.
type Hook struct {
	Name      string
	Script    string              // name of a published script, hash of a stored one, or path of a file
	Scheme    Scheme              // how requests are authenticated
	Secrets   []secret.Text       // any of them is accepted, so that one can be replaced
	Header    string              // with Scheme Secret: the header that has the secret
	Delivery  string              // the header that identifies a delivery; "" is that of the scheme
	Headers   map[string]string   // headers that become params, by the param's name
	Window    time.Duration       // how old a signed time may be
	Keep      time.Duration       // how long deliveries are recognised
	MaxBytes  int64               // limit of the body
	Tags      []string            // of the jobs
	Principal principal.Principal // whose rights the jobs have
}

// Principals of hooks have ids that begin with it.
const principalPrefix = "hook:"

// PrincipalID is the id of a hook's principal.
func PrincipalID(name string) string { return principalPrefix + name }

// Queue stores and starts jobs.
type Queue interface {
	SubmitOnce(ctx context.Context, s job.Spec, key string, keep time.Duration) (j job.Job, repeated bool, err error)
	Submit(ctx context.Context, s job.Spec) (job.Job, error)
}

// Audit records deliveries. refusal is "" for one that was accepted.
type Audit interface {
	RecordDelivery(ctx context.Context, hook string, body []byte, refusal string)
}

// Options configure a receiver. All but Queue, Hooks and Script are optional.
type Options struct {
	Queue  Queue
	Hooks  func() map[string]Hook // the current ones
	Script func(ctx context.Context, name string) (Script, error)
	Client func(*http.Request) string // the address of the client, for the log
	Audit  Audit
	Events *event.Bus
	Tracer trace.Tracer
	Clock  clock.Clock
	Log    *slog.Logger
}

// Receiver receives requests. It is safe for concurrent use.
type Receiver struct {
	options  Options
	decoy    Hook // stands for hooks that do not exist
	refusals queue.RateLimiter
}

// New returns a receiver.
func New(o Options) *Receiver {
	if o.Tracer == nil {
		o.Tracer = silent.Tracer{}
	}
	if o.Clock == nil {
		o.Clock = clock.Real()
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = func(r *http.Request) string { return r.RemoteAddr }
	}
	decoy := Hook{Scheme: GitHub, Secrets: []secret.Text{secret.New(rand.Text())}, MaxBytes: DefaultMaxBytes}
	return &Receiver{options: o, decoy: decoy}
}

// Routes is the route of all hooks. Anybody may use it: each hook checks its own secret.
func (rc *Receiver) Routes() []principal.Route {
	return []principal.Route{{
		Pattern: "POST /hooks/{hook}", Scope: principal.Open, Handler: rc, Authenticates: true, Body: "what the service sends",
		AnyOrigin: true, // no page can sign a request, and services use names of ours that we do not know
	}}
}

// Table holds the current hooks. The zero value holds none; it is safe for concurrent use.
type Table struct {
	hooks atomic.Pointer[map[string]Hook]
}

// Set replaces the hooks.
func (t *Table) Set(hooks map[string]Hook) { t.hooks.Store(&hooks) }

// Hooks returns the hooks by name.
func (t *Table) Hooks() map[string]Hook {
	if hooks := t.hooks.Load(); hooks != nil {
		return *hooks
	}
	return nil
}

// Current returns the current rights of a hook's principal, and false for a principal of
// another kind. Jobs of a hook that was removed end.
func (t *Table) Current(was principal.Principal) (principal.Principal, bool, error) {
	name, ok := strings.CutPrefix(was.ID, principalPrefix)
	if !ok {
		return was, false, nil
	}
	hook, ok := t.Hooks()[name]
	if !ok {
		return principal.Anonymous(), true, fault.New(fault.Denied, "the hook %s was removed", name)
	}
	return hook.Principal, true, nil
}

// Received is published when a delivery was accepted.
type Received struct {
	Hook     string `json:"hook"`
	Delivery string `json:"delivery,omitempty"`
	Job      string `json:"job_id"`
	Repeated bool   `json:"repeated,omitempty"` // it came before, and started nothing
}

// EventType is "webhook.received".
func (Received) EventType() string { return "webhook.received" }

// EventKey is the job's id.
func (e Received) EventKey() string { return e.Job }

// Refused is published when a request to a hook was refused.
type Refused struct {
	Hook   string `json:"hook"`
	Reason string `json:"reason"`
}

// EventType is "webhook.refused".
func (Refused) EventType() string { return "webhook.refused" }

// EventKey is the hook's name.
func (e Refused) EventKey() string { return e.Hook }

// Accepted is the response to a delivery whose job is stored.
type Accepted struct {
	Job      string `json:"job_id"`
	Delivery string `json:"delivery,omitempty"`
	Repeated bool   `json:"repeated,omitempty"` // it came before: this is the job that it started then
}

// ServeHTTP receives one request. Whoever cannot sign it learns nothing, not even whether
// the hook exists.
func (rc *Receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("hook")
	hook, known := rc.options.Hooks()[name]
	if !known {
		hook = rc.decoy
	}
	ctx, span := rc.options.Tracer.Start(r.Context(), "webhook", trace.WithAttributes(attribute.Bool("luanette.webhook.known", known)))
	defer span.End()
	r = r.WithContext(ctx)
	body, ok := readBody(w, r, hook.MaxBytes)
	if !ok {
		return
	}
	got := request{header: r.Header, body: body, now: rc.options.Clock.Now()}
	err := hook.verify(got)
	if !known {
		name, err = "", errors.New("there is no such hook")
	}
	if err != nil {
		rc.refuse(r, name, body, err)
		httpjson.Error(w, http.StatusUnauthorized, fault.New(fault.NeedsAuth, "the request is not authentic").WithHint("the log of the server says why"))
		return
	}
	span.SetAttributes(attribute.String("luanette.webhook", hook.Name))
	if challenge := hook.challenge(body); challenge != "" {
		httpjson.JSON(w, http.StatusOK, map[string]string{"challenge": challenge})
		return
	}
	accepted, err := rc.accept(principal.With(ctx, hook.Principal), &hook, got)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		rc.options.Log.ErrorContext(ctx, "webhook not accepted", "hook", hook.Name, "error", err)
		httpjson.Error(w, statusOf(err), err)
		return
	}
	span.SetAttributes(attribute.String("luanette.job.id", accepted.Job))
	httpjson.JSON(w, http.StatusAccepted, accepted)
}

// readBody reads the body. If it cannot, it has responded.
func readBody(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, bool) {
	if how := r.Header.Get("Content-Encoding"); how != "" && how != "identity" {
		httpjson.Error(w, http.StatusUnsupportedMediaType, fault.New(fault.InvalidParams, "the body is compressed").WithHint("send it as it is"))
		return nil, false
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		httpjson.Error(w, http.StatusRequestEntityTooLarge, fault.New(fault.Limit, "the body is larger than the hook accepts"))
	case err != nil:
		httpjson.Error(w, http.StatusBadRequest, fault.New(fault.InvalidParams, "the body ended early"))
	}
	return body, err == nil
}

// refuse records that a request was not authentic; name is "" if there is no such hook.
func (rc *Receiver) refuse(r *http.Request, name string, body []byte, err error) {
	if _, ok := rc.refusals.Allow("", refusalsRecorded, rc.options.Clock.Now()); !ok {
		return
	}
	rc.options.Log.WarnContext(r.Context(), "webhook refused", "path", r.URL.Path, "remote", rc.options.Client(r), "reason", err)
	if name != "" {
		rc.options.Events.Publish(Refused{Hook: name, Reason: err.Error()})
		rc.audit(principal.With(r.Context(), principal.Anonymous()), name, body, err.Error())
	}
}

// refusalsRecorded is how many refusals in a minute are logged, published and audited:
// anybody can cause them.
const refusalsRecorded = 60

// challenge is what a service that tests the address wants to get back; "" if it sends
// something else.
func (h *Hook) challenge(body []byte) string {
	if h.Scheme == Slack && member(body, "type") == "url_verification" {
		return member(body, "challenge")
	}
	return ""
}

// accept stores the job of a delivery, and starts it.
func (rc *Receiver) accept(ctx context.Context, hook *Hook, got request) (Accepted, error) {
	params, err := hook.params(got.header, got.body)
	if err != nil {
		return Accepted{}, err
	}
	script, err := rc.options.Script(ctx, hook.Script)
	if err != nil {
		return Accepted{}, fault.Wrap(fault.Unavailable, err, "find the script of the hook %s", hook.Name)
	}
	if script.Fill != nil {
		params = script.Fill(params)
	}
	spec := job.Spec{
		Name: cmp.Or(script.Name, hook.Name), Hash: script.Hash, Source: script.Source, Language: script.Language,
		Params: params, Creator: hook.Principal.ID, Tags: append([]string{PrincipalID(hook.Name)}, hook.Tags...),
	}
	accepted := Accepted{Delivery: hook.delivery(got)}
	var j job.Job
	if accepted.Delivery == "" {
		j, err = rc.options.Queue.Submit(ctx, spec)
	} else {
		j, accepted.Repeated, err = rc.options.Queue.SubmitOnce(ctx, spec, deliveryKey(hook.Name, accepted.Delivery), hook.Keep)
	}
	if err != nil {
		return Accepted{}, err
	}
	accepted.Job = j.ID
	rc.options.Events.PublishFor(hook.Principal.Owner(), Received{Hook: hook.Name, Delivery: accepted.Delivery, Job: j.ID, Repeated: accepted.Repeated})
	rc.audit(ctx, hook.Name, got.body, "")
	return accepted, nil
}

func (rc *Receiver) audit(ctx context.Context, hook string, body []byte, refusal string) {
	if rc.options.Audit != nil {
		rc.options.Audit.RecordDelivery(ctx, hook, body, refusal)
	}
}

// deliveryKey identifies a delivery among all hooks. Ids are of any length.
func deliveryKey(hook, delivery string) string {
	name, _ := json.Marshal([]string{hook, delivery}) // texts always encode
	sum := sha256.Sum256(name)
	return principalPrefix + hook + ":" + hex.EncodeToString(sum[:])
}

// statusOf is the status that makes services repeat what may succeed later.
func statusOf(err error) int {
	switch fault.CodeOf(err) {
	case fault.InvalidParams:
		return http.StatusBadRequest
	case fault.Limit:
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// params returns the params of the job: the members of the body, and the headers that
// the hook names. A body that has no members is the param body.
func (h *Hook) params(header http.Header, body []byte) (json.RawMessage, error) {
	params, err := bodyParams(header.Get("Content-Type"), body)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(h.Headers)) {
		if value := header.Get(h.Headers[name]); value != "" {
			params = rawjson.SetText(params, name, value)
		}
	}
	return params, nil
}

func bodyParams(contentType string, body []byte) (json.RawMessage, error) {
	kind, _, _ := mime.ParseMediaType(contentType)
	switch {
	case len(body) == 0:
		return json.RawMessage("{}"), nil
	case kind == "application/x-www-form-urlencoded":
		return formParams(body)
	case rawjson.Valid(body) == nil && rawjson.IsObject(body):
		return body, nil
	case rawjson.Valid(body) == nil:
		return rawjson.Set(nil, "body", body), nil
	case kind == "application/json":
		return nil, fault.New(fault.InvalidParams, "the body is not JSON, which its Content-Type says")
	}
	return rawjson.SetText(nil, "body", string(body)), nil
}

// formParams returns the fields of a form. A field that is given several times is a list;
// the field payload, in which some services send JSON, has its members as params.
func formParams(body []byte) (json.RawMessage, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "the body is not a form, which its Content-Type says")
	}
	if payload := []byte(form.Get("payload")); len(form) == 1 && rawjson.Valid(payload) == nil && rawjson.IsObject(payload) {
		return payload, nil
	}
	fields := map[string]any{}
	for name, values := range form {
		if fields[name] = values; len(values) == 1 {
			fields[name] = values[0]
		}
	}
	return json.Marshal(fields)
}

// Script is a script to start.
type Script struct {
	Name, Hash, Source, Language string
	// Fill fills the defaults of describe() in; nil if there are none.
	Fill func(params json.RawMessage) json.RawMessage
}

// Scripts finds the scripts of hooks.
type Scripts struct {
	Published interface {
		Script(ctx context.Context, name string) (script.Request, bool)
	}
	Stored interface {
		Resolve(ctx context.Context, text string) (cas.Ref, error)
		Read(ctx context.Context, ref cas.Ref, limit int64) ([]byte, error)
	}
	Describe func(ctx context.Context, q script.Request) (script.Description, error)
}

// Find returns a published script by its name, a stored one by its hash, or a file. A file
// is read at every delivery. A script that cannot be described has no defaults: the job says
// what is wrong with it.
func (s Scripts) Find(ctx context.Context, name string) (Script, error) {
	q, err := s.find(ctx, name)
	if err != nil {
		return Script{}, err
	}
	found := Script{Name: q.Name, Source: q.Source, Language: q.Language}
	if !q.Hash.IsZero() {
		found.Hash = q.Hash.String()
	}
	d, err := s.Describe(ctx, q)
	if err != nil {
		return found, nil //nolint:nilerr // see above
	}
	found.Name, found.Fill = cmp.Or(d.Name, q.Name), d.Fill
	return found, nil
}

func (s Scripts) find(ctx context.Context, name string) (script.Request, error) {
	if language := script.LanguageOf(name); language != "" {
		source, err := readFile(name)
		return script.Request{Name: filepath.Base(name), Source: source, Language: language}, err
	}
	if found, ok := s.Published.Script(ctx, name); ok {
		return found, nil
	}
	ref, err := s.Stored.Resolve(ctx, name)
	if err != nil {
		return script.Request{}, fault.New(fault.NotFound, "no published script %q", name).
			WithHint("a script that is only stored is its owner's: `luanette script publish %s` lets the hook run it; script can also be a file that ends in .lua, .js or .ts", name)
	}
	source, err := s.Stored.Read(ctx, ref, script.MaxSource)
	return script.Request{Hash: ref, Source: string(source)}, err
}

func readFile(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	source, err := io.ReadAll(io.LimitReader(file, script.MaxSource+1))
	if err == nil && len(source) > script.MaxSource {
		err = fault.New(fault.Limit, "the script %s is too large", path)
	}
	return string(source), err
}
