package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/plural"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
)

// importCommand is `luanette import`.
type importCommand struct {
	settingFlags
	Names     []string          `arg:"" optional:"" name:"server" help:"The servers to import, as the table names them."`
	All       bool              `help:"Import all servers that are new and not disabled."`
	From      string            `placeholder:"CLIENT" help:"Only those of one client, such as cursor."`
	File      string            `type:"path" placeholder:"PATH" help:"Only those of one file, of any client."`
	Input     map[string]string `short:"i" mapsep:"none" placeholder:"ID=VALUE" help:"A value that the client asks for, such as a token."`
	Sandbox   string            `placeholder:"LEVEL" help:"What their commands may reach: off, open (the default) or strict; docs/sandbox.md."`
	NoInstall bool              `help:"Leave the packages of the servers to be installed when they start."`
	DryRun    bool              `help:"Show what would be imported."`
	JSON      bool              `help:"Print JSON."`
}

// Help is shown by `luanette import --help`.
func (importCommand) Help() string {
	return `Finds the tool servers of your other MCP clients (Claude Code, Claude Desktop, Cursor,
VS Code, Codex, Gemini CLI and more) and adds them to luanette.toml. The clients' files
do not change; luanette install --move removes the servers from a client.

  luanette import                  list what is there
  luanette import --all            import everything new
  luanette import github files     import these two
  luanette import --from cursor    list those of Cursor`
}

// importRow is a candidate in JSON.
type importRow struct {
	Server   string             `json:"server"`
	Name     string             `json:"name"`
	Client   string             `json:"client"`
	File     string             `json:"file"`
	Project  string             `json:"project,omitempty"`
	Target   string             `json:"target"`
	State    config.ImportState `json:"state"`
	Problem  string             `json:"problem,omitempty"`
	Inputs   []clientfile.Input `json:"inputs,omitempty"`
	Copied   []string           `json:"copied,omitempty"`
	Warnings []string           `json:"warnings,omitempty"`
	Imported bool               `json:"imported"`
}

// system is where the files of clients are.
func system(proc *process) (clientfile.System, error) {
	folder, err := os.Getwd()
	if err != nil {
		return clientfile.System{}, fault.Wrap(fault.Config, err, "find the current folder")
	}
	home := proc.Env["HOME"]
	if home == "" {
		home = proc.Env["USERPROFILE"]
	}
	return clientfile.System{OS: runtime.GOOS, Home: home, Dir: folder, Getenv: func(name string) string { return proc.Env[name] }}, nil
}

// Run lists the servers of other clients, or imports them.
func (c *importCommand) Run(ctx context.Context, proc *process) error {
	found, err := c.found(proc)
	if err != nil {
		return err
	}
	sources := config.Sources{File: c.Config, Env: proc.Env}
	loaded, err := config.LoadOrNew(sources)
	if err != nil {
		return err
	}
	candidates, err := loaded.Candidates(found, proc.Env)
	if err != nil {
		return err
	}
	chosen, err := c.choose(proc, candidates)
	if err != nil {
		return err
	}
	imported, err := c.importAll(ctx, proc, sources, candidates, chosen)
	if c.JSON {
		if printed := c.printJSON(proc, candidates, imported); printed != nil {
			return printed
		}
	}
	return err
}

// found reads the files of the clients that were asked for. Files that cannot be read
// are reported.
func (c *importCommand) found(proc *process) ([]clientfile.Found, error) {
	where, err := system(proc)
	if err != nil {
		return nil, err
	}
	if c.File != "" {
		file := clientfile.File{Client: clientfile.Client{Name: "file", Title: filepath.Base(c.File)}, Path: c.File}
		text, err := os.ReadFile(c.File)
		if err != nil {
			return nil, fault.Wrap(fault.Config, err, "import").WithHint("--file names a file of another client, such as .mcp.json")
		}
		servers, err := clientfile.Parse(text, clientfile.SourceOf(c.File, where.Home))
		return []clientfile.Found{{File: file, Servers: servers}}, err
	}
	clients := clientfile.Clients
	if c.From != "" {
		one, err := clientfile.ClientNamed(c.From)
		if err != nil {
			return nil, err
		}
		clients = []clientfile.Client{one}
	}
	found := clientfile.Discover(where, clients)
	for _, f := range found {
		if f.Err != nil {
			fmt.Fprintf(proc.Stderr, "warning: %v\n", f.Err)
		}
	}
	return found, nil
}

// choose returns the candidates to import: those that were named, all that are new, or
// those that a person chooses. Otherwise it prints the table.
func (c *importCommand) choose(proc *process, all []config.Candidate) ([]config.Candidate, error) {
	switch {
	case len(c.Names) > 0:
		return candidatesNamed(all, c.Names)
	case c.All:
		return onlyNew(all), nil
	case c.JSON:
		return nil, nil
	case len(all) == 0:
		_, err := fmt.Fprintln(proc.Stdout, "no servers of other clients were found")
		return nil, err
	}
	err := printList(proc, all, "", "SERVER FROM STATE RUNS", func(c config.Candidate) []string {
		return []string{c.Key, fromWhere(proc, c), stateText(c), c.Spec.Target()}
	})
	if err != nil || len(onlyNew(all)) == 0 {
		return nil, err
	}
	person := newPrompter(proc)
	if person == nil || c.DryRun {
		_, err := fmt.Fprintln(proc.Stdout, "\nimport all that are new with `luanette import --all`, or some with `luanette import NAME…`")
		return nil, err
	}
	answer, err := person.line("\nImport which? all, names, or Enter for none: ")
	if answer == "all" || answer == "a" {
		return onlyNew(all), err
	}
	chosen, unknown := candidatesNamed(all, strings.FieldsFunc(answer, func(r rune) bool { return r == ' ' || r == ',' }))
	return chosen, errors.Join(err, unknown)
}

func onlyNew(all []config.Candidate) []config.Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(c config.Candidate) bool { return c.State != config.ImportNew })
}

// candidatesNamed returns the candidates of that name: the one they get, or the one that they
// have in their files.
func candidatesNamed(all []config.Candidate, names []string) (chosen []config.Candidate, err error) {
	for _, name := range names {
		matches := slices.DeleteFunc(slices.Clone(all), func(c config.Candidate) bool {
			return c.Name != name || c.State == config.ImportTwice
		})
		if len(matches) == 0 {
			matches = slices.DeleteFunc(slices.Clone(all), func(c config.Candidate) bool { return c.Key != name || c.State == config.ImportTwice })
		}
		if len(matches) == 0 {
			return nil, fault.New(fault.NotFound, "no other client has a server %q", name).
				WithHint("`luanette import` lists them all")
		}
		chosen = append(chosen, matches...)
	}
	return chosen, nil
}

// fromWhere names the client and the file, or the project.
func fromWhere(proc *process, c config.Candidate) string {
	path := c.File.Path
	if c.Project != "" {
		path = c.Project
	}
	return fmt.Sprintf("%s (%s)", c.File.Client.Title, underHome(proc, path))
}

// underHome writes the home folder as ~.
func underHome(proc *process, path string) string {
	home := proc.Env["HOME"]
	if rest, below := strings.CutPrefix(path, home+string(filepath.Separator)); below && home != "" {
		return filepath.Join("~", rest)
	}
	return path
}

func stateText(c config.Candidate) string {
	switch c.State {
	case config.ImportKnown:
		return "already known as " + c.Name
	case config.ImportTwice:
		return "the same as " + c.Name
	case config.ImportInvalid:
		return "invalid: " + c.Problem
	case config.ImportDisabled:
		return "disabled there"
	default:
		if c.Name != c.Key {
			return "new, as " + c.Name
		}
		return "new"
	}
}

// importAll imports what was chosen and says so. It goes on after an error.
func (c *importCommand) importAll(ctx context.Context, proc *process, sources config.Sources, all, chosen []config.Candidate) (imported []string, err error) {
	words := proc.Stdout
	if c.JSON {
		words = proc.Stderr
	}
	if c.All {
		printSkipped(proc, words, all, len(chosen))
	}
	for _, candidate := range chosen {
		switch file, failed := c.importOne(ctx, proc, sources, candidate); {
		case failed != nil:
			printError(proc, failed)
			err = exitStatus(exitFailure)
		case candidate.State == config.ImportKnown:
			fmt.Fprintf(words, "%s: already known as %s\n", candidate.Key, candidate.Name)
		case c.DryRun:
			fmt.Fprintf(words, "would import %s from %s: %s\n", candidate.Name, fromWhere(proc, candidate), candidate.Spec.Target())
		default:
			imported = append(imported, candidate.Name)
			printImported(proc, words, candidate, file)
			printSandbox(words, sources, candidate.Name)
		}
	}
	if len(imported) > 0 {
		if failed := c.installPackages(ctx, proc, imported, words); failed != nil {
			return imported, failed
		}
		fmt.Fprintln(words, "see `luanette upstream list`; `luanette install` connects your clients to Luanette")
	}
	return imported, err
}

// installPackages installs the packages of what was imported, so that the first start is as quick as
// later ones.
func (c *importCommand) installPackages(ctx context.Context, proc *process, names []string, words io.Writer) error {
	if c.NoInstall {
		return nil
	}
	loaded, err := c.loadQuietly(proc, nil)
	if err != nil {
		return err
	}
	return installPackages(ctx, proc, loaded, names, words)
}

// printSkipped says what --all does not import, and why.
func printSkipped(proc *process, words io.Writer, all []config.Candidate, chosen int) {
	if chosen == 0 {
		fmt.Fprintf(words, "nothing to import: of %s none is new\n", plural.Count(len(all), "server"))
	}
	for _, candidate := range all {
		if candidate.State != config.ImportNew {
			fmt.Fprintf(words, "skipped %s from %s: %s\n", candidate.Key, fromWhere(proc, candidate), stateText(candidate))
		}
	}
}

// printImported says what was imported, and what a person should know about it.
func printImported(proc *process, words io.Writer, candidate config.Candidate, file string) {
	fmt.Fprintf(words, "imported %s from %s\n", candidate.Name, fromWhere(proc, candidate))
	for _, warning := range candidate.Warnings {
		fmt.Fprintf(words, "  note: %s\n", warning)
	}
	if names := candidate.Copied(); len(names) > 0 {
		fmt.Fprintf(words, "  the value of %s was copied into %s, which only you can read\n", strings.Join(names, ", "), underHome(proc, file))
	}
}

// importOne asks for what is missing and imports a server.
func (c *importCommand) importOne(ctx context.Context, proc *process, sources config.Sources, candidate config.Candidate) (file string, err error) {
	if candidate.State == config.ImportKnown {
		return "", nil
	}
	given := map[string]string{}
	for id, value := range c.Input {
		given[id] = value
	}
	missing := candidate.Missing(sources, given)
	if c.DryRun {
		for _, input := range missing {
			fmt.Fprintf(proc.Stderr, "%s: it needs --input %s=VALUE\n", candidate.Key, input.ID)
		}
		return "", nil
	}
	if person := newPrompter(proc); person != nil {
		for _, input := range missing {
			if given[input.ID], err = askInput(person, candidate, input); err != nil {
				return "", err
			}
		}
	}
	candidate.Sandbox = c.Sandbox
	return config.Import(ctx, sources, candidate, given)
}

func askInput(person *prompter, candidate config.Candidate, input clientfile.Input) (string, error) {
	question := fmt.Sprintf("%s: %s", candidate.Key, input.ID)
	if input.Description != "" {
		question += " (" + input.Description + ")"
	}
	if len(input.Options) > 0 {
		question += ", one of " + strings.Join(input.Options, ", ")
	}
	if input.Secret {
		return person.secret(question + ": ")
	}
	if input.Default != "" {
		question += " [" + input.Default + "]"
	}
	answer, err := person.line(question + ": ")
	if answer == "" {
		answer = input.Default
	}
	return answer, err
}

func (c *importCommand) printJSON(proc *process, all []config.Candidate, imported []string) error {
	rows := []importRow{}
	for _, a := range all {
		rows = append(rows, importRow{
			Server: a.Key, Name: a.Name, Client: a.File.Client.Name, File: a.File.Path, Project: a.Project, Target: a.Spec.Target(),
			State: a.State, Problem: a.Problem, Inputs: a.Inputs, Copied: a.Copied(), Warnings: a.Warnings,
			Imported: (a.State == config.ImportNew || a.State == config.ImportDisabled) && slices.Contains(imported, a.Name),
		})
	}
	return printValue(proc, map[string]any{"servers": rows})
}
