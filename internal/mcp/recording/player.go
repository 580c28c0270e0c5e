package recording

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/suggest"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Player answers requests from a recording, as a server of the sessions era. It is safe
// for concurrent use.
//
// The first exchange that matches a request answers it. If there are several with the
// same method, params and rules, they answer in their order, and the last one from then
// on.
type Player struct {
	name      string // of the file
	recording *Recording
	entries   []entry

	mu   sync.Mutex
	next map[string]int // by key: how many of its exchanges have been used
}

// entry is an exchange, prepared for comparing.
type entry struct {
	Exchange
	params any
	rules  patterns
	key    string // the same for exchanges with the same request
}

// NewPlayer loads a recording.
func NewPlayer(path string) (*Player, error) {
	recorded, err := Load(path)
	if err != nil {
		return nil, err
	}
	p := &Player{name: filepath.Base(path), recording: recorded, next: map[string]int{}}
	for _, e := range recorded.Exchanges {
		params := clean(e.Params)
		p.entries = append(p.entries, entry{
			Exchange: e, params: params, rules: compileAll(e.Match, recorded.Match),
			key: e.Method + string(encode(params)) + string(encode(e.Match)),
		})
	}
	return p, nil
}

// Answer answers a request.
func (p *Player) Answer(method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	switch method {
	case wire.MethodInitialize:
		return p.initialize(params), nil
	case wire.MethodPing, wire.MethodSetLevel, wire.MethodSubscribe, wire.MethodUnsubscribe:
		return json.RawMessage(`{}`), nil
	}
	asked, hidden := clean(params), mask(clean(params), func(text string) string { return text })
	for i := range p.entries {
		if e := &p.entries[i]; e.Method == method && (e.matches(asked) || e.matches(hidden)) {
			return p.inTurn(e.key).answer()
		}
	}
	if isList(method) {
		return emptyList(method), nil
	}
	return nil, p.unknown(method, asked)
}

// inTurn returns the exchange of a key whose turn it is.
func (p *Player) inTurn(key string) *entry {
	p.mu.Lock()
	defer p.mu.Unlock()
	skip := p.next[key]
	var last *entry
	for i := range p.entries {
		if p.entries[i].key != key {
			continue
		}
		if last = &p.entries[i]; skip == 0 {
			p.next[key]++
			break
		}
		skip--
	}
	return last
}

// matches reports whether the exchange answers a request with these params.
func (e *entry) matches(params any) bool { return len(differences(e.params, params, e.rules)) == 0 }

func (e *entry) answer() (json.RawMessage, *wire.Error) {
	if e.Error != nil {
		return nil, &wire.Error{Code: e.Error.Code, Message: e.Error.Message, Data: e.Error.Data}
	}
	return e.Result, nil
}

// initialize answers the handshake.
func (p *Player) initialize(params json.RawMessage) json.RawMessage {
	revision, _ := rawjson.GetText(params, "protocolVersion")
	info := p.recording.ServerInfo
	if info == nil {
		info = rawjson.SetText(rawjson.SetText(nil, "name", p.name), "version", "recorded")
	}
	result := rawjson.SetText(nil, "protocolVersion", wire.Negotiate(revision))
	result = rawjson.Set(result, "capabilities", p.capabilities())
	result = rawjson.Set(result, "serverInfo", info)
	if p.recording.Instructions != nil {
		result = rawjson.Set(result, "instructions", p.recording.Instructions)
	}
	return result
}

// capabilities are the recorded ones, or those that the exchanges need.
func (p *Player) capabilities() json.RawMessage {
	if p.recording.Capabilities != nil {
		return p.recording.Capabilities
	}
	capabilities := json.RawMessage(`{"tools":{}}`)
	for _, name := range []string{"prompts", "resources"} {
		if slices.ContainsFunc(p.entries, func(e entry) bool { return strings.HasPrefix(e.Method, name+"/") }) {
			capabilities = rawjson.Set(capabilities, name, json.RawMessage(`{}`))
		}
	}
	return capabilities
}

// emptyList is the answer to a list that was not recorded.
func emptyList(method string) json.RawMessage {
	switch method {
	case wire.MethodResourceTemplates:
		return json.RawMessage(`{"resourceTemplates":[]}`)
	case wire.MethodPromptsList:
		return json.RawMessage(`{"prompts":[]}`)
	case wire.MethodResourcesList:
		return json.RawMessage(`{"resources":[]}`)
	}
	return json.RawMessage(`{"tools":[]}`)
}

// maxDifferences is how many differences an error lists.
const maxDifferences = 4

// unknown is the error for a request that no exchange matches. It shows the nearest one.
func (p *Player) unknown(method string, asked any) *wire.Error {
	about := subject(asked)
	var nearest *entry
	var best []string
	var others []string
	for i := range p.entries {
		e := &p.entries[i]
		if e.Method != method {
			continue
		}
		if name := subject(e.params); name != about {
			others = append(others, name)
			continue
		}
		if found := differences(e.params, asked, e.rules); nearest == nil || len(found) < len(best) {
			nearest, best = e, found
		}
	}
	text := fmt.Sprintf("%s has no answer to %s", p.name, title(method, asked))
	switch {
	case nearest != nil:
		text += fmt.Sprintf(" with %s; the nearest recorded one has %s: %s", show(arguments(asked)), show(arguments(nearest.params)), list(best))
	case len(others) > 0:
		text += "; recorded: " + list(closest(about, others))
	default:
		text += "; no " + method + " is recorded"
	}
	return wire.Errorf(wire.CodeInvalidParams, "%s", text)
}

// closest returns the names that are similar to about, or else all, each once.
func closest(about string, names []string) []string {
	slices.Sort(names)
	names = slices.Compact(names)
	if near := suggest.Names(about, names, maxDifferences); len(near) > 0 {
		return near
	}
	return names
}

// list joins the first few items.
func list(items []string) string {
	if more := len(items) - maxDifferences; more > 0 {
		return strings.Join(items[:maxDifferences], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(items, "; ")
}

// title names a request for people.
func title(method string, params any) string {
	if about := subject(params); about != "" {
		return method + " " + about
	}
	return method
}

// subject is the tool, prompt or resource that params are about.
func subject(params any) string {
	object, _ := params.(map[string]any)
	for _, key := range []string{"name", "uri"} {
		if text, ok := object[key].(string); ok {
			return text
		}
	}
	return ""
}

// arguments are what params say besides their subject.
func arguments(params any) any {
	object, _ := params.(map[string]any)
	if given, ok := object["arguments"]; ok {
		return given
	}
	if subject(params) != "" {
		return map[string]any{}
	}
	return params
}
