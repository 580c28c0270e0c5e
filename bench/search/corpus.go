package main

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

//go:embed testdata/*.txt
var testdata embed.FS

// corpus reads the tools: "# server", then "@parameter what it is" for all tools
// of the server, then "name(parameter, optional?) description" for each.
func corpus() ([]tool.Info, error) {
	text, err := testdata.ReadFile("testdata/tools.txt")
	if err != nil {
		return nil, err
	}
	var tools []tool.Info
	space := ""
	meanings := map[string]string{}
	for n, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "":
		case strings.HasPrefix(line, "# "):
			space, meanings = line[2:], map[string]string{}
		case strings.HasPrefix(line, "@"):
			name, meaning, _ := strings.Cut(line[1:], " ")
			meanings[name] = meaning
		default:
			info, err := readTool(space, line, meanings)
			if err != nil {
				return nil, fmt.Errorf("tools.txt:%d: %w", n+1, err)
			}
			tools = append(tools, info)
		}
	}
	return tools, nil
}

var toolLine = regexp.MustCompile(`^([\w-]+)\(([^)]*)\) (.+)$`)

func readTool(space, line string, meanings map[string]string) (tool.Info, error) {
	m := toolLine.FindStringSubmatch(line)
	if m == nil {
		return tool.Info{}, fmt.Errorf("%q is not a tool", line)
	}
	properties, required := json.RawMessage("{}"), []string{}
	for _, name := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
		bare, optional := strings.CutSuffix(name, "?")
		if !optional {
			required = append(required, bare)
		}
		schema := json.RawMessage(`{"type":"string"}`)
		if meaning := meanings[bare]; meaning != "" {
			schema = rawjson.SetText(schema, "description", meaning)
		}
		properties = rawjson.Set(properties, bare, schema)
	}
	input, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "required": required})
	if err != nil {
		return tool.Info{}, err
	}
	return tool.Info{Ref: tool.Ref{Space: space, Name: m[1]}, Description: m[3], Input: input}, nil
}

// ownSets are the questions about the corpus.
func ownSets(tools []tool.Info) ([]set, error) {
	files, err := fs.Glob(testdata, "testdata/*.txt")
	if err != nil {
		return nil, err
	}
	var sets []set
	for _, file := range files {
		name := strings.TrimSuffix(path.Base(file), ".txt")
		if name == "tools" {
			continue
		}
		asked, err := questions(name)
		if err != nil {
			return nil, err
		}
		sets = append(sets, set{name, tools, asked})
	}
	return sets, nil
}

func questions(name string) ([]question, error) {
	text, err := testdata.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		return nil, err
	}
	asked, err := readQuestions(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s.txt: %w", name, err)
	}
	return asked, nil
}

// readQuestions reads lines "query | other wording => server.tool server.tool".
func readQuestions(text string) ([]question, error) {
	var all []question
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "# ") {
			continue
		}
		query, want, ok := strings.Cut(strings.TrimSpace(line), " => ")
		if !ok {
			return nil, fmt.Errorf("%q has no answer", line)
		}
		all = append(all, question{strings.Split(query, " | "), strings.Fields(want)})
	}
	return all, nil
}
