package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/faultinject"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// outcomes makes calls in turn and returns how each ended.
func outcomes(t *testing.T, s *testManager, name string, n int) (list []string) {
	t.Helper()
	for range n {
		_, err := s.Call(t.Context(), tool.Call{Ref: ref(name)})
		switch {
		case err == nil:
			list = append(list, "ok")
		case strings.Contains(err.Error(), "injected fault: request"):
			list = append(list, "fail")
		case strings.Contains(err.Error(), "injected fault: the connection was dropped") && fault.CodeOf(err) == fault.Unavailable:
			list = append(list, "drop")
		default:
			list = append(list, err.Error())
		}
		synctest.Wait()
	}
	return list
}

// With the same seed the same calls meet the same faults, also across reconnects. Lists
// and health checks meet none.
func TestInjectedFaultsAreRepeatable(t *testing.T) {
	t.Parallel()
	var runs [2][]string
	for i := range runs {
		synctest.Test(t, func(t *testing.T) {
			s := newTestManager(t, nil)
			s.add(t, upstream.Spec{Settings: upstream.Settings{Faults: faultinject.Faults{Delay: duration.Duration(200 * time.Millisecond), Fail: 0.3, Drop: 0.2, Seed: 3}}})
			began := time.Now()
			runs[i] = outcomes(t, s, "write", 20)
			if took := time.Since(began); took < 20*200*time.Millisecond {
				t.Errorf("20 delayed calls took %v", took)
			}
			status := s.state(t)
			if want := []string{"faults are injected: delay 200ms, fail 30 %, drop 20 %, seed 3"}; !slices.Equal(status.Simulated, want) {
				t.Errorf("the status says %q", status.Simulated)
			}
			dropped := 0
			for _, outcome := range runs[i] {
				if outcome == "drop" {
					dropped++
				}
			}
			if dials := s.fake.attempts(); dials != 1+dropped {
				t.Errorf("%d connections for %d lost ones", dials, dropped)
			}
		})
	}
	if !slices.Equal(runs[0], runs[1]) {
		t.Errorf("two runs differ:\n%v\n%v", runs[0], runs[1])
	}
	for _, kind := range []string{"ok", "fail", "drop"} {
		if !slices.Contains(runs[0], kind) {
			t.Errorf("no call ended with %s: %v", kind, runs[0])
		}
	}
}

// A reading tool is called again after a lost connection, as with a real one.
func TestDroppedReadIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.add(t, upstream.Spec{Settings: upstream.Settings{Faults: faultinject.Faults{Drop: 0.3, Seed: 3}}})
		for i, outcome := range outcomes(t, s, "read", 20) {
			if outcome != "ok" {
				t.Errorf("call %d: %s", i+1, outcome)
			}
		}
		if s.fake.attempts() < 2 {
			t.Error("no connection was lost")
		}
	})
}

// A delay ends with its caller, and the server does not see the request.
func TestDelayEndsWithTheCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		s.fake.handle = func(_ context.Context, m wire.Message) (json.RawMessage, error) {
			t.Errorf("the server got %s", m.Method)
			return nil, nil
		}
		s.add(t, upstream.Spec{Settings: upstream.Settings{Faults: faultinject.Faults{Delay: duration.Duration(time.Hour)}, Timeout: duration.Duration(2 * time.Hour)}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Call(ctx, tool.Call{Ref: ref("write")}); fault.CodeOf(err) != fault.Timeout {
			t.Errorf("the call ended with %v", err)
		}
	})
}

// What real servers answer in either era and over either transport is answered again by
// the recording.
func TestRecordAndMock(t *testing.T) {
	t.Parallel()
	for name, real := range map[string]func(t *testing.T) upstreamtest.Server{
		"http modern": func(t *testing.T) upstreamtest.Server { return httpServer(t, modernHandler, upstream.Spec{}) },
		"http legacy": func(t *testing.T) upstreamtest.Server { return httpServer(t, legacyHandler, upstream.Spec{}) },
		"stdio":       func(t *testing.T) upstreamtest.Server { return stdioServer(t, stdioSpec(t, "sdk")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "test.json")
			srv := real(t)
			srv.Spec.Record = file
			h := upstreamtest.Start(t, srv)
			tools, _ := h.Manager.Tools(t.Context())
			h.Echo(t, "hello")
			h.Echo(t, "two\nlines")

			mock := upstreamtest.Start(t, upstreamtest.Server{Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{Mock: file}}, Options: options(t)})
			if again, _ := mock.Manager.Tools(t.Context()); len(again) != len(tools) || len(tools) == 0 {
				t.Errorf("the recording has %d tools, the server %d", len(again), len(tools))
			}
			for _, text := range []string{"two\nlines", "hello"} {
				if got := mock.Echo(t, text); got != text {
					t.Errorf("the recording echoed %q as %q", text, got)
				}
			}
			_, err := mock.Manager.Call(t.Context(), tool.Call{Ref: ref("echo"), Args: json.RawMessage(`{"text":"hallo"}`)})
			if want := `the nearest recorded one has {"text":"hello"}: arguments.text is "hallo" (recorded: "hello")`; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("an unknown call gave %v", err)
			}
			status, _ := mock.Manager.Status("test")
			if status.Transport != upstream.Mock || status.Target != "recording "+file || len(status.Simulated) != 1 {
				t.Errorf("the status is %+v", status)
			}
		})
	}
}

// The credentials of the upstream are masked, wherever the server repeats them.
func TestRecordingHidesCredentials(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "test.json")
	srv := httpServer(t, modernHandler, upstream.Spec{Settings: upstream.Settings{Headers: map[string]string{"X-Pass": "open sesame now"}, BearerEnv: "PASS"}})
	srv.Options.Getenv = func(name string) (string, bool) { return "swordfish99", name == "PASS" }
	srv.Spec.Record = file
	h := upstreamtest.Start(t, srv)
	h.Echo(t, "it is open sesame now, or swordfish99")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "sesame") || strings.Contains(string(text), "swordfish99") || !strings.Contains(string(text), "it is [redacted], or [redacted]") {
		t.Errorf("the recording is %s", text)
	}
}

func TestMockSpecs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		spec upstream.Spec
		want string
	}{
		{upstream.Spec{Settings: upstream.Settings{Mock: "a.json"}}, ""},
		{upstream.Spec{Settings: upstream.Settings{Mock: "a.json", URL: "http://a"}}, "mock besides url or command"},
		{upstream.Spec{Settings: upstream.Settings{Mock: "a.json", Record: "b.json"}}, "both mock and record"},
		{upstream.Spec{Settings: upstream.Settings{URL: "http://a", Faults: faultinject.Faults{Fail: 2}}}, "faults.fail 2 is not between 0 and 1"},
	} {
		c.spec.Name = "test"
		if err := c.spec.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.spec, err, c.want)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s := newTestManager(t, nil)
		if err := s.Add(upstream.Spec{Name: "test", Settings: upstream.Settings{Mock: filepath.Join(t.TempDir(), "none.json")}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		status, _ := s.Status("test")
		if !strings.Contains(status.LastError, "none.json") || !strings.Contains(status.Hint, "luanette record") {
			t.Errorf("the status of a missing recording is %q, %q", status.LastError, status.Hint)
		}
	})
}

// A change of the faults needs a new connection, which a reload makes.
func TestFaultsChangeTheConnection(t *testing.T) {
	t.Parallel()
	spec := upstream.Spec{Name: "test", Settings: upstream.Settings{URL: "http://a"}}
	for i, changed := range []func(*upstream.Spec){
		func(s *upstream.Spec) { s.Faults.Seed = 1 },
		func(s *upstream.Spec) { s.Record = "a.json" },
		func(s *upstream.Spec) { s.URL, s.Mock = "", "a.json" },
	} {
		other := spec
		if changed(&other); spec.Equal(other) {
			t.Error(fmt.Sprint("change ", i+1, " is no change"))
		}
	}
}
