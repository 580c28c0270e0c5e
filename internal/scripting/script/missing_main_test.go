package script

import (
	"errors"
	"testing"
)

// A script without main that is run by its main, as jobs are, is refused before any of it
// runs, whoever starts it.
func TestScriptWithoutMainHasNoEffects(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ language, source string }{
		{Lua, `kv.set("ran", 1)`},
		{Lua, `kv.set("ran", 1) local function main() end`},
		{Lua, `kv.set("ran", "main")`},
		{JavaScript, `kv.set("ran", 1)`},
		{JavaScript, `kv.set("ran", 1); // this is the main part`},
		{JavaScript, `kv.set("ran", "main"); { let main = () => 1 }`},
	} {
		t.Run(c.source, func(t *testing.T) {
			t.Parallel()
			store := openKV(t)
			r := newRunner(t, func(o *Options) { o.KV = store })
			q := Request{Source: c.source, Language: c.language, Main: true}
			var failure *Error
			if _, err := r.Run(t.Context(), q); !errors.As(err, &failure) || failure.Kind != MissingMain {
				t.Errorf("Run: %v", err)
			}
			if _, err := r.Prepare(t.Context(), q); !errors.As(err, &failure) || failure.Kind != MissingMain {
				t.Errorf("Prepare: %v", err)
			}
			outcome, err := r.Run(t.Context(), Request{Source: `return kv.get("ran")`})
			if err != nil || string(outcome.Result) != "null" {
				t.Errorf("it left %s, %v", outcome.Result, err)
			}
		})
	}
}

// However a script defines main, it runs.
func TestEveryMainIsFound(t *testing.T) {
	t.Parallel()
	r := newRunner(t, nil)
	for source, language := range map[string]string{
		"function main() return 1 end":                                      Lua,
		"main = function() return 1 end":                                    Lua,
		"_G.main = function() return 1 end":                                 Lua,
		"_ENV['ma' .. 'in'] = function() return 1 end":                      Lua,
		"load('function main() return 1 end')()":                            Lua,
		"function main() { return 1 }":                                      JavaScript,
		"const one = 1, main = () => one":                                   JavaScript,
		"let one = 1; var main = () => one":                                 JavaScript,
		"const { main } = { main: () => 1 }":                                JavaScript,
		"this.main = () => 1":                                               JavaScript,
		"globalThis.main = () => 1":                                         JavaScript,
		"let n: number = 1; const main = (): number => n":                   JavaScript,
		"const one = async () => 1; async function main() { return one() }": JavaScript,
	} {
		outcome, err := r.Run(t.Context(), Request{Source: source, Language: language, Main: true})
		if err != nil || string(outcome.Result) != "1" {
			t.Errorf("%s: %s, %v", source, outcome.Result, err)
		}
	}
}
