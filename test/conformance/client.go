package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// clientScore is the result of our client in one scenario.
type clientScore struct {
	scenario string
	passed   bool
}

// unsupported are extensions that the hub does not have as a client.
var unsupported = []string{
	"auth/enterprise-managed-authorization", "auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer",
	"sep-2640-client-no-prefetch", "sep-2640-client-verify-digest", "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter",
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
