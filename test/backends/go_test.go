package backends_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
)

// The example module builds by itself, and its tools are called through the hub.
func TestGoExample(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "greeter")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	build.Dir = "../../examples/backend"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\nif its go.mod is out of date: cd examples/backend && go mod tidy", err, out)
	}
	listen := "tcp://" + netguardtest.ReservedAddress()
	addr, _ := startBackend(t, nil, program, "-listen", listen)
	if !strings.HasSuffix(addr, listen) {
		t.Fatalf("it printed %q", addr)
	}
	s := newStack(t, listen, traced{})
	view, err := s.call("greet", json.RawMessage(`{"name":"Ann"}`), nil)
	if err != nil || view.Text() != "Hello, Ann!" {
		t.Errorf("greet: %+v, %v", view, err)
	}
	view, err = s.call("divide", json.RawMessage(`{"a":1,"b":0}`), nil)
	if code, _ := faultOf(view); err != nil || !view.IsError || code != "invalid_params" {
		t.Errorf("divide by zero: %+v, %v", view, err)
	}
	view, err = s.call("count", json.RawMessage(`{"to":2}`), nil)
	if err != nil || len(view.Content) != 2 || !strings.Contains(string(view.Content[1]), `"attachment:///count.txt"`) {
		t.Errorf("count: %+v, %v", view, err)
	}
}
