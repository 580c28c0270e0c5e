package commandline_test

import (
	"slices"
	"testing"

	"github.com/luanette/luanette/internal/base/commandline"
)

func TestSplitAndJoin(t *testing.T) {
	t.Parallel()
	for line, want := range map[string][]string{
		``:                            nil,
		` a  b `:                      {"a", "b"},
		`npx -y 'a b' "c \"d" e\ f`:   {"npx", "-y", "a b", `c "d`, "e f"},
		`text="hello there"x path=''`: {"text=hello therex", "path="},
		`C:\\dir`:                     {`C:\dir`},
	} {
		words, ok := commandline.Split(line)
		if !ok || !slices.Equal(words, want) {
			t.Errorf("%s: %q, %v", line, words, ok)
		}
		if again, _ := commandline.Split(commandline.Join(words)); !slices.Equal(again, words) {
			t.Errorf("%s: joined and split again: %q", line, again)
		}
	}
	for _, line := range []string{`'open`, `a "b`, `\`} {
		if words, ok := commandline.Split(line); ok {
			t.Errorf("%s: %q", line, words)
		}
	}
}

func TestPair(t *testing.T) {
	t.Parallel()
	types := map[string]string{"n": "integer", "s": "string", "o": "object", "l": "array"}
	typeOf := func(key string) string { return types[key] }
	for pair, want := range map[string]string{"n=4": "n 4", "n=four": `n "four"`, "s=4": `s "4"`, "x=true": `x "true"`, `x:=[1]`: "x [1]", `o={"a":1}`: `o {"a":1}`, `l=[1]`: "l [1]", "x=a=b": `x "a=b"`} {
		key, value, err := commandline.Pair(pair, typeOf)
		if err != nil || key+" "+string(value) != want {
			t.Errorf("%s: %s %s, %v", pair, key, value, err)
		}
	}
	for _, pair := range []string{"x", "=x", "x:={", "o=a", "l=1,2"} {
		if _, _, err := commandline.Pair(pair, typeOf); err == nil {
			t.Errorf("%s was read", pair)
		}
	}
}
