package upstream_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

func TestDetectionWithServersThatRejectIt(t *testing.T) {
	t.Parallel()
	for role, starts := range map[string]int{
		"plain":             1,
		"dies on the probe": 2,
		"ignores the probe": 1,
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			srv := stdioServer(t, stdioSpec(t, role))
			if role == "ignores the probe" { // the test waits for all of it
				srv.Options.ProbeTimeout = 20 * time.Millisecond
			}
			h := upstreamtest.Start(t, srv)
			if text := h.Echo(t, "hello"); text != "hello" {
				t.Errorf("echo said %q", text)
			}
			st, _ := h.Manager.Status("test")
			if st.Era != "legacy" || st.Revision != "2025-06-18" {
				t.Errorf("status = %+v", st)
			}
			if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != starts {
				t.Errorf("%d processes were started, want %d", got, starts)
			}
			// The era is known now: the second start needs no detection.
			srv.Kill(t)
			h.Echo(t, "again")
			if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != starts+1 {
				t.Errorf("%d processes after the second start, want %d", got, starts+1)
			}
		})
	}
}

func TestServerThatStopsAnsweringAfterDetectionIsRestarted(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "silent after the probe"))
	srv.Options.ProbeTimeout, srv.Options.StartTimeout = 10*time.Millisecond, time.Second
	h := upstreamtest.Open(t, srv)
	e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting)
	if !strings.Contains(e.Error, "no answer within 1s") || !strings.Contains(e.Error, "hello from stderr") {
		t.Errorf("event = %+v", e)
	}
	h.Await(t, "upstream.connected")
	if text := h.Echo(t, "hello"); text != "hello" {
		t.Errorf("echo said %q", text)
	}
}

// A process that reads nothing yet is starting, whatever era it speaks. It is not
// ended to try another one, and a modern one is not taken for a legacy one.
func TestProcessThatStartsSlowlyIsStartedOnce(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]struct {
		starts int
		era    string
	}{
		"sdk":               {1, "modern"},
		"plain":             {1, "legacy"},
		"ignores the probe": {1, "legacy"},
		"dies on the probe": {2, "legacy"},
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			srv := stdioServer(t, stdioSpec(t, role))
			srv.Spec.Env["START_AFTER"] = "400ms"
			srv.Options.ProbeTimeout = 20 * time.Millisecond
			h := upstreamtest.Start(t, srv)
			if text := h.Echo(t, "hello"); text != "hello" {
				t.Errorf("echo said %q", text)
			}
			if st, _ := h.Manager.Status("test"); st.Era != want.era {
				t.Errorf("era = %s", st.Era)
			}
			if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != want.starts {
				t.Errorf("%d processes were started, want %d", got, want.starts)
			}
		})
	}
}

// Some programs, such as docker, read what we send before the server behind them has
// started. Then it gets both handshakes, and the modern one counts.
func TestSlowServerBehindAProgramThatReads(t *testing.T) {
	t.Parallel()
	for role, era := range map[string]string{"sdk": "modern", "plain": "legacy"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			srv := stdioServer(t, stdioSpec(t, role))
			srv.Spec.Env["START_AFTER"] = "400ms"
			srv.Spec.Command, srv.Spec.Args = "sh", []string{"-c", `cat | "$0"`, srv.Spec.Command}
			srv.Options.ProbeTimeout = 100 * time.Millisecond
			h := upstreamtest.Start(t, srv)
			for range 3 {
				if text := h.Echo(t, "hello"); text != "hello" {
					t.Errorf("echo said %q", text)
				}
			}
			if st, _ := h.Manager.Status("test"); st.Era != era {
				t.Errorf("era = %s", st.Era)
			}
			if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != 1 {
				t.Errorf("%d processes were started", got)
			}
		})
	}
}

func TestDetectedEraSurvivesARestart(t *testing.T) {
	t.Parallel()
	srv := stdioServer(t, stdioSpec(t, "dies on the probe"))
	upstreamtest.Start(t, srv).Manager.Close()
	h := upstreamtest.Start(t, srv)
	h.Echo(t, "hello")
	if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != 3 {
		t.Errorf("%d processes were started, want 2 and then 1", got)
	}
}

func TestServerOfAnotherEraAtTheSameAddress(t *testing.T) {
	t.Parallel()
	handlers := []func() http.Handler{modernHandler, legacyHandler, modernHandler}
	s := newSite(t, func() http.Handler {
		next := handlers[0]
		handlers = handlers[1:]
		return next()
	})
	h := upstreamtest.Start(t, upstreamtest.Server{
		Spec: upstream.Spec{Name: "test", URL: s.url(), Wait: clocktest.Timeout}, Options: options(t),
	})
	for _, era := range []string{"modern", "legacy", "legacy"} { // the last one speaks both
		h.Echo(t, "hello")
		if st, _ := h.Manager.Status("test"); st.Era != era {
			t.Errorf("era = %s, want %s", st.Era, era)
		}
		if len(handlers) > 0 {
			s.down(t)
			h.Await(t, "upstream.reconnecting")
			s.up(t)
		}
	}
}

func TestPinnedProtocolIsNotDetected(t *testing.T) {
	t.Parallel()
	for protocol, handler := range map[string]func() http.Handler{"legacy": legacyHandler, "modern": modernHandler} {
		h := upstreamtest.Start(t, httpServer(t, handler, upstream.Spec{Protocol: protocol}))
		if st, _ := h.Manager.Status("test"); st.Era != protocol {
			t.Errorf("pinned %s, got %s", protocol, st.Era)
		}
	}
	h := upstreamtest.Open(t, httpServer(t, legacyHandler, upstream.Spec{Protocol: "modern"}))
	e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting)
	if !strings.Contains(e.Error, "2026-07-28") && !strings.Contains(e.Error, "-32022") {
		t.Errorf("a legacy server pinned to modern: %+v", e)
	}
}
