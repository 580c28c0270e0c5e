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
	ModeAuto   = "auto"   // direct while there are few, otherwise code
	ModeDirect = "direct" // every exposed tool is listed
	ModeCode   = "code"   // three tools find, describe and call all others
)

// Modes lists all modes.
var Modes = []string{ModeAuto, ModeDirect, ModeCode}

// DefaultThreshold is the number of upstream tools up to which ModeAuto is direct.
const DefaultThreshold = 60

//go:embed instructions_code.md
var codeInstructions string

// codeMenu are the tools that are listed in ModeCode.
var codeMenu = []string{"search_tools", "get_tool_definitions", "execute_code"}

// MenuSource is the source of the tools to list.
type MenuSource interface {
	tool.Source
	// Pinned reports whether a tool is listed in every mode.
	Pinned(name string) bool
	// InputSchema returns the schema of a tool's arguments.
	InputSchema(name string) (json.RawMessage, bool)
}

// MenuOptions decide which tools are listed.
type MenuOptions struct {
	Mode      string
	Threshold int
	Own       func(name string) bool // reports whether a name belongs to a built-in tool
}

// Menu is the list of tools that a client sees. Tools that are not listed can still be
// called.
type Menu struct {
	source  MenuSource
	options MenuOptions

	mu    sync.Mutex
	from  []tool.Info // the source's list that shown was made from
	shown []tool.Info
	code  bool
}

// NewMenu makes the menu of a source.
func NewMenu(source MenuSource, o MenuOptions) *Menu { return &Menu{source: source, options: o} }

// Set changes which tools are listed.
func (m *Menu) Set(mode string, threshold int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options.Mode, m.options.Threshold = mode, threshold
	m.shown = nil // made again on the next use
}

// InputSchema returns the schema of a tool's arguments, whether or not the tool is shown.
func (m *Menu) InputSchema(name string) (json.RawMessage, bool) { return m.source.InputSchema(name) }

// Tools returns the list. It is the same slice until the source's list changes.
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

// isCode reports whether the menu is that of ModeCode.
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

// short returns the menu of ModeCode.
func (m *Menu) short(all []tool.Info) []tool.Info {
	shown := []tool.Info{}
	for i := range all {
		switch {
		case slices.Contains(codeMenu, all[i].Name):
			shown = append(shown, withoutExtras(all[i]))
		case m.source.Pinned(all[i].Name):
			shown = append(shown, all[i])
		}
	}
	return shown
}

// withoutExtras removes what costs tokens and helps a model little from a definition: the
// title and the output schema.
func withoutExtras(info tool.Info) tool.Info {
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

// Instructions returns the instructions for the listed tools.
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
