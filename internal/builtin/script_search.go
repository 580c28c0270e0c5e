package builtin

import (
	"context"
	"fmt"
	"strings"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/artifact"
	"github.com/luanette/luanette/internal/store/cas"
)

type scriptSearchIn struct {
	Tag     string `json:"tag,omitempty" jsonschema:"only scripts with this tag"`
	Creator string `json:"creator,omitempty" jsonschema:"only scripts of this creator"`
	Parent  string `json:"parent,omitempty" jsonschema:"only scripts derived from the one with this hash"`
	Vibe    string `json:"vibe,omitempty" jsonschema:"free text, searched in names, descriptions, tags and annotations" max:"1000"`
	Limit   int    `json:"limit,omitempty" jsonschema:"maximum number (default 20)" min:"1" max:"200"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"next_cursor of the previous page"`
}

// FoundScripts is the result of script_search.
type FoundScripts struct {
	Scripts    []ScriptView `json:"scripts" jsonschema:"best match first with a vibe, otherwise newest first"`
	Total      int          `json:"total" jsonschema:"number of matches, counted up to 1000"`
	NextCursor string       `json:"next_cursor,omitempty" jsonschema:"for the next page"`
}

// Text lists them in one or two lines each.
func (f FoundScripts) Text() string {
	if len(f.Scripts) == 0 {
		return "No script matches."
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Found %s (showing %d):", count(f.Total, "script"), len(f.Scripts))
	for _, s := range f.Scripts {
		name := s.Name
		if name == "" {
			name = "(no name)"
		}
		fmt.Fprintf(&out, "\n%s %s [%s]", s.Hash[:cas.MinPrefix], name, strings.Join(s.Tags, ", "))
		if s.Description != "" {
			fmt.Fprintf(&out, "\n  %s", brief(s.Description))
		}
	}
	if f.NextCursor != "" {
		fmt.Fprintf(&out, "\nNext page: cursor = %s", f.NextCursor)
	}
	return out.String()
}

func (t scriptTools) search(ctx context.Context, _ tool.Call, in scriptSearchIn) (FoundScripts, error) {
	q := artifact.Query{Tags: []string{scriptTag}, Creator: in.Creator, Vibe: in.Vibe, Limit: in.Limit, Cursor: in.Cursor}
	switch {
	case strings.HasPrefix(in.Tag, "type:"):
		q.Tags = []string{in.Tag}
	case in.Tag != "":
		q.Tags = append(q.Tags, in.Tag)
	}
	if in.Parent != "" {
		parent, err := t.scripts.Resolve(ctx, in.Parent)
		if err != nil {
			return FoundScripts{}, err
		}
		q.Parent = parent
	}
	page, err := t.scripts.Search(ctx, q)
	if err != nil {
		return FoundScripts{}, err
	}
	f := FoundScripts{Scripts: make([]ScriptView, len(page.Artifacts)), Total: page.Total, NextCursor: page.Next}
	for i := range page.Artifacts {
		f.Scripts[i] = scriptView(&page.Artifacts[i])
	}
	return f, nil
}

// GotScript is the result of script_get.
type GotScript struct {
	ScriptView
	Content   string   `json:"content"`
	Ancestors []string `json:"ancestors" jsonschema:"hashes of the scripts it was derived from, nearest first"`
	Children  []string `json:"children" jsonschema:"hashes of the scripts derived from it, newest first"`
}

// Text returns the source.
func (g GotScript) Text() string { return g.Content }

func (t scriptTools) get(ctx context.Context, _ tool.Call, in hashIn) (GotScript, error) {
	const family = 20
	ref, source, err := t.load(ctx, in.ScriptHash)
	if err != nil {
		return GotScript{}, err
	}
	a, err := t.scripts.Get(ctx, ref)
	if err != nil {
		return GotScript{}, err
	}
	ancestors, err := t.scripts.Ancestors(ctx, ref, family)
	if err != nil {
		return GotScript{}, err
	}
	children, err := t.scripts.Children(ctx, ref, family)
	if err != nil {
		return GotScript{}, err
	}
	return GotScript{scriptView(&a), source, hashes(ancestors), hashes(children)}, nil
}

func hashes(artifacts []artifact.Artifact) []string {
	all := make([]string, len(artifacts))
	for i := range artifacts {
		all[i] = artifacts[i].Hash.String()
	}
	return all
}

// recentScripts returns the newest stored scripts.
func recentScripts(ctx context.Context, s ScriptStore, limit int) []artifact.Artifact {
	page, err := s.Search(ctx, artifact.Query{Tags: []string{scriptTag}, Limit: limit})
	if err != nil {
		return nil // no suggestions
	}
	return page.Artifacts
}

// readScript returns a stored script's source.
func readScript(ctx context.Context, s ScriptStore, hash string) (string, error) {
	ref, err := s.Resolve(ctx, strings.TrimSpace(hash))
	if err != nil {
		return "", err
	}
	source, err := s.Read(ctx, ref, script.MaxSource)
	return string(source), err
}
