package webhook

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/httpjson"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
)

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
	if rc.refusals.count(rc.options.Clock.Now()) > refusalsRecorded {
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

// perMinute counts within minutes.
type perMinute struct {
	mu     sync.Mutex
	minute time.Time
	n      int
}

func (c *perMinute) count(now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now = now.Truncate(time.Minute); !now.Equal(c.minute) {
		c.minute, c.n = now, 0
	}
	c.n++
	return c.n
}

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
