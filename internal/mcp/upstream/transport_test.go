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
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return siteRig(t, legacyHandler, upstream.Spec{}) })
}

func TestStreamableModern(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return siteRig(t, modernHandler, upstream.Spec{}) })
}

func TestStreamableBehindAPath(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		return siteRig(t, func() http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/mcp", modernHandler())
			return mux
		}, upstream.Spec{})
	})
}

func TestEventStream(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		return siteRig(t, sseHandler, upstream.Spec{Transport: upstream.SSE})
	})
}

func TestEventStreamFoundOut(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		return siteRig(t, func() http.Handler {
			mux := http.NewServeMux()
			mux.Handle("/sse", sseHandler())
			return mux
		}, upstream.Spec{URL: "/sse"})
	})
}

func TestChildModern(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server { return stdioRig(t, stdioSpec(t, "sdk")) })
}

func TestChildLegacy(t *testing.T) {
	t.Parallel()
	upstreamtest.Run(t, func(t *testing.T) upstreamtest.Server {
		spec := stdioSpec(t, "sdk")
		spec.Protocol = upstream.ProtocolLegacy
		return stdioRig(t, spec)
	})
}

// stdioRig drops its server with SIGKILL; the manager starts it again.
func stdioRig(t *testing.T, spec upstream.Spec) upstreamtest.Server {
	pids := newPids(t)
	spec.Env["PID_DIR"] = pids.dir
	return upstreamtest.Server{Spec: spec, Options: options(t), Kill: func(t *testing.T) {
		for _, pid := range pids.alive(t) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}}
}
