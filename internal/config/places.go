package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/config/toml"
)

// UpstreamPlaces returns where each upstream is configured, as file:line, or as the file
// alone if the line is unknown.
func (l *Loaded) UpstreamPlaces() map[string]string {
	found := map[string]string{}
	for _, path := range l.MCP.Import {
		path = l.beside(path)
		text, _ := os.ReadFile(path) // the parser reports an unreadable file
		for name, line := range serverLines(string(text)) {
			if found[name] == "" {
				found[name] = fmt.Sprintf("%s:%d", path, line)
			}
		}
	}
	if l.File == "" {
		return found
	}
	text, _ := os.ReadFile(l.File)
	lines := toml.Lines(text, "upstreams")
	for name := range l.Upstreams {
		found[name] = l.File
		if line := lines[name]; line > 0 {
			found[name] = fmt.Sprintf("%s:%d", l.File, line)
		}
	}
	return found
}

var memberName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*\{`) })

// serverLines returns the line on which an mcpServers file first names each object. Its
// servers are objects.
func serverLines(text string) map[string]int {
	lines := map[string]int{}
	number := 0
	for line := range strings.Lines(text) {
		number++
		for _, m := range memberName().FindAllStringSubmatch(line, -1) {
			if lines[m[1]] == 0 {
				lines[m[1]] = number
			}
		}
	}
	return lines
}
