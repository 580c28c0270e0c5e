package overlay

import (
	"context"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// Transform sees the tools of a namespace after its rule was applied, and returns those
// to list, with any name, title, description and priority. It identifies them by
// Original, which is never empty here. After an error the tools stay as they are; the
// transform logs it.
type Transform func(ctx context.Context, namespace string, tools []tool.Info) ([]tool.Info, error)

// applyTransform takes from a transform its choice of tools, and their names, texts and
// priorities. All else in a definition stays the upstream's.
func (one *namespace) applyTransform(tools, seen []tool.Info) []tool.Info {
	known := map[string]*tool.Info{}
	for i := range tools {
		known[originalOf(&tools[i])] = &tools[i]
	}
	owners := map[string]bool{}
	for i := range one.from {
		owners[one.from[i].Name] = true
	}
	var shown []tool.Info
	used := map[string]bool{}
	for _, want := range seen {
		was := known[want.Original]
		if was == nil {
			one.addProblem("on_mcp_tools: it has no tool %q", want.Original)
			continue
		}
		delete(known, want.Original)
		info := *was
		if want.Name != info.Name {
			if one.mayRename(info, want.Name, owners[want.Name] || used[want.Name]) {
				rename(&info, want.Name)
			}
		}
		if used[info.Name] {
			one.addProblem("on_mcp_tools: two tools would be called %q; %q is left out", info.Name, want.Original)
			continue
		}
		used[info.Name] = true
		reword(&info, want)
		shown = append(shown, info)
	}
	return shown
}

// mayRename tells whether a transform may give a tool that name.
func (one *namespace) mayRename(info tool.Info, name string, taken bool) bool {
	switch {
	case !validName().MatchString(name):
		one.addProblem("on_mcp_tools: %q is not a valid name for %q", name, originalOf(&info))
	case taken && name != originalOf(&info):
		one.addProblem("on_mcp_tools: %q is refused for %q, because another tool has that name", name, originalOf(&info))
	default:
		return true
	}
	return false
}

// reword sets title, description and priority, also in the raw definition.
func reword(info *tool.Info, want tool.Info) {
	info.Priority = want.Priority
	if want.Title != info.Title {
		info.Title = want.Title
		info.Raw = edited(info.Raw, "title", want.Title)
	}
	if want.Description != info.Description {
		info.Description = want.Description
		info.Raw = edited(info.Raw, "description", want.Description)
	}
}

func edited(raw []byte, key, text string) []byte {
	if raw == nil {
		return nil
	}
	return rawjson.SetText(raw, key, text)
}
