package lua

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFromJSONToJSON(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ in, want string }{
		{`null`, `null`}, {`true`, `true`}, {` false `, `false`}, {`0`, `0`}, {`-0`, `0`}, {`12345678901234567`, `12345678901234567`},
		{`9223372036854775807`, `9223372036854775807`}, {`9223372036854775808`, `9.223372036854776e+18`}, {`1.0`, `1.0`}, {`-1.5e3`, `-1500.0`}, {`1e2`, `100.0`},
		{`""`, `""`}, {`"a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"`, `"a\"\\/\u0008\u000c\n\r\té😀"`}, {`"\ud800x"`, `"�x"`}, {"\"a\xffb\"", `"a�b"`},
		{`[]`, `[]`}, {`{}`, `{}`}, {`[1,[],{},[[]]]`, `[1,[],{},[[]]]`}, {`{"z":1,"a":2,"m":null}`, `{"z":1,"a":2,"m":null}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":3,"b":2}`}, {"\t[ 1 , 2 ]\r\n", `[1,2]`}, {`[null]`, `[null]`}, {`{"1":true}`, `{"1":true}`}, {`{"":0}`, `{"":0}`},
	} {
		v, err := FromJSON(New(Options{}), []byte(test.in))
		if err != nil {
			t.Errorf("FromJSON(%s): %v", test.in, err)
			continue
		}
		got, err := ToJSON(v)
		if err != nil || string(got) != test.want {
			t.Errorf("%s becomes %s, %v; want %s", test.in, got, err, test.want)
		}
	}
}

func TestFromJSONRefusesWhatIsNotJSON(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		``, ` `, `nul`, `tru`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `"`, `"\x"`, `"\u12"`, "\"\n\"", `[`, `[1`, `[1,`, `[1,]`, `[,]`, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,}`,
		`{a:1}`, `{1:1}`, `1 2`, `[1]]`, `nan`, `Infinity`, `1e999`, `'a'`, `"\`, `"\ud800\`, strings.Repeat("[", 1000),
	} {
		if v, err := FromJSON(New(Options{}), []byte(in)); err == nil {
			t.Errorf("FromJSON(%q) = %v", in, v)
		} else if json.Valid([]byte(in)) && !strings.Contains(in, "e999") {
			t.Errorf("%q is valid JSON", in)
		}
	}
}

func TestArraysKeepTheirKind(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	v, err := FromJSON(s, []byte(`{"list":[1],"map":{"k":1}}`))
	if err != nil {
		t.Fatal(err)
	}
	table, _ := v.AsTable()
	list, _ := table.GetString("list").AsTable()
	object, _ := table.GetString("map").AsTable()
	if !list.IsArray() || object.IsArray() || table.IsArray() {
		t.Fatalf("IsArray: list %v, map %v, table %v", list.IsArray(), object.IsArray(), table.IsArray())
	}
	list.SetInt(1, Nil)
	object.SetString("k", Nil)
	if got, err := ToJSON(v); err != nil || string(got) != `{"list":[],"map":{}}` {
		t.Errorf("emptied: %s, %v", got, err)
	}
	list.MarkArray(false)
	object.MarkArray(true)
	if got, err := ToJSON(v); err != nil || string(got) != `{"list":{},"map":[]}` {
		t.Errorf("marked anew: %s, %v", got, err)
	}
	if got, err := ToJSON(NewArray(4).Value()); err != nil || string(got) != `[]` {
		t.Errorf("NewArray: %s, %v", got, err)
	}
}

// nest puts a value at tracks[2].name.
func nest(v Value) Value {
	track := NewTable(0, 1)
	track.SetString("name", v)
	tracks := NewTable(0, 0)
	tracks.Append(Bool(true))
	tracks.Append(track.Value())
	params := NewTable(0, 1)
	params.SetString("tracks", tracks.Value())
	return params.Value()
}

func TestToJSONNamesWhatCannotBeConverted(t *testing.T) {
	t.Parallel()
	mixed := NewTable(0, 0)
	mixed.Append(Int(1))
	mixed.SetString("x", Int(2))
	holes := NewTable(0, 0)
	holes.SetInt(1, Int(1))
	holes.SetInt(3, Int(1))
	sparse := NewTable(0, 0)
	sparse.SetInt(10, Int(1))
	named := NewArray(0)
	named.SetString("x", Int(1))
	oddKey := NewTable(0, 0)
	if err := oddKey.Set(Bool(true), Int(1)); err != nil {
		t.Fatal(err)
	}
	cycle := NewTable(0, 1)
	cycle.SetString("self", cycle.Value())
	deep := NewTable(0, 0).Value()
	for range 300 {
		outer := NewTable(0, 0)
		outer.Append(deep)
		deep = outer.Value()
	}
	for _, test := range []struct {
		value         Value
		path, problem string
	}{
		{Float(math.NaN()), "tracks[2].name", "nan"},
		{Float(math.Inf(-1)), "tracks[2].name", "-inf"},
		{String("\xff"), "tracks[2].name", "UTF-8"},
		{NewFunc("f", nil).Value(), "tracks[2].name", "function"},
		{NewUserdata(1, nil).Value(), "tracks[2].name", "userdata"},
		{mixed.Value(), "tracks[2].name", "mixes"},
		{holes.Value(), "tracks[2].name", "holes"},
		{sparse.Value(), "tracks[2].name", "holes"},
		{named.Value(), "tracks[2].name", "named fields"},
		{oddKey.Value(), "tracks[2].name", "boolean"},
		{cycle.Value(), "tracks[2].name.self", "contains itself"},
		{deep, "tracks[2].name[1][1]", "deeper than 200"},
	} {
		for name, convert := range map[string]func(Value) error{
			"ToJSON": func(v Value) error { _, err := ToJSON(v); return err },
			"ToGo":   func(v Value) error { _, err := ToGo(v); return err },
		} {
			err := convert(nest(test.value))
			if name == "ToGo" && (test.value.isFloat() || test.value.isString()) {
				if err != nil {
					t.Errorf("ToGo: %v", err)
				}
				continue
			}
			var problem *ConvertError
			if !errors.As(err, &problem) || !strings.HasPrefix(problem.Path, test.path) || !strings.Contains(problem.Problem, test.problem) {
				t.Errorf("%s of %v: %v, want %s … %s", name, test.value, err, test.path, test.problem)
			}
		}
	}
}

// TestSharedTablesDoNotExplode converts a value of few tables whose text would be
// too long for any memory.
func TestSharedTablesDoNotExplode(t *testing.T) {
	t.Parallel()
	v := String("leaf")
	for range 100 {
		pair := NewTable(2, 0)
		pair.Append(v)
		pair.Append(v)
		v = pair.Value()
	}
	if _, err := ToJSON(v); err == nil {
		t.Error("ToJSON ended without an error")
	}
	if _, err := ToGo(v); err == nil {
		t.Error("ToGo ended without an error")
	}
}

func TestFromJSONIsCharged(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	s.SetBudget(Budget{Memory: 64 << 10})
	_, err := FromJSON(s, []byte("["+strings.Repeat(`"0123456789",`, 10000)+"0]"))
	expectBudgetError(t, err)
}

func TestGoValues(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	type odd struct {
		Name string `json:"name"`
		N    []int  `json:"n"`
	}
	for _, test := range []struct{ in, want any }{
		{nil, nil}, {true, true}, {3, int64(3)}, {int32(-3), int64(-3)}, {uint64(7), int64(7)}, {uint64(math.MaxUint64), float64(math.MaxUint64)}, {1.5, 1.5}, {float32(0.5), 0.5},
		{"text", "text"}, {[]byte("bytes"), "bytes"}, {json.RawMessage(`{"a":[1]}`), map[string]any{"a": []any{int64(1)}}}, {[]string{"a"}, []any{"a"}},
		{[]any{}, []any{}}, {map[string]any{}, map[string]any{}}, {map[string]any{"x": nil, "y": []any{1}}, map[string]any{"x": nil, "y": []any{int64(1)}}},
		{odd{"n", []int{1}}, map[string]any{"name": "n", "n": []any{int64(1)}}}, {map[string]string{"a": "b"}, map[string]any{"a": "b"}}, {Int(4), int64(4)},
	} {
		v, err := FromGo(s, test.in)
		if err != nil {
			t.Errorf("FromGo(%v): %v", test.in, err)
			continue
		}
		got, err := ToGo(v)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%#v becomes %#v, %v; want %#v", test.in, got, err, test.want)
		}
	}
	if _, err := FromGo(s, make(chan int)); err == nil {
		t.Error("a channel was converted")
	}
}

// jsonValues draws values as ToGo gives them.
func jsonValues() *rapid.Generator[any] {
	return rapid.Deferred(func() *rapid.Generator[any] {
		return rapid.OneOf(
			rapid.Just[any](nil),
			rapid.Bool().AsAny(),
			rapid.Int64().AsAny(),
			rapid.Float64().AsAny(),
			rapid.String().AsAny(),
			rapid.Map(rapid.SliceOfN(jsonValues(), 0, 4), func(s []any) any { return s }),
			rapid.Map(rapid.MapOfN(rapid.String(), jsonValues(), 0, 4), func(m map[string]any) any { return m }),
		)
	})
}

func TestJSONRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := jsonValues().Draw(t, "value")
		s := New(Options{})
		v, err := FromGo(s, want)
		if err != nil {
			t.Fatal(err)
		}
		text, err := ToJSON(v)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			t.Fatalf("%s is not JSON", text)
		}
		back, err := FromJSON(s, text)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ToJSON(back)
		if err != nil || string(again) != string(text) {
			t.Fatalf("%s becomes %s, %v", text, again, err)
		}
		got, err := ToGo(back)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%#v becomes %#v, %v", want, got, err)
		}
	})
}

// FuzzFromJSON compares the reader with that of the standard library.
func FuzzFromJSON(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x\u00e9",null,true]}`))
	f.Add([]byte(`[[[]]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := FromJSON(New(Options{}), data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is not JSON", data)
		}
		text, err := ToJSON(v)
		if err != nil || !json.Valid(text) {
			t.Fatalf("%q becomes %q, %v", data, text, err)
		}
	})
}

func TestNullPrintsAndCompares(t *testing.T) {
	t.Parallel()
	s := newFullState(t, nil)
	s.Globals().SetString("null", Null)
	results, err := run(s, `return tostring(null), null == null, null == nil, type(null), not null, getmetatable(null)`, "=null")
	if err != nil {
		t.Fatal(err)
	}
	want := []Value{String("null"), Bool(true), Bool(false), String("userdata"), Bool(false), Bool(false)}
	for i, w := range want {
		if !RawEqual(results[i], w) {
			t.Errorf("result %d is %v, want %v", i+1, results[i], w)
		}
	}
}
