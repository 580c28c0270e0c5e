package script

import (
	"testing"

	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/scripting/host"
)

func TestOutputIsSentToTheCaller(t *testing.T) {
	t.Parallel()
	var logged []string
	caller := &tool.Caller{Log: func(l tool.Log) { logged = append(logged, l.Logger+" "+l.Level+" "+string(l.Data)) }}
	outcome, err := newRunner(t, nil).Run(t.Context(), Request{
		Source: "print('a', 1) eprint('b') log.debug('c') log.warn('d') for i = 1, 2000 do print(i) end", Caller: caller,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`script info {"number":1,"stream":"stdout","text":"a\t1"}`,
		`script notice {"number":2,"stream":"stderr","text":"b"}`,
		`script debug {"number":3,"stream":"log","text":"c"}`,
		`script warning {"number":4,"stream":"log","text":"d"}`,
	}
	for i := range want {
		if logged[i] != want[i] {
			t.Errorf("logged %s, want %s", logged[i], want[i])
		}
	}
	if len(logged) != liveLines || len(outcome.Output) != 2004 {
		t.Errorf("%d lines logged, %d recorded", len(logged), len(outcome.Output))
	}
}

func TestWatchReplacesTheCaller(t *testing.T) {
	t.Parallel()
	var watched []string
	_, err := newRunner(t, nil).Run(t.Context(), Request{
		Source: "print('a')", Watch: func(l host.OutputLine) { watched = append(watched, l.Text) },
		Caller: &tool.Caller{Log: func(tool.Log) { t.Error("the caller received it too") }},
	})
	if err != nil || len(watched) != 1 {
		t.Errorf("watched %q, %v", watched, err)
	}
}
