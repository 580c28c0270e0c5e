package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
)

// complete returns the completions of a word: tools, globals of the session and
// their fields. It returns none after an error.
func (r *repl) complete(ctx context.Context, word string) []string {
	if strings.HasPrefix(word, "mcp.") {
		paths, err := r.toolPaths(ctx)
		if err != nil {
			return nil
		}
		return pathsWithPrefix(paths, word)
	}
	at := strings.LastIndexAny(word, ".:") + 1
	question := namesBeginning
	if r.language == script.JavaScript {
		question = propertiesBeginning
	}
	view, err := r.eval(ctx, fmt.Sprintf(question, word[:at], word[at:]), &tool.Caller{ID: "cli"})
	if err != nil || view.IsError {
		return nil
	}
	var answer struct{ Result []string }
	if json.Unmarshal(view.Structured, &answer) != nil {
		return nil
	}
	for i, name := range answer.Result {
		answer.Result[i] = word[:at] + name
	}
	return answer.Result
}

// namesBeginning lists the fields of a table, given by its path, that begin with a
// prefix. It uses rawget, so that no metatable of the session is called.
const namesBeginning = `
local path, start = %q, %q
local t = _G
for part in path:gmatch("[^.:]+") do t = type(t) == "table" and rawget(t, part) or nil end
local names = json.array{}
if type(t) == "table" then
  for name in next, t do
    if type(name) == "string" and name:sub(1, #start) == start and name:match("^[%%a_][%%w_]*$") then names[#names + 1] = name end
  end
end
table.sort(names)
return names`

// propertiesBeginning is namesBeginning in JavaScript. Getters are not called.
const propertiesBeginning = `((path, start) => {
  let t = globalThis;
  for (const part of path.split(/[.:]/)) {
    if (part !== '') t = t === undefined || t === null ? undefined : Object.getOwnPropertyDescriptor(t, part)?.value;
  }
  if (t === undefined || t === null) return [];
  return Object.getOwnPropertyNames(t).filter((name) => name.startsWith(start) && /^[A-Za-z_$][\w$]*$/.test(name)).sort();
})(%q, %q)`

// pathsWithPrefix returns the paths that begin with word, each up to its next dot, so
// that a namespace is offered before its tools.
func pathsWithPrefix(paths []string, word string) []string {
	var found []string
	for _, path := range paths {
		if !strings.HasPrefix(path, word) {
			continue
		}
		if i := strings.IndexAny(path[len(word):], ".["); i > 0 {
			path = path[:len(word)+i]
		}
		if len(found) == 0 || found[len(found)-1] != path {
			found = append(found, path)
		}
	}
	return found
}

// toolPaths returns the names by which scripts call tools.
func (r *repl) toolPaths(ctx context.Context) ([]string, error) {
	if r.tools != nil {
		return r.tools, nil
	}
	text, err := r.api.Read(ctx, "lua://tools")
	if err != nil {
		return nil, err
	}
	var listed struct {
		Tools []struct {
			Path string `json:"lua_path"`
		}
	}
	if err := json.Unmarshal([]byte(text), &listed); err != nil {
		return nil, fault.Wrap(fault.Upstream, err, "read list of tools")
	}
	for _, t := range listed.Tools {
		r.tools = append(r.tools, t.Path)
	}
	return r.tools, nil
}
