package js

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestHasBigInteger(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`1`: false, `[123456789012345,123456789012345]`: false, `9007199254740993`: true,
		`{"a":-12345678901234567890}`: true, `"12345678901234567890"`: false, `"a\"12345678901234567890"`: false,
		`["x",12345678901234567890]`: true,
	} {
		if got := hasBigInteger([]byte(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestSourceMap(t *testing.T) {
	t.Parallel()
	source := "type A = {\n  n: number\n}\nfunction f(a: A): number {\n    return a.n as number\n}\nlet s: string = `x${f({n: 1})}`"
	text, m, err := stripTypes(source, "a.ts")
	if err != nil {
		t.Fatal(err)
	}
	find := func(text, what string) (line, column int) {
		before, _, _ := strings.Cut(text, what)
		return 1 + strings.Count(before, "\n"), len(before) - strings.LastIndex(before, "\n")
	}
	for _, what := range []string{"function f", "return", "let s", "f({"} {
		line, column := find(text, what)
		wantLine, wantColumn := find(source, what)
		if gotLine, gotColumn := m.lookup(line, column); gotLine != wantLine || gotColumn != wantColumn {
			t.Errorf("%s is mapped to %d:%d, want %d:%d", what, gotLine, gotColumn, wantLine, wantColumn)
		}
	}
}

func TestDecodeVLQ(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"A": 0, "C": 1, "D": -1, "2H": 123, "qxmvrH": 123456789} {
		if got, rest, err := decodeVLQ(text); got != want || rest != "" || err != nil {
			t.Errorf("%s: got %d %q %v, want %d", text, got, rest, err, want)
		}
	}
	for _, text := range []string{"", "*", "gggggggg"} {
		if _, _, err := decodeVLQ(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestNesting(t *testing.T) {
	t.Parallel()
	plain := strings.Repeat("const f = async (a: number) => {\n  if (a > 1) { return a.b.c(1, [2]) ?? -1 }\n  foo.bar()\n  baz(x => x + 1)\n}\n", 500)
	for name, c := range map[string]struct {
		source string
		deep   bool
	}{
		"ordinary code":     {plain, false},
		"without semicolon": {strings.Repeat("a.b.c = d\n", 5000), false},
		"brackets":          {strings.Repeat("(", 2000), true},
		"arrows":            {strings.Repeat("a=>", 300), true},
		"prefixes":          {strings.Repeat("!", 2000), true},
		"ifs over lines":    {strings.Repeat("if(a)\n", 2000), true},
		"members":           {"a" + strings.Repeat("\n.b", 2000), true},
		"templates":         {strings.Repeat("`${", 500), true},
	} {
		if got := nesting(c.source); (got > maxNesting) != c.deep {
			t.Errorf("%s: estimated at %d", name, got)
		}
	}
}

// FuzzRoundTrip checks that JSON from the host returns as the same value: integers of any
// size as integers, strings unchanged.
func FuzzRoundTrip(f *testing.F) {
	for _, seed := range []string{
		`null`, `0`, `-1`, `1.5`, `1e300`, `9007199254740993`, `-123456789012345678901234567890`, `""`, `"ä\u0000\ud83d\ude00"`, `"\ud800"`,
		`[]`, `{}`, `{"a":[1,{"b":null}],"":true}`, `{"__proto__":1}`, `{"then":1,"toJSON":2,"constructor":3}`, `{"2":1,"1":2,"a":3}`, `[[[[[[1]]]]]]`,
		`"\u2028\u2029</script>"`, `{"a":1,"a":2}`, `-0`, `1E2`, `12345678901234567890.5`, `1e-7`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, given []byte) {
		if !json.Valid(given) || len(given) > 64<<10 {
			t.Skip("no JSON, or more of it than is worth the time")
		}
		host := HostFuncs{OnCall: func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return given, nil }}
		got, err := shared.Run(t.Context(), Program{Source: "__result__ = [await mcp.x.y()]", Limits: Limits{Time: time.Minute}}, host)
		if err != nil {
			t.Fatalf("%s: %v", given, err)
		}
		want, have := normal(t, []byte("["+string(given)+"]")), normal(t, got.Result)
		if diff := cmp.Diff(want, have); diff != "" {
			t.Errorf("%s came back as %s:\n%s", given, got.Result, diff)
		}
	})
}

// normal decodes JSON so that equal values are equal: numbers as JavaScript has them,
// integers exactly.
func normal(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return normalize(v)
}

func normalize(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, ok := new(big.Int).SetString(v.String(), 10); ok {
			return n.String()
		}
		x, err := v.Float64()
		if err != nil { // too large: infinite, which JSON cannot represent
			return nil
		}
		if x == math.Trunc(x) && math.Abs(x) < 1e21 {
			return strconv.FormatFloat(x+0, 'f', -1, 64) // as JavaScript writes it
		}
		return x
	case []any:
		for i := range v {
			v[i] = normalize(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = normalize(v[k])
		}
	}
	return v
}
