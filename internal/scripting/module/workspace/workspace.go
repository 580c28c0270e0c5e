// Package workspace provides functions for working on a folder of files: list_dir,
// read_file, search, write_file, patch_file, git_status and run_command. All but the
// last two are limited to the allowed folders; those two are disabled unless the
// configuration allows programs.
package workspace

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/scripting/host"
)

//go:embed workspace.md
var page string

//go:embed prelude.lua
var prelude string

//go:embed prelude.js
var preludeJS string

// Module is the globals named above.
func Module() host.Module {
	return host.Module{Page: page, Lua: prelude, JS: preludeJS, Funcs: []host.Func{
		{Name: "list_dir", Kind: host.Read, Effect: listDir},
		{Name: "read_file", Kind: host.Read, Effect: readFile},
		{Name: "search", Kind: host.Read, Effect: search},
		{Name: "write_file", Kind: host.Idempotent, Effect: writeFile, Path: 1},
		{Name: "patch_file", Kind: host.Write, Effect: patchFile, Path: 1},
		{Name: "git_status", Kind: host.Read, Effect: gitStatus, Waits: true},
		{Name: "__run", Hidden: true, Kind: host.Write, Effect: runCommand, Check: checkCommand, Waits: true},
	}}
}

// listDir(path?) returns the entries of a folder; without a path, the allowed folders; for
// ".", those of the workspace, not of the temp folder, which also has that path.
func listDir(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.OptString(1, "")
	if err != nil {
		return nil, err
	}
	if path != "" && filepath.Clean(path) == "." {
		path = cmp.Or(w.Files.Workspace(), path)
	}
	entries := []host.DirEntry{}
	if path == "" {
		for _, folder := range w.Files.Folders() {
			entries = append(entries, host.DirEntry{Name: folder, IsDir: true})
		}
	} else if entries, err = w.Files.List(path); err != nil {
		return nil, err
	}
	table, err := host.Table(entries)
	return []host.Value{table}, err
}

func readFile(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	data, err := w.Files.Read(path)
	return []host.Value{string(data)}, err
}

func writeFile(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	content, err := args.String(2)
	if err != nil {
		return nil, err
	}
	return []host.Value{int64(len(content))}, w.Files.Write(path, []byte(content), false)
}

// patchFile(path, diff) applies a unified diff to one file.
func patchFile(_ context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	path, err := args.String(1)
	if err != nil {
		return nil, err
	}
	diff, err := args.String(2)
	if err != nil {
		return nil, err
	}
	hunks, err := parseDiff(diff)
	if err != nil {
		return nil, err
	}
	before := []byte{}
	if !createsFile(hunks) {
		if before, err = w.Files.Read(path); err != nil {
			return nil, err
		}
	}
	after, err := apply(string(before), hunks)
	if err != nil {
		return nil, fault.Wrap(fault.Conflict, err, "patch %s", path).
			WithHint("read the file again and make the diff from its current content")
	}
	return []host.Value{int64(len(hunks))}, w.Files.Write(path, []byte(after), false)
}

// gitStatus() returns git's status of the folder in which commands run.
func gitStatus(ctx context.Context, w *host.Services, args host.Args) ([]host.Value, error) {
	if w.Commands == nil {
		return nil, noCommands(args)
	}
	outcome, err := w.Commands.Run(ctx, "git", []string{"--no-optional-locks", "status", "--porcelain", "--branch"})
	if err != nil {
		return nil, err
	}
	if outcome.Status != 0 {
		return nil, fault.New(fault.Upstream, "git_status: %s", outcome.Stderr)
	}
	return []host.Value{outcome.Stdout}, nil
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
