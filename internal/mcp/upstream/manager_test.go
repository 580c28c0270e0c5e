package upstream

import (
	"github.com/luanette/luanette/internal/base/duration"
	"reflect"
	"testing"
	"time"
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
		want            []action
	}{
		"nothing":              {nil, nil, nil},
		"a new one":            {[]Spec{here}, nil, []action{{start, "a", here}}},
		"the same again":       {[]Spec{here}, []Spec{here}, nil},
		"defaults written out": {[]Spec{spelled}, []Spec{here}, nil},
		"another url":          {[]Spec{there}, []Spec{here}, []action{{replace, "a", there}}},
		"other credentials":    {[]Spec{tokened}, []Spec{here}, []action{{replace, "a", tokened}}},
		"another timeout":      {[]Spec{slower}, []Spec{here}, []action{{adjust, "a", slower}}},
		"no longer desired":    {nil, []Spec{here}, []action{{operation: stop, name: "a"}}},
		"stops come first":     {[]Spec{here}, []Spec{other}, []action{{operation: stop, name: "b"}, {start, "a", here}}},
		"starts come in order": {[]Spec{other, here}, nil, []action{{start, "a", here}, {start, "b", other}}},
	} {
		if got := reconcile(byName(c.desired), byName(c.actual)); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func byName(specs []Spec) map[string]Spec {
	m := map[string]Spec{}
	for _, s := range specs {
		m[s.Name] = s
	}
	return m
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
