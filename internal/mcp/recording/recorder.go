package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/base/lazyregexp"
	"github.com/luanette/luanette/internal/base/rawjson"
	"github.com/luanette/luanette/internal/base/redact"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// MaxSize is how many bytes of answers a recording keeps. The file is written after each
// new answer, and is to be read by people.
const MaxSize = 32 << 20

// Recorder adds exchanges to a file. It is safe for concurrent use.
type Recorder struct {
	path string

	mu        sync.Mutex
	recording *Recording
	keys      []string // of the exchanges
	size      int
}

// Open returns a recorder that adds to the file, which need not exist.
func Open(path string) (*Recorder, error) {
	r := &Recorder{path: path, recording: &Recording{Version: Version, Exchanges: []Exchange{}}}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, r.recording.save(path) // now, so that a path that cannot be written is reported at once
	case err != nil:
		return nil, fault.Wrap(fault.Config, err, "open recording")
	}
	if r.recording, err = parse(path, text); err != nil {
		return nil, err
	}
	for _, e := range r.recording.Exchanges {
		r.keys = append(r.keys, e.Method+string(encode(clean(e.Params))))
		r.size += len(e.Result)
	}
	return r, nil
}

// Count returns the number of exchanges.
func (r *Recorder) Count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.recording.Exchanges)
}

// Add adds a request and its answer, without secrets. hide masks known secrets in a text.
// It adds nothing if the request was answered the same way the last time. The handshake
// describes the server.
func (r *Recorder) Add(method string, params json.RawMessage, answer wire.Message, hide func(string) string) error {
	switch method {
	case wire.MethodInitialize, wire.MethodDiscover:
		return r.describe(answer.Result, hide)
	case wire.MethodPing, wire.MethodSetLevel, wire.MethodSubscribe, wire.MethodUnsubscribe, wire.MethodListen:
		return nil
	}
	if kind, _ := rawjson.GetText(answer.Result, "resultType"); kind == wire.ResultInputRequired || kind == wire.ResultTask {
		return nil // the request is not answered yet
	}
	e := Exchange{Method: method, Params: encode(mask(clean(params), hide))}
	if answer.Error != nil {
		e.Error = &Failure{Code: answer.Error.Code, Message: hideText(answer.Error.Message, hide), Data: masked(answer.Error.Data, hide)}
	} else {
		e.Result = masked(wire.ToLegacy(answer.Result), hide)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(e)
}

// add stores an exchange; r.mu is held.
func (r *Recorder) add(e Exchange) error {
	key := e.Method + string(e.Params)
	last := -1
	for i, known := range r.keys {
		if known == key {
			last = i
		}
	}
	all := &r.recording.Exchanges
	switch {
	case last >= 0 && sameAnswer((*all)[last], e):
		return nil
	case r.size+len(e.Result) > MaxSize:
		return fault.New(fault.Limit, "recording %s has reached %d MiB: further answers are not kept", r.path, MaxSize>>20).
			WithHint("record less, or into another file")
	case last >= 0 && isList(e.Method):
		e.Match = (*all)[last].Match
		(*all)[last] = e
	default:
		*all = append(*all, e)
		r.keys = append(r.keys, key)
	}
	r.size += len(e.Result)
	return r.recording.save(r.path)
}

func sameAnswer(a, b Exchange) bool {
	switch {
	case a.Error != nil && b.Error != nil:
		return bytes.Equal(encode(a.Error), encode(b.Error))
	case a.Error != nil || b.Error != nil:
		return false
	}
	return bytes.Equal(encode(decode(a.Result)), encode(decode(b.Result)))
}

// describe stores what the server says about itself.
func (r *Recorder) describe(result json.RawMessage, hide func(string) string) error {
	if result == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	info, _ := rawjson.Get(result, "serverInfo")
	if info == nil {
		info, _ = rawjson.Get(wire.Meta(result), wire.MetaServerInfo)
	}
	capabilities, _ := rawjson.Get(result, "capabilities")
	instructions, _ := rawjson.Get(result, "instructions")
	described := []json.RawMessage{masked(info, hide), slices.Clone(capabilities), masked(instructions, hide)}
	to := r.recording
	if sameJSON(described, []json.RawMessage{to.ServerInfo, to.Capabilities, to.Instructions}) {
		return nil
	}
	to.ServerInfo, to.Capabilities, to.Instructions = described[0], described[1], described[2]
	return to.save(r.path)
}

func sameJSON(a, b []json.RawMessage) bool {
	return slices.EqualFunc(a, b, func(x, y json.RawMessage) bool { return bytes.Equal(encode(decode(x)), encode(decode(y))) })
}

// clean returns params without what belongs to one connection or to the questions of the
// server: the protocol's metadata and the answers to those questions.
func clean(params json.RawMessage) any {
	value := decode(params)
	if object, ok := value.(map[string]any); ok {
		for _, key := range []string{"_meta", "inputResponses", "requestState", "task"} {
			delete(object, key)
		}
		if given, ok := object["arguments"].(map[string]any); ok && len(given) == 0 {
			delete(object, "arguments") // as a client that sends none
		}
	}
	return value
}

// Set has one recorder per file, which all connections of a process share.
type Set struct {
	mu    sync.Mutex
	files map[string]*Recorder
}

// Open returns the recorder of a file.
func (s *Set) Open(path string) (*Recorder, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.files[path]; r != nil {
		return r, nil
	}
	r, err := Open(path)
	if err != nil {
		return nil, err
	}
	if s.files == nil {
		s.files = map[string]*Recorder{}
	}
	s.files[path] = r
	return r, nil
}

// masked returns JSON without secrets; nil stays nil.
func masked(raw json.RawMessage, hide func(string) string) json.RawMessage {
	if raw == nil {
		return nil
	}
	return encode(mask(decode(raw), hide))
}

// mask returns a decoded value without secrets: texts under keys with secret names, what
// looks like a key in other texts, and what hide knows. A masked text matches every
// value, so that a recording answers requests with the real one.
func mask(value any, hide func(string) string) any {
	switch v := value.(type) {
	case map[string]any:
		_, isContent := v["mimeType"]
		for key, inner := range v {
			if text, ok := inner.(string); ok {
				v[key] = maskMember(key, text, isContent, hide)
			} else {
				v[key] = mask(inner, hide)
			}
		}
	case []any:
		for i := range v {
			v[i] = mask(v[i], hide)
		}
	case string:
		return hideText(v, hide)
	}
	return value
}

// maskMember returns the text of a member without secrets. isContent says that it belongs
// to a content of a result.
func maskMember(key, text string, isContent bool, hide func(string) string) string {
	switch key {
	case "data", "blob": // Base64 of an image or a file
		if isContent {
			return text
		}
	case "cursor", "nextCursor": // the pages of a list are told apart by it
		return text
	}
	if text != "" && redact.Secret(key) {
		return redact.Hidden
	}
	return hideText(text, hide)
}

// digest matches SHA-1 and SHA-256 in hexadecimal, such as the names of commits. They look
// like keys, but are what many requests differ in.
var digest = lazyregexp.New(`\b([0-9a-f]{40}|[0-9a-f]{64})\b`)

// placeholder stands for a digest while the rest of a text is masked.
var placeholder = lazyregexp.New("\x00[0-9]+\x00")

// hideText masks a text, except for digests that are not the value of a secret setting.
func hideText(text string, hide func(string) string) string {
	text = hide(text)
	found := digest().FindAllString(text, -1)
	if len(found) == 0 {
		return redact.Text(text)
	}
	n := -1
	text = redact.Text(digest().ReplaceAllStringFunc(text, func(string) string {
		n++
		return "\x00" + strconv.Itoa(n) + "\x00"
	}))
	return placeholder().ReplaceAllStringFunc(text, func(mark string) string {
		if i, err := strconv.Atoi(mark[1 : len(mark)-1]); err == nil && i < len(found) {
			return found[i]
		}
		return mark
	})
}
