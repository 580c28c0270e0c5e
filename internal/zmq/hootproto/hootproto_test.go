package hootproto_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/zmq/hootproto"
)

// unhex is a frame of testdata/vectors.json.
type unhex []byte

func (u *unhex) UnmarshalText(text []byte) (err error) {
	*u, err = hex.DecodeString(string(text))
	return err
}

func plain(frames []unhex) [][]byte {
	out := make([][]byte, len(frames))
	for i, f := range frames {
		out[i] = f
	}
	return out
}

type vectors struct {
	Messages []struct {
		Name        string
		Frames      []unhex
		Identity    []unhex
		Protocol    string
		Command     hootproto.Command
		ContentType hootproto.ContentType `json:"content_type"`
		RequestID   string                `json:"request_id"`
		Service     string
		Traceparent string
		Body        json.RawMessage
		BodyHex     unhex `json:"body_hex"`
	}
	Invalid []struct {
		Name   string
		Frames []unhex
	}
	Broadcasts []struct {
		Name        string
		Frame       unhex
		ContentType hootproto.ContentType `json:"content_type"`
		Body        json.RawMessage
	}
}

func load(t testing.TB) (v vectors) {
	t.Helper()
	raw, err := os.ReadFile("testdata/vectors.json")
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil || len(v.Messages) == 0 || len(v.Invalid) == 0 || len(v.Broadcasts) == 0 {
		t.Fatalf("vectors.json: %v", err)
	}
	return v
}

var whole = regexp.MustCompile(`(\d)\.0\b`)

// same compares JSON values; numbers are equal by value: 1.0 is 1.
func same(t *testing.T, got, want []byte) {
	t.Helper()
	values := [2]any{}
	for i, raw := range [][]byte{got, want} {
		dec := json.NewDecoder(bytes.NewReader(whole.ReplaceAll(raw, []byte("$1"))))
		dec.UseNumber()
		if err := dec.Decode(&values[i]); err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
	}
	if !reflect.DeepEqual(values[0], values[1]) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestMessages(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Messages {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			f, err := hootproto.Parse(plain(v.Frames))
			if err != nil {
				t.Fatal(err)
			}
			if f.Protocol != v.Protocol || f.Command != v.Command || f.Content != v.ContentType || f.ID.String() != v.RequestID ||
				f.Service != v.Service || f.Traceparent != v.Traceparent || !slices.EqualFunc(f.Identity, plain(v.Identity), bytes.Equal) {
				t.Errorf("read %+v", f)
			}
			if !slices.EqualFunc(f.Frames(), plain(v.Frames), bytes.Equal) {
				t.Errorf("written again as %q", f.Frames())
			}
			switch v.ContentType {
			case hootproto.Empty:
				if len(f.Body) > 0 {
					t.Errorf("body %q", f.Body)
				}
			case hootproto.Binary:
				if !bytes.Equal(f.Body, v.BodyHex) {
					t.Errorf("body %q", f.Body)
				}
			default:
				raw, err := f.JSON()
				if err != nil {
					t.Fatal(err)
				}
				same(t, raw, v.Body)
			}
		})
	}
}

// TestBodies checks that encoding the vectors with our types gives the same bodies, in
// either encoding.
func TestBodies(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Messages {
		var body any
		switch v.Command {
		case hootproto.Ready:
			body = &hootproto.Catalog{}
		case hootproto.Request:
			body = &hootproto.Call{}
		case hootproto.Reply:
			body = &hootproto.Outcome{}
		}
		rewritten := v.Name == "ready-names" || v.Name == "request-flat" // we write the newer form
		if v.Body == nil || rewritten {
			continue
		}
		for _, content := range []hootproto.ContentType{hootproto.JSON, hootproto.MsgPack} {
			t.Run(v.Name+" as "+content.String(), func(t *testing.T) {
				f, err := hootproto.Parse(plain(v.Frames))
				if err != nil {
					t.Fatal(err)
				}
				if err := f.Decode(body); err != nil {
					t.Fatal(err)
				}
				again, err := f.With(content, body)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := again.JSON()
				if err != nil {
					t.Fatal(err)
				}
				same(t, raw, v.Body)
			})
		}
	}
}

func TestInvalid(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Invalid {
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			if f, err := hootproto.Parse(plain(v.Frames)); fault.CodeOf(err) != fault.Upstream || fault.HintOf(err) == "" {
				t.Errorf("read as %+v, %v", f, err)
			}
		})
	}
}

func decodeBroadcast(frame []byte) (hootproto.Broadcast, error) {
	raw, err := hootproto.ParseBroadcast(frame)
	if err != nil {
		return nil, err
	}
	return raw.Decode()
}

func TestBroadcasts(t *testing.T) {
	t.Parallel()
	for _, v := range load(t).Broadcasts {
		for _, content := range []hootproto.ContentType{hootproto.JSON, hootproto.MsgPack} {
			t.Run(v.Name+" as "+content.String(), func(t *testing.T) {
				t.Parallel()
				b, err := decodeBroadcast(v.Frame)
				if err != nil {
					t.Fatal(err)
				}
				frame, err := hootproto.EncodeBroadcast(content, b)
				if err != nil {
					t.Fatal(err)
				}
				raw, err := hootproto.ToJSON(content, frame)
				if err != nil {
					t.Fatal(err)
				}
				same(t, raw, v.Body)
			})
		}
	}
	for _, odd := range []string{"", "{", "[]", `{"no":"type"}`, `{"type":"progress","percent":"x"}`, "\x81\xa1a\x01"} {
		if b, err := decodeBroadcast([]byte(odd)); fault.CodeOf(err) != fault.Upstream {
			t.Errorf("decode(%q) = %v, %v", odd, b, err)
		}
	}
}

// TestVectorsAreGenerated checks that the vectors are the output of the Python program
// in the same folder.
func TestVectorsAreGenerated(t *testing.T) {
	t.Parallel()
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import msgpack").Run(); err != nil {
		t.Skipf("no python3-msgpack (apt-get install python3-msgpack): %v", err)
	}
	printed, err := exec.Command(python, "testdata/vectors.py").Output()
	if err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	same(t, stored, printed)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	ask := hootproto.New(hootproto.Request, "svc")
	ask.Identity, ask.Traceparent = [][]byte{[]byte("me")}, "00-x"
	ask, err := ask.With(hootproto.JSON, hootproto.Call{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	answer := ask.Answer(hootproto.Reply)
	if answer.ID != ask.ID || answer.Command != hootproto.Reply || answer.Content != hootproto.Empty || answer.Body != nil ||
		answer.Service != "svc" || answer.Traceparent != "00-x" || string(answer.Identity[0]) != "me" {
		t.Errorf("answer %+v", answer)
	}
	if ask.Command != hootproto.Request || ask.Body == nil {
		t.Error("answering changed the message")
	}
	if other := hootproto.New(hootproto.Request, "svc"); other.ID == ask.ID {
		t.Error("two requests with one id")
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	id := hootproto.NewID()
	for _, text := range []string{id.String(), strings.ReplaceAll(id.String(), "-", "")} {
		if again, err := hootproto.ParseID(text); err != nil || again != id {
			t.Errorf("ParseID(%q) = %v, %v", text, again, err)
		}
	}
	for _, text := range []string{"", "x", id.String() + "0", id.String()[1:]} {
		if _, err := hootproto.ParseID(text); fault.CodeOf(err) != fault.InvalidParams {
			t.Errorf("ParseID(%q): %v", text, err)
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		raw, name, arguments string // no name: an error
	}{
		"full":           {`{"type":"tool_call","name":"a","arguments":{"type":"b"}}`, "a", `{"type":"b"}`},
		"no arguments":   {`{"type":"tool_call","name":"a"}`, "a", `{}`},
		"null":           {`{"type":"tool_call","name":"a","arguments":null}`, "a", `{}`},
		"older form":     {`{"type":"a","x":1}`, "a", `{"x":1}`},
		"older, none":    {`{"type":"a"}`, "a", `{}`},
		"no tool":        {`{"type":"tool_call"}`, "", ``},
		"array":          {`{"type":"tool_call","name":"a","arguments":[]}`, "", ``},
		"name not text":  {`{"type":"tool_call","name":1}`, "", ``},
		"no type":        {`{"name":"a"}`, "", ``},
		"type not text":  {`{"type":1}`, "", ``},
		"not an object":  {`[]`, "", ``},
		"nothing at all": {`null`, "", ``},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c hootproto.Call
			err := c.UnmarshalJSON([]byte(tt.raw))
			if err != nil && strings.Contains(err.Error(), "Go struct") {
				t.Errorf("the error names a type of ours: %v", err)
			}
			if (err != nil) != (tt.name == "") || c.Name != tt.name || string(c.Arguments) != tt.arguments {
				t.Errorf("%s with %s, %v", c.Name, c.Arguments, err)
			}
		})
	}
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ raw, text, data, code string }{
		"text and data":  {`{"type":"success","result":{"text":"a","data":[1]}}`, "a", `[1]`, ""},
		"text":           {`{"type":"success","result":{"text":"a"}}`, "a", ``, ""},
		"null data":      {`{"type":"success","result":{"text":"a","data":null}}`, "a", ``, ""},
		"a string":       {`{"type":"success","result":"hello"}`, "hello", ``, ""},
		"another object": {`{"type":"success","result":{"n": 1}}`, `{"n":1}`, `{"n": 1}`, ""},
		"a number":       {`{"type":"success","result":7}`, "7", `7`, ""},
		"nothing":        {`{"type":"success"}`, "", ``, ""},
		"an error":       {`{"type":"error","code":"busy","message":"later","details":{"in":5}}`, "", ``, "busy"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var o hootproto.Outcome
			if err := json.Unmarshal([]byte(tt.raw), &o); err != nil {
				t.Fatal(err)
			}
			if o.Output.Text != tt.text || string(o.Output.Data) != tt.data {
				t.Errorf("text %q, data %s", o.Output.Text, o.Output.Data)
			}
			if (o.Err != nil) != (tt.code != "") || o.Err != nil && (o.Err.Code != tt.code || string(o.Err.Details) != `{"in":5}` || o.Err.Error() != "later") {
				t.Errorf("error %+v", o.Err)
			}
		})
	}
	var o hootproto.Outcome
	if err := o.UnmarshalJSON([]byte(`{"type":"maybe"}`)); fault.CodeOf(err) != fault.Upstream {
		t.Errorf("another type: %v", err)
	}
}

func TestToolsMayBeNames(t *testing.T) {
	t.Parallel()
	var c hootproto.Catalog
	if err := json.Unmarshal([]byte(`{"tools":["a",{"name":"b","read_only":true}]}`), &c); err != nil {
		t.Fatal(err)
	}
	if want := []hootproto.Tool{{Name: "a"}, {Name: "b", ReadOnly: true}}; !reflect.DeepEqual(c.Tools, want) {
		t.Errorf("tools %+v", c.Tools)
	}
}

func TestHostileMsgPack(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"nothing":          "",
		"string of 4 GB":   "\xdb\xff\xff\xff\xff",
		"binary of 4 GB":   "\xc6\xff\xff\xff\xff",
		"array of 4 G":     "\xdd\xff\xff\xff\xff",
		"map of 4 G":       "\xdf\xff\xff\xff\xff",
		"extension":        "\xd4\x01\x00",
		"giant timestamp":  "\xc9\xff\xff\xff\xff\xff",
		"deep":             strings.Repeat("\x91", 1<<20),
		"deep map":         strings.Repeat("\x81\xa1a", 1<<20),
		"fraction for key": "\x81\xca\x00\x00\x00\x00\xc0",
		"array for key":    "\x81\x90\xc0",
		"never used":       "\xc1",
		"two values":       "\xc0\xc0",
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if raw, err := hootproto.ToJSON(hootproto.MsgPack, []byte(body)); fault.CodeOf(err) != fault.Upstream {
				t.Errorf("read as %.40q, %v", raw, err)
			}
		})
	}
}

func TestEncodeRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		content hootproto.ContentType
		value   any
	}{
		{hootproto.Binary, "text"},
		{hootproto.Empty, 1},
		{hootproto.JSON, make(chan int)},
		{hootproto.MsgPack, json.RawMessage("1e999")},
	} {
		if body, err := hootproto.Encode(tt.content, tt.value); err == nil {
			t.Errorf("Encode(%v, %v) = %q", tt.content, tt.value, body)
		}
	}
	if _, err := (hootproto.Message{Content: hootproto.Binary, Body: []byte("{}")}).JSON(); err == nil {
		t.Error("binary read as JSON")
	}
	var target *hootproto.ToolError
	if err := error(&hootproto.ToolError{Code: hootproto.CodeInternal}); !errors.As(err, &target) {
		t.Error("a ToolError is not an error")
	}
}

func FuzzParse(f *testing.F) {
	for _, v := range load(f).Messages {
		f.Add(bytes.Join(plain(v.Frames), []byte{0xfe}))
	}
	f.Fuzz(func(t *testing.T, joined []byte) {
		frames := bytes.Split(joined, []byte{0xfe})
		frame, err := hootproto.Parse(frames)
		if err != nil {
			return
		}
		if !slices.EqualFunc(frame.Frames(), frames, bytes.Equal) {
			t.Fatalf("written again as %q", frame.Frames())
		}
		var call hootproto.Call
		var outcome hootproto.Outcome
		var catalog hootproto.Catalog
		for _, body := range []any{&call, &outcome, &catalog} {
			_ = frame.Decode(body)
		}
	})
}

func FuzzMsgPack(f *testing.F) {
	for _, v := range load(f).Messages {
		f.Add([]byte(v.Frames[len(v.Frames)-1]))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _ = decodeBroadcast(body)
		raw, err := hootproto.ToJSON(hootproto.MsgPack, body)
		if err != nil {
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q became %q", body, raw)
		}
		packed, err := hootproto.FromJSON(hootproto.MsgPack, raw)
		if err != nil {
			t.Fatalf("%q: %v", raw, err)
		}
		again, err := hootproto.ToJSON(hootproto.MsgPack, packed)
		if err != nil {
			t.Fatalf("%q: %v", packed, err)
		}
		if third, err := hootproto.FromJSON(hootproto.MsgPack, again); err != nil || !bytes.Equal(third, packed) {
			t.Fatalf("%q, then %q, %v", packed, third, err)
		}
	})
}
