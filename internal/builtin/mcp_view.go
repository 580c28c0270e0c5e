package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/mcp/upstreamset"
)

// UpstreamView is how mcp_status and others show an upstream.
type UpstreamView struct {
	Namespace  string   `json:"namespace"`
	Endpoint   string   `json:"endpoint"`
	Transport  string   `json:"transport,omitempty"`
	Protocol   string   `json:"protocol,omitempty" jsonschema:"protocol revision of the connection"`
	State      string   `json:"state" jsonschema:"connecting, starting, connected, reconnecting, failed (retried every few minutes), needs_auth, asleep (started by the first call), removed (configured, but removed by a person), or untrusted (a person must trust the configuration file first)"`
	Starting   int      `json:"starting_secs,omitempty" jsonschema:"for how many seconds its program has been starting"`
	LastLine   string   `json:"last_line,omitempty" jsonschema:"what its program last wrote to its standard error while it is starting"`
	ToolCount  int      `json:"tool_count"`
	Stale      bool     `json:"stale,omitempty" jsonschema:"the tools are the last known ones; the server is disconnected"`
	Error      string   `json:"error,omitempty" jsonschema:"last error"`
	Hint       string   `json:"hint,omitempty" jsonschema:"what a person can do"`
	Login      string   `json:"login,omitempty" jsonschema:"URL to POST to, which returns a login link for a person"`
	Attempt    int      `json:"attempt,omitempty" jsonschema:"failures in a row"`
	NextTryMS  int64    `json:"next_try_ms,omitempty" jsonschema:"milliseconds until the next attempt"`
	Origin     string   `json:"origin,omitempty" jsonschema:"config, startup (startup.lua) or added (while running)"`
	Warnings   []string `json:"warnings,omitempty" jsonschema:"what is wrong although it is connected: settings that do not match its tools, a list that was cut, definitions that were left out"`
	CallCount  int      `json:"call_count"`
	ErrorCount int      `json:"error_count"`
	InFlight   int      `json:"in_flight"`
	LastTool   string   `json:"last_tool,omitempty"`
	P50MS      float64  `json:"p50_ms,omitempty" jsonschema:"median duration of calls"`
	P99MS      float64  `json:"p99_ms,omitempty" jsonschema:"99th percentile of the duration of calls"`
	RefusingMS int64    `json:"refusing_ms,omitempty" jsonschema:"how long calls are still refused after too many failures"`
}

// ViewUpstream returns an upstream as our tools show it.
func ViewUpstream(ctx context.Context, s upstreamset.Status, counts Counts) UpstreamView {
	return viewOf(ctx, s, counts)
}

// viewOf adds the call statistics to an upstream's status.
func viewOf(ctx context.Context, s upstreamset.Status, counts Counts) UpstreamView {
	s = s.For(ctx)
	v := UpstreamView{
		Namespace: principal.Of(ctx).NameOf(s.Namespace), Endpoint: s.Endpoint, Transport: s.Transport, Protocol: s.Protocol,
		State: s.State, ToolCount: s.Tools, Stale: s.Stale, Error: s.Error, Attempt: s.Attempt, NextTryMS: msUntil(s.NextTry),
		Warnings: s.Warnings, Hint: s.Hint, Login: s.Login, Origin: s.Origin,
	}
	if s.State == string(upstream.StateStarting) {
		v.Starting, v.LastLine = int(time.Since(s.Since).Seconds()), s.LastLine
	}
	c, ok := counts.Stats(ctx, s.Namespace)
	if !ok {
		return v
	}
	v.CallCount, v.ErrorCount, v.InFlight, v.LastTool = int(c.Calls), int(c.Errors), c.InFlight, c.LastTool
	v.P50MS, v.P99MS = ms(c.P50), ms(c.P99)
	if c.Open {
		v.RefusingMS = msUntil(c.RetryAt)
	}
	return v
}

// Text returns two to four lines.
func (v UpstreamView) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.Namespace, v.State)
	switch {
	case v.Starting > 0:
		fmt.Fprintf(&b, " (for %d s)", v.Starting)
	case v.Attempt > 0:
		fmt.Fprintf(&b, " (attempt %d)", v.Attempt)
	case v.State == "connected":
		fmt.Fprintf(&b, " (%s)", count(v.ToolCount, "tool"))
	}
	fmt.Fprintf(&b, "\n  %s", v.Endpoint)
	if v.Stale {
		fmt.Fprintf(&b, "\n  %s last known", count(v.ToolCount, "tool"))
	}
	if v.CallCount > 0 {
		fmt.Fprintf(&b, "\n  %s, %s, last: %s, p50 %g ms, p99 %g ms", count(v.CallCount, "call"), count(v.ErrorCount, "error"), v.LastTool, v.P50MS, v.P99MS)
	}
	if v.LastLine != "" {
		fmt.Fprintf(&b, "\n  Last line: %s", v.LastLine)
	}
	if v.Error != "" {
		fmt.Fprintf(&b, "\n  Error: %s", v.Error)
	}
	if v.Hint != "" {
		fmt.Fprintf(&b, "\n  Hint: %s", v.Hint)
	}
	for _, warning := range v.Warnings {
		fmt.Fprintf(&b, "\n  Warning: %s", warning)
	}
	if v.NextTryMS > 0 {
		fmt.Fprintf(&b, "\n  next try in %v", time.Duration(v.NextTryMS)*time.Millisecond)
	}
	return b.String()
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func msUntil(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return max(time.Until(t).Milliseconds(), 0)
}
