package clientfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/suggest"
)

// Client is a program that keeps a list of MCP servers.
type Client struct {
	Name  string // for the command line
	Title string
	// Keys are where its files have the servers.
	Keys      []string
	Variables Variables
	// User and Project are its files, the one that is written first.
	User    func(System) []string
	Project []string // relative to a project's folder
	Program string   // its command, or ""
	// Desktop says that it is not started from a shell, so that it may not have our PATH.
	Desktop bool
	// Searches says that it searches the tools of its servers by itself, instead of showing all
	// of them to its model.
	Searches bool
	// Listed says that the servers are a list of objects with names, instead of a table.
	Listed bool
	// Empty is the text of a file that is created, before our entry is in it.
	Empty string
	// Entry returns its entry for a server.
	Entry func(Launch) (any, error)
	// Command is its own way to add a server for the user, or nil.
	Command func(name string, launch Launch) []string
}

// System is what the places of files depend on.
type System struct {
	OS     string // as runtime.GOOS
	Home   string
	Dir    string // the current folder
	Getenv func(string) string
}

// dotConfig is the folder of programs that follow XDG on every system.
func (s System) dotConfig() string {
	if dir := s.Getenv("XDG_CONFIG_HOME"); dir != "" && s.OS != "windows" {
		return dir
	}
	return filepath.Join(s.Home, ".config")
}

// appData is the folder of applications.
func (s System) appData() string {
	switch s.OS {
	case "darwin":
		return filepath.Join(s.Home, "Library", "Application Support")
	case "windows":
		if dir := s.Getenv("APPDATA"); dir != "" {
			return dir
		}
		return filepath.Join(s.Home, "AppData", "Roaming")
	default:
		return s.dotConfig()
	}
}

// home returns the files at paths below the home folder.
func home(paths ...string) func(System) []string {
	return func(s System) (files []string) {
		for _, path := range paths {
			files = append(files, filepath.Join(s.Home, filepath.FromSlash(path)))
		}
		return files
	}
}

// app returns the files at paths below the folder of applications.
func app(paths ...string) func(System) []string {
	return func(s System) (files []string) {
		for _, path := range paths {
			files = append(files, filepath.Join(s.appData(), filepath.FromSlash(path)))
		}
		return files
	}
}

var mcpServers = []string{"mcpServers"}

// Clients are all clients that are known, by how common they are.
var Clients = []Client{
	{Name: "claude-code", Program: "claude", Searches: true, Title: "Claude Code", Keys: mcpServers, User: claudeCode, Project: []string{".mcp.json"},
		Entry: entryOf(stdioTyped, "http", "url"), Command: claudeAdd},
	{Name: "claude-desktop", Title: "Claude Desktop", Keys: mcpServers, User: app("Claude/claude_desktop_config.json"), Desktop: true,
		Entry: onlyCommand},
	{Name: "cursor", Program: "cursor", Title: "Cursor", Keys: mcpServers, User: home(".cursor/mcp.json"), Project: []string{".cursor/mcp.json"}, Desktop: true,
		Entry: entryOf(stdioPlain, "", "url")},
	{Name: "vscode", Program: "code", Title: "VS Code", Keys: []string{"servers"}, User: app("Code/User/mcp.json"), Project: []string{".vscode/mcp.json"}, Desktop: true,
		Entry: entryOf(stdioTyped, "http", "url")},
	{Name: "vscode-insiders", Program: "code-insiders", Title: "VS Code Insiders", Keys: []string{"servers"}, User: app("Code - Insiders/User/mcp.json"), Desktop: true,
		Entry: entryOf(stdioTyped, "http", "url")},
	{Name: "windsurf", Program: "windsurf", Title: "Windsurf", Keys: mcpServers, User: home(".codeium/windsurf/mcp_config.json", ".codeium/mcp_config.json"), Desktop: true,
		Entry: entryOf(stdioPlain, "", "serverUrl")},
	{Name: "codex", Program: "codex", Searches: true, Title: "Codex", Keys: []string{"mcp_servers"}, User: codex, Project: []string{".codex/config.toml"},
		Entry: codexEntry, Command: codexAdd},
	{Name: "gemini", Program: "gemini", Title: "Gemini CLI", Keys: mcpServers, Variables: Shell, User: home(".gemini/settings.json"), Project: []string{".gemini/settings.json"},
		Entry: entryOf(stdioPlain, "http", "url"), Command: geminiAdd},
	{Name: "qwen", Program: "qwen", Title: "Qwen Code", Keys: mcpServers, Variables: Shell, User: home(".qwen/settings.json"), Project: []string{".qwen/settings.json"},
		Entry: entryOf(stdioPlain, "", "httpUrl")},
	{Name: "opencode", Program: "opencode", Title: "opencode", Keys: []string{"mcp"}, Variables: OpenCode, User: opencode, Project: []string{"opencode.json", "opencode.jsonc"},
		Entry: opencodeEntry},
	{Name: "cline", Program: "cline", Title: "Cline", Keys: mcpServers, Desktop: true,
		User:  both(home(".cline/data/settings/cline_mcp_settings.json"), app("Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json")),
		Entry: entryOf(stdioTyped, "streamableHttp", "url")},
	{Name: "roo", Title: "Roo Code", Keys: mcpServers, Desktop: true, Project: []string{".roo/mcp.json"},
		User:  app("Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json"),
		Entry: entryOf(stdioTyped, "streamable-http", "url")},
	{Name: "zed", Program: "zed", Title: "Zed", Keys: []string{"context_servers"}, User: zed, Project: []string{".zed/settings.json"}, Desktop: true,
		Entry: entryOf(stdioPlain, "", "url")},
	{Name: "goose", Program: "goose", Title: "Goose", Keys: []string{"extensions"}, User: goose, Desktop: true,
		Entry: gooseEntry},
	{Name: "continue", Program: "cn", Title: "Continue", Keys: mcpServers, Variables: Continue, User: home(".continue/config.yaml"), Desktop: true, Listed: true,
		Empty: "name: Local Config\nversion: 1.0.0\nschema: v1\n", Entry: continueEntry},
	{Name: "lmstudio", Title: "LM Studio", Keys: mcpServers, User: home(".lmstudio/mcp.json"), Desktop: true,
		Entry: entryOf(stdioPlain, "", "url")},
	{Name: "kiro", Program: "kiro", Title: "Kiro", Keys: mcpServers, User: home(".kiro/settings/mcp.json"), Project: []string{".kiro/settings/mcp.json"}, Desktop: true,
		Entry: entryOf(stdioPlain, "", "url")},
	{Name: "amazon-q", Program: "q", Title: "Amazon Q", Keys: mcpServers, User: home(".aws/amazonq/mcp.json"), Project: []string{".amazonq/mcp.json"},
		Entry: entryOf(stdioPlain, "http", "url")},
}

// ClientNamed finds a client.
func ClientNamed(name string) (Client, error) {
	names := make([]string, len(Clients))
	for i, c := range Clients {
		if names[i] = c.Name; strings.EqualFold(c.Name, name) || strings.EqualFold(c.Title, name) {
			return c, nil
		}
	}
	hint := "known are " + strings.Join(names, ", ") + "; in any other, add a server with the command `luanette stdio`"
	if near := suggest.Names(name, names, 1); len(near) > 0 {
		hint = "did you mean " + near[0] + "? " + hint
	}
	return Client{}, fault.New(fault.NotFound, "no client %q", name).WithHint("%s", hint)
}

func both(first, second func(System) []string) func(System) []string {
	return func(s System) []string { return slices.Concat(first(s), second(s)) }
}

func claudeCode(s System) []string {
	if dir := s.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return []string{filepath.Join(dir, ".claude.json")}
	}
	return home(".claude.json")(s)
}

func codex(s System) []string {
	if dir := s.Getenv("CODEX_HOME"); dir != "" {
		return []string{filepath.Join(dir, "config.toml")}
	}
	return home(".codex/config.toml")(s)
}

func opencode(s System) []string {
	folder := filepath.Join(s.dotConfig(), "opencode")
	return []string{filepath.Join(folder, "opencode.json"), filepath.Join(folder, "opencode.jsonc")}
}

func zed(s System) []string {
	if s.OS == "windows" {
		return app("Zed/settings.json")(s)
	}
	return []string{filepath.Join(s.dotConfig(), "zed", "settings.json")}
}

func goose(s System) []string {
	if s.OS == "windows" {
		return app("Block/goose/config/config.yaml")(s)
	}
	return []string{filepath.Join(s.dotConfig(), "goose", "config.yaml")}
}

// File is a file of a client. It need not exist.
type File struct {
	Client  Client
	Path    string
	Project string // the folder of the project it belongs to; "" means the user's own
}

// Source returns how to read it.
func (f File) Source(system System) Source {
	keys := f.Client.Keys
	if f.Client.Listed && f.owned() {
		keys = nil // a file of its own may be in any client's shape
	}
	return Source{Path: f.Path, Syntax: SyntaxOf(f.Path), Keys: keys, Variables: f.Client.Variables, Home: system.Home, Project: f.Project}
}

// owned reports whether the file is one of Continue's files with one list each.
func (f File) owned() bool { return filepath.Base(filepath.Dir(f.Path)) == "mcpServers" }

// Files returns the files of a client, the user's own first.
func (c Client) Files(system System) []File {
	var files []File
	add := func(project string, paths ...string) {
		for _, path := range paths {
			files = append(files, File{c, path, project})
		}
	}
	add("", c.User(system)...)
	if c.Keys[0] == "servers" { // VS Code has a file per profile, too
		more, _ := filepath.Glob(filepath.Join(filepath.Dir(c.User(system)[0]), "profiles", "*", "mcp.json"))
		add("", more...)
	}
	for _, path := range c.Project {
		add(system.Dir, filepath.Join(system.Dir, filepath.FromSlash(path)))
	}
	if c.Listed { // Continue also reads files with one list each
		for _, folder := range []string{system.Home, system.Dir} {
			own, _ := filepath.Glob(filepath.Join(folder, ".continue", "mcpServers", "*.*"))
			add("", own...)
		}
	}
	seen := map[string]bool{} // the current folder may be the home folder
	return slices.DeleteFunc(files, func(f File) bool {
		twice := seen[f.Path]
		seen[f.Path] = true
		return twice
	})
}

// Target returns the file that our entry is written to: the first that exists, or the
// first.
func (c Client) Target(system System, project bool) (File, error) {
	if project && len(c.Project) == 0 {
		return File{}, fault.New(fault.InvalidParams, "%s has no files of projects", c.Title).WithHint("omit --project")
	}
	files := slices.DeleteFunc(c.Files(system), func(f File) bool { return (f.Project != "") != project })
	for _, f := range files {
		if _, err := os.Stat(f.Path); err == nil {
			return f, nil
		}
	}
	return files[0], nil
}

// Found is a file with its servers, or the reason why they cannot be read.
type Found struct {
	File
	Servers []Server
	Err     error
}

// Discover reads all files of clients that exist.
func Discover(system System, clients []Client) []Found {
	var found []Found
	for _, c := range clients {
		for _, f := range c.Files(system) {
			servers, err := f.Read(system)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			found = append(found, Found{f, servers, err})
		}
	}
	return found
}

// Read reads the servers of a file.
func (f File) Read(system System) ([]Server, error) {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return nil, err
	}
	source := f.Source(system)
	if source.Keys == nil && len(text) == 0 {
		return nil, nil
	}
	return Parse(text, source)
}

// Key is the name of our entry in the files of clients.
const Key = "luanette"

// Ours reports whether a server is Luanette itself: its name is ours, or its command.
func (s Server) Ours() bool {
	program := filepath.Base(s.Spec.Command)
	return s.Key == Key || (program == "luanette" || program == "luanette.exe") && slices.Contains(s.Spec.Args, "stdio")
}
