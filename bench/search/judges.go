package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
)

// functionEntry is a line of the function calling leaderboard: a question with its functions,
// or the answer to the question with the same ID.
type functionEntry struct {
	ID       string
	Question [][]struct{ Role, Content string }
	Function []struct {
		Name, Description string
		Parameters        json.RawMessage
	}
	GroundTruth []json.RawMessage `json:"ground_truth"`
}

// functionCalls reads questions of the Berkeley function calling leaderboard: BFCL_*.json,
// all of whose functions are tools, and for some of them possible_answer/BFCL_*.json. The
// questions are those that one call answers.
func functionCalls(files []string) (s set, err error) {
	for _, file := range files {
		entries, err := readLines[functionEntry](file)
		if err != nil {
			return set{}, err
		}
		right, err := singleAnswers(filepath.Join(filepath.Dir(file), "possible_answer", filepath.Base(file)))
		if err != nil {
			return set{}, err
		}
		for _, e := range entries {
			s.tools = append(s.tools, e.tools()...)
			if name := right[e.ID]; name != "" && len(e.Question) == 1 {
				s.asked = append(s.asked, question{texts: []string{e.asked()}, want: []string{"bfcl." + name}})
			}
		}
	}
	slices.SortStableFunc(s.tools, func(a, b tool.Info) int { return cmp.Compare(a.Name, b.Name) })
	s.tools = slices.CompactFunc(s.tools, func(a, b tool.Info) bool { return a.Name == b.Name }) // the first of a name stays
	return s, nil
}

// singleAnswers reads which function answers a question, by its ID, where one call does. The
// file may be missing.
func singleAnswers(file string) (map[string]string, error) {
	answers, err := readLines[functionEntry](file)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	right := map[string]string{}
	for _, a := range answers {
		var call map[string]json.RawMessage
		if len(a.GroundTruth) != 1 || json.Unmarshal(a.GroundTruth[0], &call) != nil {
			continue
		}
		for name := range call {
			right[a.ID] = name
		}
	}
	return right, nil
}

// tools are the functions of the question.
func (e *functionEntry) tools() []tool.Info {
	all := make([]tool.Info, len(e.Function))
	for i, f := range e.Function {
		all[i] = tool.Info{Ref: tool.Ref{Space: "bfcl", Name: f.Name}, Description: f.Description, Input: f.Parameters}
	}
	return all
}

// asked is what the user says in the first turn.
func (e *functionEntry) asked() string {
	text := ""
	for _, m := range e.Question[0] {
		if m.Role == "user" {
			text += m.Content + "\n"
		}
	}
	return text
}

// readLines reads a file with a JSON object on each line.
func readLines[T any](file string) (all []T, err error) {
	raw, err := os.ReadFile(file) //nolint:gosec // named on the command line
	if err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var one T
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		all = append(all, one)
	}
	return all, lines.Err()
}

// singleCalls reads questions of MCPToolBench++, each with the tools of its servers. Tools
// that it calls similar are right, too.
func singleCalls(files []string) (s set, err error) {
	seen := map[string]bool{}
	for _, file := range files {
		var entries []struct {
			Query string
			Tools []struct {
				Name, Description string
				Schema            json.RawMessage `json:"input_schema"`
			}
			Servers map[string][]string `json:"mcp_tools_dict"`
			Calls   []struct {
				Name, Server string
				Similar      []struct{ Name string } `json:"similar_tools"`
			} `json:"function_call_label"`
		}
		if err := readJSON(file, &entries); err != nil {
			return set{}, err
		}
		for _, e := range entries {
			server := map[string]string{}
			for name, tools := range e.Servers {
				for _, t := range tools {
					server[t] = name
				}
			}
			for _, t := range e.Tools {
				if !seen[t.Name] {
					seen[t.Name] = true
					s.tools = append(s.tools, tool.Info{Ref: tool.Ref{Space: server[t.Name], Name: t.Name}, Description: t.Description, Input: t.Schema})
				}
			}
			asked := question{texts: []string{e.Query}}
			for _, c := range e.Calls {
				asked.want = append(asked.want, c.Name)
				for _, other := range c.Similar {
					asked.want = append(asked.want, other.Name)
				}
			}
			s.asked = append(s.asked, asked)
		}
	}
	slices.SortStableFunc(s.tools, func(a, b tool.Info) int { return cmp.Compare(a.Ref.String(), b.Ref.String()) })
	return s, s.complete()
}

// complete turns answers that are names of tools only into those with their servers.
func (s *set) complete() error {
	full := map[string]string{}
	for _, t := range s.tools {
		full[t.Name] = strings.TrimPrefix(t.Ref.String(), ".")
	}
	for i := range s.asked {
		for j, name := range s.asked[i].want {
			if full[name] == "" {
				return fmt.Errorf("no tool %q", name)
			}
			s.asked[i].want[j] = full[name]
		}
	}
	return nil
}
