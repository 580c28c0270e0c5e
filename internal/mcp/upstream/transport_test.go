package upstream_test

import (
	"net/http"
	"syscall"
	"testing"

	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstream/upstreamtest"
)

func TestStreamableLegacy(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return httpServer(t, legacyHandler, upstream.Spec{}) })
}

func TestStreamableModern(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return httpServer(t, modernHandler, upstream.Spec{}) })
}

func TestStreamableBehindAPath(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		return httpServer(t, func() http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/mcp", modernHandler())
			return mux
		}, upstream.Spec{})
	})
}

func TestEventStream(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		return httpServer(t, sseHandler, upstream.Spec{Settings: upstream.Settings{Transport: upstream.SSE}})
	})
}

func TestEventStreamIsDetected(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		return httpServer(t, func() http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/sse", sseHandler())
			return mux
		}, upstream.Spec{Settings: upstream.Settings{URL: "/sse"}})
	})
}

func TestChildLegacy(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return stdioServer(t, stdioSpec(t, "sdk")) })
}

func TestChildModern(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		spec := stdioSpec(t, "sdk")
		spec.Protocol = upstream.ProtocolModern
		return stdioServer(t, spec)
	})
}

// stdioServer kills its process with SIGKILL; the manager starts it again.
func stdioServer(t *testing.T, spec upstream.Spec) upstreamtest.Server {
	pids := newPids(t)
	spec.Env["PID_DIR"] = pids.dir
	return upstreamtest.Server{Spec: spec, Options: options(t), Kill: func(t *testing.T) {
		for _, pid := range pids.alive(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}}
}
