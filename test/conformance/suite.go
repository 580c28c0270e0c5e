package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
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
