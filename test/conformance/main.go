// Command conformance runs the official MCP conformance suite against the hub: its own
// server directly, and through the hub a reference server of either era. It writes the
// results to docs/conformance.md.
//
// The suite is a Node program; npm installs it into -suite if it is missing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
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
	if err := os.WriteFile(out, append(report(scores, tasks), clientReport(client)...), 0o644); err != nil {
		return err
	}
	return errors.Join(verdict(scores), failedTasks(tasks), failedClient(client))
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
