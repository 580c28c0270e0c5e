package upstream_test

import (
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/upstream"
)

func TestLoginIsValidated(t *testing.T) {
	t.Parallel()
	remote := upstream.Spec{Name: "crm", Settings: upstream.Settings{URL: "http://127.0.0.1:1/mcp"}}
	tests := []struct {
		name   string
		change func(*upstream.Spec)
		ok     bool
	}{
		{"default", func(*upstream.Spec) {}, true},
		{"shared", func(s *upstream.Spec) { s.Login = upstream.LoginShared }, true},
		{"each", func(s *upstream.Spec) { s.Login, s.People = upstream.LoginEach, 3 }, true},
		{"exchange", func(s *upstream.Spec) { s.Login = upstream.LoginExchange }, true},
		{"id-jag", func(s *upstream.Spec) { s.Login = upstream.LoginIDJAG }, true},
		{"each of a command", func(s *upstream.Spec) { s.Login, s.URL, s.Command = upstream.LoginEach, "", "crm" }, true},
		{"exchange of a command", func(s *upstream.Spec) { s.Login, s.URL, s.Command = upstream.LoginExchange, "", "crm" }, false},
		{"unknown", func(s *upstream.Spec) { s.Login = "everybody" }, false},
		{"negative number", func(s *upstream.Spec) { s.Login, s.People = upstream.LoginEach, -1 }, false},
		{"recorded", func(s *upstream.Spec) { s.Login, s.Record = upstream.LoginEach, "crm.jsonl" }, false},
		{"a backend", func(s *upstream.Spec) { s.Login, s.URL = upstream.LoginEach, "zmq+tcp://127.0.0.1:1" }, false},
	}
	for _, tt := range tests {
		spec := remote
		tt.change(&spec)
		if err := spec.Validate(); (err == nil) != tt.ok || !tt.ok && fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
