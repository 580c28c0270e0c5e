package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/client"
	"github.com/luanette/luanette/internal/cluster/node"
	"github.com/luanette/luanette/internal/govern/pin"
	"github.com/luanette/luanette/internal/mcp/attach"
	"github.com/luanette/luanette/internal/observe/telemetry"
	"github.com/luanette/luanette/internal/ui/adminapi"
	dashboard "github.com/luanette/luanette/internal/ui/terminal"
)

// hudCommand is `luanette hud`.
type hudCommand struct {
	settingFlags
	serverFlag
	tokenFlag
	Once bool `help:"Print the current state and exit. This is the default if standard output is not a terminal."`
	JSON bool `help:"Print the current state as JSON."`
}

// Help is shown by `luanette hud --help`.
func (hudCommand) Help() string {
	return `A live dashboard of a running server: what agents do, its servers, tools, approvals,
jobs, calls, traces and log. Keys are those of k9s: 0 to 9 and :servers, :jobs, … show a list,
/ filters it, Enter opens a row, Esc goes back, Shift and a letter sort. a and d
decide approvals, u undoes a job, r reconnects a server, l shows what it writes to standard error,
t its traces, s opens the REPL. ? shows all keys; the mouse works, too.

It needs only the server's address, so it works from other machines and over SSH.
It waits for a server that is unreachable. NO_COLOR=1 disables colours.`
}

// Run shows the dashboard until the person quits.
func (c *hudCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.address(ctx, proc, &c.settingFlags)
	if err != nil {
		return err
	}
	access := c.access(ctx, proc, &c.settingFlags, address)
	o := dashboard.Options{
		Server: address, Key: access.Key, CAFile: access.CAFile, Version: version,
		Input: proc.Stdin, Output: proc.Stdout,
	}
	if c.Once || c.JSON || terminalWidth(proc.Stdout) == 0 || !isTerminal(proc.Stdin) {
		return dashboard.Once(ctx, o, terminalWidth(proc.Stdout), c.JSON)
	}
	o.Env = screenEnvironment(proc)
	ctx, shell, stop := c.shell(ctx, proc, address)
	defer stop()
	o.Shell = shell
	return dashboard.Run(ctx, o)
}

// screenEnvironment is what the dashboard must know about the terminal.
func screenEnvironment(proc *process) (env []string) {
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TMUX", "STY", "SSH_TTY", "TERM_PROGRAM", "WT_SESSION"} {
		if value, ok := proc.Env.Lookup(name); ok {
			env = append(env, name+"="+value)
		}
	}
	if proc.noColor {
		env = append(env, "NO_COLOR=1")
	}
	return env
}

// shell returns a function that runs the REPL of the server, and a context for the
// dashboard. An interrupt ends the dashboard, but while the REPL runs it only stops what
// was typed there.
func (c *hudCommand) shell(ctx context.Context, proc *process, address string) (context.Context, func(context.Context) error, func()) {
	var busy atomic.Bool
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with stop
		for s := range signals {
			if s != os.Interrupt || !busy.Load() {
				cancel()
				signal.Stop(signals) // a second signal ends the process at once
			}
		}
	}()
	run := func(ctx context.Context) error {
		busy.Store(true)
		defer busy.Store(false)
		repl := replCommand{clientFlags: clientFlags{settingFlags: c.settingFlags, Server: address, tokenFlag: c.tokenFlag, Wait: shellWait}}
		return repl.Run(ctx, proc)
	}
	return ctx, run, func() {
		signal.Stop(signals)
		close(signals)
		cancel()
	}
}

// shellWait is how long the REPL waits for the server.
const shellWait = 30 * time.Second

// openCommand is `luanette open`.
type openCommand struct {
	settingFlags
	tokenFlag
	serverFlag
	Print bool `help:"Print the link only."`
}

// Help is shown by `luanette open --help`.
func (openCommand) Help() string {
	return `Opens the web page of the server that runs on the data folder, or of the one that
--server names, in a browser. On a server without keys the link signs that browser in
as the owner of the machine, once. With keys it opens the page, which asks for one.`
}

// Run opens the page.
func (c *openCommand) Run(ctx context.Context, proc *process) error {
	address, err := c.where(ctx, proc)
	if err != nil {
		return err
	}
	link := address + "/"
	raw, err := client.Request(ctx, address, c.access(ctx, proc, &c.settingFlags, address), http.MethodPost, "/api/v1/owner/link", nil)
	if err == nil {
		var made struct{ Path string }
		if err = json.Unmarshal(raw, &made); err == nil {
			link = address + made.Path
		}
	}
	if code := fault.CodeOf(err); err != nil && code != fault.NeedsAuth && code != fault.Denied { // with a key it is not by a link
		return err
	}
	fmt.Fprintln(proc.Stdout, link)
	if c.Print {
		return nil
	}
	return startBrowser(ctx, proc, link)
}

// where is the address of the server.
func (c *openCommand) where(ctx context.Context, proc *process) (string, error) {
	if c.Server != "" {
		return strings.TrimRight(c.Server, "/"), nil
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return "", err
	}
	running, err := attach.Find(ctx, placeOf(loaded, proc.Env), true)
	if err != nil || running.URL == "" {
		return "", fault.New(fault.Unavailable, "no server runs on the data folder %s", loaded.Data).WithHint("start one with `luanette serve`, name the folder of one with --data, or its address with --server")
	}
	return running.URL, nil
}

// startBrowser opens a link, if this machine has a browser. The link was printed already.
func startBrowser(ctx context.Context, proc *process, link string) error {
	opener := map[string][]string{"darwin": {"open"}, "windows": {"rundll32", "url.dll,FileProtocolHandler"}}[runtime.GOOS]
	if opener == nil {
		opener = []string{"xdg-open"}
	}
	path, missing := exec.LookPath(opener[0])
	if missing != nil {
		fmt.Fprintln(proc.Stderr, "open this link in a browser on this machine")
		return nil //nolint:nilerr // the link was printed
	}
	return exec.CommandContext(ctx, path, append(opener[1:], link)...).Run()
}

// nodesCommand is `luanette nodes`.
type nodesCommand struct {
	settingFlags
	tokenFlag
	Server string `short:"s" placeholder:"URL" help:"Ask the running server at this URL, instead of reading the database."`
	JSON   bool   `help:"Print JSON."`
}

// Help is shown by `luanette nodes --help`.
func (nodesCommand) Help() string {
	return `Without --server the command reads the database, which --database names, so it needs no
running server. Correct a clock that differs from the database's by more than two seconds.`
}

// Run lists the nodes.
func (c *nodesCommand) Run(ctx context.Context, proc *process) error {
	list, err := c.nodes(ctx, proc)
	if err != nil {
		return err
	}
	if c.JSON {
		return printValue(proc, list)
	}
	const none = "no server is running on this database"
	return printList(proc, list, none, "NAME STATE ADDRESS VERSION STARTED CLOCK CALLS/MIN JOBS SESSIONS MEMORY", func(n node.Info) []string {
		row := []string{n.Name, string(n.State), n.Address, n.Version, n.Started.Local().Format(time.DateTime), fmt.Sprintf("%+.1fs", n.Skew.Seconds())}
		return append(row, loadOf(n)...)
	})
}

// nodes returns the nodes that the server knows, or those in the database.
func (c *nodesCommand) nodes(ctx context.Context, proc *process) ([]node.Info, error) {
	if err := c.asService(ctx, proc, &c.Server); err != nil {
		return nil, err
	}
	if c.Server != "" {
		var list adminapi.Nodes
		running := runningFlags{settingFlags: c.settingFlags, serverFlag: serverFlag{c.Server}, tokenFlag: c.tokenFlag}
		err := running.request(ctx, proc, http.MethodGet, "/api/v1/nodes", &list)
		return list.Nodes, err
	}
	loaded, err := c.load(proc, nil)
	if err != nil {
		return nil, err
	}
	return client.Nodes(ctx, loaded, proc.Env)
}

// loadOf returns the load of a node. Nodes of older versions do not report it.
func loadOf(n node.Info) []string {
	var load struct {
		Calls    int `json:"calls_per_minute"`
		Jobs     int `json:"jobs"`
		Sessions int `json:"sessions"`
		Memory   int `json:"memory_mb"`
	}
	if json.Unmarshal(n.Load, &load) != nil {
		return []string{"-", "-", "-", "-"}
	}
	return append(numbers(load.Calls, load.Jobs, load.Sessions), fmt.Sprintf("%d MB", load.Memory))
}

// traceCommand is `luanette trace`.
type traceCommand struct {
	settingFlags
	serverFlag
	tokenFlag
	ID    string `arg:"" optional:"" help:"The trace to show as a tree of its steps, or the beginning of its id; lists the latest traces if omitted."`
	Limit int    `default:"20" help:"How many to list."`
	All   bool   `help:"List also requests that only ask what there is, or how far a job is."`
	JSON  bool   `help:"Print JSON."`
}

// asking are requests that commands and clients repeat to follow what others do.
var asking = lazyregexp.New(`^(initialize|ping|server/discover|[a-z/]+/list|tools/call job_(poll|status|logs))$`)

// Help is shown by `luanette trace --help`.
func (traceCommand) Help() string {
	return `A server keeps traces of its latest requests in memory (hud.recent_traces). The
list names the tools that each request called, also through call_tool, a script or
/mcp/NAME.

  luanette trace
  luanette trace 4bf92f35`
}

// Run lists traces, or shows one.
func (c *traceCommand) Run(ctx context.Context, proc *process) error {
	path := fmt.Sprintf("/api/v1/traces?limit=%d", mostTraces)
	if c.ID != "" {
		path = "/api/v1/traces/" + url.PathEscape(c.ID)
	}
	address, err := c.address(ctx, proc, &c.settingFlags)
	if err != nil {
		return err
	}
	raw, err := client.Request(ctx, address, c.access(ctx, proc, &c.settingFlags, address), http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	if c.JSON && c.ID != "" {
		return printJSON(proc.Stdout, raw)
	}
	if c.ID != "" {
		var one telemetry.Trace
		if err := json.Unmarshal(raw, &one); err != nil {
			return fault.Wrap(fault.Upstream, err, "read the server's response")
		}
		return printTrace(proc.Stdout, &one)
	}
	var list struct {
		Traces []telemetry.Trace `json:"traces"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return fault.Wrap(fault.Upstream, err, "read the server's response")
	}
	if !c.All {
		list.Traces = slices.DeleteFunc(list.Traces, func(t telemetry.Trace) bool { return asking().MatchString(t.Name) })
	}
	list.Traces = list.Traces[:min(c.Limit, len(list.Traces))]
	if c.JSON {
		return printValue(proc, list)
	}
	return listTraces(proc, list.Traces)
}

// mostTraces is more than a server stores.
const mostTraces = 100_000

func listTraces(proc *process, traces []telemetry.Trace) error {
	if len(traces) == 0 {
		_, err := fmt.Fprintln(proc.Stdout, "no traces yet")
		return err
	}
	ids := make([]string, len(traces))
	for i := range traces {
		ids[i] = traces[i].ID
	}
	length := uniqueLength(ids)
	var rows [][]string
	for i := range traces {
		t := &traces[i]
		rows = append(rows, []string{
			t.ID[:min(length, len(t.ID))], t.Start.Local().Format(time.TimeOnly), rounded(t.Duration), failedWord(t.Failed),
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
