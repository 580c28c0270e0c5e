package upstream

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/core/event"
)

func TestReconcile(t *testing.T) {
	t.Parallel()
	here := Spec{Name: "a", Settings: Settings{URL: "http://here.test"}}
	there := Spec{Name: "a", Settings: Settings{URL: "http://there.test"}}
	slower := Spec{Name: "a", Settings: Settings{URL: "http://here.test", Timeout: duration.Duration(time.Minute * 5)}}
	spelled := Spec{Name: "a", Settings: Settings{URL: "http://here.test", Timeout: duration.Duration(DefaultTimeout), Transport: Auto, Protocol: Auto, Start: Eager}}
	tokened := Spec{Name: "a", Settings: Settings{URL: "http://here.test", BearerEnv: "TOKEN"}}
	other := Spec{Name: "b", Settings: Settings{Command: "b"}}
	for name, c := range map[string]struct {
		desired, actual []Spec
		want            string
	}{
		"nothing":              {nil, nil, ""},
		"a new one":            {[]Spec{here}, nil, "start a"},
		"the same again":       {[]Spec{here}, []Spec{here}, ""},
		"defaults written out": {[]Spec{spelled}, []Spec{here}, ""},
		"another url":          {[]Spec{there}, []Spec{here}, "replace a"},
		"other credentials":    {[]Spec{tokened}, []Spec{here}, "replace a"},
		"another timeout":      {[]Spec{slower}, []Spec{here}, "adjust a"},
		"no longer desired":    {nil, []Spec{here}, "stop a"},
		"stops come first":     {[]Spec{here}, []Spec{other}, "stop b, start a"},
		"starts come in order": {[]Spec{other, here}, nil, "start a, start b"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := reconciled(t, c.actual, c.desired); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// reconciled says what a manager has done to come from some specs to others.
func reconciled(t *testing.T, actual, desired []Spec) string {
	t.Helper()
	silent := func(ctx context.Context, _ Spec, _ Hooks) (Transport, error) {
		<-ctx.Done()
		return nil, notSent(context.Cause(ctx))
	}
	bus := event.New(event.BusOptions{})
	m := New(Options{Events: bus, Dialers: map[string]Dialer{HTTP: silent, SSE: silent, Stdio: silent}})
	defer m.Close()
	if err := m.Set(actual); err != nil {
		t.Fatal(err)
	}
	before := m.List()
	events := bus.Subscribe(event.Options{Types: []string{"upstream.removed", "upstream.connecting"}})
	if err := m.Set(desired); err != nil {
		t.Fatal(err)
	}
	var done []string
	if len(before) > 0 && !m.Has(before[0].Name) { // published before anything is started
		e, err := events.Next(t.Context())
		for err == nil && e.Data == (Connecting{before[0].Name, before[0].Target}) {
			e, err = events.Next(t.Context())
		}
		if err != nil || e.Type != "upstream.removed" {
			t.Fatalf("first event: %+v, %v", e, err)
		}
		done = append(done, "stop "+before[0].Name)
	}
	for _, now := range m.List() {
		at := slices.IndexFunc(before, func(s Status) bool { return s.Name == now.Name })
		switch {
		case at < 0:
			done = append(done, "start "+now.Name)
		case now.Generation != before[at].Generation:
			done = append(done, "replace "+now.Name)
		case now.Desired.Timeout != before[at].Desired.Timeout && now.Desired.timeout() != before[at].Desired.timeout():
			done = append(done, "adjust "+now.Name)
		}
	}
	if list := m.List(); !slices.IsSortedFunc(list, func(a, b Status) int { return cmp.Compare(a.Generation, b.Generation) }) {
		t.Errorf("not started in order: %+v", list)
	}
	return strings.Join(done, ", ")
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec Spec
		want []endpoint
	}{
		{Spec{Settings: Settings{URL: "http://h"}}, []endpoint{{HTTP, "http://h"}, {HTTP, "http://h/mcp"}, {SSE, "http://h"}}},
		{Spec{Settings: Settings{URL: "http://h/x"}}, []endpoint{{HTTP, "http://h/x"}, {SSE, "http://h/x"}}},
		{Spec{Settings: Settings{URL: "http://h/", Protocol: ProtocolModern}}, []endpoint{{HTTP, "http://h/"}, {HTTP, "http://h/mcp"}}},
		{Spec{Settings: Settings{URL: "http://h/sse", Transport: SSE}}, []endpoint{{SSE, "http://h/sse"}}},
		{Spec{Settings: Settings{Command: "c"}}, []endpoint{{Stdio, ""}}},
		{Spec{Settings: Settings{URL: "tcp+zmq://h:1"}}, []endpoint{{"tcp+zmq", "tcp+zmq://h:1"}}},
	} {
		if got := endpoints(c.spec); !reflect.DeepEqual(got, c.want) {
			t.Errorf("endpoints(%+v) = %v, want %v", c.spec, got, c.want)
		}
	}
}

func TestTargetContainsNoSecrets(t *testing.T) {
	t.Parallel()
	got := Spec{Settings: Settings{URL: "https://h.test/mcp?key=s3cret#x"}}.Target()
	if got != "https://h.test/mcp?…" && got != "https://h.test/mcp?%E2%80%A6" {
		t.Errorf("target = %q", got)
	}
	got = Spec{Settings: Settings{Command: "npx", Args: []string{"-y", "server", "--api-key", "s3cret"}}}.Target()
	if got != "npx -y server --api-key [redacted]" {
		t.Errorf("target = %q", got)
	}
}

func TestResponseIDFromTheEndsOfALine(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":7,"result":{"content":[`:             "7",
		`{"result":{"x":1},"jsonrpc":"2.0","id":12}` + "\n":         "12",
		`{"id": 3, "jsonrpc": "2.0", "result": {`:                   "3",
		`{"jsonrpc":"2.0","method":"x","params":{"id":7,"result":1`: "",
		`garbage "id":9`: "",
	} {
		if got := responseID([]byte(line)); string(got) != want {
			t.Errorf("responseID(%q) = %q, want %q", line, got, want)
		}
	}
}
