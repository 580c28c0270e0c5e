// Package recording stores what an MCP server answered in a file that people can read
// and edit, and answers the same requests again from such a file.
package recording

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/mcp/wire"
)

// Version is the version of the format.
const Version = 1

// Recording is the content of a file.
type Recording struct {
	Version      int             `json:"luanette_recording"`
	ServerInfo   json.RawMessage `json:"serverInfo,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Instructions json.RawMessage `json:"instructions,omitempty"`
	// Match has rules for the params of all exchanges.
	Match     Rules      `json:"match,omitempty"`
	Exchanges []Exchange `json:"exchanges"`
}

// Exchange is a request and its answer: either Result or Error is set.
type Exchange struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"` // without _meta
	Match  Rules           `json:"match,omitempty"`  // besides those of the recording
	Result json.RawMessage `json:"result,omitempty"`
	Error  *Failure        `json:"error,omitempty"`
}

// Failure is the error that a server answered.
type Failure struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Load reads a recording and checks it.
func Load(path string) (*Recording, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		hint := "check the path: it is relative to the configuration file"
		if errors.Is(err, fs.ErrNotExist) {
			hint = "`luanette record NAME` makes it; its path is relative to the configuration file"
		}
		return nil, fault.Wrap(fault.Config, err, "read recording").WithHint("%s", hint)
	}
	return parse(path, text)
}

func parse(path string, text []byte) (*Recording, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields() // a mistyped rule would match nothing
	r := &Recording{}
	err := decoder.Decode(r)
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return nil, fault.Wrap(fault.Config, err, "recording %s%s", path, lineOf(text, err)).
			WithHint("docs/testing.md describes the format; `luanette record` writes it")
	}
	return r, nil
}

// lineOf is the line that an error of the decoder is about, as :LINE.
func lineOf(text []byte, err error) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(-1)
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	}
	if offset < 0 || offset > int64(len(text)) {
		return ""
	}
	return fmt.Sprintf(":%d", 1+bytes.Count(text[:offset], []byte("\n")))
}

// check reports the first thing that is wrong with the recording.
func (r *Recording) check() error {
	if r.Version != Version {
		return fmt.Errorf("luanette_recording is %d, not %d", r.Version, Version)
	}
	if err := r.Match.check(); err != nil {
		return err
	}
	for i, e := range r.Exchanges {
		if err := e.check(); err != nil {
			return fmt.Errorf("exchange %d (%s): %w", i+1, e.title(), err)
		}
	}
	return nil
}

func (e Exchange) check() error {
	switch {
	case e.Method == "":
		return errors.New("it has no method")
	case (e.Result == nil) == (e.Error == nil):
		return errors.New("it needs either result or error")
	}
	return e.Match.check()
}

// title names the request for people: its method and what it is about.
func (e Exchange) title() string { return title(e.Method, decode(e.Params)) }

// save writes the recording to a new file, which then replaces the old one.
func (r *Recording) save(path string) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	_, err = file.Write(out.Bytes())
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // err is the one to report
		return fmt.Errorf("write recording: %w", err)
	}
	return nil
}

// isList reports whether a method lists what a server offers. Its newest answer counts.
func isList(method string) bool {
	switch method {
	case wire.MethodToolsList, wire.MethodPromptsList, wire.MethodResourcesList, wire.MethodResourceTemplates:
		return true
	}
	return false
}
