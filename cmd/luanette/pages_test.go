package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPages checks that every luanette command in a page of the documentation occurs in
// one of its stories. Commands that stories cannot run, such as servers on fixed ports
// and logins in a browser, are only parsed.
func TestPages(t *testing.T) {
	t.Parallel()
	for page, stories := range map[string]string{
		"README.md":         "readme",
		"docs/upstreams.md": "upstream readme",
		"docs/code_mode.md": "tokens",
		"docs/apis.md":      "apis apis_lists apis_server",
		"docs/jobs.md":      "jobs undo",
		"docs/backends.md":  "backend",
		"docs/chat.md":      "chat",
		"docs/operate.md":   "operate attach doctor",
		"docs/trust.md":     "trust",
		"docs/policy.md":    "policy",
		"docs/audit.md":     "policy activity",
		"docs/security.md":  "keys tls folder",
		"docs/oauth.md":     "",
	} {
		var run []string
		for _, story := range strings.Fields(stories) {
			for line := range strings.Lines(read(t, "examples/"+story+".txtar")) {
				if command, ok := strings.CutPrefix(strings.TrimPrefix(line, "! "), "exec "); ok {
					run = append(run, normalize(command))
				}
			}
		}
		shown := 0
		for line := range strings.Lines(read(t, page)) {
			command := strings.TrimSpace(line)
			if !strings.HasPrefix(command, "luanette ") {
				continue
			}
			shown++
			if stories == "" || strings.HasPrefix(command, "luanette serve") {
				if err := parseLine(command); err != nil {
					t.Errorf("%s: %q: %v", page, command, err)
				}
			} else if !slices.Contains(run, normalize(command)) {
				t.Errorf("%s: no story runs %q", page, command)
			}
		}
		if shown == 0 {
			t.Errorf("%s shows no command", page)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	comment    = regexp.MustCompile(`\s+#.*`)
	storyFlags = regexp.MustCompile(` -e LUANETTE_SCRIPTS_CACHE=\$LUANETTE_SCRIPTS_CACHE| --server \$URL| --key \$ROOT| --data data\b| --timeout 0| &$`)
)

// normalize removes comments and quotes from a command, and the flags that stories add.
func normalize(command string) string {
	command = strings.NewReplacer(`"`, "", "'", "").Replace(comment.ReplaceAllString(strings.TrimSpace(command), ""))
	return storyFlags.ReplaceAllString(command, "")
}

// parseWords parses the words of a command without running it.
func parseWords(words []string) error {
	_, err := newParser(context.Background(), &process{Stdout: io.Discard, Stderr: io.Discard}, branch(words[1:]), func(int) {}).Parse(words[1:])
	return err
}

// codeBlock returns the only code block of a page in a language.
func codeBlock(t *testing.T, page, language string) string {
	t.Helper()
	_, rest, ok := strings.Cut(read(t, page), "```"+language+"\n")
	text, after, closed := strings.Cut(rest, "```")
	if !ok || !closed || strings.Contains(after, "```"+language+"\n") {
		t.Fatalf("%s does not have one block of %s", page, language)
	}
	return text
}

// TestUnit checks the systemd unit in docs/operate.md with systemd-analyze, and the command
// in it.
func TestUnit(t *testing.T) {
	t.Parallel()
	unit := codeBlock(t, "docs/operate.md", "ini")
	start := regexp.MustCompile(`(?m)^ExecStart=(.*)$`).FindStringSubmatch(unit)
	if start == nil {
		t.Fatal("the unit starts nothing")
	}
	if err := parseWords(strings.Fields(start[1])); err != nil {
		t.Errorf("%s: %v", start[1], err)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed (make system, or Debian's package systemd)")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "luanette.service")
	unit = strings.ReplaceAll(unit, "/usr/bin/luanette", program)
	if err := os.WriteFile(file, []byte(unit), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "luanette.service:") {
		t.Errorf("systemd-analyze: %v\n%s", err, out)
	}
}

// TestContainer checks the container file in docs/operate.md: its Go version, its build
// command and its entry point.
func TestContainer(t *testing.T) {
	t.Parallel()
	known := strings.Fields("FROM WORKDIR COPY RUN ENV USER VOLUME EXPOSE ENTRYPOINT CMD")
	found := map[string]string{}
	for line := range strings.Lines(codeBlock(t, "docs/operate.md", "dockerfile")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "" {
			continue
		}
		if !slices.Contains(known, word) || rest == "" {
			t.Errorf("%q is not an instruction", line)
		}
		found[word] += rest + "\n"
	}
	module := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))
	if module == nil || !strings.HasPrefix(found["FROM"], "golang:"+module[1]+" AS build\n") {
		t.Errorf("it builds with %q, go.mod says %v", found["FROM"], module)
	}
	var entry, command []string
	if err := errors.Join(json.Unmarshal([]byte(found["ENTRYPOINT"]), &entry), json.Unmarshal([]byte(found["CMD"]), &command)); err != nil {
		t.Fatal(err)
	}
	if err := parseWords(slices.Concat(entry, command)); err != nil {
		t.Errorf("%v %v: %v", entry, command, err)
	}
	// -n prints the commands of the build without running them.
	build := strings.Replace(strings.TrimSpace(found["RUN"]), "-o "+entry[0], "-n -o "+filepath.Join(t.TempDir(), "luanette"), 1)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", build)
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(build, "-n -o") {
		t.Errorf("%s: %v\n%.2000s", build, err, out)
	}
	if !strings.Contains(found["COPY"], "--from=build "+entry[0]+" "+entry[0]+"\n") {
		t.Errorf("%s is not copied: %s", entry[0], found["COPY"])
	}
}
