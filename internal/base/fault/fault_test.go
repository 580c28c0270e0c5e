package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
)

func TestMessage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want string
	}{
		"no cause":          {fault.New(fault.NotFound, "no job %d", 7), "no job 7"},
		"cause":             {fault.Wrap(fault.Unavailable, io.EOF, "connect %s", "holler"), "connect holler: EOF"},
		"cause only":        {fault.Wrap(fault.Internal, io.EOF, ""), "EOF"},
		"hint is left out":  {fault.New(fault.Limit, "too much").WithHint("take less"), "too much"},
		"chain of faults":   {fault.Wrap(fault.Script, fault.New(fault.Timeout, "took 30 s"), "run a.lua"), "run a.lua: took 30 s"},
		"percent stays out": {fault.New(fault.Internal, "%s", "100%d"), "100%d"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.err.Error(); got != tt.want {
				t.Errorf("Error() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCodeAndHint(t *testing.T) {
	t.Parallel()
	inner := fault.New(fault.NeedsAuth, "no key").WithHint("set KEY")
	tests := map[string]struct {
		err  error
		code fault.Code
		hint string
	}{
		"plain error":                   {io.EOF, fault.Internal, ""},
		"deadline":                      {fmt.Errorf("call: %w", context.DeadlineExceeded), fault.Timeout, ""},
		"cancel":                        {context.Canceled, fault.Cancelled, ""},
		"fault":                         {inner, fault.NeedsAuth, "set KEY"},
		"wrapped fault":                 {fmt.Errorf("connect: %w", inner), fault.NeedsAuth, "set KEY"},
		"outer code, inner hint":        {fault.Wrap(fault.Upstream, inner, "call"), fault.Upstream, "set KEY"},
		"outer hint wins":               {fault.Wrap(fault.Upstream, inner, "call").WithHint("ask Bob"), fault.Upstream, "ask Bob"},
		"fault around a context's end":  {fault.Wrap(fault.Unavailable, context.Canceled, "stop"), fault.Unavailable, ""},
		"hint below two without":        {fault.Wrap(fault.Script, fmt.Errorf("run: %w", fault.Wrap(fault.Limit, inner, "a")), "b"), fault.Script, "set KEY"},
		"hint that the text has":        {fault.Wrap(fault.Script, inner, "first set KEY"), fault.Script, ""},
		"joined with something unknown": {errors.Join(io.EOF, inner), fault.NeedsAuth, "set KEY"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fault.CodeOf(tt.err); got != tt.code {
				t.Errorf("CodeOf = %s, want %s", got, tt.code)
			}
			if got := fault.HintOf(tt.err); got != tt.hint {
				t.Errorf("HintOf = %q, want %q", got, tt.hint)
			}
		})
	}
	if got := fault.HintOf(nil); got != "" {
		t.Errorf("HintOf(nil) = %q", got)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	inner := fault.New(fault.Limit, "line is full").WithHint("wait").WithDetails(map[string]int{"depth": 50})
	tests := map[string]struct {
		err  error
		want string
	}{
		"all":         {inner, `{"code":"limit_exceeded","message":"line is full","hint":"wait","details":{"depth":50}}`},
		"bare":        {fault.New(fault.Denied, "no"), `{"code":"permission_denied","message":"no"}`},
		"plain error": {io.EOF, `{"code":"internal_error","message":"EOF"}`},
		"wrapped":     {fmt.Errorf("chat: %w", inner), `{"code":"limit_exceeded","message":"chat: line is full","hint":"wait","details":{"depth":50}}`},
		"details that cannot be written are left out": {fault.New(fault.Internal, "x").WithDetails(func() {}), `{"code":"internal_error","message":"x"}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw, err := json.Marshal(fault.From(tt.err))
			if err != nil || string(raw) != tt.want {
				t.Errorf("got  %s (%v)\nwant %s", raw, err, tt.want)
			}
		})
	}
}

func TestFrom(t *testing.T) {
	t.Parallel()
	if fault.From(nil) != nil {
		t.Error("From(nil) is not nil")
	}
	f := fault.New(fault.Conflict, "exists")
	if fault.From(f) != f {
		t.Error("From of a fault is another fault")
	}
	if wrapped := fault.From(fmt.Errorf("store: %w", f)); !errors.Is(wrapped, f) {
		t.Error("From lost the cause")
	}
}

// TestWithCopies checks that the With methods copy, so that a shared fault can get
// another hint.
func TestWithCopies(t *testing.T) {
	t.Parallel()
	shared := fault.New(fault.Conflict, "exists")
	_ = shared.WithHint("a")
	_ = shared.WithDetails(1)
	if shared.Hint != "" || shared.Details != nil {
		t.Errorf("the original was changed: %+v", shared)
	}
}
