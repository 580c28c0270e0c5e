package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

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
