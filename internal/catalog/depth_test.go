package catalog_test

import (
	"context"
	"testing"

	"github.com/luanette/luanette/internal/catalog"
	"github.com/luanette/luanette/internal/fault"
	"github.com/luanette/luanette/internal/tool"
)

func TestCirclesComeToAnEnd(t *testing.T) {
	t.Parallel()
	var c *catalog.Catalog
	deepest := 0
	again := func(ctx context.Context, call tool.Call) (tool.Result, error) {
		deepest = catalog.Depth(ctx)
		return c.Call(ctx, call)
	}
	c = open(catalog.Options{Depth: 5}, newMemory().with("a", "x", "", again))
	_, err := c.Call(t.Context(), call("a", "x", ""))
	wantFault(t, err, fault.Limit)
	if deepest != 5 {
		t.Errorf("the deepest call was %d deep, want 5", deepest)
	}
}

func TestDepthFromOutsideCounts(t *testing.T) {
	t.Parallel()
	c := open(catalog.Options{}, newMemory().with("a", "x", "", nil))
	if _, err := c.Call(catalog.WithDepth(t.Context(), catalog.DefaultDepth-1), call("a", "x", "")); err != nil {
		t.Errorf("the deepest call allowed: %v", err)
	}
	_, err := c.Call(catalog.WithDepth(t.Context(), catalog.DefaultDepth), call("a", "x", ""))
	wantFault(t, err, fault.Limit)
}
