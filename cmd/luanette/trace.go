package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/observe/telemetry"
)

// traceCommand is `luanette trace`.
type traceCommand struct {
	settingFlags
	serverFlag
	tokenFlag
	ID    string `arg:"" optional:"" help:"The trace to show as a tree of its steps; lists the latest traces if omitted."`
	Limit int    `default:"20" help:"How many to list."`
	JSON  bool   `help:"Print JSON."`
}

// Help is shown by `luanette trace --help`.
func (traceCommand) Help() string {
	return `A server keeps traces of its latest requests in memory (hud.recent_traces). The
list names the tools that each request called, also through call_tool, a script or
/mcp/NAME.

  luanette trace
  luanette trace 4bf92f3577b34da6a3ce929d0e0e4736`
}

// Run lists traces, or shows one.
func (c *traceCommand) Run(ctx context.Context, proc *process) error {
	path := "/api/v1/traces?limit=" + strconv.Itoa(c.Limit)
	if c.ID != "" {
		path = "/api/v1/traces/" + url.PathEscape(c.ID)
	}
	address, err := c.serverFlag.address(proc, &c.settingFlags)
	if err != nil {
		return err
	}
	raw, err := client.Request(ctx, address, c.access(ctx, proc, &c.settingFlags, address), http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(proc.Stdout, raw)
	}
	if c.ID != "" {
		var one telemetry.Trace
		if err := json.Unmarshal(raw, &one); err != nil {
			return fault.Wrap(fault.Upstream, err, "read the server's response")
		}
		return printTrace(proc.Stdout, &one)
	}
	var list struct{ Traces []telemetry.Trace }
	if err := json.Unmarshal(raw, &list); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the server's response")
	}
	return listTraces(proc, list.Traces)
}

func listTraces(proc *process, traces []telemetry.Trace) error {
	if len(traces) == 0 {
		_, err := fmt.Fprintln(proc.Stdout, "no traces yet")
		return err
	}
	var rows [][]string
	for i := range traces {
		t := &traces[i]
		rows = append(rows, []string{
			t.ID, t.Start.Local().Format(time.TimeOnly), rounded(t.Duration), failedWord(t.Failed),
			pin.Visible(t.Name), pin.Visible(strings.Join(t.Tools, ", ")),
		})
	}
	return table(proc, strings.Fields("TRACE TIME TOOK FAILED REQUEST TOOLS"), rows)
}

func failedWord(failed bool) string {
	if failed {
		return "failed"
	}
	return ""
}

func rounded(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

// printTrace writes the steps of a trace, each below its parent.
func printTrace(w io.Writer, t *telemetry.Trace) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s at %s, %s\n", pin.Visible(t.Name), t.Start.Local().Format(time.DateTime), rounded(t.Duration))
	writeSpans(&text, t, spansBelow(t.Spans), "", 1)
	if more := t.Count - len(t.Spans); more > 0 {
		fmt.Fprintf(&text, "%d more steps are not stored\n", more)
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// spansBelow returns the steps by the id of their parent. The id is empty if the
// parent belongs to another program or is not stored any more.
func spansBelow(all []telemetry.Span) map[string][]*telemetry.Span {
	kept := map[string]bool{}
	for i := range all {
		kept[all[i].ID] = true
	}
	below := map[string][]*telemetry.Span{}
	for i := range all {
		parent := all[i].Parent
		if !kept[parent] {
			parent = ""
		}
		below[parent] = append(below[parent], &all[i])
	}
	return below
}

// The depth of the indent and of the recursion is limited, since a response may
// contain cycles.
const (
	deepestIndent = 50
	deepestSpan   = 1000
)

func writeSpans(text *strings.Builder, t *telemetry.Trace, below map[string][]*telemetry.Span, parent string, depth int) {
	for _, s := range below[parent] {
		fmt.Fprintf(text, "%s%s  +%s  %s", strings.Repeat("  ", min(depth, deepestIndent)), pin.Visible(s.Name), rounded(s.Start.Sub(t.Start)), rounded(s.Duration))
		if s.Failed {
			fmt.Fprintf(text, "  failed: %s", pin.Visible(strings.ReplaceAll(s.Error, "\n", " ")))
		}
		text.WriteString("\n")
		if s.ID != "" && depth < deepestSpan {
			writeSpans(text, t, below, s.ID, depth+1)
		}
	}
}
