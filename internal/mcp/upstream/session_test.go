package upstream_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/clock/clocktest"
	"github.com/luanette/luanette/internal/base/duration"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

// A program gets initialize first, and server/discover only if it refuses that, on the same
// process: one that speaks both eras can ask something while a call runs.
func TestEraOfPrograms(t *testing.T) {
	t.Parallel()
	for role, era := range map[string]string{
		"sdk":                "legacy", // it speaks both
		"plain":              "legacy",
		"dies on discover":   "legacy",
		"refuses initialize": "modern",
	} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			srv := stdioServer(t, stdioSpec(t, role))
			h := upstreamtest.Start(t, srv)
			if text := h.Echo(t, "hello"); text != "hello" {
				t.Errorf("echo said %q", text)
			}
			if st, _ := h.Manager.Status("test"); st.Era != era {
				t.Errorf("era = %s", st.Era)
			}
			if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != 1 {
				t.Errorf("%d processes were started", got)
			}
			srv.Kill(t)
			h.Echo(t, "again")
			if got := len(pids{srv.Spec.Env["PID_DIR"]}.all(t)); got != 2 {
				t.Errorf("%d processes after the second start", got)
			}
		})
	}
}

// A server that refuses both handshakes says why in the first answer.
func TestServerThatRefusesBothEras(t *testing.T) {
	t.Parallel()
	h := upstreamtest.Open(t, stdioServer(t, stdioSpec(t, "refuses both")))
	if e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting); !strings.Contains(e.Error, "no initialize here") {
		t.Errorf("event = %+v", e)
	}
}

// A process that reads nothing yet is starting, whatever era it speaks. So is one behind a
// program that reads, such as docker. It gets one handshake and is not started again.
func TestProcessThatStartsSlowlyIsStartedOnce(t *testing.T) {
	t.Parallel()
	for role, era := range map[string]string{"sdk": "legacy", "plain": "legacy", "refuses initialize": "modern"} {
		for _, behind := range []bool{false, true} {
			t.Run(fmt.Sprint(role, behind), func(t *testing.T) {
				t.Parallel()
				srv := stdioServer(t, stdioSpec(t, role))
				srv.Spec.Env["START_AFTER"] = "400ms"
				if behind {
					srv.Spec.Command, srv.Spec.Args = "sh", []string{"-c", `cat | "$0"`, srv.Spec.Command}
				}
				h := upstreamtest.Start(t, srv)
				if text := h.Echo(t, "hello"); text != "hello" {
					t.Errorf("echo said %q", text)
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
		Spec: upstream.Spec{Name: "test", Settings: upstream.Settings{URL: s.url(), Wait: duration.Duration(clocktest.Timeout)}}, Options: options(t),
	})
	for _, era := range []string{"modern", "legacy", "modern"} {
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
		h := upstreamtest.Start(t, httpServer(t, handler, upstream.Spec{Settings: upstream.Settings{Protocol: protocol}}))
		if st, _ := h.Manager.Status("test"); st.Era != protocol {
			t.Errorf("pinned %s, got %s", protocol, st.Era)
		}
	}
	h := upstreamtest.Open(t, httpServer(t, legacyHandler, upstream.Spec{Settings: upstream.Settings{Protocol: "modern"}}))
	e := h.Await(t, "upstream.reconnecting").Data.(upstream.Reconnecting)
	if !strings.Contains(e.Error, "2026-07-28") && !strings.Contains(e.Error, "-32022") {
		t.Errorf("a legacy server pinned to modern: %+v", e)
	}
}
