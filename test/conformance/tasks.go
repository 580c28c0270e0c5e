package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
)

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
