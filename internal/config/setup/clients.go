package setup

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/config"
	"github.com/luanette/luanette/internal/config/clientfile"
)

// Shown is what the page needs to know first.
type Shown struct {
	Programs bool     `json:"programs"` // whether the page may add programs
	File     string   `json:"file"`     // the configuration file, which may not exist yet
	Clients  []Client `json:"clients"`
}

// Client is how one client connects to this server.
type Client struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Install string `json:"install"`           // our command that connects it
	Command string `json:"command,omitempty"` // its own command that adds a server
	File    string `json:"file,omitempty"`    // its file
	Snippet string `json:"snippet,omitempty"` // what belongs into the file
}

func (s *Service) show(r *http.Request) (any, error) {
	file, err := config.EditedFile(s.Sources)
	if err != nil {
		return nil, err
	}
	shown := Shown{Programs: s.offersPrograms(r), File: s.underHome(file)}
	for _, c := range clientfile.Clients {
		shown.Clients = append(shown.Clients, s.client(c))
	}
	return shown, nil
}

func (s *Service) client(c clientfile.Client) Client {
	launch := clientfile.Launch{URL: strings.TrimRight(s.Address(), "/") + "/mcp"}
	view := Client{Name: c.Name, Title: c.Title, Install: "luanette install " + c.Name}
	if c.Command != nil {
		view.Command = strings.Join(c.Command(clientfile.Key, launch), " ")
	}
	entry, err := c.Entry(launch)
	if err != nil { // it starts programs only
		launch = clientfile.Launch{Command: "luanette", Args: []string{"stdio"}}
		entry, err = c.Entry(launch)
	}
	if target, failed := c.Target(s.System, false); failed == nil && err == nil {
		view.File, view.Snippet = s.underHome(target.Path), snippet(target.Path, c, entry)
	}
	return view
}

// underHome writes the home folder as ~.
func (s *Service) underHome(path string) string {
	if rest, below := strings.CutPrefix(path, s.System.Home+string(filepath.Separator)); below && s.System.Home != "" {
		return filepath.Join("~", rest)
	}
	return path
}

// snippet is what belongs into a client's file.
func snippet(path string, c clientfile.Client, entry any) string {
	raw, err := json.Marshal(entry)
	if err != nil {
		return ""
	}
	syntax, empty := clientfile.SyntaxOf(path), ""
	if syntax == clientfile.JSON {
		empty = "{}"
	}
	text, err := syntax.Put([]byte(empty), append(slices.Clone(c.Keys), clientfile.Key), raw, c.Listed)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
