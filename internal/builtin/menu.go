package builtin

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/core/tool"
)

// How tools are shown to clients.
const (
	ModeAuto   = "auto"   // directly while they are few, else as code
	ModeDirect = "direct" // every exposed tool is listed
	ModeCode   = "code"   // three tools find, describe and call all others
)

// Modes are all of them.
var Modes = []string{ModeAuto, ModeDirect, ModeCode}

// DefaultThreshold is how many tools of others are listed directly in ModeAuto.
const DefaultThreshold = 60

//go:embed instructions_code.md
var codeInstructions string

// codeMenu are the tools that show in ModeCode.
var codeMenu = []string{"search_tools", "get_tool_definitions", "execute_code"}

// MenuSource is what there is to be shown.
type MenuSource interface {
	tool.Source
	// Pinned tells whether a tool is shown whatever the mode.
	Pinned(name string) bool
	// InputSchema is the schema of a tool's arguments.
	InputSchema(name string) (json.RawMessage, bool)
}

// MenuOptions say how much is shown.
type MenuOptions struct {
	Mode      string
	Threshold int
	Own       func(name string) bool // whether a name is one of our own tools'
}

// Menu is what a client is shown of the tools there are. What is not shown can be
// called all the same.
type Menu struct {
	source  MenuSource
	options MenuOptions

	mu    sync.Mutex
	from  []tool.Info // the list the rest was made of
	shown []tool.Info
	code  bool
}

// NewMenu makes the menu of a source.
func NewMenu(source MenuSource, o MenuOptions) *Menu { return &Menu{source: source, options: o} }

// Set changes how much is shown.
func (m *Menu) Set(mode string, threshold int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Mode, m.options.Threshold = mode, threshold
	m.shown = nil // to be made anew
}

// InputSchema is the schema of a tool's arguments, whether or not the tool is shown.
func (m *Menu) InputSchema(name string) (json.RawMessage, bool) { return m.source.InputSchema(name) }

// Tools lists what is shown. The list is the same one until the source's changes.
func (m *Menu) Tools(ctx context.Context) ([]tool.Info, error) {
	all, err := m.source.Tools(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shown == nil || len(all) != len(m.from) || len(all) > 0 && &all[0] != &m.from[0] {
		m.from, m.code = all, m.isCode(all)
		m.shown = all
		if m.code {
			m.shown = m.short(all)
		}
	}
	return m.shown, nil
}

// isCode tells whether the tools are shown as code.
func (m *Menu) isCode(all []tool.Info) bool {
	if m.options.Mode != ModeAuto {
		return m.options.Mode == ModeCode
	}
	others := 0
	for i := range all {
		if !m.options.Own(all[i].Name) {
			others++
		}
	}
	return others > m.options.Threshold
}

// short is the menu of ModeCode.
func (m *Menu) short(all []tool.Info) []tool.Info {
	shown := []tool.Info{}
	for i := range all {
		switch {
		case slices.Contains(codeMenu, all[i].Name):
			shown = append(shown, terse(all[i]))
		case m.source.Pinned(all[i].Name):
			shown = append(shown, all[i])
		}
	}
	return shown
}

// terse leaves out of a definition what costs tokens and tells a model little: the
// title, and the schema of the result, which is there to be seen.
func terse(info tool.Info) tool.Info {
	info.Title, info.Output = "", nil
	for _, key := range []string{"title", "outputSchema", "annotations"} {
		info.Raw = rawjson.Delete(info.Raw, key)
	}
	return info
}

// Call runs a tool.
func (m *Menu) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	return m.source.Call(ctx, call)
}

// Instructions teach a model the tools it is shown.
func (m *Menu) Instructions(ctx context.Context) string {
	if _, err := m.Tools(ctx); err != nil {
		return instructions
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.code {
		return codeInstructions
	}
	return instructions
}

var _ tool.Source = (*Menu)(nil)
