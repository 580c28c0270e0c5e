package clientfile

import (
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
	// Own says that our entry gets a file of its own among Folder's files.
	Own bool
	// Entry returns its entry for a server.
	Entry func(Launch) (any, error)
	// Command is its own way to add a server for the user, or nil.
	Command func(name string, launch Launch) []string
	// Shadow is the suffix of copies that it restores by itself.
	Shadow string
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
	{Name: "claude-code", Program: "claude", Title: "Claude Code", Keys: mcpServers, User: claudeCode, Project: []string{".mcp.json"},
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
	{Name: "codex", Program: "codex", Title: "Codex", Keys: []string{"mcp_servers"}, User: codex, Project: []string{".codex/config.toml"},
		Entry: codexEntry, Command: codexAdd},
	{Name: "gemini", Program: "gemini", Title: "Gemini CLI", Keys: mcpServers, Variables: Shell, User: home(".gemini/settings.json"), Project: []string{".gemini/settings.json"},
		Entry: entryOf(stdioPlain, "http", "url"), Command: geminiAdd},
	{Name: "qwen", Program: "qwen", Title: "Qwen Code", Keys: mcpServers, Variables: Shell, User: home(".qwen/settings.json"), Project: []string{".qwen/settings.json"}, Shadow: ".orig",
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
	{Name: "continue", Title: "Continue", Keys: mcpServers, Variables: Continue, User: home(".continue/config.yaml"), Desktop: true, Own: true,
		Entry: entryOf(stdioTyped, "streamable-http", "url")},
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
