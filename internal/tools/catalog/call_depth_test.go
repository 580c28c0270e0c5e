package catalog_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/luanette/luanette/internal/base/fault"
	"github.com/luanette/luanette/internal/core/tool"
	"github.com/luanette/luanette/internal/tools/catalog"
)

func TestCirclesEnd(t *testing.T) {
	t.Parallel()
	outside := t.Context()
	for name, inner := range map[string]func(context.Context) context.Context{
		"in the process":      func(ctx context.Context) context.Context { return ctx },
		"through the network": func(context.Context) context.Context { return outside }, // only _meta comes back
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var c *catalog.Catalog
			deepest := 0
			again := func(ctx context.Context, call tool.Call) (tool.Result, error) {
				deepest = catalog.Depth(ctx)
				return c.Call(inner(ctx), call)
			}
			c = open(catalog.Options{Depth: 5}, newMemory().with("a", "x", "", again))
			_, err := c.Call(t.Context(), call("a", "x", ""))
			wantFault(t, err, fault.Limit)
			if deepest != 5 {
				t.Errorf("the deepest call was %d deep, want 5", deepest)
			}
		})
	}
}

func TestDepthTravelsInMeta(t *testing.T) {
	t.Parallel()
	m := newMemory().with("a", "x", "", nil).with("", "own", "", nil)
	c := open(catalog.Options{}, m)
	for _, tt := range []struct {
		space, name, meta, want string
	}{
		{"a", "x", ``, `{"luanette/depth":1}`},
		{"a", "x", `{"k":9007199254740993,"luanette/depth":3}`, `{"k":9007199254740993,"luanette/depth":4}`},
		{"a", "x", `{"luanette/depth":"seven"}`, `{"luanette/depth":1}`},
		{"a", "x", `{"luanette/depth":-9}`, `{"luanette/depth":1}`},
		{"", "own", `{"k":1}`, `{"k":1}`},
	} {
		made := call(tt.space, tt.name, "")
		if tt.meta != "" {
			made.Meta = json.RawMessage(tt.meta)
		}
		if _, err := c.Call(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if got := string(m.calls[len(m.calls)-1].Meta); got != tt.want {
			t.Errorf("_meta %s became %s, want %s", tt.meta, got, tt.want)
		}
	}
	made := call("a", "x", "")
	made.Meta = json.RawMessage(`{"luanette/depth":8}`)
	_, err := c.Call(t.Context(), made)
	wantFault(t, err, fault.Limit)
}
