package catalog_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

// recording is a step that records when it runs, and refuses with err.
func recording(name string, order *[]string, err error) tool.Step {
	return tool.Step{
		Name: name,
		Before: func(ctx context.Context, _ *tool.Invocation) (context.Context, error) {
			*order = append(*order, "before "+name)
			return ctx, err
		},
		After: func(_ context.Context, i *tool.Invocation) {
			*order = append(*order, "after "+name)
			if i.Err != nil {
				i.Err = fault.Wrap(fault.CodeOf(i.Err), i.Err, "%s", name)
			}
		},
	}
}

func TestStepsRunInOrder(t *testing.T) {
	t.Parallel()
	var order []string
	m := newMemory().with("a", "x", "", func(context.Context, tool.Call) (tool.Result, error) {
		order = append(order, "tool")
		return tool.Output("done", nil)
	})
	steps := []tool.Step{recording("1", &order, nil), {Name: "nothing"}, recording("2", &order, nil)}
	if _, err := open(catalog.Options{Steps: steps}, m).Call(t.Context(), call("a", "x", "")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"before 1", "before 2", "tool", "after 2", "after 1"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
	order = nil
	steps = []tool.Step{recording("1", &order, nil), recording("2", &order, errors.New("no")), recording("3", &order, nil)}
	_, err := open(catalog.Options{Steps: steps}, m).Call(t.Context(), call("a", "x", ""))
	if want := []string{"before 1", "before 2", "after 1"}; !slices.Equal(order, want) || err == nil || err.Error() != "1: no" {
		t.Errorf("refused: order %q, want %q; error %v", order, want, err)
	}
}

func TestPanicOfAToolIsAnError(t *testing.T) {
	t.Parallel()
	var order []string
	m := newMemory().with("a", "x", "", func(context.Context, tool.Call) (tool.Result, error) { panic("oh") })
	c := open(catalog.Options{Steps: []tool.Step{recording("1", &order, nil)}}, m)
	_, err := c.Call(t.Context(), call("a", "x", ""))
	wantFault(t, err, fault.Internal)
	if want := []string{"before 1", "after 1"}; !slices.Equal(order, want) {
		t.Errorf("order %q, want %q", order, want)
	}
}

// However many steps there are, the catalog adds two frames to a call's stack.
func TestStackOfACallIsShort(t *testing.T) {
	t.Parallel()
	var frames []string
	m := newMemory().with("a", "x", "", func(context.Context, tool.Call) (tool.Result, error) {
		pcs := make([]uintptr, 64)
		all := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
		for {
			frame, more := all.Next()
			if strings.Contains(frame.Function, "/catalog.") {
				frames = append(frames, frame.Function[strings.LastIndex(frame.Function, "/")+1:])
			}
			if !more {
				break
			}
		}
		return tool.Output("done", nil)
	})
	if _, err := open(catalog.Options{}, m).Call(t.Context(), call("a", "x", "")); err != nil {
		t.Fatal(err)
	}
	if want := []string{"catalog.(*run).do", "catalog.(*Catalog).Call"}; !slices.Equal(frames, want) {
		t.Errorf("frames %q, want %q", frames, want)
	}
}
