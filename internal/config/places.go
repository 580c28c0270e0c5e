package config

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
)

// UpstreamPlaces tells where the configuration has its upstreams, as file:line, or only the
// file where the line cannot be told.
func (l *Loaded) UpstreamPlaces() map[string]string {
	found := map[string]string{}
	for _, path := range l.MCP.Import {
		path = l.beside(path)
		text, _ := os.ReadFile(path) // who reads what is in it says what is wrong with it
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
	lines := upstreamLines(string(text))
	for name := range l.Upstreams {
		found[name] = l.File
		if line := lines[name]; line > 0 {
			found[name] = fmt.Sprintf("%s:%d", l.File, line)
		}
	}
	return found
}

// upstreamLines are the lines on which a luanette.toml begins to speak of each
// upstream.
func upstreamLines(text string) map[string]int {
	lines := map[string]int{}
	table, number := "", 0
	for line := range strings.Lines(text) {
		number++
		key := ""
		if m := tableHeader().FindStringSubmatch(strings.TrimRight(line, "\r\n")); m != nil {
			table = plainKey(m[1])
			key = table
		} else if name, _, assigns := strings.Cut(line, "="); assigns {
			key = strings.TrimPrefix(table+"."+plainKey(name), ".")
		}
		rest, ok := strings.CutPrefix(key, "upstreams.")
		if name, _, _ := strings.Cut(rest, "."); ok && lines[name] == 0 {
			lines[name] = number
		}
	}
	return lines
}

// plainKey is a dotted key without quotes and spaces; names of upstreams need none.
func plainKey(key string) string {
	return strings.NewReplacer(`"`, "", "'", "", " ", "", "\t", "").Replace(key)
}

var memberName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`"([A-Za-z][A-Za-z0-9_-]*)"\s*:\s*\{`) })

// serverLines are the lines on which an mcpServers file first names an object, which
// its servers are.
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
