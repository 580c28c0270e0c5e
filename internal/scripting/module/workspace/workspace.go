// Package workspace provides functions for working on a folder of files: list_dir,
// read_file, search, write_file, patch_file, git_status and run_command. All but the
// last two are limited to the allowed folders; those two are disabled unless the
// configuration allows programs.
package workspace

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/sandbox/launch"
	"github.com/luanette/luanette/internal/sandbox/profile"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed workspace.md prelude.lua prelude.js
var files embed.FS

// Module is the globals named above.
func Module() host.Module {
	return host.Module{Text: host.ReadText(files), Funcs: []host.Func{
		{Name: "list_dir", Kind: host.Read, Effect: host.Bind(listDir)},
		{Name: "read_file", Kind: host.Read, Effect: host.Bind(readFile)},
		{Name: "search", Kind: host.Read, Effect: host.Bind(search)},
		{Name: "write_file", Kind: host.Idempotent, Effect: host.Bind(writeFile), Path: 1, Action: host.Does("write", 1)},
		{Name: "patch_file", Kind: host.Write, Effect: host.Bind(patchFile), Path: 1, Action: host.Does("patch", 1)},
		{Name: "git_status", Kind: host.Read, Effect: host.Bind(gitStatus), Waits: true},
		{
			Name: "__run", Hidden: true, Kind: host.Write, Effect: runCommand, Check: checkCommand, Waits: true,
			Action: func(args host.Args) string { return fmt.Sprintf("run %v %s", args.At(1), host.Shown(args.At(2))) },
			Mock:   `{"status":0,"stdout":"","stderr":""}`, Mocked: mockedCommand,
		},
	}}
}

// listDir(path?) returns the entries of a folder; without a path, the allowed folders; for
// ".", those of the workspace, not of the temp folder, which also has that path.
func listDir(w *host.Services, path *string) ([]host.DirEntry, error) {
	switch {
	case path == nil || *path == "":
		var entries []host.DirEntry
		for _, folder := range w.Files.Folders() {
			entries = append(entries, host.DirEntry{Name: folder, IsDir: true})
		}
		return entries, nil
	case filepath.Clean(*path) == ".":
		return w.Files.List(cmp.Or(w.Files.Workspace(), *path))
	default:
		return w.Files.List(*path)
	}
}

func readFile(w *host.Services, path string) ([]byte, error) { return w.Files.Read(path) }

func writeFile(w *host.Services, path, content string) (int, error) {
	return len(content), w.Files.Write(path, []byte(content), false)
}

// patchFile(path, diff) applies a unified diff to one file.
func patchFile(w *host.Services, path, diff string) (int, error) {
	hunks, err := parseDiff(diff)
	if err != nil {
		return 0, err
	}
	before := []byte{}
	if !createsFile(hunks) {
		if before, err = w.Files.Read(path); err != nil {
			return 0, err
		}
	}
	after, err := apply(string(before), hunks)
	if err != nil {
		return 0, fault.Wrap(fault.Conflict, err, "patch %s", path).
			WithHint("read the file again and make the diff from its current content")
	}
	return len(hunks), w.Files.Write(path, []byte(after), false)
}

// gitStatus() returns git's status of the folder in which commands run.
func gitStatus(ctx context.Context, w *host.Services, args host.Args) (string, error) {
	if w.Commands == nil {
		return "", noCommands(args)
	}
	outcome, err := w.Commands.Run(ctx, "git", []string{"--no-optional-locks", "status", "--porcelain", "--branch"})
	if err != nil {
		return "", err
	}
	if outcome.Status != 0 {
		return "", fault.New(fault.Upstream, "git_status: %s", outcome.Stderr)
	}
	return outcome.Stdout, nil
}

// runCommand(name, arguments) returns status, standard output and standard error.
func runCommand(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	name, words, err := commandLine(w, args)
	if err != nil {
		return nil, err
	}
	outcome, err := w.Commands.Run(ctx, name, words)
	if err != nil {
		return nil, err
	}
	return []host.Value{int64(outcome.Status), outcome.Stdout, outcome.Stderr}, nil
}

// mockedCommand is the answer of a rehearsal: one table.
func mockedCommand(args host.Args, mock json.RawMessage) ([]host.Value, error) {
	out := struct {
		Status int64  `json:"status"`
		Stdout string `json:"stdout"`
		Stderr string `json:"stderr"`
	}{}
	if err := host.ReadMock(args, mock, &out); err != nil {
		return nil, err
	}
	table, err := host.Table(out)
	return []host.Value{table}, err
}

func noCommands(args host.Args) error {
	return fault.New(fault.Denied, "%s: this run may not run programs", args.Func).
		WithHint("allow programs in the configuration with scripts.commands")
}

// checkCommand refuses what runCommand would refuse.
func checkCommand(_ context.Context, w *host.Services, args host.Args) error {
	name, _, err := commandLine(w, args)
	if err != nil {
		return err
	}
	if c, ok := w.Commands.(interface{ Check(name string) error }); ok {
		return c.Check(name)
	}
	return nil
}

// commandLine reads the arguments of runCommand.
func commandLine(w *host.Services, args host.Args) (name string, words []string, err error) {
	args.Func = "run_command"
	if w.Commands == nil {
		return "", nil, noCommands(args)
	}
	if name, err = args.String(1); err != nil {
		return "", nil, err
	}
	var arguments []json.RawMessage
	if err := args.Decode(2, &arguments); err != nil {
		return "", nil, err
	}
	words = make([]string, len(arguments))
	for i, raw := range arguments {
		if json.Unmarshal(raw, &words[i]) != nil {
			words[i] = string(raw) // numbers and booleans as written
		}
	}
	return name, words, nil
}

// CommandOptions are the programs that scripts may run, and how.
type CommandOptions struct {
	Allow   []string      // names of programs; "*" allows all
	Dir     string        // where they run
	Env     []string      // their whole environment, as KEY=value
	Limit   int           // most bytes of each output; 0 means 1 MiB
	Timeout time.Duration // longest run; 0 means 30 s

	// Profile is what they may reach, and Sandbox starts them in it.
	Profile profile.Profile
	Sandbox *launch.Launcher
}

// Programs starts programs for scripts.
type Programs struct{ options CommandOptions }

// NewPrograms allows the programs of options; it returns nil if there are none.
func NewPrograms(o CommandOptions) host.Commands {
	if len(o.Allow) == 0 {
		return nil
	}
	if o.Limit == 0 {
		o.Limit = 1 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	return &Programs{options: o}
}

// Run runs a program to its end, or until its timeout or ctx is done.
func (p *Programs) Run(ctx context.Context, name string, args []string) (host.CommandResult, error) {
	o := p.options
	if err := p.Check(name); err != nil {
		return host.CommandResult{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fault.New(fault.Unavailable, "run %s: it took longer than %s", name, o.Timeout))
	defer cancel()
	out, errs := &head{left: o.Limit}, &head{left: o.Limit}
	command, err := p.command(ctx, name, args)
	if err != nil {
		return host.CommandResult{}, err
	}
	command.Stdout, command.Stderr = out, errs
	err = command.Run()
	if ctx.Err() != nil {
		return host.CommandResult{}, context.Cause(ctx)
	}
	outcome := host.CommandResult{Stdout: string(out.data), Stderr: string(errs.data)}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		outcome.Status = exit.ExitCode()
	case err != nil:
		return host.CommandResult{}, fault.Wrap(fault.Unavailable, err, "run %s", name)
	}
	return outcome, nil
}

// command is the program in its sandbox, ready to be started. It ends with ctx.
func (p *Programs) command(ctx context.Context, name string, args []string) (*launch.Command, error) {
	o := p.options
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fault.Wrap(fault.Unavailable, err, "run %s", name)
	}
	return o.Sandbox.CommandContext(ctx, o.Profile, launch.Program{
		Path: path, Args: append([]string{name}, args...), Env: append([]string{}, o.Env...), Dir: o.Dir,
	})
}

// Check returns why a program cannot be run.
func (p *Programs) Check(name string) error {
	allow := p.options.Allow
	if !slices.Contains(allow, name) && !slices.Contains(allow, "*") {
		return fault.New(fault.Denied, "run %s: scripts may not run it", name).
			WithHint("allow it in the configuration with scripts.commands; allowed now: %v", allow)
	}
	if _, err := exec.LookPath(name); err != nil {
		return fault.Wrap(fault.Unavailable, err, "run %s", name)
	}
	return nil
}

// head stores the beginning of what is written to it.
type head struct {
	data []byte // not an embedded buffer, whose ReadFrom would bypass Write
	left int
}

func (h *head) Write(p []byte) (int, error) {
	keep := p[:min(len(p), h.left)]
	h.left -= len(keep)
	h.data = append(h.data, keep...)
	return len(p), nil
}

// The limits of a search: lines found, files opened, size of a file, and length of a
// line shown.
const (
	maxFound    = 1000
	maxSearched = 20_000
	maxLooked   = 1 << 20
	maxShown    = 300
)

// found is a line that matched.
type found struct {
	Path string `json:"path"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// search(pattern, dir?) finds lines by a regular expression.
func search(ctx context.Context, w *host.Services, pattern string, folder *string) ([]found, error) {
	expression, err := regexp.Compile(pattern)
	if err != nil {
		return nil, fault.New(fault.InvalidParams, "search: %v", err).
			WithHint("the pattern is a regular expression; put a backslash before ( ) [ ] . * + ? | ^ $ to mean the character")
	}
	return grep(ctx, w.Files, expression, host.Or(folder, ""))
}

func grep(ctx context.Context, files *host.Files, expression *regexp.Regexp, folder string) ([]found, error) {
	var lines []found
	searched := 0
	err := files.Walk(folder, skipsFolder, func(path string, info fs.FileInfo, read func() ([]byte, error)) error {
		if searched++; searched > maxSearched || len(lines) >= maxFound || ctx.Err() != nil {
			return fs.SkipAll
		}
		if info.Size() > maxLooked {
			return nil
		}
		content, err := read()
		if err != nil || bytes.IndexByte(content[:min(len(content), 8000)], 0) >= 0 {
			return nil //nolint:nilerr // unreadable or no text: nothing to find
		}
		lines = append(lines, matches(expression, path, content, maxFound-len(lines))...)
		return nil
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return lines, err
}

// skipsFolder reports whether a folder has copies and metadata rather than source files.
func skipsFolder(name string) bool {
	return name == ".git" || name == "node_modules" || name == "vendor" || name == ".cache"
}

func matches(expression *regexp.Regexp, path string, content []byte, limit int) []found {
	var lines []found
	number := 0
	for line := range bytes.Lines(content) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		if !expression.Match(line) {
			continue
		}
		lines = append(lines, found{path, number, shown(line)})
		if len(lines) == limit {
			break
		}
	}
	return lines
}

// shown shortens a line and makes it valid text.
func shown(line []byte) string {
	if end := maxShown; len(line) > end {
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		line = line[:end]
	}
	return string(bytes.ToValidUTF8(line, []byte("�")))
}
