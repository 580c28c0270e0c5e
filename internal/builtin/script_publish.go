package builtin

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luanette/luanette/internal/core/principal"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/script"
	"github.com/luanette/luanette/internal/store/cas"
)

type publishIn struct {
	ScriptHash string `json:"script_hash" jsonschema:"hash of a stored script, or at least its first 12 digits" min:"12" max:"70"`
	Name       string `json:"name,omitempty" jsonschema:"name of the tool; default: the name from describe()" max:"48"`
}

// PublishedTool is a version of a published script.
type PublishedTool struct {
	Name        string    `json:"name" jsonschema:"name of the tool"`
	Hash        string    `json:"hash"`
	Version     int       `json:"version" jsonschema:"counts the scripts published under the name"`
	Publisher   string    `json:"publisher,omitempty"`
	PublishedAt time.Time `json:"published_at"`
	Current     bool      `json:"current" jsonschema:"current version"`
}

func publishedTool(ctx context.Context, v script.Version) PublishedTool {
	return PublishedTool{principal.Of(ctx).NameOf(v.Name), v.Hash.String(), v.Version, v.Publisher, v.PublishedAt.UTC(), v.Current}
}

// Text returns one line.
func (p PublishedTool) Text() string {
	return fmt.Sprintf("%s is now a tool: version %d, script %s.", p.Name, p.Version, p.Hash[:cas.MinPrefix])
}

func (t scriptTools) publish(ctx context.Context, _ tool.Call, in publishIn) (PublishedTool, error) {
	ref, err := t.scripts.Resolve(ctx, strings.TrimSpace(in.ScriptHash))
	if err != nil {
		return PublishedTool{}, err
	}
	v, err := t.publisher.Publish(ctx, script.PublishRequest{Hash: ref, Name: in.Name, Publisher: principal.Of(ctx).ID})
	if err != nil {
		return PublishedTool{}, err
	}
	return publishedTool(ctx, v), nil
}

type toolNameIn struct {
	Name string `json:"name" jsonschema:"name of a published script" min:"1"`
}

// Unpublished is the result of script_unpublish.
type Unpublished struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed" jsonschema:"false if there was no such tool"`
}

// Text returns one line.
func (u Unpublished) Text() string {
	if !u.Removed {
		return fmt.Sprintf("There is no published script %s.", u.Name)
	}
	return fmt.Sprintf("%s is no longer a tool. Its history stays stored.", u.Name)
}

func (t scriptTools) unpublish(ctx context.Context, _ tool.Call, in toolNameIn) (Unpublished, error) {
	removed, err := t.publisher.Unpublish(ctx, in.Name)
	return Unpublished{in.Name, removed}, err
}

// PublishedHistory is the result of script_history.
type PublishedHistory struct {
	Name     string          `json:"name"`
	Versions []PublishedTool `json:"versions" jsonschema:"newest first"`
}

// Text lists the versions.
func (h PublishedHistory) Text() string {
	lines := make([]string, len(h.Versions))
	for i, v := range h.Versions {
		lines[i] = fmt.Sprintf("%s version %d: %s, %s", h.Name, v.Version, v.Hash[:cas.MinPrefix], v.PublishedAt.Format(time.RFC3339))
		if v.Current {
			lines[i] += " (current)"
		}
	}
	return strings.Join(lines, "\n")
}

func (t scriptTools) history(ctx context.Context, _ tool.Call, in toolNameIn) (PublishedHistory, error) {
	versions, err := t.publisher.History(ctx, in.Name)
	if err != nil {
		return PublishedHistory{}, err
	}
	h := PublishedHistory{Name: in.Name, Versions: make([]PublishedTool, len(versions))}
	for i, v := range versions {
		h.Versions[i] = publishedTool(ctx, v)
	}
	return h, nil
}
