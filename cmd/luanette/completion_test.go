package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/config"
)

// TestCompletion completes command lines that need no stored data.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"jo":                         "job",
		"job st":                     "start status stats",
		"job schedule ":              "list pause resume remove",
		"job list --stat":            "--status",
		"job list --status ":         "pending running waiting complete failed cancelled",
		"job list --status fa":       "failed",
		"job list --status=fa":       "--status=failed",
		"job list --status = c":      "complete cancelled",
		"job list --json --status w": "waiting",
		"job list -t weekly --sta":   "--status",
		"completion z":               "zsh",
		"run ":                       ":files",
		"run -p a=1 rep":             ":files",
		"run report.lua -":           "--",
		"serve --config ":            ":files",
		"eval ":                      "",
		"__":                         "",
		"no-such-command x":          "",
	} {
		var out bytes.Buffer
		proc := &process{Stdout: &out, Stderr: &out, Env: config.Environment{"HOME": t.TempDir()}}
		words := append([]string{"__complete", "--"}, strings.Split(line, " ")...)
		if code := run(t.Context(), proc, words); code != exitOK {
			t.Errorf("%q: exit code %d: %s", line, code, &out)
		}
		var got []string
		for found := range strings.Lines(out.String()) {
			value, _, _ := strings.Cut(strings.TrimSpace(found), "\t")
			got = append(got, value)
		}
		if want == "--" {
			if !slices.Contains(got, "--server") || !slices.Contains(got, "--no-color") {
				t.Errorf("%q: %v", line, got)
			}
			continue
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%q: got %v, want %s", line, got, want)
		}
	}
}
