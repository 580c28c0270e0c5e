package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/textdiff"
	"github.com/luanette/luanette/internal/builtin"
	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
	"github.com/luanette/luanette/internal/config/install"
)

// installCommand is `luanette install`.
type installCommand struct {
	settingFlags
	Clients []string          `arg:"" optional:"" name:"client" help:"The clients, such as claude-code or cursor."`
	URL     string            `placeholder:"URL" help:"Connect to a running server at this URL, instead of starting luanette stdio."`
	Header  map[string]string `short:"H" mapsep:"none" placeholder:"NAME=VALUE" help:"HTTP header, with --url."`
	Set     string            `placeholder:"NAME" help:"Only the tools of this set (luanette set). Clients that search tools by themselves are shown its tools instead of ours that search."`
	Project bool              `help:"Write the file of the current project instead of the user's own."`
	Move    bool              `help:"Take the client's other servers over: import them and remove them there."`
	Input   map[string]string `short:"i" mapsep:"none" placeholder:"ID=VALUE" help:"With --move: a value that the client asks for, such as a token."`
	Edit    bool              `help:"Edit the file, even if the client has a command that adds servers."`
	DryRun  bool              `help:"Show what would change."`
	JSON    bool              `help:"Print JSON."`
}

// Help is shown by `luanette install --help`.
func (installCommand) Help() string {
	return `Writes Luanette into the configuration of other MCP clients, so that they use all your
tool servers through it. Without a client it lists those that are on this machine. A
copy of each file is kept; luanette uninstall puts the files back as they were.

  luanette install                      list the clients
  luanette install cursor codex         connect these two
  luanette install cursor --move        and take over the servers that Cursor has
  luanette install cursor --dry-run     show the change only`
}

// installer returns what changes the files of clients. Own commands of clients are
// used unless edit is set.
func (f *settingFlags) installer(proc *process, edit bool) (install.Installer, *config.Loaded, error) {
	where, err := system(proc)
	if err != nil {
		return install.Installer{}, nil, err
	}
	flags := map[string]string{}
	if f.Data != nil {
		flags["data"] = *f.Data
	}
	loaded, err := config.LoadOrNew(config.Sources{File: f.Config, Env: proc.Env, Flags: flags})
	if err != nil {
		return install.Installer{}, nil, err
	}
	i := install.Installer{System: where, Records: filepath.Join(loaded.Data, "clients")}
	if !edit {
		i.Run = runOwnCommand
	}
	return i, loaded, nil
}

// runOwnCommand runs a client's own command, without its output.
func runOwnCommand(ctx context.Context, argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return exec.CommandContext(ctx, path, argv[1:]...).Run()
}

func onPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// Run installs Luanette in clients, or lists them.
func (c *installCommand) Run(ctx context.Context, proc *process) error {
	i, _, err := c.installer(proc, c.Edit)
	if err != nil {
		return err
	}
	if len(c.Clients) == 0 {
		return c.list(proc, i)
	}
	var clients []clientfile.Client
	for _, name := range c.Clients {
		client, err := clientfile.ClientNamed(name)
		if err != nil {
			return err
		}
		clients = append(clients, client)
	}
	var results []install.Result
	for _, client := range clients {
		r, failed := c.one(ctx, proc, i, client)
		if failed != nil {
			printError(proc, failed)
			err = exitStatus(exitFailure)
			continue
		}
		results = append(results, r)
	}
	if c.JSON {
		if printed := printChanges(proc, results); printed != nil {
			return printed
		}
	}
	return err
}

// list prints the clients of this machine.
func (c *installCommand) list(proc *process, i install.Installer) error {
	var rows [][]string
	type row struct {
		Client    string `json:"client"`
		File      string `json:"file"`
		Found     bool   `json:"found"`
		Installed bool   `json:"installed"`
		Servers   int    `json:"servers"`
	}
	var all []row
	for _, client := range clientfile.Clients {
		s := i.Status(client, onPath)
		all = append(all, row{client.Name, s.Path, s.Found, s.Installed, s.Servers})
		if s.Found {
			rows = append(rows, []string{client.Name, statusText(s), fmt.Sprint(s.Servers), underHome(proc, s.Path)})
		}
	}
	switch {
	case c.JSON:
		return printValue(proc, map[string]any{"clients": all})
	case len(rows) == 0:
		_, err := fmt.Fprintln(proc.Stdout, "no clients were found; `luanette install --help` names those that are known")
		return err
	}
	if err := table(proc, strings.Fields("CLIENT LUANETTE SERVERS FILE"), rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(proc.Stdout, "\nconnect one with `luanette install CLIENT`; add --move to take its servers over")
	return err
}

func statusText(s install.Status) string {
	switch {
	case s.Err != nil:
		return "unreadable: " + firstLine(s.Err.Error())
	case s.Installed:
		return "installed"
	default:
		return "not installed"
	}
}

// one installs Luanette in one client.
func (c *installCommand) one(ctx context.Context, proc *process, i install.Installer, client clientfile.Client) (install.Result, error) {
	launch, err := c.launch(client)
	if err != nil {
		return install.Result{}, err
	}
	q := install.Request{Client: client, Launch: launch, Project: c.Project, DryRun: c.DryRun}
	if c.Move {
		if q.Move, err = c.move(ctx, proc, i, client); err != nil {
			return install.Result{}, err
		}
	}
	if i.Run != nil && !onPath(client.Program) {
		i.Run = nil
	}
	r, err := i.Install(ctx, q)
	if err != nil || c.JSON {
		return r, err
	}
	switch {
	case !r.Changed():
		fmt.Fprintf(proc.Stdout, "%s: already installed in %s\n", client.Name, underHome(proc, r.Path))
	case c.DryRun:
		if r.Command != nil {
			fmt.Fprintf(proc.Stdout, "%s: would run %s\n", client.Name, strings.Join(r.Command, " "))
		}
		fmt.Fprint(proc.Stdout, textdiff.Unified(r.Path, r.Before, r.After))
	default:
		fmt.Fprintf(proc.Stdout, "%s: installed in %s%s\n", client.Name, underHome(proc, r.Path), takenOver(q.Move))
		fmt.Fprintf(proc.Stdout, "  restart %s to use it; `luanette uninstall %s` puts the file back\n", client.Title, client.Name)
	}
	return r, nil
}

func takenOver(moved []clientfile.Server) string {
	if len(moved) == 0 {
		return ""
	}
	names := make([]string, len(moved))
	for i, s := range moved {
		names[i] = s.Key
	}
	return ", which no longer starts " + strings.Join(names, ", ")
}

// launch returns how the client starts or reaches Luanette.
func (c *installCommand) launch(client clientfile.Client) (clientfile.Launch, error) {
	menu := ""
	if c.Set != "" && client.Searches {
		menu = builtin.MenuDirect
	}
	if c.URL != "" {
		return clientfile.Launch{URL: setAddress(c.URL, c.Set, menu), Headers: c.Header}, nil
	}
	command, err := ownCommand(client)
	if err != nil {
		return clientfile.Launch{}, err
	}
	return clientfile.Launch{Command: command, Args: c.stdioArgs(menu)}, nil
}

// ownCommand is the command by which a client starts this program: its name where the client
// finds it by that, and its path otherwise.
func ownCommand(client clientfile.Client) (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fault.Wrap(fault.Internal, err, "find our own program")
	}
	if found, err := exec.LookPath("luanette"); err == nil && !client.Desktop && sameFile(found, own) {
		return "luanette", nil
	}
	return own, nil
}

// stdioArgs are the arguments with which a client starts Luanette; menu is empty for the usual one.
func (c *installCommand) stdioArgs(menu string) []string {
	args := []string{"stdio"}
	if c.Config != "" {
		args = append(args, "--config", c.Config)
	}
	if c.Data != nil {
		args = append(args, "--data", *c.Data)
	}
	if c.Set != "" {
		args = append(args, "--set", c.Set)
	}
	if menu != "" {
		args = append(args, "--menu", menu)
	}
	return args
}

// setAddress returns the address of a set of tools at a server, whose own is given.
func setAddress(server, set, menu string) string {
	if set == "" {
		return server
	}
	server = strings.TrimSuffix(server, "/") + "/sets/" + set
	if menu != "" {
		server += "?menu=" + menu
	}
	return server
}

func sameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// move imports the client's servers and returns those that can be removed from its
// file: all that are upstreams now.
func (c *installCommand) move(ctx context.Context, proc *process, i install.Installer, client clientfile.Client) ([]clientfile.Server, error) {
	file, err := client.Target(i.System, c.Project)
	if err != nil {
		return nil, err
	}
	found := slices.DeleteFunc(clientfile.Discover(i.System, []clientfile.Client{client}), func(f clientfile.Found) bool { return f.Path != file.Path })
	sources := config.Sources{File: c.Config, Env: proc.Env}
	loaded, err := config.LoadOrNew(sources)
	if err != nil {
		return nil, err
	}
	candidates, err := loaded.Candidates(found, proc.Env)
	if err != nil {
		return nil, err
	}
	importer := importCommand{settingFlags: c.settingFlags, Input: c.Input, DryRun: c.DryRun}
	var moved []clientfile.Server
	for _, candidate := range candidates {
		if candidate.Project != "" || candidate.Disabled {
			continue
		}
		path, err := importer.importOne(ctx, proc, sources, candidate)
		if err != nil {
			return nil, err
		}
		if candidate.State == config.ImportNew && !c.DryRun && !c.JSON {
			printImported(proc, proc.Stdout, candidate, path)
		}
		moved = append(moved, candidate.Server)
	}
	return moved, nil
}

// printChanges prints results as JSON, without the files' texts, which may contain
// secrets.
func printChanges(proc *process, results []install.Result) error {
	type change struct {
		Client  string   `json:"client"`
		File    string   `json:"file"`
		Command []string `json:"command,omitempty"`
		Changed bool     `json:"changed"`
	}
	changes := []change{}
	for _, r := range results {
		changes = append(changes, change{r.Client, r.Path, r.Command, r.Changed()})
	}
	return printValue(proc, map[string]any{"clients": changes})
}

// uninstallCommand is `luanette uninstall`.
type uninstallCommand struct {
	settingFlags
	Clients []string `arg:"" name:"client" help:"The clients, such as claude-code or cursor."`
	Project bool     `help:"In the file of the current project instead of the user's own."`
	DryRun  bool     `help:"Show what would change."`
	JSON    bool     `help:"Print JSON."`
}

// Help is shown by `luanette uninstall --help`.
func (uninstallCommand) Help() string {
	return `Puts the configuration of clients back as it was before luanette install, byte for
byte. If a client changed its file since, only our entry is removed, and servers that
were moved to Luanette are put back. They also stay in luanette.toml.`
}

// Run removes Luanette from clients.
func (c *uninstallCommand) Run(proc *process) error {
	i, _, err := c.installer(proc, true)
	if err != nil {
		return err
	}
	var all []install.Result
	for _, name := range c.Clients {
		client, failed := clientfile.ClientNamed(name)
		if failed != nil {
			return failed
		}
		r, failed := i.Uninstall(client, c.Project, c.DryRun)
		if failed != nil {
			printError(proc, failed)
			err = exitStatus(exitFailure)
			continue
		}
		all = append(all, r)
		if !c.JSON {
			c.print(proc, &r)
		}
	}
	if c.JSON {
		if printed := printChanges(proc, all); printed != nil {
			return printed
		}
	}
	return err
}

func (c *uninstallCommand) print(proc *process, r *install.Result) {
	path := underHome(proc, r.Path)
	switch {
	case c.DryRun:
		fmt.Fprint(proc.Stdout, textdiff.Unified(r.Path, r.Before, r.After))
	case !r.Changed():
		fmt.Fprintf(proc.Stdout, "%s: not installed in %s\n", r.Client, path)
	case r.After == nil:
		fmt.Fprintf(proc.Stdout, "%s: removed %s, which did not exist before\n", r.Client, path)
	case r.Cut:
		fmt.Fprintf(proc.Stdout, "%s: removed luanette from %s, which had changed since\n", r.Client, path)
	default:
		fmt.Fprintf(proc.Stdout, "%s: %s is as it was before\n", r.Client, path)
	}
}
