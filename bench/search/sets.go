package main

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// publicSets reads the sets in the folders of a directory. A folder holds either
//
//   - corpus*.json ({"tools": [{server, tool, description, input_schema}]}) and *golden*.json
//     ({"queries": [{query, labels: [{tool_id: "server:tool", relevance}]}]}): golden
//     questions, as mcpproxy-go has them in specs/065-evaluation-foundation/datasets; or
//   - tools.json (servers with their tools/list) and all_annotations.json (tasks with the
//     names of the tools that solve them): agent tasks, as LiveMCPBench has them in
//     tools/LiveMCPTool and annotated_data; or
//   - BFCL_*.json with possible_answer/BFCL_*.json: questions that one function answers, as
//     the Berkeley function calling leaderboard has them in bfcl_eval/data; or
//   - *_single*.json: questions that one tool answers, as MCPToolBench++ has them in data; or
//   - tools.json and questions.txt ("question | wording | wording => server.tool"), in
//     the form of our own sets.
func publicSets(dir string) ([]set, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var sets []set
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		s, err := publicSet(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name(), err)
		}
		s.name = e.Name()
		sets = append(sets, s)
	}
	return sets, nil
}

func publicSet(dir string) (set, error) {
	if golden, _ := filepath.Glob(filepath.Join(dir, "*golden*.json")); len(golden) == 1 {
		return goldenSet(dir, golden[0])
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "BFCL_*.json")); len(files) > 0 {
		return functionCalls(files)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*_single*.json")); len(files) > 0 {
		return singleCalls(files)
	}
	tools, err := listedTools(filepath.Join(dir, "tools.json"))
	if err != nil {
		return set{}, err
	}
	if text, err := os.ReadFile(filepath.Join(dir, "questions.txt")); err == nil {
		asked, err := readQuestions(string(text))
		return set{tools: tools, asked: asked}, err
	}
	asked, err := annotatedTasks(filepath.Join(dir, "all_annotations.json"), tools)
	return set{tools: tools, asked: asked}, err
}

// goldenSet reads golden questions. Labels of relevance 0 are wrong answers.
func goldenSet(dir, golden string) (set, error) {
	corpora, _ := filepath.Glob(filepath.Join(dir, "corpus*.json"))
	if len(corpora) != 1 {
		return set{}, fmt.Errorf("want one corpus*.json, found %d", len(corpora))
	}
	var c struct {
		Tools []struct {
			Server, Tool, Description string
			InputSchema               json.RawMessage `json:"input_schema"`
		}
	}
	var g struct {
		Queries []struct {
			Query  string
			Labels []struct {
				ID        string `json:"tool_id"`
				Relevance int
			}
		}
	}
	if err := cmp.Or(readJSON(corpora[0], &c), readJSON(golden, &g)); err != nil {
		return set{}, err
	}
	var s set
	for _, t := range c.Tools {
		s.tools = append(s.tools, tool.Info{Ref: tool.Ref{Space: t.Server, Name: t.Tool}, Description: t.Description, Input: t.InputSchema})
	}
	for _, q := range g.Queries {
		asked := question{texts: []string{q.Query}}
		for _, l := range q.Labels {
			if l.Relevance > 0 {
				asked.want = append(asked.want, strings.Replace(l.ID, ":", ".", 1))
			}
		}
		s.asked = append(s.asked, asked)
	}
	return s, nil
}

// listedTools reads servers with their tools/list.
func listedTools(file string) ([]tool.Info, error) {
	var servers []struct {
		Tools map[string]struct {
			Tools []struct {
				Name, Description string
				InputSchema       json.RawMessage `json:"inputSchema"`
			}
		}
	}
	if err := readJSON(file, &servers); err != nil {
		return nil, err
	}
	var tools []tool.Info
	for _, s := range servers {
		for name, listed := range s.Tools {
			for _, t := range listed.Tools {
				tools = append(tools, tool.Info{Ref: tool.Ref{Space: name, Name: t.Name}, Description: t.Description, Input: t.InputSchema})
			}
		}
	}
	slices.SortStableFunc(tools, func(a, b tool.Info) int { return cmp.Compare(a.Ref.String(), b.Ref.String()) })
	return tools, nil
}

var numbered = regexp.MustCompile(`^\s*\d+[.)]\s*`)

// annotatedTasks reads tasks. An answer is given by a tool's name only, so tools of that
// name of all servers are right; tasks without a tool that is listed are left out.
func annotatedTasks(file string, tools []tool.Info) ([]question, error) {
	var tasks []struct {
		Question string
		Metadata struct{ Tools string } `json:"Annotator Metadata"`
	}
	if err := readJSON(file, &tasks); err != nil {
		return nil, err
	}
	var asked []question
	for _, t := range tasks {
		q := question{texts: []string{t.Question}}
		for line := range strings.Lines(t.Metadata.Tools) {
			name := strings.TrimSpace(numbered.ReplaceAllString(line, ""))
			for _, info := range tools {
				if info.Name == name && !slices.Contains(q.want, info.Ref.String()) {
					q.want = append(q.want, info.Ref.String())
				}
			}
		}
		if len(q.want) > 0 {
			asked = append(asked, q)
		}
	}
	return asked, nil
}

func readJSON(file string, into any) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}

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
