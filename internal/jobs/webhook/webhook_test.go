package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/luanette/luanette/internal/base/clock"
	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/secret"
	"github.com/luanette/luanette/internal/core/event"
	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/jobs/job"
	"github.com/luanette/luanette/internal/jobs/webhook"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
	"github.com/luanette/luanette/internal/store/db/dbtest"
)

func TestMain(m *testing.M) {
	if os.Getenv(childData) != "" {
		runChild()
		return
	}
	clocktest.SetParallel()
	goleak.VerifyTestMain(clocktest.Settled(m))
}

// The vectors: the same body and time in all schemes.
const (
	body     = `{"id":1,"ok":true}`
	signedAt = 1700000000

	gitHubSum   = "sha256=42fc89c1268ec3357bb7c58ec92a087baa8f0feee6f7132f8353ce86e8165c29"
	stripeSum   = "e1105ab79b9c2d22d5fe0b3ce12f39d1d418c0512977c60d5dc0670faeb36f32"
	slackSum    = "v0=069384089fc2840239e64e492832a269ca89bc09bfd62a5b24cbc81b0df165ac"
	standardSum = "v1,tHI/Z+T+V0DwJMQhCrSabYzXuPA7/c8FpAo0qxa4NSw="
)

// standardKey is the key of the hook standard.
var standardKey = func() (key []byte) {
	for i := range byte(32) {
		key = append(key, i)
	}
	return key
}()

// hooks has one hook of each scheme.
func hooks() map[string]webhook.Hook {
	all := map[string]webhook.Hook{}
	for scheme, key := range map[webhook.Scheme]string{
		webhook.Secret: "correct horse", webhook.GitHub: "luanette-secret", webhook.Stripe: "whsec_luanette",
		webhook.Slack: "luanette-slack", webhook.Standard: "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
	} {
		all[string(scheme)] = webhook.Hook{
			Name: string(scheme), Script: "note", Scheme: scheme, Header: webhook.DefaultHeader,
			Secrets: []secret.Text{secret.New("another"), secret.New(key)}, Headers: map[string]string{"event": "X-GitHub-Event"},
			Window: webhook.DefaultWindow, Keep: webhook.DefaultKeep, MaxBytes: 1000, Tags: []string{"hooks"},
			Principal: principal.Principal{ID: webhook.PrincipalID(string(scheme)), Name: string(scheme), Scopes: []principal.Scope{principal.MCP}},
		}
	}
	standard := all["standard"]
	standard.Secrets = standard.Secrets[1:] // the other is not of its form
	all["standard"] = standard
	return all
}

// signed are the headers of a request that each hook accepts.
var signed = map[string]http.Header{
	"secret":   {"X-Hook-Secret": {"correct horse"}},
	"github":   {"X-Hub-Signature-256": {gitHubSum}, "X-Github-Delivery": {"d1"}, "X-Github-Event": {"push"}},
	"stripe":   {"Stripe-Signature": {fmt.Sprintf("t=%d,v0=00,v1=00,v1=%s", signedAt, stripeSum)}},
	"slack":    {"X-Slack-Signature": {slackSum}, "X-Slack-Request-Timestamp": {fmt.Sprint(signedAt)}},
	"standard": {"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {fmt.Sprint(signedAt)}, "Webhook-Signature": {"v1,AAAA " + standardSum}},
}

// fixedClock stands still.
type fixedClock struct {
	clock.Clock
	now time.Time
}

func (c fixedClock) Now() time.Time { return c.now }

// echo runs scripts: the result is their params, and who runs them.
type echo struct{}

func (echo) RunJob(ctx context.Context, task job.Task) (job.Outcome, error) {
	result, err := json.Marshal(map[string]any{"who": principal.Of(ctx).ID, "params": task.Params})
	return job.Outcome{Result: result}, err
}

type audited struct {
	mu      sync.Mutex
	entries []string
}

func (a *audited) RecordDelivery(ctx context.Context, hook string, body []byte, refusal string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.entries = append(a.entries, fmt.Sprintf("%s %s %d %s", principal.Of(ctx).ID, hook, len(body), refusal))
}

// fixture is a receiver with a queue.
type fixture struct {
	t        *testing.T
	queue    *job.Queue
	audit    *audited
	events   *event.Subscription
	receiver http.Handler
}

func setup(t *testing.T, later time.Duration, hooks map[string]webhook.Hook) *fixture {
	t.Helper()
	bus := event.New(event.BusOptions{})
	t.Cleanup(bus.Close)
	queue, err := job.Open(t.Context(), dbtest.Open(t, dbtest.Fresh(t)), echo{}, job.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
	})
	f := &fixture{t: t, queue: queue, audit: &audited{}, events: bus.Subscribe(event.Options{Types: []string{"webhook.*"}})}
	receiver := webhook.New(webhook.Options{
		Queue: queue, Hooks: func() map[string]webhook.Hook { return hooks },
		Script: func(_ context.Context, name string) (webhook.Script, error) {
			return webhook.Script{Name: name, Source: "return 1"}, nil
		},
		Audit: f.audit, Events: bus, Clock: fixedClock{clock.Real(), time.Unix(signedAt, 0).Add(later)},
	})
	f.receiver = principal.Unguarded(receiver.Routes())
	return f
}

// post sends a request and returns the status and the body of the response.
func (f *fixture) post(hook, body string, header http.Header) (int, string) {
	f.t.Helper()
	r := httptest.NewRequestWithContext(f.t.Context(), http.MethodPost, "/hooks/"+hook, strings.NewReader(body))
	r.Header = header.Clone()
	w := httptest.NewRecorder()
	f.receiver.ServeHTTP(w, r)
	text, _ := io.ReadAll(w.Body)
	return w.Code, string(text)
}

// accept sends a request that must be accepted.
func (f *fixture) accept(hook, body string, header http.Header) (accepted webhook.Accepted) {
	f.t.Helper()
	status, text := f.post(hook, body, header)
	if status != http.StatusAccepted || json.Unmarshal([]byte(text), &accepted) != nil {
		f.t.Fatalf("%s: status %d %s", hook, status, text)
	}
	return accepted
}

func (f *fixture) result(id string) string {
	f.t.Helper()
	done, _, err := f.queue.Poll(f.t.Context(), []string{id}, time.Minute, true)
	if err != nil || len(done) != 1 {
		f.t.Fatalf("job %s: %v", id, err)
	}
	return string(done[0].Result)
}

func TestEverySchemeStartsAJob(t *testing.T) {
	t.Parallel()
	f := setup(t, time.Minute, hooks())
	for name, header := range signed {
		first := f.accept(name, body, header)
		want := fmt.Sprintf(`{"params":%s,"who":"hook:%s"}`, body, name)
		if name == "github" {
			want = strings.Replace(want, "true}", `true,"event":"push"}`, 1)
		}
		if got := f.result(first.Job); got != want {
			t.Errorf("%s: the job's result is %s, want %s", name, got, want)
		}
		again := f.accept(name, body, header)
		if deduplicated := name != "secret"; again.Repeated != deduplicated || (again.Job == first.Job) != deduplicated {
			t.Errorf("%s came again: %+v after %+v", name, again, first)
		}
		e, err := f.events.Next(t.Context())
		if got, ok := e.Data.(webhook.Received); err != nil || !ok || got.Hook != name || got.Job != first.Job {
			t.Errorf("event %+v, %v", e, err)
		}
		if _, err := f.events.Next(t.Context()); err != nil {
			t.Error(err)
		}
		j, err := f.queue.Status(t.Context(), first.Job)
		if err != nil || fmt.Sprint(j.Tags) != fmt.Sprintf("[hook:%s hooks]", name) || j.Name != "note" {
			t.Errorf("%s: job %q, tags %v, %v", name, j.Name, j.Tags, err)
		}
	}
	if want := "hook:github github 18 "; !slices.Contains(f.audit.entries, want) {
		t.Errorf("audit: %q lacks %q", f.audit.entries, want)
	}
}

// Whatever is wrong, a stranger gets the same answer, and nothing starts.
func TestRefusalsTellNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, 0, hooks())
	late := setup(t, 6*time.Minute, hooks())
	early := setup(t, -6*time.Minute, hooks())
	var answers []string
	refused := func(f *fixture, hook, body string, header http.Header) {
		t.Helper()
		status, text := f.post(hook, body, header)
		if status != http.StatusUnauthorized {
			t.Errorf("%s: status %d %s", hook, status, text)
		}
		answers = append(answers, text)
	}
	for name, header := range signed {
		refused(f, name, body, nil)
		refused(f, "nothing", body, header)
		for key, values := range header {
			if key == "X-Github-Delivery" || key == "X-Github-Event" {
				continue // not signed
			}
			wrong := header.Clone()
			wrong[key] = []string{strings.Map(func(c rune) rune {
				if c == '0' || c == 'o' {
					return '1'
				}
				return c
			}, values[0])}
			if wrong[key][0] == values[0] {
				wrong.Del(key)
			}
			refused(f, name, body, wrong)
		}
		if name != "secret" {
			refused(f, name, body+" ", header)
		}
		if name != "secret" && name != "github" {
			refused(late, name, body, header)
			refused(early, name, body, header)
		}
	}
	mac := hmac.New(sha256.New, standardKey)
	fmt.Fprintf(mac, ".%d.%s", signedAt, body)
	refused(f, "standard", body, http.Header{ // signed, but no delivery
		"Webhook-Timestamp": {fmt.Sprint(signedAt)}, "Webhook-Signature": {"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))},
	})
	for _, answer := range answers {
		if answer != answers[0] {
			t.Errorf("answers differ: %s and %s", answers[0], answer)
		}
	}
	if page, err := f.queue.List(t.Context(), job.Filter{}, 0, ""); err != nil || page.Total != 0 {
		t.Errorf("%d jobs, %v", page.Total, err)
	}
	e, err := f.events.Next(t.Context())
	if _, ok := e.Data.(webhook.Refused); err != nil || !ok {
		t.Errorf("event %+v, %v", e, err)
	}
	if want := "nobody slack 18 its signed time is too far from the server's"; !slices.Contains(late.audit.entries, want) {
		t.Errorf("audit: %q lacks %q", late.audit.entries, want)
	}
}

// Anybody can cause refusals: only some of them are recorded.
func TestRefusalsAreNotAllRecorded(t *testing.T) {
	t.Parallel()
	f := setup(t, 0, hooks())
	for range 100 {
		f.post("github", body, nil)
	}
	if n := len(f.audit.entries); n != 60 {
		t.Errorf("%d entries, want 60", n)
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	f := setup(t, 0, hooks())
	with := func(contentType string) http.Header {
		return http.Header{"X-Hook-Secret": {"Bearer correct horse"}, "Content-Type": {contentType}}
	}
	for _, test := range []struct{ contentType, body, want string }{
		{"", "", `{}`},
		{"text/plain", "hello", `{"body":"hello"}`},
		{"application/json; charset=utf-8", `[1,2]`, `{"body":[1,2]}`},
		{"application/vnd.x+json", `{"a":1}`, `{"a":1}`},
		{"application/x-www-form-urlencoded", "a=1&b=2&b=3", `{"a":"1","b":["2","3"]}`},
		{"application/x-www-form-urlencoded", "payload=%7B%22a%22%3A1%7D", `{"a":1}`},
	} {
		got := f.result(f.accept("secret", test.body, with(test.contentType)).Job)
		if want := `{"params":` + test.want + `,"who":"hook:secret"}`; got != want {
			t.Errorf("%s %s: %s, want %s", test.contentType, test.body, got, want)
		}
	}
	for _, test := range []struct {
		contentType, body, encoding string
		want                        int
	}{
		{"application/json", "{", "", http.StatusBadRequest},
		{"application/x-www-form-urlencoded", "%", "", http.StatusBadRequest},
		{"", strings.Repeat("x", 1001), "", http.StatusRequestEntityTooLarge},
		{"", "x", "gzip", http.StatusUnsupportedMediaType},
	} {
		header := with(test.contentType)
		header.Set("Content-Encoding", test.encoding)
		if status, text := f.post("secret", test.body, header); status != test.want {
			t.Errorf("%s %.10s: status %d %s, want %d", test.contentType, test.body, status, text, test.want)
		}
	}
	idempotent := with("text/plain")
	idempotent.Set("Idempotency-Key", "k")
	if first, again := f.accept("secret", "a", idempotent), f.accept("secret", "b", idempotent); !again.Repeated || first.Job != again.Job {
		t.Errorf("with a key: %+v and %+v", first, again)
	}
}

// Slack tests an address before it uses it.
func TestChallenge(t *testing.T) {
	t.Parallel()
	all := hooks()
	f := setup(t, 0, all)
	const question = `{"type":"url_verification","challenge":"c9"}`
	header := http.Header{"X-Slack-Request-Timestamp": {fmt.Sprint(signedAt)}, "X-Slack-Signature": {slackSignature(question)}}
	if status, text := f.post("slack", question, header); status != http.StatusOK || text != `{"challenge":"c9"}`+"\n" {
		t.Errorf("status %d %s", status, text)
	}
	if page, err := f.queue.List(t.Context(), job.Filter{}, 0, ""); err != nil || page.Total != 0 {
		t.Errorf("%d jobs, %v", page.Total, err)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var table webhook.Table
	if _, ok, _ := table.Current(principal.Principal{ID: "key:a"}); ok {
		t.Error("a key is a hook")
	}
	was := principal.Principal{ID: "hook:a"}
	if _, ok, err := table.Current(was); !ok || err == nil {
		t.Error("a removed hook has rights")
	}
	table.Set(map[string]webhook.Hook{"a": {Principal: principal.Principal{ID: "hook:a", Tools: []string{"x.y"}}}})
	if now, ok, err := table.Current(was); !ok || err != nil || len(now.Tools) != 1 {
		t.Errorf("%+v %t %v", now, ok, err)
	}
}

// stored are the scripts of TestScripts.
type stored struct{}

func (stored) Script(_ context.Context, name string) (script.Request, bool) {
	return script.Request{Name: name, Source: "published"}, name == "note"
}

// describe describes all scripts as having a default.
func describe(context.Context, script.Request) (script.Description, error) {
	return script.Description{Name: "described", Params: []script.Param{{Name: "n", Default: json.RawMessage("7")}}}, nil
}

func (stored) Resolve(_ context.Context, text string) (ref cas.Ref, err error) {
	return cas.Ref{}, map[bool]error{false: os.ErrNotExist}[text == "cas:1"]
}

func (stored) Read(context.Context, cas.Ref, int64) ([]byte, error) { return []byte("stored"), nil }

func TestScripts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a.js")
	if err := os.WriteFile(file, []byte("file"), 0o600); err != nil {
		t.Fatal(err)
	}
	find := webhook.Scripts{Published: stored{}, Stored: stored{}, Describe: describe}.Find
	for name, want := range map[string]string{"note": "published", "cas:1": "stored", file: "file"} {
		got, err := find(t.Context(), name)
		if err != nil || got.Source != want || got.Name != "described" {
			t.Fatalf("%s: %q %q %v, want %q", name, got.Name, got.Source, err, want)
		}
		if params := got.Fill(json.RawMessage(`{"other":1}`)); string(params) != `{"other":1,"n":7}` {
			t.Errorf("%s: %s", name, params)
		}
	}
	if _, err := find(t.Context(), "tick"); err == nil || err.Error() != `no published script "tick"` || !strings.Contains(fault.HintOf(err), "`luanette script publish tick`") {
		t.Errorf("a script that is not published: %v (%s)", err, fault.HintOf(err))
	}
	for _, name := range []string{"nothing", file + ".lua"} {
		if _, err := find(t.Context(), name); err == nil {
			t.Errorf("%s was found", name)
		}
	}
}
