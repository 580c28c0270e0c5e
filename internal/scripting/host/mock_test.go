package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
	"github.com/luanette/luanette/internal/scripting/module/fs"
	httpmodule "github.com/luanette/luanette/internal/scripting/module/http"
	"github.com/luanette/luanette/internal/scripting/module/workspace"
)

// outside is what a rehearsal must not reach.
type outside struct{ t *testing.T }

func (o outside) RoundTrip(*http.Request) (*http.Response, error) {
	o.t.Error("a request was sent")
	return nil, errors.New("not sent")
}

func (o outside) Run(context.Context, string, []string) (host.CommandResult, error) {
	o.t.Error("a program was run")
	return host.CommandResult{}, nil
}

// TestGivenMocks checks that given answers have the type of what they replace.
func TestGivenMocks(t *testing.T) {
	t.Parallel()
	modules := map[string]host.Module{"fs": fs.Module(), "http": httpmodule.Module(), "": workspace.Module()}
	call := func(answers, module, name string, args ...host.Value) ([]host.Value, error) {
		given := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(answers), &given); err != nil {
			t.Fatal(err)
		}
		temp := host.NewTemp(t.TempDir(), 1000)
		env := host.NewEnv(nil, host.NewRehearsal(nil, nil, given), &host.Services{
			Temp: temp, Files: host.NewFiles(temp, host.FilesOptions{}),
			HTTP: &http.Client{Transport: outside{t}}, Commands: outside{t},
		})
		m := modules[module]
		return env.Call(t.Context(), module, m.Func(name), args)
	}
	for _, c := range []struct {
		answers      string
		module, name string
		args         []host.Value
		want         string
	}{
		{
			`{"http.request": {"status":404,"body":{"error":"no"}}}`, "http", "request", []host.Value{"POST", "http://x"},
			`[{"status":404,"headers":{},"body":"{\"error\":\"no\"}","url":"http://x"}]`,
		},
		{
			`{"http.request": {"status":404,"body":{"error":"no"}}}`, "http", "request", []host.Value{"GET", "http://x"},
			`[{"status":404,"headers":{},"body":"{\"error\":\"no\"}","url":"http://x"}]`,
		},
		{
			`{"run_command": {"status":1,"stderr":"bad"}}`, "", "__run", []host.Value{"git", json.RawMessage(`[]`)},
			`[{"status":1,"stdout":"","stderr":"bad"}]`,
		},
		{`{"fs.read": "mocked"}`, "fs", "read", []host.Value{"a"}, `["mocked"]`},
	} {
		values, err := call(c.answers, c.module, c.name, c.args...)
		for i, v := range values {
			switch v := v.(type) {
			case json.RawMessage:
				values[i] = string(v)
			case *host.Lazy:
				values[i] = string(v.JSON)
			}
		}
		if got := fmt.Sprint(values); err != nil || got != c.want {
			t.Errorf("%s %s answered %s, %v, want %s", c.module, c.name, got, err, c.want)
		}
	}
	if _, err := call(`{"run_command": 7}`, "", "__run", "git"); fault.CodeOf(err) != fault.InvalidParams {
		t.Errorf("a mock that does not fit: %v", err)
	}
}
