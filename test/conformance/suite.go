package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

// The versions of the suite and of Node: the suite needs Node 22.
const (
	suitePackage = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
	nodeVersion  = "22.23.2"
)

// revisions are the tested revisions of the protocol.
var revisions = []string{"2025-11-25", "2026-07-28"}

// suite is the installed conformance suite.
type suite struct{ bin string }

// findSuite installs the suite in dir if it is missing.
func findSuite(ctx context.Context, dir string) (suite, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return suite{}, err
	}
	s := suite{bin: filepath.Join(dir, "node_modules", ".bin")}
	if _, err := os.Stat(filepath.Join(s.bin, "conformance")); err == nil {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return s, err
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--prefix", dir, "--no-save", "--no-audit", "--no-fund", nodePackage(), suitePackage)
	if text, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("install the suite: %w\n%s", err, text)
	}
	return s, nil
}

// nodePackage is the npm package with Node for this platform. The package "node" would
// fetch it in a script at its installation, which fails without a second try.
func nodePackage() string {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	if platform == "darwin-arm64" {
		platform = "bin-" + platform
	}
	return "node-" + platform + "@" + nodeVersion
}

// score is the result of one subject for one revision.
type score struct {
	subject  subject
	revision string
	passed   int // checks of required scenarios
	failed   int
	warnings []failure // recommendations that are not met
	failures []failure // of required scenarios

	extraPassed, extraFailed int // checks of scenarios that are not required, without tasks
}

// failure is a check that did not succeed.
type failure struct{ scenario, check, reason string }

// judge runs the suite against a subject.
func (s suite) judge(ctx context.Context, on subject, revision string) (score, error) {
	results, err := os.MkdirTemp("", "conformance-results")
	if err != nil {
		return score{}, err
	}
	defer func() { _ = os.RemoveAll(results) }()
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "conformance"), "server",
		"--url", on.url, "--requirements", revision, "--output-dir", results)
	cmd.Env = append(os.Environ(), "PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	text, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return score{}, err
	}
	got := score{subject: on, revision: revision}
	if err := got.read(text, results); err != nil {
		return got, fmt.Errorf("%w\n%s", err, text)
	}
	return got, nil
}

var (
	summaryLine  = regexp.MustCompile(`^[✓✗] (\S+): (\d+) passed, (\d+) failed`)
	unscoredLine = regexp.MustCompile(`^\s+[✓✗] (\S+) \(`)
)

// read reads the counts from the suite's output, and the reasons from its files.
func (s *score) read(text []byte, results string) error {
	counts := map[string][2]int{}
	var unscored []string
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		if m := summaryLine.FindStringSubmatch(lines.Text()); m != nil {
			passed, _ := strconv.Atoi(m[2])
			failed, _ := strconv.Atoi(m[3])
			counts[m[1]] = [2]int{passed, failed}
		} else if m := unscoredLine.FindStringSubmatch(lines.Text()); m != nil {
			unscored = append(unscored, m[1])
		}
	}
	if len(counts) == 0 {
		return errors.New("the suite printed no summary")
	}
	for name, n := range counts {
		switch {
		case strings.HasPrefix(name, "tasks-"): // judgeTasks has counted them
		case slices.Contains(unscored, name):
			s.extraPassed += n[0]
			s.extraFailed += n[1]
		default:
			s.passed += n[0]
			s.failed += n[1]
		}
	}
	return s.readChecks(results, unscored)
}

func (s *score) readChecks(results string, unscored []string) error {
	files, err := filepath.Glob(filepath.Join(results, "*", "checks.json"))
	if err != nil {
		return err
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		scenario := scenarioOf(filepath.Base(filepath.Dir(file)))
		for _, c := range checks {
			f := failure{scenario, c.ID, c.ErrorMessage}
			switch {
			case slices.Contains(unscored, scenario):
			case c.Status == "FAILURE":
				s.failures = append(s.failures, f)
			case c.Status == "WARNING":
				s.warnings = append(s.warnings, f)
			}
		}
	}
	return nil
}

// scenarioOf is the scenario a folder of results belongs to: the folder is named
// server-<scenario>-<time>.
func scenarioOf(folder string) string {
	name := strings.TrimPrefix(folder, "server-")
	if i := regexp.MustCompile(`-\d{4}-\d{2}-\d{2}T`).FindStringIndex(name); i != nil {
		return name[:i[0]]
	}
	return name
}

// clientScore is the result of our client in one scenario.
type clientScore struct {
	scenario string
	passed   bool
}

// unsupported are extensions that the hub does not have as a client.
var unsupported = []string{
	"auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer",
}

// judgeClient runs every scenario for clients with the test binary of
// internal/mcp/upstream as the client: the connection manager and logins as the server
// uses them, with a user who agrees to every login.
func (s suite) judgeClient(ctx context.Context) ([]clientScore, error) {
	folder, err := os.MkdirTemp("", "conformance-client")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "client")
	if text, err := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./internal/mcp/upstream").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the client: %w\n%s", err, text)
	}
	scenarios, err := s.clientScenarios(ctx)
	if err != nil {
		return nil, err
	}
	var scores []clientScore
	for _, scenario := range scenarios {
		if slices.Contains(unsupported, scenario) {
			scores = append(scores, clientScore{scenario, false})
			continue
		}
		cmd := s.command(ctx, "client", "--command", binary, "--scenario", scenario)
		cmd.Dir = folder
		cmd.Env = append(cmd.Env, "UPSTREAM_TEST_ROLE=conformance")
		text, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) {
			return nil, err
		}
		fmt.Printf("client, %s … %v\n", scenario, err == nil)
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s\n", text)
		}
		scores = append(scores, clientScore{scenario, err == nil})
	}
	return scores, nil
}

func (s suite) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "conformance"), args...)
	cmd.Env = append(os.Environ(), "PATH="+s.bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	return cmd
}

var listed = regexp.MustCompile(`^\s+- (\S+) \[`)

// clientScenarios returns the suite's scenarios for clients.
func (s suite) clientScenarios(ctx context.Context) ([]string, error) {
	text, err := s.command(ctx, "list").Output()
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	_, text, _ = bytes.Cut(text, []byte("Client scenarios"))
	text, _, _ = bytes.Cut(text, []byte("Authorization server scenarios"))
	var names []string
	for line := range bytes.Lines(text) {
		if m := listed.FindSubmatch(line); m != nil {
			names = append(names, string(m[1]))
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the suite lists no scenarios for clients")
	}
	return names, nil
}

// clientReport is the part of the page about our client.
func clientReport(scores []clientScore) []byte {
	var b bytes.Buffer
	passed, auth, missing := 0, 0, []string{}
	for _, s := range scores {
		switch {
		case s.passed && strings.HasPrefix(s.scenario, "auth/"):
			auth++
			fallthrough
		case s.passed:
			passed++
		default:
			missing = append(missing, s.scenario)
		}
	}
	fmt.Fprintf(&b, "\n## The client\n\nThe hub is a client of its upstreams. Of the suite's %d scenarios for clients, of every revision and extension, %d pass, %d of them about logging in.", len(scores), passed, auth)
	if len(missing) > 0 {
		fmt.Fprintf(&b, " Not supported: %s.", strings.Join(missing, ", "))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// failedClient returns an error if a scenario failed that should pass.
func failedClient(scores []clientScore) error {
	var failed []error
	for _, s := range scores {
		if !s.passed && !slices.Contains(unsupported, s.scenario) {
			failed = append(failed, fmt.Errorf("our client fails %s", s.scenario))
		}
	}
	return errors.Join(failed...)
}

// startTasks starts the servers that are tested with tasks: our own, and the hub in front
// of it in either era. The reference server has no tasks.
func startTasks(ctx context.Context, log *slog.Logger) ([]subject, error) {
	binary, err := build(ctx, fixture)
	if err != nil {
		return nil, err
	}
	first, err := start(ctx, subject{name: "hub, own tools", kind: own}, binary, "-listen")
	if err != nil {
		return nil, err
	}
	first.url += "/mcp"
	behind, err := startThrough(ctx, map[string]string{modern: first.url, legacy: first.url}, log)
	return append([]subject{first}, behind...), err
}

// taskScore is the result of one server for the tasks extension.
type taskScore struct {
	subject        subject
	passed, failed int
	failures       []failure
}

// judgeTasks runs the scenarios of the tasks extension against all servers.
func (s suite) judgeTasks(ctx context.Context, log *slog.Logger) (scores []taskScore, err error) {
	subjects, err := startTasks(ctx, log)
	defer func() {
		for i := len(subjects) - 1; i >= 0; i-- { // the hub before its upstream
			err = errors.Join(err, subjects[i].close())
		}
	}()
	if err != nil {
		return nil, err
	}
	scenarios, err := s.taskScenarios(ctx)
	if err != nil {
		return nil, err
	}
	scores = make([]taskScore, len(subjects))
	group, ctx := errgroup.WithContext(ctx)
	for i, on := range subjects {
		group.Go(func() (err error) {
			scores[i], err = s.judgeTasksOf(ctx, on, scenarios)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for _, got := range scores {
		fmt.Printf("%s, tasks … %d passed, %d failed\n", got.subject.name, got.passed, got.failed)
	}
	return scores, nil
}

// parallelScenarios is how many scenarios run at once: most of their time they wait.
const parallelScenarios = 3

// judgeTasksOf runs scenarios against one server.
func (s suite) judgeTasksOf(ctx context.Context, on subject, scenarios []string) (taskScore, error) {
	parts := make([]taskScore, len(scenarios))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallelScenarios)
	for i, scenario := range scenarios {
		group.Go(func() (err error) {
			parts[i], err = s.runTaskScenario(ctx, on, scenario)
			return err
		})
	}
	all := taskScore{subject: on}
	err := group.Wait()
	for _, part := range parts {
		all.passed, all.failed = all.passed+part.passed, all.failed+part.failed
		all.failures = append(all.failures, part.failures...)
	}
	return all, err
}

// taskScenarios lists the scenarios of the extension.
func (s suite) taskScenarios(ctx context.Context) (names []string, err error) {
	text, err := s.command(ctx, "list").Output()
	if err != nil {
		return nil, fmt.Errorf("list scenarios: %w", err)
	}
	for line := range bytes.Lines(text) {
		if m := listed.FindSubmatch(line); m != nil && strings.HasPrefix(string(m[1]), "tasks-") {
			names = append(names, string(m[1]))
		}
	}
	if len(names) == 0 {
		return nil, errors.New("the suite lists no scenarios of tasks")
	}
	return names, nil
}

var scenarioLine = regexp.MustCompile(`(?m)^Passed: (\d+)/\d+, (\d+) failed`)

// runTaskScenario runs one scenario against a server.
func (s suite) runTaskScenario(ctx context.Context, on subject, scenario string) (got taskScore, err error) {
	results, err := os.MkdirTemp("", "conformance-results")
	if err != nil {
		return got, err
	}
	defer func() { _ = os.RemoveAll(results) }()
	text, err := s.command(ctx, "server", "--url", on.url, "--scenario", scenario, "--output-dir", results).CombinedOutput()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		return got, err
	}
	m := scenarioLine.FindSubmatch(text)
	if m == nil {
		return got, fmt.Errorf("the suite printed no summary\n%s", text)
	}
	got.passed, _ = strconv.Atoi(string(m[1]))
	got.failed, _ = strconv.Atoi(string(m[2]))
	var checks score
	if err := checks.readChecks(results, nil); err != nil {
		return got, err
	}
	for _, f := range checks.failures {
		f.scenario = scenario
		got.failures = append(got.failures, f)
	}
	return got, nil
}

// failedTasks returns an error if a check of tasks failed that should pass.
func failedTasks(scores []taskScore) error {
	var failed []error
	for _, s := range scores {
		for _, f := range s.failures {
			failed = append(failed, fmt.Errorf("%s fails %s of %s: %s", s.subject.name, f.check, f.scenario, f.reason))
		}
	}
	return errors.Join(failed...)
}

// suiteFolder is where the suite is installed.
var suiteFolder = filepath.Join(".cache", "conformance")
