package catalog

import (
	"context"

	"github.com/luanette/luanette/internal/core/tool"
)

// lookUp finds a tool in the sources as they are now. If it is not there, the owner of
// its namespace is asked to list its tools.
func (c *Catalog) lookUp(ctx context.Context, ref tool.Ref) (*view, *entry) {
	v := c.refresh(ctx)
	e := v.find(ref)
	if e == nil && c.canLoad(v, ref.Space) {
		v = c.loaded(ctx, ref.Space)
		e = v.find(ref)
	}
	return v, e
}

// listed is the current view, with the tools of a namespace if they can be listed.
func (c *Catalog) listed(ctx context.Context, namespace string) *view {
	v := c.refresh(ctx)
	if c.canLoad(v, namespace) && len(v.namespaces[namespace].tools) == 0 {
		return c.loaded(ctx, namespace)
	}
	return v
}

// canLoad tells whether the owner of a namespace may know more of its tools.
func (c *Catalog) canLoad(v *view, namespace string) bool {
	n := v.namespaces[namespace]
	return c.load != nil && n != nil && n.owner != nil
}

// isUnlisted tells whether a namespace has an owner that has not listed any tools.
func (v *view) isUnlisted(namespace string) bool {
	n := v.namespaces[namespace]
	return n != nil && n.owner != nil && len(n.tools) == 0
}

func (c *Catalog) loaded(ctx context.Context, namespace string) *view {
	c.load(ctx, namespace)
	return c.refresh(ctx)
}
