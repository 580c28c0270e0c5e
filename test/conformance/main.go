// Command conformance runs the official MCP conformance suite against the hub: its own
// server directly, and through the hub a reference server of either era. It writes the
// results to docs/conformance.md.
//
// The suite is a Node program; npm installs it into -suite if it is missing.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/netguard/netguardtest"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/mcp/hub"
	"github.com/luanette/luanette/internal/mcp/taskrelay"
	"github.com/luanette/luanette/internal/mcp/upstream"
	"github.com/luanette/luanette/internal/store/db"
)

func main() {
	var (
		out = flag.String("out", "docs/conformance.md", "file to write the results to")
		dir = flag.String("suite", suiteFolder, "folder of the suite")
		few = flag.Bool("tasks", false, "only run the scenarios of tasks, and write nothing")
		log = flag.Bool("v", false, "log the servers' output")
	)
	flag.Parse()
	level := slog.LevelError
	if *log {
		level = slog.LevelDebug
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if *few {
		*out = ""
	}
	if err := run(ctx, *dir, *out, logger); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run judges everything and writes the results to a file; without one it judges tasks
// only.
func run(ctx context.Context, dir, out string, log *slog.Logger) error {
	suite, err := findSuite(ctx, dir)
	if err != nil {
		return err
	}
	tasks, err := suite.judgeTasks(ctx, log)
	if err != nil || out == "" {
		return errors.Join(err, failedTasks(tasks))
	}
	subjects, err := startAll(ctx, log)
	defer func() {
		for _, s := range subjects {
			err = errors.Join(err, s.close())
		}
	}()
	if err != nil {
		return err
	}
	var scores []score
	for _, s := range subjects {
		for _, revision := range revisions {
			fmt.Printf("%s, %s … ", s.name, revision)
			got, err := suite.judge(ctx, s, revision)
			if err != nil {
				return err
			}
			fmt.Printf("%d passed, %d failed of the required checks\n", got.passed, got.failed)
			scores = append(scores, got)
		}
	}
	client, err := suite.judgeClient(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, slices.Concat(report(scores, tasks), clientReport(client), keptReport(out)), 0o644); err != nil {
		return err
	}
	return errors.Join(verdict(scores), failedTasks(tasks), failedClient(client))
}

// keptReport is the part of the file that a test of internal/server writes.
func keptReport(file string) []byte {
	old, _ := os.ReadFile(file) // without one there is nothing to keep
	if at := bytes.Index(old, []byte("\n## What is passed on\n")); at >= 0 {
		return old[at:]
	}
	return nil
}

// verdict returns an error if our own server failed a required check.
func verdict(scores []score) error {
	var failed []error
	for _, s := range scores {
		if s.subject.kind == own && s.failed > 0 {
			failed = append(failed, fmt.Errorf("%s fails %d checks of %s", s.subject.name, s.failed, s.revision))
		}
	}
	return errors.Join(failed...)
}

// subject is a server that the suite tests.
type subject struct {
	name  string
	kind  kind
	era   string // of the reference server; empty for our own
	url   string
	close func() error
}

// kind is what the suite connects to.
type kind int

const (
	own     kind = iota // the hub with its own tools; nothing may fail
	alone               // the reference server
	through             // the hub with the reference server as upstream
)

// Eras of the reference server.
const (
	modern = "modern"
	legacy = "legacy"
)

// The tested programs: the fixture on our own server, and the everything-server of the Go
// SDK.
const (
	fixture   = "github.com/luanette/luanette/test/conformance/fixture"
	reference = "github.com/modelcontextprotocol/go-sdk/conformance/everything-server"
)

// startAll starts every subject: our own server, the reference server, and the hub with
// the reference server as upstream, both in either era.
func startAll(ctx context.Context, log *slog.Logger) ([]subject, error) {
	var all []subject
	binary, err := build(ctx, fixture)
	if err != nil {
		return all, err
	}
	first, err := start(ctx, subject{name: "hub, own tools", kind: own}, binary, "-listen")
	if err != nil {
		return all, err
	}
	first.url += "/mcp"
	all = append(all, first)
	if binary, err = build(ctx, reference); err != nil {
		return all, err
	}
	upstreams := map[string]string{}
	for _, era := range []string{modern, legacy} {
		s := subject{name: "reference server, " + era, kind: alone, era: era}
		if s, err = start(ctx, s, binary, fmt.Sprintf("-stateless=%t", era == modern), "-http"); err != nil {
			return all, err
		}
		all = append(all, s)
		upstreams[era] = s.url
	}
	behind, err := startThrough(ctx, upstreams, log)
	return append(all, behind...), err
}

// startThrough serves servers of both eras through a hub.
func startThrough(ctx context.Context, upstreams map[string]string, log *slog.Logger) ([]subject, error) {
	database, remove, err := openDatabase(ctx)
	if err != nil {
		return nil, err
	}
	relay, err := taskrelay.Open(ctx, database, taskrelay.Options{Node: "conformance", Log: log})
	if err != nil {
		return nil, err
	}
	manager := upstream.New(upstream.Options{Log: log, ClientName: "luanette", ClientVersion: "conformance", Tasks: relay})
	relay.Start(manager)
	for era, url := range upstreams {
		if err := manager.Add(upstream.Spec{Name: era, Settings: upstream.Settings{URL: url, Protocol: era}}); err != nil {
			return nil, err
		}
	}
	h := hub.New(hub.Options{Name: "luanette", Version: "conformance", Tools: noTools{}, Upstreams: peers{manager}, RelayedTasks: relay, Log: log})
	url, stop, err := listen("127.0.0.1:0", h)
	return []subject{
		{name: "through the hub, modern upstream", kind: through, era: modern, url: url + "/mcp/" + modern, close: func() error { return nil }},
		{name: "through the hub, legacy upstream", kind: through, era: legacy, url: url + "/mcp/" + legacy, close: func() error {
			err := stop()
			relay.Close()
			manager.Close()
			return errors.Join(err, remove())
		}},
	}, err
}

// openDatabase makes a database in a temporary folder.
func openDatabase(ctx context.Context) (database *db.DB, remove func() error, err error) {
	folder, err := os.MkdirTemp("", "conformance-database")
	if err != nil {
		return nil, nil, err
	}
	database, err = db.Open(ctx, "sqlite:"+filepath.Join(folder, "tasks.db"), db.Options{})
	return database, func() error { return errors.Join(database.Close(), os.RemoveAll(folder)) }, err
}

// peers adapts a manager's upstreams to the hub.
type peers struct{ *upstream.Manager }

func (p peers) Peer(_ context.Context, namespace string) (hub.Peer, bool) {
	return p.Manager.Peer(namespace)
}

// Owner implements hub.Upstreams: all share one connection.
func (peers) Owner(context.Context, string) string { return "" }

// listen serves a hub until stop is called.
func listen(address string, h *hub.Hub) (url string, stop func() error, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", func() error { return nil }, err
	}
	server := &http.Server{Handler: h.Handler()}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // returns when closed
	}()
	return "http://" + listener.Addr().String(), func() error {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		_ = h.Close(ctx) // ctx ends, which cancels what still runs
		err := server.Close()
		<-done
		return err
	}, nil
}

// build makes the program of a package.
func build(ctx context.Context, pkg string) (binary string, err error) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, filepath.Base(pkg))
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
	}
	return binary, nil
}

// start runs a server and waits until it listens. The last argument is the flag
// that takes the address.
func start(ctx context.Context, s subject, binary string, args ...string) (subject, error) {
	address := net.JoinHostPort("127.0.0.1", netguardtest.ReservedPort())
	cmd := exec.CommandContext(ctx, binary, append(args, address)...)
	if err := cmd.Start(); err != nil {
		return s, err
	}
	s.url = "http://" + address
	s.close = func() error {
		err := cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
		return errors.Join(err, os.RemoveAll(filepath.Dir(binary)))
	}
	for ctx.Err() == nil {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			return s, conn.Close()
		}
		time.Sleep(20 * time.Millisecond)
	}
	return s, ctx.Err()
}

// noTools is the source of a hub that serves only upstreams.
type noTools struct{}

func (noTools) Tools(context.Context) ([]tool.Info, error) { return nil, nil }

func (noTools) Call(_ context.Context, call tool.Call) (tool.Result, error) {
	return tool.Result{}, fault.New(fault.ToolNotFound, "no tool named %q", call.Ref.Name)
}

// report is the page about all scores.
func report(scores []score, tasks []taskScore) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# Conformance

Made by `+"`make conformance`"+`: the official suite (%s)
against the hub's own server, against the reference server of the Go SDK, and
against the same server **through** the hub at `+"`/mcp/{namespace}`"+`, with both eras on
both sides. The numbers are checks of the scenarios that a revision requires; those of
scenarios that are not required yet are in parentheses. The tasks extension is counted
separately below.

The reference server without the hub is included for comparison. It serves one era at a
time: its legacy form does not support 2026-07-28 and fails it, except through the hub.

`, strings.TrimPrefix(suitePackage, "@modelcontextprotocol/"))
	table(&b, scores)
	taskTable(&b, tasks)
	for _, s := range scores {
		if s.subject.kind != alone {
			details(&b, s, scores)
		}
	}
	return b.Bytes()
}

func table(b *bytes.Buffer, scores []score) {
	fmt.Fprintf(b, "| server | %s |\n|---|%s\n", strings.Join(revisions, " | "), strings.Repeat("---|", len(revisions)))
	for row := range slices.Chunk(scores, len(revisions)) {
		fmt.Fprintf(b, "| %s |", row[0].subject.name)
		for _, s := range row {
			fmt.Fprintf(b, " %d passed, %d failed (%d, %d) |", s.passed, s.failed, s.extraPassed, s.extraFailed)
		}
		b.WriteByte('\n')
	}
}

// taskTable shows the results for the tasks extension.
func taskTable(b *bytes.Buffer, scores []taskScore) {
	b.WriteString("\nThe tasks extension on the hub's own server, and through the hub with that server as upstream (`make conformance-tasks`):\n\n| server | tasks |\n|---|---|\n")
	for _, s := range scores {
		fmt.Fprintf(b, "| %s | %d passed, %d failed |\n", s.subject.name, s.passed, s.failed)
	}
}

// details names every failure and warning of a score with its cause.
func details(b *bytes.Buffer, s score, all []score) {
	if len(s.failures)+len(s.warnings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s, %s\n\n", strings.ToUpper(s.subject.name[:1])+s.subject.name[1:], s.revision)
	for _, f := range s.failures {
		fmt.Fprintf(b, "- **%s**, %s: %s\n", f.scenario, f.check, cause(s, f, all))
	}
	for _, f := range s.warnings {
		fmt.Fprintf(b, "- %s, %s (a warning): %s\n", f.scenario, f.check, cause(s, f, all))
	}
}

// causes explain the failures that are due to an upstream of the sessions era.
var causes = map[string]string{
	"sep-2322-elicitation-incomplete": "a legacy server asks with a request that has no key, so the hub makes one up; the suite expects the key of the tool's source",
	"sep-2322-ignore-unexpected-params": "a question of a legacy server has no key, so the hub cannot assign an answer that is sent before the question; " +
		"it asks the client",
	"sep-2322-multi-round-r2": "the reference server asks a legacy client only once; it returns the second question as a finished result, which the hub passes on",
	"sep-2575-server-rejects-undeclared-capability": "a legacy server learns the capabilities once per session, and the hub's session declares all that it relays; " +
		"the tool checks the declaration and does not ask. If it asked, the hub would refuse",
	"sep-2575-missing-capability-http-400": "follows from the failure before",
}

// cause is the cause of a failure: our explanation, that it fails without the hub too, or
// the message of the suite.
func cause(s score, f failure, all []score) string {
	if known, ok := causes[f.check]; ok && s.subject.kind == through && s.subject.era == legacy {
		return known
	}
	for _, other := range all {
		if other.subject.kind == alone && other.subject.era == s.subject.era && other.revision == s.revision &&
			slices.ContainsFunc(other.failures, func(g failure) bool { return g.scenario == f.scenario && g.check == f.check }) {
			return "the reference server fails this without the hub too: " + f.reason
		}
	}
	return strings.Join(strings.Fields(f.reason), " ")
}
